//! Odd files: HAProxy's `-c` and our `check` agree on which ones load, and on which of their blocks count.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::harness::{gateway::binary, peers};

/// Environment that both see.
const VARS: [(&str, &str); 3] = [("WORD", "x"), ("EMPTY", ""), ("TWO", "a b")];

/// A file that loads, to which lines are added.
const BASE: &str = "defaults\n    mode http\n    timeout client 1s\n    timeout server 1s\n    timeout connect 1s\n\
    frontend web\n    bind 127.0.0.1:8080\n    default_backend app\nbackend app\n    server s 127.0.0.1:1\nglobal\n";

/// Conditions that can be read; each comes out as HAProxy says.
const CONDITIONS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "00",
    "0x0",
    "0x10",
    "010",
    "!0",
    "!!1",
    "! 0",
    "!1 || 1",
    "1 || 0",
    "1||0",
    "1 && 0",
    "1&&1",
    "0 || 1 && 0",
    "1 || 0 && 0",
    "(1)",
    "( 1 )",
    "(0) || 1",
    "!(0)",
    "((1))",
    "1 && (0 || 1)",
    "(0 || 1) && (1 && 0)",
    "defined(WORD)",
    "defined(EMPTY)",
    "defined(NO)",
    "defined()",
    "defined",
    "defined( WORD)",
    "!defined(NO)",
    "feature(OPENSSL)",
    "feature(THREAD)",
    "feature(POLL)",
    "feature(openssl)",
    "feature(QUIC)",
    "feature(WURFL)",
    "streq(a,a)",
    "streq(a, a)",
    "streq(a,b)",
    "streq(,)",
    "strneq(a,b)",
    "strneq(a,a)",
    "streq(\"$WORD\",x)",
    "streq($WORD,x)",
    "streq(\"${NO-d}\",d)",
    "streq(\"${EMPTY-d}\",)",
    "streq('a b','a b')",
    "streq(\\\"a)b\\\",'\"a)b\"')",
    "streq(\"$TWO\",'a b')",
    "\"$EMPTY\"",
    "\"$NO\"",
    "\"${NO-1}\"",
    "version_atleast(2)",
    "version_atleast(2.4)",
    "version_atleast(2.6)",
    "version_atleast(2.7)",
    "version_atleast(3)",
    "version_atleast(2.6-dev1)",
    "version_before(2.6)",
    "version_before(2.7)",
    "version_before(3.0)",
    "version_before(2.6-dev9)",
    "openssl_version_atleast(1.1.1)",
    "openssl_version_before(3.0.0)",
    "ssllib_name_startswith(OpenSSL)",
    "ssllib_name_startswith(BoringSSL)",
];

/// Lines behind [`BASE`].
const LINES: &[&str] = &[
    ".if",
    ".if 1",
    ".if 1\n.endif",
    ".if 1\n.else\n.endif",
    ".if 1\n.elif 1\n.else\n.endif",
    ".endif",
    ".else",
    ".elif 1",
    ".if 1\n.else\n.else\n.endif",
    ".if 1\n.else\n.elif 1\n.endif",
    ".if 1\n.endif\n.endif",
    ".if 1\n.if 1\n.endif",
    ".if 0\nnonsense\n.endif",
    ".if 1\nnonsense\n.endif",
    ".if 0\n.else\nnonsense\n.endif",
    ".if 0\n.nonsense\n.endif",
    ".nonsense",
    ".if 0\n.if nonsense\n.endif\n.endif",
    ".if nonsense\n.endif",
    ".if 1\n.elif nonsense\n.endif",
    ".if 0\n.elif nonsense\n.endif",
    ".if 0\n\"open\n.endif",
    ".if 0\n'open\n.endif",
    ".if 0\n\\x4\n.endif",
    ".if 0\nnode \"$NO\" \"\"\n.endif",
    ".if 0\nfrontend web\nfrontend web\n.endif",
    ".if 1\n.else now\n.endif",
    ".if 1\n.endif now",
    ".if 1 # comment\n.endif # comment",
    "    .if 1\n\t.endif",
    ".if 2x\n.endif",
    ".if 1 1\n.endif",
    ".if 1)\n.endif",
    ".if (1\n.endif",
    ".if ()\n.endif",
    ".if !\n.endif",
    ".if 1 &&\n.endif",
    ".if || 1\n.endif",
    ".if 1 or 0\n.endif",
    ".if streq(a)\n.endif",
    ".if streq()\n.endif",
    ".if streq(a,b,c)\n.endif",
    ".if defined(A,B)\n.endif",
    ".if defined (WORD)\n.endif",
    ".if STREQ(a,a)\n.endif",
    ".if streq(a#,b)\n.endif",
    ".if 1 || nonsense\n.endif",
    ".notice",
    ".notice a",
    ".notice a b",
    ".notice \"a b\"",
    ".warning a",
    ".diag a",
    ".diag a b",
    ".alert a",
    ".alert",
    ".if 0\n.alert a\n.endif",
    ".notice \"$NO\"",
    "setenv A",
    "setenv A b",
    "setenv A b c",
    "setenv",
    "setenv A=B c",
    "setenv A \"\"",
    "presetenv A b",
    "presetenv A",
    "unsetenv",
    "unsetenv A B",
    "resetenv",
    "resetenv WORD",
    "resetenv\n.if defined(WORD)\nnonsense\n.endif",
    "setenv A 1\n.if \"$A\"\nnonsense\n.endif",
    "setenv A 0\n.if \"$A\"\nnonsense\n.endif",
    "unsetenv WORD\n.if defined(WORD)\nnonsense\n.endif",
    "presetenv WORD y\n.if streq(\"$WORD\",y)\nnonsense\n.endif",
    "defaults d\nsetenv A b",
    "maxconn 10\r\nnode a\r",
    "maxconn 10 # c",
    "maxconn 10#c",
    "maxconn \"10\"",
    "maxconn '10'",
    "maxconn \"1\"'0'",
    "maxconn 1\\x30",
    "maxconn \\x3",
    "maxconn \"10",
    "maxconn '10",
    "maxconn \"$WORD\"",
    "maxconn \"${NO-10}\"",
    "maxconn \"${NO-1\"",
    "maxconn \"$\"",
    "maxconn \"${1}\"",
    "maxconn \"\"",
    "maxconn \"$NO\"",
    "maxconn $WORD",
    "maxconn ${NO-10}",
    "maxconn \\",
    "maxconn 10 \\\nnode a",
    "setenv N \"${.LINE}\"\nmaxconn \"$N\"",
    "maxconn\t10\u{b}",
    "nonsense",
];

/// Whole files.
const FILES: &[(&str, &str)] = &[
    ("nonsense\n", "a line before the first section"),
    ("setenv A b\n", "and one that would be a word of `global`"),
    (".if 0\nnonsense\n.endif\n@BASE@", "a block before the first section"),
    ("\n\n   # only a comment\n\n@BASE@", "blank lines"),
    ("@BASE@.if 1\n    maxconn 5\n.else\n    nonsense\n.endif\n", "lines of a section in blocks"),
    (".if 1\n@BASE@.else\nfrontend web\n.endif\n", "a section in a block"),
    ("@BASE@node a\0b\n", "a byte that ends texts"),
];

/// Lines of which one of the two says more, with the reason.
const EXPLAINED: &[(&str, &str)] = &[
    ("maxconn \"$WORD\"", "2.6 takes what is no number for 0"),
    ("maxconn $WORD", "the same"),
    ("maxconn ${NO-10}", "the same"),
    ("maxconn \\", "a backslash that ends a line is a mistake: lines cannot be continued"),
];

struct Checked {
    loads: bool,
    said: String,
}

fn checked(mut command: Command, file: &Path) -> Checked {
    let output = command.arg("-c").arg("-f").arg(file).envs(VARS).env_remove("NO").output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Checked { loads: output.status.success(), said: String::from_utf8_lossy(&said).into_owned() }
}

struct Both {
    haproxy: PathBuf,
    file: PathBuf,
    _dir: tempfile::TempDir,
}

impl Both {
    fn new(test: &str) -> Option<Self> {
        let [haproxy] = peers::need(test, ["haproxy"])?;
        let dir = tempfile::tempdir().unwrap();
        Some(Self { haproxy, file: dir.path().join("odd.cfg"), _dir: dir })
    }

    fn check(&self, text: &str) -> [Checked; 2] {
        fs::write(&self.file, text).unwrap();
        [Command::new(&self.haproxy), binary()].map(|command| checked(command, &self.file))
    }
}

#[test]
fn odd_files_load_or_not_as_in_haproxy() {
    let Some(both) = Both::new("differential test of odd files") else { return };
    let lines = LINES.iter().map(|lines| format!("{BASE}{lines}\n"));
    let files = FILES.iter().map(|(text, _)| text.replace("@BASE@", BASE));
    let mut differing = Vec::new();
    for text in lines.chain(files) {
        let [theirs, ours] = both.check(&text);
        let own = text.strip_prefix(BASE).unwrap_or(&text);
        let explained = EXPLAINED.iter().any(|(lines, _)| *lines == own.trim_end());
        if (theirs.loads != ours.loads) != explained {
            differing
                .push(format!("{own:?}: theirs {}, ours {}\n{}{}", theirs.loads, ours.loads, theirs.said, ours.said));
        }
    }
    assert!(differing.is_empty(), "{} files differ:\n{}", differing.len(), differing.join("\n"));
}

/// Each condition's outcome is a message of the file.
#[test]
fn conditions_hold_or_not_as_in_haproxy() {
    let Some(both) = Both::new("differential test of conditions") else { return };
    let mut text = BASE.to_owned();
    for (number, condition) in CONDITIONS.iter().enumerate() {
        text.push_str(&format!(".if {condition}\n.notice c{number}yes\n.else\n.notice c{number}no\n.endif\n"));
    }
    let [theirs, ours] = both.check(&text);
    assert!(theirs.loads && ours.loads, "{}\n{}", theirs.said, ours.said);
    for (number, condition) in CONDITIONS.iter().enumerate() {
        let outcome = |checked: &Checked| {
            let [yes, no] = ["yes", "no"].map(|word| checked.said.contains(&format!("c{number}{word}")));
            assert!(yes != no, "`.if {condition}`: {}", checked.said);
            yes
        };
        assert_eq!(outcome(&ours), outcome(&theirs), "`.if {condition}`");
    }
}
