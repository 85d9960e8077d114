//! The line that opens a section: its kind, its name, where it inherits from.

use super::{Kind, Loader};
use crate::lang::{
    ast::{Line, Section, Word},
    code,
    diag::Diagnostic,
    keyword::{self, Status},
    source::Span,
};

/// A section's head, understood.
pub(super) struct Head<'s> {
    pub(super) kind: Kind,
    pub(super) section: &'s Section,
    /// Empty for `global`, `admin` and a `defaults` without one.
    pub(super) name: String,
    /// Where the name stands; the keyword without one.
    pub(super) span: Span,
    /// From its head to the next section.
    pub(super) whole: Span,
    /// `from NAME`.
    pub(super) from: Option<&'s Word>,
    /// Old form: an address behind the name, as in a `bind`.
    pub(super) address: Option<&'s Word>,
}

/// Reads the head of a section; `next` is where the section behind it starts. `None` when the section is not read at all.
pub(super) fn read<'s>(loader: &mut Loader<'_>, section: &'s Section, next: Option<Span>) -> Option<Head<'s>> {
    let line = &section.head;
    let keyword = line.words.first()?;
    let row = keyword::section::find(keyword)?;
    let kind = match row.status {
        Status::Honoured(kind) => kind,
        Status::Accepted(reason) => {
            loader.accept(row.name, keyword.span, reason);
            return None;
        }
        Status::Refused(hint) => {
            loader.refuse(row.name, keyword.span, hint);
            return None;
        }
    };
    let end = next.filter(|next| next.file == keyword.span.file).map_or(u32::MAX, |next| next.start);
    let whole = Span { end, ..keyword.span };
    let mut head = Head { kind, section, name: String::new(), span: keyword.span, whole, from: None, address: None };
    let rest = match line.words.get(1..) {
        Some([name, rest @ ..]) if takes_name(kind, name) => {
            check_name(loader, name);
            head.name = name.lossy().into_owned();
            head.span = name.span;
            rest
        }
        rest => rest.unwrap_or_default(),
    };
    if head.name.is_empty() && !matches!(kind, Kind::Global | Kind::Admin | Kind::Defaults) {
        let message = format!("a `{}` section needs a name", kind.name());
        loader.error(code::SECTION_HEAD, keyword.span, message);
    }
    read_rest(loader, &mut head, rest, line);
    Some(head)
}

fn takes_name(kind: Kind, word: &Word) -> bool {
    match kind {
        Kind::Global | Kind::Admin => false,
        Kind::Defaults => !word.is("from"),
        _ => true,
    }
}

fn read_rest<'s>(loader: &mut Loader<'_>, head: &mut Head<'s>, rest: &'s [Word], line: &Line) {
    let rest = match rest {
        [address, rest @ ..] if head.kind.listens() && !address.is("from") => {
            head.address = Some(address);
            rest
        }
        rest => rest,
    };
    let may_inherit = matches!(head.kind, Kind::Defaults | Kind::Frontend | Kind::Listen | Kind::Backend);
    let rest = match rest {
        [from, rest @ ..] if may_inherit && from.is("from") => {
            let [base, rest @ ..] = rest else {
                loader.error(code::SECTION_HEAD, from.span.after(), "`from` needs the name of a `defaults` section");
                return;
            };
            head.from = Some(base);
            rest
        }
        rest => rest,
    };
    if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
        let form = match head.kind {
            Kind::Global | Kind::Admin => head.kind.name().to_owned(),
            Kind::Cache | Kind::HttpErrors | Kind::Userlist => format!("{} NAME", head.kind.name()),
            Kind::Defaults => "defaults [NAME] [from DEFAULTS]".to_owned(),
            kind => format!("{} NAME [from DEFAULTS]", kind.name()),
        };
        let keyword = line.words.first().map(Word::lossy).unwrap_or_default();
        loader.report(
            Diagnostic::error(
                code::SECTION_HEAD,
                first.span.to(last.span),
                format!("a word too many behind `{keyword}`"),
            )
            .help(format!("the form is `{form}`")),
        );
    }
}

/// Names have letters, digits, `-`, `_`, `.` and `:`.
pub(super) fn check_name(loader: &mut Loader<'_>, name: &Word) {
    let bad = name.text.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"-_.:".contains(byte));
    if let Some(at) = bad {
        let message = format!("`{}` is no name", name.lossy());
        loader.report(
            Diagnostic::error(code::BAD_NAME, name.part(at..at + 1), message)
                .help("names have letters, digits, `-`, `_`, `.` and `:`"),
        );
    }
}
