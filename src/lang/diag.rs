//! What is wrong with a configuration, where, and the way out.

use super::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Said once, changes nothing.
    Note,
    /// Probably not what was meant.
    Warning,
    /// The configuration does not load.
    Error,
}

/// A place involved and what about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What about it; may be empty.
    pub text: String,
}

/// The way around a word that is not built.
pub const AROUND: &str = "leave it out, or load with `--lenient`, which leaves out all such words and lists them";

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code, such as `E0102` (see `code`).
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// The place it is about.
    pub span: Span,
    /// Other places involved.
    pub labels: Vec<Label>,
    /// What to do: `did you mean …`, what to write instead; empty when there is nothing to say.
    pub help: String,
}

impl Diagnostic {
    /// A finding without labels and help.
    pub fn new(severity: Severity, code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity, code, message: message.into(), span, labels: Vec::new(), help: String::new() }
    }

    /// An error.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    /// A note.
    pub fn note(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, span, message)
    }

    /// Adds what to do; a second one goes on a line of its own.
    #[must_use]
    pub fn help(mut self, text: impl AsRef<str>) -> Self {
        if !self.help.is_empty() {
            self.help.push('\n');
        }
        self.help.push_str(text.as_ref());
        self
    }

    /// Adds `did you mean …` when there is a word near enough.
    #[must_use]
    pub fn did_you_mean(self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(nearest) => self.help(format!("did you mean `{nearest}`?")),
            None => self,
        }
    }

    /// Adds another place; one equal to the finding's own gives its underline a text.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }
}
