//! `check`, and other words of the command line.

use std::{fs, os::unix::net::UnixListener, process::Command};

use crate::harness::gateway::run;

const GOOD: &str = "frontend web\n    bind 127.0.0.1:0\n    default_backend b\nbackend b\n    server s 127.0.0.1:1\n";

fn check(text: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.cfg");
    fs::write(&path, text).unwrap();
    let output = run(&["check", "-f", path.to_str().unwrap()]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_good_file_checks() {
    let (code, said) = check(GOOD);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn an_unknown_word_shows_its_place_and_the_nearest_known_word() {
    let (code, said) = check(&GOOD.replace("default_backend", "defualt_backend"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("site.cfg:3:5") && said.contains("defualt_backend b"), "{said}");
    assert!(said.contains("default_backend"), "{said}");
}

#[test]
fn all_errors_of_a_file_are_reported_at_once() {
    let text = "frontend web\n    bindd :80\n    http-request dney\n    acl a pathh /x\n    use_backend nowhere if a\n";
    let (code, said) = check(text);
    assert_eq!(code, Some(1));
    for word in ["bindd", "dney", "pathh", "nowhere"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn haproxys_options_do_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good.cfg"), dir.path().join("bad.cfg"));
    fs::write(&good, GOOD).unwrap();
    fs::write(&bad, "frontent web\n").unwrap();
    let code = |args: &[&str]| run(args).status.code();
    assert_eq!(code(&["-c", "-f", good.to_str().unwrap()]), Some(0));
    assert_eq!(code(&["-c", "-f", bad.to_str().unwrap()]), Some(1));
    assert_eq!(code(&["-f", bad.to_str().unwrap()]), Some(1));
}

#[test]
fn several_files_and_folders_are_one_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let (front, back) = GOOD.split_at(GOOD.rfind("backend b").unwrap());
    fs::write(dir.path().join("1.cfg"), front).unwrap();
    fs::write(dir.path().join("2.cfg"), back).unwrap();
    fs::write(dir.path().join("ignored.txt"), "nonsense").unwrap();
    let (one, two) = (dir.path().join("1.cfg"), dir.path().join("2.cfg"));
    let code = |args: &[&str]| run(args).status.code();
    assert_eq!(code(&["check", "-f", one.to_str().unwrap(), "-f", two.to_str().unwrap()]), Some(0));
    assert_eq!(code(&["check", "-f", dir.path().to_str().unwrap()]), Some(0));
    assert_eq!(code(&["check", "-f", one.to_str().unwrap()]), Some(1));
}

#[test]
fn help_names_every_command() {
    let output = run(&["--help"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for command in ["run", "check", "demo", "purge"] {
        assert!(text.contains(command), "{command}: {text}");
    }
    assert!(run(&["--version"]).status.success());
    assert!(!run(&["nonsense"]).status.success());
}

#[test]
fn what_is_no_file_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (pipe, socket, huge) = (path("pipe"), path("socket"), path("huge"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    for (odd, says) in [
        (pipe.as_str(), "no regular file"),
        (&socket, "no regular file"),
        ("/dev/zero", "no regular file"),
        (&huge, "more than 256 MiB"),
    ] {
        let output = run(&["check", "-f", odd]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{odd}: {said}");
        assert!(said.contains(odd) && said.contains(says), "{odd}: {said}");
        for line in [
            format!("bind 127.0.0.1:0 ssl crt {odd}"),
            format!("acl a path -f {odd}"),
            format!("http-request set-header X-A %[path,map({odd})]"),
        ] {
            let (code, said) =
                check(&GOOD.replacen("    default_backend", &format!("    {line}\n    default_backend"), 1));
            assert_eq!(code, Some(1), "{line}: {said}");
            assert!(said.contains(odd) && said.contains(says), "{line}: {said}");
        }
    }
}

#[test]
fn a_socket_path_has_the_length_that_the_system_takes() {
    let of = |length: usize| format!("/tmp/{}", "a".repeat(length - 5));
    let with = |path: &str| check(&GOOD.replacen("127.0.0.1:0", path, 1));
    let (code, said) = with(&of(107));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = with(&of(108));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("107 bytes"), "{said}");
}

/// Whoever reads the beginning of what is said (`tidegate keywords | head -1`) ends nothing by that.
#[test]
fn a_reader_that_stops_does_no_harm() {
    use std::{io::Read, process::Stdio};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.cfg");
    fs::write(&path, "frontend web\n    bindd :80\n".repeat(2000)).unwrap();
    for (args, status) in [(vec!["keywords"], 0), (vec!["check", "-f", path.to_str().unwrap()], 1)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let mut child = command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut said = vec![0; 16];
        let from = if status == 0 { out.read(&mut said) } else { err.read(&mut said) };
        assert!(from.unwrap() > 0);
        drop((out, err));
        assert_eq!(child.wait().unwrap().code(), Some(status), "{args:?}");
    }
}
