//! Cache keys: components, each length-prefixed, so that (`ab`,`c`) and (`a`,`bc`) never meet.

/// How much of Host is in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HostRule {
    /// Host with a port that is not the scheme's default.
    #[default]
    WithPort,
    /// Without any port.
    NameOnly,
}

/// The prefix of a component that is absent; no component is that long.
const ABSENT: u32 = u32::MAX;

/// Appends one component: four bytes of length, then its bytes.
pub fn component(value: &[u8], out: &mut Vec<u8>) {
    let start = open(out);
    out.extend_from_slice(value);
    close(start, out);
}

/// Appends the mark of a component that is absent; differs from an empty one.
pub fn absent(out: &mut Vec<u8>) {
    out.extend_from_slice(&ABSENT.to_le_bytes());
}

/// Begins a component that is written in pieces; [`close`] ends it.
pub(super) fn open(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends the component that [`open`] began at `start`. One of 4 GiB or more is cut short in its prefix
/// alone, which keeps keys apart all the same.
pub(super) fn close(start: usize, out: &mut [u8]) {
    let len = u32::try_from(out.len().saturating_sub(start + 4)).unwrap_or(ABSENT - 1);
    if let Some(prefix) = out.get_mut(start..start + 4) {
        prefix.copy_from_slice(&len.to_le_bytes());
    }
}

/// The components of a key, in order; `None`: one that is absent.
pub fn components(mut key: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        let (prefix, rest) = key.split_first_chunk::<4>()?;
        let len = match u32::from_le_bytes(*prefix) {
            ABSENT => None,
            len => Some(usize::try_from(len).unwrap_or(rest.len())),
        };
        let (value, rest) = rest.split_at_checked(len.unwrap_or(0)).unwrap_or((rest, b""));
        key = rest;
        Some(len.map(|_| value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(components: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in components {
            match part {
                Some(value) => component(value.as_bytes(), &mut out),
                None => absent(&mut out),
            }
        }
        out
    }

    #[test]
    fn components_never_run_into_each_other() {
        let parts = [Some("a"), None, Some(""), Some("bc")];
        assert!(components(&key(&parts)).eq(parts.map(|part| part.map(str::as_bytes))));
        let pieces = ["", "a", "b", "ab", "a\0", "\0", "|", "\u{1}\0\0\0a"];
        let mut seen = std::collections::HashSet::new();
        for first in pieces.map(Some).into_iter().chain([None]) {
            for second in pieces.map(Some).into_iter().chain([None]) {
                assert!(seen.insert(key(&[first, second])), "{first:?} {second:?}");
            }
        }
    }
}
