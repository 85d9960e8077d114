//! The conditions of `.if` and `.elif` (HAProxy manual §2.4): numbers and predicates combined with `!`, `&&`, `||` and
//! parentheses. A condition is read whole before it is asked, so that what is wrong in it is always found.

use super::{Outside, ast::Word, code, diag::Diagnostic, resolve::arguments, suggest};

/// The version that files meet here: words decide as in it.
pub(super) const VERSION: Version = Version { text: "2.6.12", numbers: [2, 6, 12] };

/// A version of HAProxy.
pub(super) struct Version {
    pub(super) text: &'static str,
    numbers: [u32; 3],
}

impl Version {
    /// `2.6`.
    pub(super) fn branch(&self) -> &str {
        self.text.rsplit_once('.').map_or(self.text, |(branch, _)| branch)
    }
}

/// The version of OpenSSL that TLS here comes nearest to.
const OPENSSL: [u32; 3] = [3, 0, 0];

/// What `feature(…)` finds: names of HAProxy's list whose words work here, and our own.
const FEATURES: [&str; 10] =
    ["ACCEPT4", "EPOLL", "GETADDRINFO", "LINUX", "OPENSSL", "PCRE2", "POLL", "SSL", "THREAD", "TIDEGATE"];

/// What `enabled(…)` finds (HAProxy 2.8 and later).
const ENABLED: [&str; 4] = ["EPOLL", "GETADDRINFO", "POLL", "REUSEPORT"];

/// How deep parentheses may stand.
const DEEPEST: u32 = 64;

/// One predicate.
struct Predicate {
    name: &'static str,
    /// How many arguments it needs.
    needs: usize,
    holds: fn(&[String], &dyn Outside) -> bool,
}

const PREDICATES: &[Predicate] = &[
    Predicate { name: "defined", needs: 0, holds: |args, outside| outside.var(at(args, 0)).is_some() },
    Predicate { name: "feature", needs: 0, holds: |args, _| FEATURES.contains(&at(args, 0)) },
    Predicate { name: "enabled", needs: 1, holds: |args, _| ENABLED.contains(&at(args, 0)) },
    Predicate { name: "streq", needs: 2, holds: |args, _| at(args, 0) == at(args, 1) },
    Predicate { name: "strneq", needs: 2, holds: |args, _| at(args, 0) != at(args, 1) },
    Predicate { name: "strstr", needs: 2, holds: |args, _| at(args, 0).contains(at(args, 1)) },
    Predicate { name: "version_atleast", needs: 1, holds: |args, _| !is_older(VERSION.numbers, at(args, 0)) },
    Predicate { name: "version_before", needs: 1, holds: |args, _| is_older(VERSION.numbers, at(args, 0)) },
    Predicate { name: "openssl_version_atleast", needs: 1, holds: |args, _| !is_older(OPENSSL, at(args, 0)) },
    Predicate { name: "openssl_version_before", needs: 1, holds: |args, _| is_older(OPENSSL, at(args, 0)) },
    Predicate { name: "ssllib_name_startswith", needs: 1, holds: |args, _| "OpenSSL".starts_with(at(args, 0)) },
    Predicate { name: "awslc_api_atleast", needs: 1, holds: |_, _| false },
    Predicate { name: "awslc_api_before", needs: 1, holds: |_, _| false },
    Predicate { name: "fips_mode", needs: 0, holds: |_, _| false },
];

fn at(args: &[String], index: usize) -> &str {
    args.get(index).map_or("", String::as_str)
}

/// Whether `ours` is older than the version that a text gives: `2.6`, `2.6.3`, `2.6-dev4`, `2.6.3-20`. What is left out is 0; what is no version is older than any.
fn is_older(ours: [u32; 3], text: &str) -> bool {
    let (numbers, rest) = text.split_once('-').unwrap_or((text, ""));
    let mut parts = numbers.split('.').map(|part| {
        let digits = part.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(part.len());
        part.get(..digits).and_then(|digits| digits.parse().ok()).unwrap_or(0_u32)
    });
    let asked: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    // A build behind the release (`-20`) is newer than it, one on the way to it (`-dev4`, `-rc1`) is not.
    let behind = rest.starts_with(|first: char| first.is_ascii_digit());
    ours < asked || (ours == asked && behind)
}

/// What the words behind `.if` or `.elif` come to. An empty text is false.
///
/// # Errors
/// What cannot be read, at its place.
pub(super) fn holds(words: &[Word], outside: &dyn Outside) -> Result<bool, Diagnostic> {
    let Some(text) = joined(words) else { return Ok(false) };
    if text.text.is_empty() {
        return Ok(false);
    }
    let mut parser = Parser { text: &text, at: 0, depth: 0, outside };
    let outcome = parser.any()?;
    match parser.peek() {
        None => Ok(outcome),
        Some(byte) => {
            let message = format!("unexpected `{}` in a condition", char::from(byte));
            let finding = parser.fault(parser.at, 1, message);
            Err(finding.help("conditions are combined with `&&`, `||`, `!` and parentheses"))
        }
    }
}

/// The words with single blanks between them, each byte with its place.
fn joined(words: &[Word]) -> Option<Word> {
    let (first, rest) = words.split_first()?;
    let mut whole = first.clone();
    for word in rest {
        whole.text.push(b' ');
        whole.text.extend_from_slice(&word.text);
        whole.origins.extend_from_slice(&word.origins);
        whole.span = whole.span.to(word.span);
    }
    Some(whole)
}

struct Parser<'p> {
    text: &'p Word,
    at: usize,
    depth: u32,
    outside: &'p dyn Outside,
}

impl Parser<'_> {
    /// Terms of `||`.
    fn any(&mut self) -> Result<bool, Diagnostic> {
        let mut outcome = self.all()?;
        while self.takes(b"||") {
            outcome |= self.all()?;
        }
        Ok(outcome)
    }

    /// Terms of `&&`, which binds closer.
    fn all(&mut self) -> Result<bool, Diagnostic> {
        let mut outcome = self.term()?;
        while self.takes(b"&&") {
            outcome &= self.term()?;
        }
        Ok(outcome)
    }

    fn term(&mut self) -> Result<bool, Diagnostic> {
        let mut negated = false;
        while self.takes(b"!") {
            negated = !negated;
        }
        self.blanks();
        let start = self.at;
        let outcome = match self.peek() {
            Some(b'(') => self.nested()?,
            Some(b'0'..=b'9' | b'-' | b'+') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.predicate()?,
            _ => {
                let (from, length) = if self.peek().is_none() { (start.saturating_sub(1), 1) } else { (start, 1) };
                let finding = self.fault(from, length, "a condition is missing here".to_owned());
                return Err(finding.help("write a number or a predicate such as `defined(NAME)`"));
            }
        };
        self.blanks();
        Ok(outcome != negated)
    }

    fn nested(&mut self) -> Result<bool, Diagnostic> {
        let open = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            let message = format!("parentheses stand more than {DEEPEST} deep");
            return Err(self.fault(open, 1, message).help("take the condition apart into several `.if` lines"));
        }
        self.at += 1;
        let outcome = self.any()?;
        self.depth -= 1;
        if !self.takes(b")") {
            return Err(self.fault(open, 1, "this `(` is not closed".to_owned()));
        }
        Ok(outcome)
    }

    /// Decimal, octal behind a `0`, hexadecimal behind `0x`: only whether it is 0 counts.
    fn number(&mut self) -> bool {
        if matches!(self.peek(), Some(b'-' | b'+')) {
            self.at += 1;
        }
        let hex = self.rest().starts_with(b"0x") || self.rest().starts_with(b"0X");
        self.at += if hex { 2 } else { 0 };
        let is = |byte: &u8| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
        let length = self.rest().iter().take_while(|byte| is(byte)).count();
        let digits = self.rest().get(..length).unwrap_or_default();
        let outcome = digits.iter().any(|digit| *digit != b'0');
        self.at += length;
        outcome
    }

    fn predicate(&mut self) -> Result<bool, Diagnostic> {
        let start = self.at;
        let is = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        self.at += self.rest().iter().take_while(is).count();
        let name = String::from_utf8_lossy(self.text.text.get(start..self.at).unwrap_or_default()).into_owned();
        let Some(predicate) = PREDICATES.iter().find(|predicate| predicate.name == name) else {
            let nearest = suggest::nearest(&name, PREDICATES.iter().map(|predicate| predicate.name));
            let finding = self.fault(start, name.len(), format!("unknown predicate `{name}`"));
            return Err(finding
                .did_you_mean(nearest)
                .help("a variable is asked for by `defined(NAME)` or `streq(\"$NAME\",value)`"));
        };
        let args = match self.peek() {
            Some(b'(') => {
                let (args, end) = arguments(self.text, self.at)?;
                self.at = end;
                args
            }
            _ => Vec::new(),
        };
        let most = predicate.needs.max(1);
        if args.len() < predicate.needs || args.len() > most {
            let message = format!("`{name}` takes {most} argument{}", if most == 1 { "" } else { "s" });
            return Err(self.fault(start, self.at - start, message));
        }
        let args: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(&arg.text).into_owned()).collect();
        Ok((predicate.holds)(&args, self.outside))
    }

    /// Takes a word when it is what comes next, blanks before it included.
    fn takes(&mut self, word: &[u8]) -> bool {
        self.blanks();
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn blanks(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, from: usize, length: usize, message: String) -> Diagnostic {
        Diagnostic::error(code::BAD_CONDITION, self.text.part(from..from + length.max(1)), message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::{resolve::written, source::Span, testing::Desk};

    fn outcome(text: &str) -> Result<bool, String> {
        let desk = Desk::new().with_var("SET", "x").with_var("EMPTY", "");
        let words: Vec<_> =
            text.split(' ').filter(|word| !word.is_empty()).map(|word| written(word, Span::default())).collect();
        holds(&words, &desk).map_err(|finding| finding.message)
    }

    /// What HAProxy 2.6 says of the same ones; a black-box test asks it.
    #[test]
    fn conditions_come_out_as_in_haproxy() {
        let yes = [
            "1",
            "-1",
            "2",
            "0x10",
            "010",
            "!0",
            "!!1",
            "! 0",
            "!1 || 1",
            "1||0",
            "1&&1",
            "(1)",
            "( 1 )",
            "!(0)",
            "((1))",
            "(0) || 1",
            "1 && (0 || 1)",
            "defined(SET)",
            "defined(EMPTY)",
            "feature(OPENSSL)",
            "feature(THREAD)",
            "streq(a,a)",
            "streq(,)",
            "strneq(a,b)",
            "strneq(a, a)",
            "streq(\"a)b\",'a)b')",
            "version_atleast(2.6)",
            "version_atleast(2)",
            "version_atleast(2.6-dev1)",
            "version_atleast(2.6.12)",
            "version_before(2.7)",
            "version_before(3)",
            "version_before(2.6.13)",
            "version_atleast(bogus)",
            "openssl_version_atleast(1.1.1k)",
            "1 || 0 && 0",
            "strstr(abc,b)",
            "enabled(POLL)",
            "ssllib_name_startswith(Open)",
        ];
        let no = [
            "",
            "0",
            "00",
            "!1",
            "1 && 0",
            "0 || 1 && 0",
            "defined(NO)",
            "defined()",
            "defined",
            "feature(openssl)",
            "feature(QUIC)",
            "streq(a,b)",
            "streq(a, a)",
            "version_atleast(2.7)",
            "version_atleast(2.6.13)",
            "version_atleast(2.6.12-1)",
            "version_before(2.6)",
            "version_before(2.6.12)",
            "openssl_version_before(3.0.0)",
            "!defined(SET)",
            "fips_mode()",
        ];
        for text in yes {
            assert_eq!(outcome(text), Ok(true), "{text}");
        }
        for text in no {
            assert_eq!(outcome(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_found_even_where_it_does_not_count() {
        for (text, message) in [
            ("abc", "unknown predicate `abc`"),
            ("1 || nope(a)", "unknown predicate `nope`"),
            ("2x", "unexpected `x`"),
            ("1 1", "unexpected `1`"),
            ("1)", "unexpected `)`"),
            ("(1", "not closed"),
            ("()", "missing"),
            ("!", "missing"),
            ("1 &&", "missing"),
            ("|| 1", "missing"),
            ("streq(a)", "takes 2 arguments"),
            ("streq(a,b,c)", "takes 2 arguments"),
            ("defined(A,B)", "takes 1 argument"),
            ("streq(a", "not closed"),
            ("defined (SET)", "unexpected `(`"),
            (&"(".repeat(500), "more than 64 deep"),
        ] {
            assert!(outcome(text).is_err_and(|found| found.contains(message)), "{text}: {:?}", outcome(text));
        }
    }
}
