//! Every rule file that ships loads.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::harness::{certificates::Authority, gateway::run_in};

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
