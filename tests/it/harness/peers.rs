//! Programs of other projects that some tests need. A test whose program is missing does not run;
//! the end of `cargo test` says so, unless `TIDEGATE_PEERS=required` makes it a failure.

use std::{
    collections::BTreeSet,
    env,
    io::Write,
    path::PathBuf,
    sync::{Mutex, Once},
};

static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static AT_EXIT: Once = Once::new();

/// Where the programs are; `None`, and a note at the end, when one is missing.
///
/// # Panics
/// When one is missing and `TIDEGATE_PEERS=required`.
pub fn need<const N: usize>(test: &str, programs: [&str; N]) -> Option<[PathBuf; N]> {
    let found = programs.map(find);
    let missing: Vec<&str> =
        programs.into_iter().zip(&found).filter(|(_, path)| path.is_none()).map(|(name, _)| name).collect();
    if missing.is_empty() {
        return Some(found.map(Option::unwrap));
    }
    not_run(test, &format!("{} missing", missing.join(", ")));
    None
}

/// Notes that `test` did not run.
///
/// # Panics
/// When `TIDEGATE_PEERS=required`.
pub fn not_run(test: &str, why: &str) {
    assert!(env::var("TIDEGATE_PEERS").as_deref() != Ok("required"), "{test}: {why}");
    MISSING.lock().unwrap().insert(format!("not run: {test}: {why}"));
    AT_EXIT.call_once(|| {
        #[expect(unsafe_code, reason = "the test runner has no hook for its end; the C library has")]
        // SAFETY: `list_missing` is a plain function that does not unwind.
        let registered = unsafe { libc::atexit(list_missing) };
        assert_eq!(registered, 0);
    });
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

extern "C" fn list_missing() {
    let mut error = std::io::stderr();
    for line in MISSING.lock().iter().flat_map(|missing| missing.iter()) {
        let _ = writeln!(error, "{line}");
    }
}
