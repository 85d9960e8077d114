//! Tools for measuring: a scripted origin and a load client that checks what it gets.

mod body;
mod keys;
mod latency;
mod load;
mod origin;
mod tally;

use super::Exit;

/// The commands of `bench`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Send requests as fast as answers come, check the bodies, print rates and latencies
    Load(load::Args),
    /// Serve what each request's path and query ask for, and count the requests
    Origin(origin::Args),
}

/// Runs one of them.
///
/// # Errors
/// It cannot listen or connect, or an argument makes no sense.
pub(super) fn bench(command: Command) -> Result<(), Exit> {
    match command {
        Command::Load(args) => load::load(&args),
        Command::Origin(args) => origin::origin(&args),
    }
}

/// The field in which the origin says what the body adds up to.
const CHECKSUM: &str = "x-checksum";
/// The field in which the origin repeats the target it was asked for.
const TARGET: &str = "x-target";

/// A sum over a body that changes when bytes change or swap places, whatever pieces the body comes in.
/// Fletcher's, with 64-bit sums: about a cycle a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Checksum {
    sum: u64,
    sums: u64,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.sum = self.sum.wrapping_add(u64::from(byte) + 1);
            self.sums = self.sums.wrapping_add(self.sum);
        }
    }

    fn text(self) -> String {
        format!("{:016x}{:016x}", self.sum, self.sums)
    }
}

/// Numbers that look random and come again with the same seed (xorshift64*).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Between 0 and 1, 1 left out.
    fn unit(&mut self) -> f64 {
        // 32 bits are exact in an f64, and enough for choosing a key.
        f64::from(u32::try_from(self.next() >> 32).unwrap_or(u32::MAX)) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_sees_order_and_not_pieces() {
        let sum = |pieces: &[&[u8]]| {
            let mut sum = Checksum::default();
            pieces.iter().for_each(|piece| sum.add(piece));
            sum
        };
        assert_eq!(sum(&[b"abc"]), sum(&[b"a", b"", b"bc"]));
        assert_ne!(sum(&[b"abc"]), sum(&[b"acb"]));
        assert_ne!(sum(&[b"\0"]), sum(&[b"\0\0"]));
    }
}
