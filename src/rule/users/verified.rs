//! Passwords that a hash was asked about, so that it is not asked for every request.

use std::{
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
};

use hmac::{Hmac, KeyInit, Mac};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::Sha256;

/// Pairs of name and password that are remembered in each list.
const ROOM: usize = 256;

type Digest = [u8; 32];

/// The pairs that fitted, as digests under a key that is nowhere but in this process; the oldest goes first.
#[derive(Default)]
pub(super) struct Verified(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    digests: Vec<Digest>,
    next: usize,
}

/// The key; `None` when the system gives no random bytes: then nothing is remembered.
static KEY: LazyLock<Option<[u8; 32]>> = LazyLock::new(|| {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).ok().map(|()| key)
});

impl Verified {
    /// Whether a pair fits: `ask` says so, unless it has before. Those that do not are asked about again.
    pub(super) fn fits(&self, name: &[u8], password: &[u8], ask: impl FnOnce() -> bool) -> bool {
        let Some(digest) = digest(name, password) else { return ask() };
        if self.ring().digests.contains(&digest) {
            return true;
        }
        // The hash is not waited for under the lock.
        let fits = ask();
        if fits {
            self.remember(digest);
        }
        fits
    }

    fn remember(&self, digest: Digest) {
        let mut ring = self.ring();
        let at = ring.next;
        ring.next = (at + 1) % ROOM;
        match ring.digests.get_mut(at) {
            Some(oldest) => *oldest = digest,
            None => ring.digests.push(digest),
        }
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified")
    }
}

fn digest(name: &[u8], password: &[u8]) -> Option<Digest> {
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_ref()?).ok()?;
    mac.update(&u64::try_from(name.len()).ok()?.to_be_bytes());
    mac.update(name);
    mac.update(password);
    Some(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_fitted_is_not_asked_about_again() {
        let verified = Verified::default();
        assert!(!verified.fits(b"a", b"b", || false));
        assert!(verified.fits(b"a", b"b", || true));
        assert!(verified.fits(b"a", b"b", || false));
        assert!(!verified.fits(b"ab", b"", || false));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let verified = Verified::default();
        for number in 0..=ROOM {
            assert!(verified.fits(b"a", &number.to_be_bytes(), || true));
        }
        assert!(!verified.fits(b"a", &0_usize.to_be_bytes(), || false));
        assert!(verified.fits(b"a", &ROOM.to_be_bytes(), || false));
        assert_eq!(verified.ring().digests.len(), ROOM);
    }
}
