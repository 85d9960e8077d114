//! The reference of every word, written from the tables that read them.

use std::fmt::Write as _;

use super::{
    keyword::{self, Param, Row, Status, place},
    resolve,
    section::{admin, pages, store, users},
};
use crate::rule::{
    args::{ArgKind, ArgSpec},
    converter, fetch,
    matcher::Method,
};

/// What a row says of itself.
struct Entry {
    name: String,
    about: String,
}

/// The reference as Markdown: every word that is known, where it stands and what becomes of it.
pub fn reference() -> String {
    let mut out = String::from(
        "# Words of the language\n\n\
         Written by `tidegate keywords` from the tables that read them. *Honoured* words do what HAProxy's manual says\n\
         of them; *accepted* ones are read and change nothing, and the load says so once; *refused* ones are known, would\n\
         change traffic and are not built: the load stops there, and `--lenient` goes on without them.\n",
    );
    words(&mut out, "`global`", keyword::GLOBAL_TABLES, false);
    words(&mut out, "`defaults`, `frontend`, `listen`, `backend`", keyword::PROXY_TABLES, true);
    words(&mut out, "`cache`", &[store::TABLE], false);
    words(&mut out, "`admin`", &[admin::TABLE], false);
    words(&mut out, "`http-errors`", &[pages::TABLE], false);
    words(&mut out, "`userlist`", &[users::TABLE], false);
    params(&mut out, "`bind ADDRESS …`", keyword::bind::TABLE);
    params(&mut out, "`server NAME ADDRESS …`", keyword::server::TABLE);
    actions(&mut out);
    section(&mut out, "`cache-rule NAME …`", resolve::parameters().map(|(name, about)| entry(name, about)).collect());
    fetches(&mut out);
    converters(&mut out);
    matches(&mut out);
    unbuilt(&mut out);
    out
}

fn words<H>(out: &mut String, title: &str, tables: &[&[Row<H>]], with_places: bool) {
    let about = |row: &Row<H>| match with_places {
        true => format!("{} · {}", place::names(row.places), state(&row.status)),
        false => state(&row.status),
    };
    section(out, title, tables.iter().flat_map(|table| table.iter()).map(|row| entry(row.name, about(row))).collect());
}

fn params<H>(out: &mut String, title: &str, table: &[Param<H>]) {
    section(out, title, table.iter().map(|param| entry(param.name, state(&param.status))).collect());
}

fn state<H>(status: &Status<H>) -> String {
    match status {
        Status::Honoured(_) => "honoured".to_owned(),
        Status::Accepted(reason) => format!("accepted: {reason}"),
        Status::Refused(instead) => format!("refused: {instead}"),
    }
}

fn actions(out: &mut String) {
    let about = |phases: &[crate::rule::Phase], usage: &str| {
        let phases: Vec<_> = phases.iter().map(|phase| format!("`{}`", phase.keyword())).collect();
        let usage = if usage.is_empty() { String::new() } else { format!(" · `{usage}`") };
        format!("{}{usage}", phases.join(", "))
    };
    let honoured = resolve::actions().map(|(name, phases, usage)| entry(name, about(phases, usage)));
    let accepted = resolve::accepted_actions()
        .map(|(name, phases, reason)| entry(name, format!("{} · accepted: {reason}", about(phases, ""))));
    section(out, "Actions", honoured.chain(accepted).collect());
}

fn fetches(out: &mut String) {
    let entries = fetch::rows().map(|row| {
        let names: Vec<_> = row.names.iter().map(|name| (*name).to_owned()).collect();
        entry(names.join(", ") + &arguments(row.args), format!("{} · {}", row.output.name(), row.source.name()))
    });
    section(out, "Fetches", entries.collect());
}

fn converters(out: &mut String) {
    let entries = converter::rows().map(|row| {
        let types = format!("{} to {}", row.input.name(), row.output.name());
        entry(row.names.join(", ") + &arguments(row.args), types)
    });
    section(out, "Converters", entries.collect());
}

fn matches(out: &mut String) {
    let suffix =
        |method: Method| Method::SUFFIXES.iter().find(|(_, other)| *other == method).map(|(suffix, _)| *suffix);
    let about = |method| suffix(method).map_or(String::new(), |suffix| format!("also as a suffix: `{suffix}`"));
    section(
        out,
        "Match methods (`-m`)",
        Method::WORDS.iter().map(|(word, method)| entry(*word, about(*method))).collect(),
    );
}

/// HAProxy's and nuster's words inside rules that have no row yet.
fn unbuilt(out: &mut String) {
    let action = |name: &str| resolve::actions().any(|(known, ..)| known == name);
    out.push_str(
        "\n## Known and not built\n\n\
         These are refused where they stand: what they do to traffic is not built yet. `--lenient` leaves out the lines\n\
         that have them.\n",
    );
    let mut list = |title: &str, names: Vec<&str>| {
        let _ = write!(
            out,
            "\n**{title}**: {}.\n",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        );
    };
    list("Actions", resolve::known_actions().filter(|name| !action(name)).collect());
    list("Fetches", resolve::known_fetches().collect());
    list("Converters", resolve::known_converters().collect());
}

fn arguments(specs: &[ArgSpec]) -> String {
    let kind = |kind: &ArgKind| match kind {
        ArgKind::Users => "userlist".to_owned(),
        ArgKind::Text => "text".to_owned(),
        ArgKind::Field => "name".to_owned(),
        ArgKind::Int => "number".to_owned(),
        ArgKind::IntOrVar => "number or variable".to_owned(),
        ArgKind::TextOrVar => "text or variable".to_owned(),
        ArgKind::Key => "secret, key file or variable".to_owned(),
        ArgKind::Bool => "true or false".to_owned(),
        ArgKind::Ip => "address".to_owned(),
        ArgKind::Var => "variable".to_owned(),
        ArgKind::Map => "file".to_owned(),
        ArgKind::Env => "environment variable".to_owned(),
        ArgKind::Hex => "hexadecimal digits".to_owned(),
        ArgKind::Frontend => "frontend".to_owned(),
        ArgKind::Backend => "backend".to_owned(),
        ArgKind::Acl => "ACL".to_owned(),
        ArgKind::Table | ArgKind::OtherTable => "table".to_owned(),
        ArgKind::Slot => "slot".to_owned(),
        ArgKind::Index => "index".to_owned(),
        ArgKind::Word(words) => words.join(" or "),
    };
    let one = |spec: &ArgSpec| if spec.required { kind(&spec.kind) } else { format!("[{}]", kind(&spec.kind)) };
    let all: Vec<_> = specs.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("({})", all.join(", ")) }
}

fn entry(name: impl Into<String>, about: impl Into<String>) -> Entry {
    Entry { name: name.into(), about: about.into() }
}

fn section(out: &mut String, title: &str, mut entries: Vec<Entry>) {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    // Writing to a String cannot fail.
    let _ = write!(out, "\n## {title}\n\n| word | |\n|---|---|\n");
    for Entry { name, about } in entries {
        let _ = writeln!(out, "| `{}` | {} |", name.replace('|', "\\|"), about.replace('|', "\\|"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_that_of_the_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/KEYWORDS.md");
        let (written, made) = (std::fs::read_to_string(path).unwrap_or_default(), reference());
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            std::fs::write(path, made).unwrap();
        } else {
            assert!(
                written == made,
                "grammar/KEYWORDS.md is not that of the tables any more. To write it anew:\n    \
                 TIDEGATE_BLESS=1 cargo test --no-default-features --lib the_reference_is_that_of_the_tables"
            );
        }
    }
}
