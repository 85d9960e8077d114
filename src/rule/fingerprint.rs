//! A hash that is the same on every machine and in every version.

/// A 64-bit FNV-1a hash over pieces, each with its length, so that (`ab`, `c`) and (`a`, `bc`) differ.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Adds one piece.
    #[must_use]
    pub fn with(self, piece: &[u8]) -> Self {
        self.bytes(&(piece.len() as u64).to_le_bytes()).bytes(piece)
    }

    /// The hash.
    pub const fn finish(self) -> u64 {
        self.0
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_run_together() {
        let one = Fingerprint::default().with(b"ab").with(b"c").finish();
        let other = Fingerprint::default().with(b"a").with(b"bc").finish();
        assert_ne!(one, other);
        assert_eq!(one, Fingerprint::default().with(b"ab").with(b"c").finish());
    }
}
