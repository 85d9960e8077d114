//! The known word nearest to an unknown one.

/// The nearest of `known` to `word`, when one is near enough to be what was meant: a third of its
/// letters may differ, two swapped ones count as one, case does not count. Of several, the first by the alphabet.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_ascii_lowercase();
    let length = wanted.chars().count();
    if length == 0 || length > 64 {
        return None;
    }
    let most = (length / 3).max(1);
    known
        .filter(|known| known.len().abs_diff(wanted.len()) <= most)
        .map(|known| (strsim::damerau_levenshtein(&wanted, &known.to_ascii_lowercase()), known))
        .filter(|(distance, known)| *distance <= most && *distance < known.chars().count())
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_mistake_finds_its_word_and_nonsense_does_not() {
        let known = ["frontend", "backend", "bind", "acl", "ssl"];
        for (word, expected) in [
            ("fronted", Some("frontend")),
            ("bakcend", Some("backend")),
            ("BIND", Some("bind")),
            ("acll", Some("acl")),
            ("zzz", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
        }
    }
}
