//! Pattern and map files (HAProxy manual §7.1.3): one entry a line, `#` in the first column for comments.

/// The entries with their line numbers, from 1: blank lines and comments left out, leading blanks taken off.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes.split(|&byte| byte == b'\n').enumerate().filter_map(|(index, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first() == Some(&b'#') {
            return None;
        }
        let text = line.trim_ascii_start();
        (!text.is_empty()).then_some((index + 1, text))
    })
}

/// Key and value of a map's line: the first word and what follows it, trimmed.
pub fn entry(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (key, value) = line.split_at_checked(end).unwrap_or((line, b""));
    (key, value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stand_in_the_first_column_only() {
        let text = b"# comment\r\n\n  a b \n #c\nlast";
        let found: Vec<_> = lines(text).collect();
        assert_eq!(found, [(3, &b"a b "[..]), (4, b"#c"), (5, b"last")]);
        assert_eq!(entry(b"key  a value "), (&b"key"[..], &b"a value"[..]));
        assert_eq!(entry(b"key"), (&b"key"[..], &b""[..]));
    }
}
