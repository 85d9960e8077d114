//! Imports go one way.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each module, and the modules it may import.
const TABLE: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    ("cli", &["admin", "gateway", "ops", "lang", "config", "rule", "cache", "policy", "metrics", "message", "time"]),
    ("admin", &["gateway", "ops", "lang", "config", "rule", "cache", "policy", "metrics", "message", "time"]),
    ("gateway", &["ops", "lang", "config", "rule", "cache", "policy", "metrics", "message", "time"]),
    ("ops", &["lang", "config", "rule", "cache", "policy", "metrics", "message", "time"]),
    ("lang", &["config", "rule", "policy", "message", "time"]),
    ("config", &["rule", "policy", "message", "time"]),
    ("rule", &["message", "time"]),
    ("cache", &["policy", "metrics", "message", "time"]),
    ("policy", &["message", "time"]),
    ("metrics", &[]),
    ("message", &[]),
    ("time", &[]),
];

#[test]
fn imports_go_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for file in files(&source) {
        let module = module_of(file.strip_prefix(&source).unwrap());
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{}: a module that the table does not know", file.display()));
            continue;
        };
        for used in imports(&fs::read_to_string(&file).unwrap()) {
            if used != module && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: {module} imports {used}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

fn module_of(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The modules named after `crate::` (in `main`, after `tidegate::`), tests and comments left out.
fn imports(text: &str) -> BTreeSet<String> {
    // A module of tests in a file of its own is one line; one in this file goes to its end.
    let text = text.replace("#[cfg(test)]\nmod tests;", "");
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for start in ["crate::", "tidegate::"] {
        for (at, _) in code.match_indices(start) {
            let rest = code[at + start.len()..].trim_start();
            match rest.strip_prefix('{') {
                Some(group) => found.extend(top_level(group)),
                None => found.extend([word(rest)]),
            };
        }
    }
    found
}

/// The first words of the members of a use group.
fn top_level(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut words) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                words.push(word(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                words.push(word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::{message::{Fields, Response}, time::Timestamp,\n    policy};\n\
        use crate::rule::Txn; // crate::cli\nfn f() { crate::metrics::x() }\n#[cfg(test)]\nuse crate::gateway;";
    let found: Vec<String> = imports(text).into_iter().collect();
    assert_eq!(found, ["message", "metrics", "policy", "rule", "time"]);
}
