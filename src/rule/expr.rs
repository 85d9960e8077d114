//! A sample expression: one fetch and the converters behind it.

use super::{
    args::Args,
    converter::ConverterRow,
    fetch::FetchRow,
    phase::{Source, Stage},
    sample::{Sample, Type},
    txn::Txn,
    vars::{VarId, VarScope},
};

/// A compiled sample expression: `fetch[(args)][,converter[(args)]]*`.
#[derive(Clone, Debug)]
pub struct Expr {
    fetch: &'static FetchRow,
    args: Args,
    steps: Box<[Step]>,
    text: Box<[u8]>,
}

/// One converter of an expression.
#[derive(Clone, Debug)]
pub struct Step {
    /// The converter.
    pub row: &'static ConverterRow,
    /// Its arguments.
    pub args: Args,
}

impl Expr {
    /// The expression written as `text`. The types of its steps have been checked.
    pub fn new(fetch: &'static FetchRow, args: Args, steps: Vec<Step>, text: &[u8]) -> Self {
        Self { fetch, args, steps: steps.into(), text: text.into() }
    }

    /// The value for this exchange; `None` when there is none (a missing header, a failed converter).
    /// For a fetch with several values (`hdr(x)`), the one HAProxy takes outside ACLs.
    pub fn eval<'s>(&'s self, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
        self.convert(self.fetch.take(&self.args, txn)?, txn)
    }

    /// Whether `test` is true for any of the values, as in ACLs. As in HAProxy, a value that a converter makes
    /// nothing of is the last one that is looked at.
    pub fn any<'s>(&'s self, txn: &'s Txn<'_>, mut test: impl FnMut(Sample<'s>) -> bool) -> bool {
        let mut holds = false;
        self.fetch.any(&self.args, txn, &mut |sample| {
            let value = self.convert(sample, txn);
            holds = value.is_some_and(&mut test);
            holds || value.is_none()
        });
        holds
    }

    /// The type of the value.
    pub fn output(&self) -> Type {
        self.steps.last().map_or(self.fetch.output, |step| step.row.output)
    }

    /// Where the value comes from: a variable when any of its steps reads or sets one.
    pub fn source(&self) -> Source {
        if self.vars().next().is_some() { Source::Variable } else { self.fetch.source }
    }

    /// What must have arrived before it can be evaluated.
    pub fn stage(&self) -> Stage {
        if self.vars().any(|id| id.scope == VarScope::Res) {
            return Stage::Response;
        }
        self.fetch.source.stage().max(self.args.stage())
    }

    /// The variables that it reads or sets.
    pub fn vars(&self) -> impl Iterator<Item = VarId> {
        std::iter::once(&self.args).chain(self.steps.iter().map(|step| &step.args)).flat_map(Args::vars)
    }

    /// Whether no list that it looks into is changed by rules.
    pub fn is_settled(&self) -> bool {
        let args = std::iter::once(&self.args).chain(self.steps.iter().map(|step| &step.args));
        args.flat_map(Args::acls)
            .flat_map(|(_, acl)| acl.tests())
            .all(|test| test.matcher.is_settled() && test.expr.is_settled())
            && self.steps.iter().all(|step| step.args.is_settled())
    }

    /// How it is written.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Its fetch.
    pub fn fetch(&self) -> &'static FetchRow {
        self.fetch
    }

    /// The arguments of its fetch.
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// Its converters, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn convert<'s>(&'s self, mut sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
        for step in &self.steps {
            let input = sample.cast(step.row.input, txn.arena)?;
            sample = (step.row.apply)(&step.args, input, txn)?;
        }
        Some(sample)
    }
}
