//! Lines that begin with a dot: blocks that count under a condition, and messages (HAProxy manual §2.4).

use super::{
    Outside,
    ast::Word,
    code, condition,
    diag::{Diagnostic, Severity},
    source::Span,
    suggest,
};

/// How deep blocks may stand in each other.
const DEEPEST: usize = 99;

const WORDS: [&str; 8] = [".if", ".elif", ".else", ".endif", ".notice", ".warning", ".diag", ".alert"];

/// The blocks that are open where the parser is.
#[derive(Default)]
pub(super) struct Blocks {
    open: Vec<Block>,
    /// The last `.endif` that closed a block.
    closed: Option<Span>,
}

struct Block {
    /// The `.if`.
    opened: Span,
    /// The `.else`.
    otherwise: Option<Span>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The lines at hand count.
    Taken,
    /// They don't, and what follows may.
    Waiting,
    /// They don't, and nothing that follows will.
    Over,
}

impl Blocks {
    /// Whether the line at hand does not count.
    pub(super) fn skips(&self) -> bool {
        self.open.last().is_some_and(|block| block.state != State::Taken)
    }

    /// Takes a line in that begins with a dot. `broken`: its words cannot be read; then only the first one counts.
    pub(super) fn directive(
        &mut self,
        words: &[Word],
        broken: bool,
        outside: &dyn Outside,
        found: &mut Vec<Diagnostic>,
    ) {
        let Some((keyword, args)) = words.split_first() else { return };
        let args = if broken { &[] } else { args };
        match keyword.text.as_slice() {
            b".if" => self.open(keyword, args, outside, found),
            b".elif" => self.elif(keyword, args, outside, found),
            b".else" => self.otherwise(keyword, args, found),
            b".endif" => self.close(keyword, args, found),
            _ if self.skips() => {}
            b".notice" => say(Severity::Note, code::OWN_NOTE, keyword, args, found),
            b".warning" => say(Severity::Warning, code::OWN_WARNING, keyword, args, found),
            b".alert" => say(Severity::Error, code::ALERT, keyword, args, found),
            b".diag" => found.extend(surplus(keyword, args, 1)),
            _ => {
                let nearest = suggest::nearest(&keyword.lossy(), WORDS.into_iter());
                let message = format!("unknown word `{}`", keyword.lossy());
                found.push(Diagnostic::error(code::UNKNOWN_WORD, keyword.span, message).did_you_mean(nearest));
            }
        }
    }

    /// The end of the file, of which `last` is the last line.
    pub(super) fn end(self, last: Span, found: &mut Vec<Diagnostic>) {
        found.extend(self.open.into_iter().map(|block| {
            Diagnostic::error(code::CONDITIONAL, block.opened, "this `.if` has no `.endif`")
                .label(last, "the file ends here")
                .help("write `.endif` on a line of its own behind what the condition is for")
        }));
    }

    fn open(&mut self, keyword: &Word, args: &[Word], outside: &dyn Outside, found: &mut Vec<Diagnostic>) {
        if self.open.len() == DEEPEST {
            let message = format!("blocks stand more than {DEEPEST} deep");
            let outer = self.open.first().map_or(keyword.span, |block| block.opened);
            found.push(Diagnostic::error(code::CONDITIONAL, keyword.span, message).label(outer, "the outermost one"));
        }
        let state = if self.skips() { State::Over } else { asked(args, outside, found) };
        self.open.push(Block { opened: keyword.span, otherwise: None, state });
    }

    fn elif(&mut self, keyword: &Word, args: &[Word], outside: &dyn Outside, found: &mut Vec<Diagnostic>) {
        if let Some(block) = self.branch(keyword, found) {
            block.state = match block.state {
                State::Waiting => asked(args, outside, found),
                State::Taken | State::Over => State::Over,
            };
        }
    }

    fn otherwise(&mut self, keyword: &Word, args: &[Word], found: &mut Vec<Diagnostic>) {
        found.extend(surplus(keyword, args, 0));
        if let Some(block) = self.branch(keyword, found) {
            block.otherwise = Some(keyword.span);
            block.state = if block.state == State::Waiting { State::Taken } else { State::Over };
        }
    }

    fn close(&mut self, keyword: &Word, args: &[Word], found: &mut Vec<Diagnostic>) {
        found.extend(surplus(keyword, args, 0));
        match self.open.pop() {
            Some(_) => self.closed = Some(keyword.span),
            None => found.push(self.lone(keyword)),
        }
    }

    /// The block that an `.elif` or `.else` belongs to.
    fn branch(&mut self, keyword: &Word, found: &mut Vec<Diagnostic>) -> Option<&mut Block> {
        if self.open.is_empty() {
            found.push(self.lone(keyword));
        }
        let block = self.open.last_mut()?;
        if let Some(before) = block.otherwise {
            let message = format!("`{}` behind the `.else` of its block", keyword.lossy());
            found.push(
                Diagnostic::error(code::CONDITIONAL, keyword.span, message)
                    .label(before, "the `.else`")
                    .label(block.opened, "the block begins here"),
            );
            return None;
        }
        Some(block)
    }

    fn lone(&self, keyword: &Word) -> Diagnostic {
        let message = format!("`{}` without `.if`", keyword.lossy());
        let finding = Diagnostic::error(code::CONDITIONAL, keyword.span, message);
        match self.closed {
            Some(closed) => finding.label(closed, "this one closed the last block"),
            None => finding,
        }
    }
}

fn asked(args: &[Word], outside: &dyn Outside, found: &mut Vec<Diagnostic>) -> State {
    match condition::holds(args, outside) {
        Ok(true) => State::Taken,
        Ok(false) => State::Waiting,
        Err(finding) => {
            found.push(finding);
            State::Waiting
        }
    }
}

fn say(severity: Severity, code: &'static str, keyword: &Word, args: &[Word], found: &mut Vec<Diagnostic>) {
    let text = args.first().map(Word::lossy).unwrap_or_default();
    match surplus(keyword, args, 1) {
        Some(finding) => found.push(finding),
        None => found.push(Diagnostic::new(severity, code, keyword.span, format!("the file says: {text}"))),
    }
}

/// Words behind the first `most` ones.
fn surplus(keyword: &Word, args: &[Word], most: usize) -> Option<Diagnostic> {
    let (first, last) = (args.get(most)?, args.last()?);
    let message = format!("`{}` takes no more words here", keyword.lossy());
    let finding = Diagnostic::error(code::EXTRA_WORD, first.span.to(last.span), message);
    Some(if most > 0 { finding.help("a text with blanks needs quotes") } else { finding })
}
