//! The command line: one file a command.

mod bench;
mod check;
mod client;
mod demo;
mod explain;
mod load;
mod purge;
mod question;
mod reload;
mod run;
mod stats;
mod test;

use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use clap::{
    Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use self::load::Files;
use crate::lang::in_words;

/// An HTTP cache gateway steered by rules.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "To see it work: tidegate demo")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only check the rule files (short for `tidegate check`)
    #[arg(short = 'c')]
    check: bool,
    #[command(flatten)]
    bare: run::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway with a rule file (also: tidegate -f FILE)
    Run(run::Args),
    /// Check rule files and say what is wrong with them, without running (also: tidegate -c -f FILE)
    Check(Files),
    /// Say what rule files would do with a request, and why, without running
    Explain(explain::Args),
    /// Run tests of rule files: requests in, decisions out
    Test(test::Args),
    /// Run the gateway before a small site of its own and print what to try
    Demo(demo::Args),
    /// Remove stored responses from a running gateway
    Purge(purge::Args),
    /// Make a running gateway read its rule files anew
    Reload(reload::Args),
    /// Show the state of a running gateway
    Stats(stats::Args),
    /// A scripted origin and a load client, for measuring
    #[command(subcommand)]
    Bench(bench::Command),
    /// Print every word of the language and what becomes of it
    Keywords,
    /// Print the version
    Version,
}

/// Why the program ends with status 1: what goes to standard error.
#[derive(Debug, PartialEq, Eq)]
struct Exit(String);

impl Exit {
    /// One line that says what went wrong.
    fn line(why: impl Display) -> Self {
        Self(format!("tidegate: {why}"))
    }
}

/// Runs the command that the process's arguments name. Status 0: done; 1: it failed, and standard error says
/// why; 2: the arguments make no sense.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| with_tip(error).exit());
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit(text)) => {
            complain(text.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// A rule file without `-f` is the commonest slip.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let named = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| error.get(kind));
    if let Some(ContextValue::String(word)) = named
        && (word.ends_with(".cfg") || Path::new(word).exists())
    {
        let tip = format!("rule files stand behind -f: `-f {word}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn dispatch(cli: Cli) -> Result<(), Exit> {
    match cli.command {
        Some(Command::Run(args)) => run::run(args),
        Some(Command::Check(files)) => check::check(&files),
        Some(Command::Explain(args)) => explain::explain(&args),
        Some(Command::Test(args)) => test::test(&args),
        Some(Command::Demo(args)) => demo::demo(&args),
        Some(Command::Purge(args)) => purge::purge(&args),
        Some(Command::Reload(args)) => reload::reload(&args),
        Some(Command::Stats(args)) => stats::stats(&args),
        Some(Command::Bench(command)) => bench::bench(command),
        Some(Command::Keywords) => {
            say(crate::lang::reference());
            Ok(())
        }
        Some(Command::Version) => {
            say(format_args!("tidegate {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
        None if cli.check => check::check(&cli.bare.files),
        None => run::run(cli.bare),
    }
}

/// Prints `text` as lines. Whoever has stopped reading (`tidegate check | head`) wants no more of it.
fn say(text: impl Display) {
    lines(&mut io::stdout().lock(), text);
}

/// As [`say`], to standard error.
fn complain(text: impl Display) {
    lines(&mut io::stderr().lock(), text);
}

fn lines(out: &mut impl Write, text: impl Display) {
    let text = text.to_string();
    let text = text.trim_end_matches('\n');
    if !text.is_empty() {
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

/// What an I/O error means, in words that say what to do.
fn io_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "not permitted".to_owned(),
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        _ => in_words(error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_table_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn files_are_given_with_and_without_a_command() {
        let files = |line| match parse(line).unwrap() {
            Cli { command: Some(Command::Run(run)), .. } => run.files,
            Cli { command: Some(Command::Check(files)), .. } => files,
            Cli { bare, .. } => bare.files,
        };
        let two = [PathBuf::from("a.cfg"), PathBuf::from("dir")];
        for line in ["tidegate run -f a.cfg -f dir", "tidegate check -f a.cfg -f dir", "tidegate -f a.cfg -f dir"] {
            assert_eq!(files(line).files, two, "{line}");
        }
        assert!(parse("tidegate -c -f a.cfg").unwrap().check);
        assert!(files("tidegate --lenient -f a.cfg").lenient);
        assert!(parse("tidegate -f a.cfg run").is_err());
        assert!(parse("tidegate run").is_err(), "run without a file");
    }

    #[test]
    fn a_rule_file_without_its_option_gets_a_tip() {
        for line in ["tidegate check site.cfg", "tidegate site.cfg", "tidegate run site.cfg"] {
            let said = with_tip(parse(line).unwrap_err()).to_string();
            assert!(said.contains("`-f site.cfg`"), "{line}: {said}");
        }
        assert!(!with_tip(parse("tidegate chekc").unwrap_err()).to_string().contains("-f chekc"));
    }

    #[test]
    fn a_purge_names_exactly_one_thing() {
        for line in ["http://h/a", "--prefix http://h/", "--tag t", "--all", "--all --soft", "--tag t --admin unix:/a"]
        {
            assert!(parse(&format!("tidegate purge {line}")).is_ok(), "{line}");
        }
        for line in ["", "--soft", "http://h/a --all", "--tag t --prefix http://h/"] {
            assert!(parse(&format!("tidegate purge {line}")).is_err(), "{line}");
        }
    }
}
