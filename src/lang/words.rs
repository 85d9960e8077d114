//! Words of a line: HAProxy's quotes, escapes and variables (manual §2.2, §2.3), over the shapes of
//! `grammar/line.pest`.

use pest::{Parser, iterators::Pair};

use super::{
    Outside,
    ast::Word,
    code,
    diag::{Diagnostic, Severity},
    source::{FileId, Span, offset},
};
use shape::{Rule, Shapes};

mod shape {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/line.pest"]
    pub(super) struct Shapes;
}

/// One line's shape.
pub(super) type Shape<'t> = Pair<'t, Rule>;

/// A text of which every byte that is not part of UTF-8 is replaced by a harmless one, so that
/// offsets stay what they are. A byte order mark becomes blanks.
pub(super) fn readable(text: &[u8]) -> String {
    let mut readable = String::with_capacity(text.len());
    let rest = match text.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => {
            readable.push_str("   ");
            rest
        }
        None => text,
    };
    for chunk in rest.utf8_chunks() {
        readable.push_str(chunk.valid());
        readable.extend(chunk.invalid().iter().map(|_| '?'));
    }
    readable
}

/// The lines of a text, blank ones included. There is no text without a shape; should the grammar
/// ever fail, its error is returned.
pub(super) fn lines(readable: &str) -> Result<impl Iterator<Item = Shape<'_>>, Box<pest::error::Error<Rule>>> {
    let config = Shapes::parse(Rule::config, readable).map_err(Box::new)?;
    Ok(config.flat_map(Pair::into_inner).filter(|pair| pair.as_rule() == Rule::line))
}

/// What the words of a line may refer to.
pub(super) struct Surroundings<'a> {
    pub(super) outside: &'a dyn Outside,
    pub(super) file: FileId,
    pub(super) text: &'a [u8],
    /// `.FILE`.
    pub(super) name: &'a str,
    /// `.LINE`.
    pub(super) line: u32,
    /// `.SECTION`.
    pub(super) section: &'a str,
}

/// A line taken apart.
pub(super) struct Split {
    /// Its words; one with an error in it is as far as it could be read. Empty ones are there too.
    pub(super) words: Vec<Word>,
    /// What is wrong with them, and what looks so.
    pub(super) found: Vec<Diagnostic>,
}

impl Split {
    /// Keeps what is wrong whatever becomes of the line: HAProxy splits the lines of blocks that do not count, too.
    pub(super) fn only_unreadable(&mut self) {
        let unreadable = [code::OPEN_QUOTE, code::BAD_HEX, code::BAD_VARIABLE, code::NUL];
        self.found.retain(|found| unreadable.contains(&found.code));
    }

    /// Whether there is an error among the findings.
    pub(super) fn is_broken(&self) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error)
    }
}

/// The words of a line.
pub(super) fn words(shape: Shape<'_>, around: &Surroundings<'_>) -> Split {
    let (mut words, mut found) = (Vec::new(), Vec::new());
    for pair in shape.into_inner() {
        match pair.as_rule() {
            Rule::word => Reader::new(&pair, around).read(pair, &mut words, &mut found),
            Rule::stray if pair.as_str().trim().is_empty() => {}
            Rule::stray => {
                let message = "a carriage return in the middle of a line: HAProxy would drop what follows it";
                found.push(Diagnostic::error(code::STRAY_RETURN, span(&pair, around.file), message));
            }
            _ => {}
        }
    }
    if let Some(last) = words.last().filter(|last: &&Word| last.is("\\") && words.len() > 1) {
        found.push(
            Diagnostic::error(code::CONTINUATION, last.span, "a line cannot be continued with `\\`")
                .help("write the whole statement on one line; for a backslash itself write `\\\\`"),
        );
    }
    Split { words, found }
}

/// One word being read.
struct Reader<'a> {
    around: &'a Surroundings<'a>,
    whole: Span,
    text: Vec<u8>,
    origins: Vec<u32>,
    /// Whether a variable with `[*]` has cut this word: then pieces without text are no words.
    cut: bool,
    unset: Option<(String, Span)>,
}

impl<'a> Reader<'a> {
    fn new(pair: &Shape<'_>, around: &'a Surroundings<'a>) -> Self {
        let whole = span(pair, around.file);
        Self { around, whole, text: Vec::new(), origins: Vec::new(), cut: false, unset: None }
    }

    fn read(mut self, pair: Shape<'_>, words: &mut Vec<Word>, found: &mut Vec<Diagnostic>) {
        let before = found.len();
        for piece in pair.into_inner() {
            self.piece(piece, words, found);
        }
        let unset = self.unset.take();
        if self.text.is_empty() && found.len() == before {
            if !self.cut {
                found.push(empty(self.whole, unset));
                words.push(Word { text: Vec::new(), span: self.whole, origins: vec![self.whole.end] });
            }
            return;
        }
        if let Some((name, span)) = unset {
            found.push(
                Diagnostic::warning(code::UNSET_VARIABLE, span, format!("the variable `{name}` is not set"))
                    .help(format!("write `${{{name}-}}` when it may be missing, `${{{name}-VALUE}}` for a default")),
            );
        }
        self.flush(words);
    }

    fn piece(&mut self, piece: Shape<'_>, words: &mut Vec<Word>, found: &mut Vec<Diagnostic>) {
        let at = span(&piece, self.around.file);
        let second = || piece.as_str().as_bytes().get(1).copied().unwrap_or(b'\\');
        match piece.as_rule() {
            Rule::strong | Rule::weak => {
                for inner in piece.into_inner() {
                    if inner.as_rule() == Rule::open {
                        found.push(
                            Diagnostic::error(code::OPEN_QUOTE, at, "this quote is not closed")
                                .help("a quote ends on its line; for a quote itself write `\\\"` or `\\'`"),
                        );
                    } else {
                        self.piece(inner, words, found);
                    }
                }
            }
            Rule::plain => {
                self.copy(at, found);
                found.extend(lookalike(piece.as_str(), at));
                found.extend(unquoted(piece.as_str(), at));
            }
            Rule::literal | Rule::weak_text => self.copy(at, found),
            Rule::backslash => self.push(b'\\', at.start),
            Rule::dollar => self.push(b'$', at.start),
            Rule::escape => self.push(escaped(second()), at.start),
            Rule::hex => {
                let digits = piece.as_str().get(2..).unwrap_or_default();
                self.push(u8::from_str_radix(digits, 16).unwrap_or_default(), at.start);
            }
            Rule::bad_hex => found.push(
                Diagnostic::error(code::BAD_HEX, at, "`\\x` needs two hexadecimal digits")
                    .help("for a backslash itself write `\\\\`"),
            ),
            Rule::variable => self.variable(piece, words),
            _ => found.push(
                Diagnostic::error(code::BAD_VARIABLE, at, "`$` in double quotes begins a variable, and this is none")
                    .help("write `\"$NAME\"` or `\"${NAME}\"` or `\"${NAME-default}\"`; for a dollar sign write `\\$`"),
            ),
        }
    }

    fn copy(&mut self, at: Span, found: &mut Vec<Diagnostic>) {
        let bytes = self.around.text.get(at.start as usize..at.end as usize).unwrap_or_default();
        if let Some(nul) = memchr::memchr(0, bytes) {
            let start = at.start.saturating_add(offset(nul));
            let here = Span { start, end: start.saturating_add(1), ..at };
            found.push(Diagnostic::error(code::NUL, here, "a NUL byte: is this a text file?"));
        }
        self.text.extend_from_slice(bytes);
        self.origins.extend(at.start..at.end);
    }

    fn push(&mut self, byte: u8, origin: u32) {
        self.text.push(byte);
        self.origins.push(origin);
    }

    fn variable(&mut self, piece: Shape<'_>, words: &mut Vec<Word>) {
        let at = span(&piece, self.around.file);
        let (mut name, mut default, mut each) = ("", None, false);
        for inner in piece.into_inner() {
            match inner.as_rule() {
                Rule::name => name = inner.as_str(),
                Rule::default => default = Some(inner.as_str()),
                _ => each = true,
            }
        }
        let value = self.lookup(name).or_else(|| default.map(str::to_owned));
        if value.is_none() && !each {
            self.unset = Some((name.to_owned(), at));
        }
        self.cut |= each;
        for byte in value.unwrap_or_default().bytes() {
            if each && byte.is_ascii_whitespace() {
                self.flush(words);
            } else {
                self.push(byte, at.start);
            }
        }
    }

    fn lookup(&self, name: &str) -> Option<String> {
        match name {
            ".FILE" => Some(self.around.name.to_owned()),
            ".LINE" => Some(self.around.line.to_string()),
            ".SECTION" => Some(self.around.section.to_owned()),
            _ => self.around.outside.var(name),
        }
    }

    /// Ends the word, if there is any text.
    fn flush(&mut self, words: &mut Vec<Word>) {
        if self.text.is_empty() {
            return;
        }
        let mut origins = std::mem::take(&mut self.origins);
        origins.push(self.whole.end);
        words.push(Word { text: std::mem::take(&mut self.text), span: self.whole, origins });
    }
}

fn empty(span: Span, unset: Option<(String, Span)>) -> Diagnostic {
    let error = Diagnostic::error(code::EMPTY_WORD, span, "this word is empty, and an empty word ends the line");
    match unset {
        Some((name, _)) => {
            error.help(format!("the variable `{name}` is not set; write `${{{name}-VALUE}}` for a default"))
        }
        None => error.help("leave the word out, or write what it should say"),
    }
}

/// The first character that looks like a blank or a quote and, as in HAProxy, is a character like others.
fn lookalike(text: &str, at: Span) -> Option<Diagnostic> {
    let (from, found) = text.char_indices().find(|(_, character)| !character.is_ascii() && is_lookalike(*character))?;
    let start = at.start.saturating_add(offset(from));
    let here = Span { start, end: start.saturating_add(offset(found.len_utf8())), ..at };
    let number = u32::from(found);
    Some(if is_quote(found) {
        Diagnostic::warning(code::LOOKALIKE, here, format!("this typographic quote (U+{number:04X}) quotes nothing"))
            .help("write `\"` or `'`; where the character itself is meant, put the word in quotes")
    } else {
        Diagnostic::warning(code::LOOKALIKE, here, format!("this special blank (U+{number:04X}) separates no words"))
            .help("write a plain blank; where the character itself is meant, put the word in quotes")
    })
}

const fn is_lookalike(character: char) -> bool {
    let blank = matches!(
        character,
        '\u{a0}' | '\u{2000}'..='\u{200d}' | '\u{202f}' | '\u{205f}' | '\u{2060}' | '\u{3000}' | '\u{feff}'
    );
    blank || is_quote(character)
}

const fn is_quote(character: char) -> bool {
    matches!(character, '\u{2018}'..='\u{201f}' | '\u{ab}' | '\u{bb}')
}

/// `${NAME…}` outside of quotes.
fn unquoted(text: &str, at: Span) -> Option<Diagnostic> {
    let from = text.find("${")?;
    let inner = text.get(from + 2..)?;
    let to =
        inner.find('}').filter(|_| inner.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))?;
    let whole = text.get(from..from + to + 3)?;
    let start = at.start.saturating_add(offset(from));
    let here = Span { start, end: start.saturating_add(offset(whole.len())), ..at };
    Some(
        Diagnostic::warning(code::UNQUOTED_VARIABLE, here, "a variable outside double quotes stays as it is written")
            .help(format!("write `\"{text}\"`; for the text itself, put it in single quotes")),
    )
}

/// What stands for `\` and this byte.
const fn escaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}

/// Where a shape stands.
pub(super) fn span(pair: &Shape<'_>, file: FileId) -> Span {
    let span = pair.as_span();
    Span { file, start: offset(span.start()), end: offset(span.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::testing::Desk;

    fn split(text: &[u8]) -> (Vec<Vec<String>>, Vec<&'static str>) {
        let desk = Desk::new().with_var("A", "x y").with_var("EMPTY", "");
        let readable = readable(text);
        let mut found: Vec<Diagnostic> = Vec::new();
        let mut out = Vec::new();
        for shape in lines(&readable).unwrap() {
            let around =
                Surroundings { outside: &desk, file: FileId(0), text, name: "f.cfg", line: 7, section: "global" };
            let mut split = words(shape, &around);
            if !split.is_broken() {
                out.push(split.words.iter().map(|word| word.text.escape_ascii().to_string()).collect());
            }
            found.append(&mut split.found);
        }
        (out, found.iter().map(|found| found.code).collect())
    }

    #[test]
    fn words_split_as_in_haproxy() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"a b\tc\x0bd\x0ce", &["a", "b", "c", "d", "e"]),
            (b"a#b c", &["a"]),
            (b"a\\#b '#' ", &["a#b", "#"]),
            (br#""a b"' c'\ d"#, &["a b c d"]),
            (br#"'a"b' "a'b" \" \' "#, &["a\\\"b", "a\\'b", "\\\"", "\\'"]),
            (br"\n\r\t\x41\\", &["\\n\\r\\tA\\\\"]),
            (br"^\.a\1\/\$", &["^\\\\.a\\\\1\\\\/\\\\$"]),
            (br#""\$A" '\$A' $A "#, &["$A", "\\\\$A", "$A"]),
            (br#""$A" "${A}z""#, &["x y", "x yz"]),
            (br#""${NO-d e}" "${A-d}" "${EMPTY-d}q""#, &["d e", "x y", "q"]),
            (br#""${A[*]}" "l${A[*]}r" "${NO[*]}" e"#, &["x", "y", "lx", "yr", "e"]),
            (br#""${.FILE}:${.LINE}:${.SECTION}""#, &["f.cfg:7:global"]),
            (br#"'\n$A'"#, &["\\\\n$A"]),
            (b"caf\xc3\xa9 \xff", &["caf\\xc3\\xa9", "\\xff"]),
            (b"\xef\xbb\xbfa", &["a"]),
        ];
        for (text, expected) in cases {
            let (words, codes) = split(text);
            assert_eq!(words, [expected.to_vec()], "{}", text.escape_ascii());
            assert!(codes.is_empty(), "{}: {codes:?}", text.escape_ascii());
        }
    }

    #[test]
    fn line_ends_of_every_kind_are_fine() {
        let (words, codes) = split(b"a\r\nb\n\n  \r\r\nc\r");
        assert_eq!(words.concat(), ["a", "b", "c"]);
        assert!(codes.is_empty());
    }

    #[test]
    fn what_is_wrong_in_words_is_found_all_at_once() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"a 'b", &[code::OPEN_QUOTE]),
            (b"a \"b\nc 'd", &[code::OPEN_QUOTE, code::OPEN_QUOTE]),
            (br"\x4 \xzz", &[code::BAD_HEX, code::BAD_HEX]),
            (br#""$" "${A" "$1""#, &[code::BAD_VARIABLE, code::BAD_VARIABLE, code::BAD_VARIABLE]),
            (b"a\0b", &[code::NUL]),
            (b"a\rb", &[code::STRAY_RETURN]),
            (b"a ''", &[code::EMPTY_WORD]),
            (br#"a "$NO""#, &[code::EMPTY_WORD]),
            (br#"a "b$NO""#, &[code::UNSET_VARIABLE]),
            (b"a \\\nb", &[code::CONTINUATION]),
            (b"a:${A}", &[code::UNQUOTED_VARIABLE]),
            ("a\u{a0}b \u{201c}c\u{201d}".as_bytes(), &[code::LOOKALIKE, code::LOOKALIKE]),
            ("\"a\u{a0}b\" '${A}' ^a${1}".as_bytes(), &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text).1, *expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_byte_knows_where_it_came_from() {
        let text: &[u8] = br#"a"b\x41"'c'"#;
        let readable = readable(text);
        let desk = Desk::new();
        let around = Surroundings { outside: &desk, file: FileId(0), text, name: "", line: 1, section: "" };
        let shape = lines(&readable).unwrap().next().unwrap();
        let words = words(shape, &around).words;
        assert_eq!(words[0].text, b"abAc");
        assert_eq!(words[0].origins, [0, 2, 3, 9, 11]);
        assert_eq!(words[0].part(3..4), Span { file: FileId(0), start: 9, end: 10 });
    }
}
