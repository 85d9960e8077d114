//! `explain`: what rule files do with a request, and why.

use std::fmt::Write;

use super::{
    Exit,
    load::{self, Files},
    question::{Answered, Asked},
    say,
};
use crate::{
    gateway::explain::{Decision, Delivery, Explainer, Explanation, Head, Kept, KeyPart, Step},
    rule::{Tri, trace::Tested},
};

/// What `explain` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    answered: Answered,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Loads the files, runs the request through them and prints what happens.
///
/// # Errors
/// The files don't load, or the request makes no sense.
pub(super) fn explain(args: &Args) -> Result<(), Exit> {
    let answered = Some(&args.answered).filter(|answered| !answered.is_open());
    let question = args.asked.question(answered).map_err(Exit::line)?;
    let checked = load::load(&args.files).map_err(Exit)?;
    let explainer = Explainer::new(checked.config, &checked.sources).map_err(Exit::line)?;
    let explanation = explainer.ask(&question).map_err(Exit::line)?;
    if args.json {
        say(format_args!("{:#}", serde_json::to_value(&explanation).map_err(Exit::line)?));
    } else {
        say(Text(String::new()).explanation(&args.asked, &explanation));
    }
    Ok(())
}

/// An explanation as text: rules as they stand in their files, what they saw indented below.
struct Text(String);

impl Text {
    fn explanation(mut self, asked: &Asked, explanation: &Explanation) -> String {
        self.line(0, &format!("{} {}", asked.method, asked.url));
        self.line(0, &format!("comes in by frontend {}", explanation.frontend));
        self.steps(&explanation.steps);
        if let Some(backend) = &explanation.backend {
            self.line(0, &format!("goes to backend {backend}"));
        }
        self.decision(&explanation.decision);
        match &explanation.response {
            Some(delivery) => self.delivery(delivery),
            None if matches!(explanation.decision, Decision::Lookup { .. }) => {
                self.line(0, "what is stored depends on the response: add --status and -R to see");
            }
            None => {}
        }
        self.0
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            let outcome = match step.tried.outcome {
                Tri::True => "yes",
                Tri::False => "no",
                Tri::Unknown => "depends on the response",
            };
            self.line(1, &format!("{}:{}  {}  → {outcome}", step.file, step.line, step.text));
            step.tried.tests.iter().for_each(|tested| self.tested(tested));
            step.tried.effects.iter().for_each(|effect| self.line(3, effect));
        }
    }

    fn tested(&mut self, tested: &Tested) {
        let outcome = match tested.outcome {
            Tri::True => "holds",
            Tri::False => "does not hold",
            Tri::Unknown => "is not known yet",
        };
        let values = tested.values.iter().map(|value| match &value.value {
            Some(text) => format!("{} is {text:?}", value.expression),
            None => format!("{} is not there", value.expression),
        });
        let values: Vec<_> = values.collect();
        let name = if tested.acl.is_empty() { format!("{{ {} }}", tested.text) } else { tested.acl.clone() };
        let seen = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
        self.line(3, &format!("{name} {outcome}{seen}"));
    }

    fn decision(&mut self, decision: &Decision) {
        match decision {
            Decision::Answer { outcome, head, body } => {
                self.line(0, &format!("is answered here ({outcome}):"));
                self.head(head);
                body.lines().for_each(|line| self.line(1, line));
            }
            Decision::Purge { soft: false } => self.line(0, "purges its URL"),
            Decision::Purge { soft: true } => self.line(0, "makes what is stored of its URL stale"),
            Decision::Close => self.line(0, "is not answered: its connection is closed"),
            Decision::Lookup { rules, key, unkeyed, sent } => {
                self.line(0, &format!("is looked up for {}", rules.join(", ")));
                let parts = key.iter().map(|KeyPart { part, value }| match value {
                    Some(value) => format!("{part}={value}"),
                    None => format!("{part} absent"),
                });
                self.line(1, &format!("key: {}", parts.collect::<Vec<_>>().join(" ")));
                if !unkeyed.is_empty() {
                    self.line(
                        1,
                        &format!("not in the key: {} (`forward keyed` keeps that from a server)", unkeyed.join(" ")),
                    );
                }
                self.line(0, "on a miss a server gets:");
                self.head(sent);
            }
            Decision::Pass { reason, sent } => {
                self.line(0, &format!("passes the cache ({reason}); a server gets:"));
                self.head(sent);
            }
        }
    }

    fn delivery(&mut self, delivery: &Delivery) {
        self.line(0, "with that response:");
        self.steps(&delivery.steps);
        let rule = delivery.rule.as_deref().unwrap_or("-");
        match (&delivery.kept, delivery.reason) {
            (Some(Kept { ttl, grace, stale_if_error, vary, tags }), _) => {
                self.line(0, &format!("is stored by {rule}, fresh for {ttl} s"));
                for (what, seconds) in [("grace", grace), ("stale-if-error", stale_if_error)] {
                    if *seconds > 0 {
                        self.line(1, &format!("{what}: {seconds} s"));
                    }
                }
                for (what, names) in [("vary", vary), ("tags", tags)] {
                    if !names.is_empty() {
                        self.line(1, &format!("{what}: {}", names.join(" ")));
                    }
                }
            }
            (None, Some(reason)) => self.line(0, &format!("is not stored ({reason})")),
            (None, None) => self.line(0, "is not stored"),
        }
        self.line(0, "the client gets:");
        self.head(&delivery.head);
    }

    fn head(&mut self, head: &Head) {
        self.line(1, &head.line);
        head.fields.iter().for_each(|field| self.line(1, field));
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{:1$}{text}", "", depth * 4);
    }
}
