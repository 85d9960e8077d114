//! Rule files from the disk, and what loading them needs of the outside.

use std::{
    fs, io,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

use super::io_reason;
use crate::{
    config::Config,
    gateway::{self, file},
    lang::{self, Outside, source::Sources},
};

/// Which rule files make the configuration.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Files {
    /// A rule file, or a directory of *.cfg files, taken in the order of their names; may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Take known words that are not built yet as warnings instead of errors
    #[arg(long)]
    pub(super) lenient: bool,
}

/// A configuration that loads, and what is to be said about it.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) config: Config,
    /// Warnings and notes, as they are shown; often empty.
    pub(super) remarks: String,
    /// The texts that it was made of.
    pub(super) sources: Sources,
}

/// Loads the configuration that `files` make.
///
/// # Errors
/// Everything that is wrong with it, as it is shown.
pub(super) fn load(files: &Files) -> Result<Checked, String> {
    load_with(&files.files, &System, files.lenient)
}

/// As [`load`], with something else of the outside.
///
/// # Errors
/// Everything that is wrong with it, as it is shown.
pub(super) fn load_with(files: &[PathBuf], outside: &dyn Outside, lenient: bool) -> Result<Checked, String> {
    let texts = gather(files).map_err(|why| format!("tidegate: {why}"))?;
    load_texts(texts, outside, lenient)
}

/// Loads the configuration that `texts` (names and contents) make.
///
/// # Errors
/// Everything that is wrong with it, as it is shown.
pub(super) fn load_texts(
    texts: Vec<(String, Vec<u8>)>,
    outside: &dyn Outside,
    lenient: bool,
) -> Result<Checked, String> {
    let loaded = lang::load(texts, outside, lenient);
    let shown = lang::render(&loaded, std::io::IsTerminal::is_terminal(&std::io::stderr()));
    match loaded.config {
        Some(config) => Ok(Checked { config, remarks: shown, sources: loaded.sources }),
        None => Err(shown),
    }
}

/// The machine's files, variables and names.
#[derive(Debug)]
pub(super) struct System;

impl Outside for System {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        file::read(path.as_ref())
    }

    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn memory(&self) -> Option<u64> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }

    fn certificate_faults(&self, path: &Path) -> Vec<String> {
        gateway::certificate_faults(path)
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        (host, port).to_socket_addrs().map(Iterator::collect)
    }
}

/// Reads the files; a directory stands for its `*.cfg`, hidden ones left out, in the order of their names.
fn gather(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut texts = Vec::new();
    for path in paths {
        let files = if path.is_dir() { cfg_files(path)? } else { vec![path.clone()] };
        for path in files {
            let text = file::read(&path).map_err(|error| cannot_read(&path, &error))?;
            texts.push((path.display().to_string(), text));
        }
    }
    Ok(texts)
}

fn cfg_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| cannot_read(directory, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| cannot_read(directory, &error))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|extension| extension == "cfg") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(format!("{} holds no *.cfg file", directory.display()));
    }
    files.sort();
    Ok(files)
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), io_reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_its_cfg_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["20-b.cfg", "10-a.cfg", ".hidden.cfg", "notes.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let alone = dir.path().join("notes.txt");
        let texts = gather(&[alone, dir.path().to_owned()]).unwrap();
        let contents: Vec<_> = texts.iter().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect();
        assert_eq!(contents, ["notes.txt", "10-a.cfg", "20-b.cfg"]);
    }

    #[test]
    fn what_cannot_be_read_is_said_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let empty = gather(&[dir.path().to_owned()]).unwrap_err();
        assert!(empty.ends_with("holds no *.cfg file"), "{empty}");
        let missing = gather(&[dir.path().join("x.cfg")]).unwrap_err();
        assert!(missing.starts_with("cannot read /") && missing.ends_with("x.cfg: there is no such file"), "{missing}");
    }
}
