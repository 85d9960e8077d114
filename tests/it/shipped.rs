//! Every rule file that ships loads.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::harness::{certificates::Authority, gateway::run_in, peers};

#[test]
fn every_rule_file_and_example_checks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["rules", "examples"] {
        find(&root.join(folder), &mut files);
    }
    assert!(files.iter().any(|file| file.ends_with("rules/demo.cfg")), "{files:?}");
    let mut refused = Vec::new();
    for file in files {
        let output = check(&file);
        if !output.status.success() {
            refused.push(format!("{}:\n{}", file.display(), String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// What `examples/tls-sni.cfg` says to run first is all that it takes.
#[test]
fn the_tls_example_loads_after_what_it_says_to_run() {
    let Some([bash, _]) = peers::need("what the TLS example says to run", ["bash", "openssl"]) else { return };
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tls-sni.cfg");
    let text = fs::read_to_string(&example).unwrap();
    let indented = text.lines().filter_map(|line| line.strip_prefix("#     "));
    let commands: Vec<_> = indented.collect();
    assert!(commands.first().is_some_and(|first| first.starts_with("mkdir -p certs")), "{commands:?}");
    let dir = tempfile::tempdir().unwrap();
    let check = || run_in(dir.path(), &["check", "-f", example.to_str().unwrap()]);
    assert_eq!(check().status.code(), Some(1), "without certificates");
    let made = Command::new(bash).args(["-ec", &commands.join("\n")]).current_dir(dir.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let checked = check();
    assert!(checked.status.success(), "{checked:?}");
}

/// Checks a copy of `file`, beside which the certificates that it names exist.
fn check(file: &Path) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("site.cfg");
    let text = fs::read_to_string(file).unwrap();
    fs::create_dir(dir.path().join("certs")).unwrap();
    for name in text.split_whitespace().filter(|word| word.ends_with(".pem")) {
        Authority::new().write(&dir.path().join("certs").join(Path::new(name).file_name().unwrap()), &["t.example"]);
    }
    fs::write(&copy, text).unwrap();
    run_in(dir.path(), &["check", "-f", copy.to_str().unwrap()])
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "cfg") {
            files.push(path);
        }
    }
}
