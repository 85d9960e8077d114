//! Hashes of passwords as crypt(3) writes them: `$1$` (MD5), `$5$` and `$6$` (SHA-2), `$2…$` (bcrypt), `$y$` (yescrypt).

use md5::{Digest, Md5};
use sha_crypt::PasswordVerifier;

/// A hash of one of these kinds.
#[derive(Clone, Debug)]
pub struct Crypt {
    kind: Kind,
    text: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Md5,
    Sha2,
    Bcrypt,
    Yescrypt,
}

/// How each kind begins.
const KINDS: [(&str, Kind); 7] = [
    ("$1$", Kind::Md5),
    ("$5$", Kind::Sha2),
    ("$6$", Kind::Sha2),
    ("$2a$", Kind::Bcrypt),
    ("$2b$", Kind::Bcrypt),
    ("$2y$", Kind::Bcrypt),
    ("$y$", Kind::Yescrypt),
];

impl Crypt {
    /// The hash that a text is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "it is no text")?;
        let known = KINDS.iter().find(|(prefix, _)| text.starts_with(prefix));
        let &(_, kind) = known.ok_or("it begins with none of `$1$`, `$5$`, `$6$`, `$2b$` and `$y$`")?;
        let parts = text.split('$').count();
        let shaped = match kind {
            Kind::Md5 => parts == 4,
            Kind::Sha2 => parts == 4 || (parts == 5 && text.contains("$rounds=")),
            Kind::Bcrypt => text.len() == 60,
            Kind::Yescrypt => parts == 5,
        };
        if shaped { Ok(Self { kind, text: text.into() }) } else { Err("it is cut off, or has more than a hash has") }
    }

    /// Whether it is the hash of `password`.
    pub fn fits(&self, password: &[u8]) -> bool {
        match self.kind {
            Kind::Md5 => md5_fits(&self.text, password),
            Kind::Sha2 => sha_crypt::ShaCrypt::default().verify_password(password, &*self.text).is_ok(),
            Kind::Bcrypt => bcrypt::verify(password, &self.text).unwrap_or(false),
            Kind::Yescrypt => yescrypt::Yescrypt::default().verify_password(password, &*self.text).is_ok(),
        }
    }
}

/// Whether two texts are equal, in a time that depends on the lengths alone.
pub(super) fn equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

fn md5_fits(text: &str, password: &[u8]) -> bool {
    let mut parts = text.split('$').skip(2);
    let (Some(salt), Some(hash)) = (parts.next(), parts.next()) else { return false };
    equal(&md5_crypt(password, salt.as_bytes()), hash.as_bytes())
}

/// The scheme of FreeBSD's crypt(3) with MD5: a thousand rounds over password, salt and the round before.
fn md5_crypt(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let salt = salt.get(..8).unwrap_or(salt);
    let digest = |pieces: &[&[u8]]| -> [u8; 16] {
        let mut md5 = Md5::new();
        pieces.iter().for_each(|piece| md5.update(piece));
        md5.finalize().into()
    };
    let alternate = digest(&[password, salt, password]);
    let mut first = Md5::new();
    first.update(password);
    first.update(b"$1$");
    first.update(salt);
    for piece in (0..password.len()).step_by(16) {
        let left = (password.len() - piece).min(16);
        first.update(alternate.get(..left).unwrap_or_default());
    }
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &[0][..] } else { password.get(..1).unwrap_or_default() });
        bits >>= 1;
    }
    let mut sum: [u8; 16] = first.finalize().into();
    for round in 0..1000 {
        let odd = round % 2 == 1;
        let (begin, end): (&[u8], &[u8]) = if odd { (password, &sum) } else { (&sum, password) };
        let salted: &[u8] = if round % 3 == 0 { b"" } else { salt };
        let again: &[u8] = if round % 7 == 0 { b"" } else { password };
        sum = digest(&[begin, salted, again, end]);
    }
    in_letters(&sum)
}

/// The digest in the order and the alphabet of crypt(3).
fn in_letters(sum: &[u8; 16]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15] = sum.map(u32::from);
    let groups =
        [(s0, s6, s12, 4), (s1, s7, s13, 4), (s2, s8, s14, 4), (s3, s9, s15, 4), (s4, s10, s5, 4), (0, 0, s11, 2)];
    let mut letters = Vec::with_capacity(22);
    for (high, middle, low, count) in groups {
        let mut value = high << 16 | middle << 8 | low;
        for _ in 0..count {
            letters.extend(ALPHABET.get(value as usize & 63));
            value >>= 6;
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of `secret` that Debian's crypt(3) made.
    #[test]
    fn hashes_fit_their_password_alone() {
        for hash in include_str!("../../../tests/fixtures/passwords.txt").lines() {
            let crypt = Crypt::read(hash.as_bytes()).unwrap();
            assert!(crypt.fits(b"secret"), "{hash}");
            assert!(!crypt.fits(b"Secret") && !crypt.fits(b"") && !crypt.fits(b"secret "), "{hash}");
        }
    }

    #[test]
    fn texts_that_are_no_hash_are_told_apart() {
        for text in ["", "secret", "$7$x$y", "$1$salt", "$6$salt", "$2b$10$short", "$y$j9T$x", "ab/cdefghijkl"] {
            assert!(Crypt::read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn longer_passwords_have_md5_hashes() {
        let password = b"a password that is longer than one block of the digest, to be sure";
        assert_eq!(md5_crypt(password, b"abcdefgh"), LONG.as_bytes());
    }

    const LONG: &str = "hTB.kKfCFveA0lbBBKfYj/";
}
