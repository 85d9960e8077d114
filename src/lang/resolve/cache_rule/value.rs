//! Values of parameters: lifetimes, statuses, switches, lists.

use std::time::Duration;

use super::{Dialect, Draft, FOREVER, FillMode, Scope, Statuses, Ttl, Values, WAIT_ON, codes};
use crate::{
    lang::{
        ast::Word,
        diag::Diagnostic,
        suggest,
        unit::{self, TimeUnit},
    },
    policy::{
        rewrite::{Names, Rewrite},
        terms::{Heuristic, Ignore},
    },
};

/// `@tracking`: parameters that follow visitors around and say nothing to a server.
const TRACKING: &str = include_str!("../../../../rules/tracking-parameters.lst");

/// A requirement's name and what sets it aside.
type Ignorable = (&'static str, fn(&mut Ignore));

/// What `ignore` may name.
const IGNORABLE: &[Ignorable] = &[
    ("must-revalidate", |ignore| ignore.must_revalidate = true),
    ("no-store", |ignore| ignore.no_store = true),
    ("no-cache", |ignore| ignore.no_cache = true),
    ("private", |ignore| ignore.private = true),
    ("max-age", |ignore| ignore.max_age = true),
    ("set-cookie", |ignore| ignore.set_cookie = true),
    ("cookie", |ignore| ignore.cookie = true),
    ("authorization", |ignore| ignore.authorization = true),
    ("vary", |ignore| ignore.vary = true),
    ("pragma", |ignore| ignore.pragma = true),
];

impl Values<'_> {
    /// The only value.
    fn only(&self, scope: &mut Scope<'_>) -> Option<&Word> {
        match self.words {
            [one] => Some(one),
            [_, extra, ..] => {
                let message = format!("`{}` takes one value; `{}` is no parameter", self.param.lossy(), extra.lossy());
                scope.error(codes::BAD_PARAMETER, extra.span, message);
                None
            }
            [] => None,
        }
    }

    /// The pieces between commas, over all words.
    fn items(&self) -> impl Iterator<Item = (&Word, String)> {
        let pieces = |word| move |piece| (word, String::from_utf8_lossy(piece).into_owned());
        self.words.iter().flat_map(move |word: &Word| {
            word.text.split(|&byte| byte == b',').filter(|piece| !piece.is_empty()).map(pieces(word))
        })
    }

    fn wrong(&self, scope: &mut Scope<'_>, word: &Word, help: &str) {
        let message = format!("`{}` cannot be `{}`", self.param.lossy(), word.lossy());
        scope.report(Diagnostic::error(codes::BAD_PARAMETER, word.span, message).help(help));
    }
}

fn seconds(text: &str) -> Option<Duration> {
    unit::time(text.as_bytes(), TimeUnit::Seconds)
}

fn status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|status| (200..=599).contains(status))
}

impl Draft {
    pub(super) fn store(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        self.store = Some(values.only(scope)?.clone());
        Some(())
    }

    /// `auto`, `auto MIN..MAX`, `T`, `200=1h 404=10s`.
    pub(super) fn ttl(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        const HELP: &str = "write `auto`, `auto 10s..1h`, a time such as `10m`, or times by status: `200=1h 404=10s`";
        let ttl = match values.words {
            [auto] if auto.is("auto") => Ttl::default(),
            [auto, range] if auto.is("auto") => {
                let found = range_of(&range.lossy());
                if found.is_none() {
                    values.wrong(scope, range, HELP);
                }
                found?
            }
            [first, ..] if first.text.contains(&b'=') => Ttl::PerStatus(self.per_status(scope, values, HELP)?),
            [number, unit, ..] if in_two_words(number, unit) => {
                let message = format!("`{} {}`: number and unit are one word", number.lossy(), unit.lossy());
                let finding = Diagnostic::error(codes::BAD_PARAMETER, number.span.to(unit.span), message);
                let letter = unit.lossy().to_ascii_lowercase().chars().next().unwrap_or('s');
                scope.report(finding.help(format!("write `{}{letter}`", number.lossy())));
                return None;
            }
            _ => {
                let word = values.only(scope)?;
                let Some(time) = seconds(&word.lossy()) else {
                    let long = unit::is_too_large(&word.text, unit::TIMES);
                    values.wrong(
                        scope,
                        word,
                        if long { "it is too long: 2^31 - 1 seconds are the most" } else { HELP },
                    );
                    return None;
                };
                Ttl::Fixed(self.lifetime(scope, word, time))
            }
        };
        self.ttl = Some(ttl);
        Some(())
    }

    /// nuster: 0 never expires, and nothing lasts longer than 2^31 - 1 seconds.
    fn lifetime(&self, scope: &mut Scope<'_>, word: &Word, time: Duration) -> Duration {
        if self.dialect == Dialect::Nuster && time.is_zero() {
            return FOREVER;
        }
        if time > FOREVER {
            let message = format!("`{}` is more than 2^31 - 1 seconds and is cut to that", word.lossy());
            scope.warn(codes::CLAMPED, word.span, message, "");
        }
        time.min(FOREVER)
    }

    fn per_status(&self, scope: &mut Scope<'_>, values: &Values<'_>, help: &str) -> Option<Vec<(u16, Duration)>> {
        let mut times = Vec::new();
        for (word, item) in values.items() {
            let pair = item.split_once('=').and_then(|(code, time)| Some((status(code)?, seconds(time)?)));
            let Some((code, time)) = pair else {
                values.wrong(scope, word, help);
                return None;
            };
            times.push((code, self.lifetime(scope, word, time)));
        }
        Some(times)
    }

    /// `all`, `200,404`, `200 404`.
    pub(super) fn statuses(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        if let [all] = values.words
            && all.is("all")
        {
            self.statuses = Statuses::All;
            return Some(());
        }
        let mut statuses = Vec::new();
        for (word, item) in values.items() {
            let Some(code) = status(&item) else {
                values.wrong(scope, word, "write `all` or statuses from 200 to 599: `200,404`");
                return None;
            };
            statuses.push(code);
        }
        statuses.sort_unstable();
        statuses.dedup();
        self.statuses = Statuses::Only(statuses);
        Some(())
    }

    pub(super) fn grace(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let word = values.only(scope)?;
        let time = if word.is("off") { Some(Duration::ZERO) } else { seconds(&word.lossy()) };
        if time.is_none() {
            values.wrong(scope, word, "write a time such as `30s`, or `off`");
        }
        self.grace = Some(time?);
        Some(())
    }

    pub(super) fn stale_if_error(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        self.stale_if_error = Some(window(scope, values)?);
        Some(())
    }

    /// nuster's: what is old is served while one request renews it, and when that fails.
    pub(super) fn use_stale(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let window = window(scope, values)?;
        (self.grace, self.stale_if_error) = (Some(window), Some(window));
        Some(())
    }

    /// `off`, `P% max T`.
    pub(super) fn heuristic(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        const HELP: &str = "write `off` or a part of the time since it was modified and a limit: `10% max 1d`";
        self.heuristic = match values.words {
            [one] if one.is("off") => None,
            [part, max, time] if max.is("max") => {
                let percent = part.lossy().strip_suffix('%').and_then(|text| text.parse().ok());
                let Some((percent, max)) = percent.filter(|percent| *percent <= 100).zip(seconds(&time.lossy())) else {
                    values.wrong(scope, part, HELP);
                    return None;
                };
                Some(Heuristic { percent, max })
            }
            [first, ..] => {
                values.wrong(scope, first, HELP);
                return None;
            }
            [] => return None,
        };
        Some(())
    }

    /// `query A,B*,@tracking`, `cookies`, `cookies except A,B*`.
    pub(super) fn strip(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        const HELP: &str =
            "write `query` and names, `cookies`, or `cookies except` and names: `strip query utm_*,gclid`";
        let (what, named) = values.words.split_first()?;
        let listed = |words: &[Word]| {
            let names: Vec<String> = Values { param: values.param, words }.items().map(|(_, item)| item).collect();
            Names::new(
                names.iter().flat_map(|name| if name == "@tracking" { TRACKING } else { name }.split_whitespace()),
            )
        };
        let rewrite = match (what.text.as_slice(), named) {
            (b"query", [_, ..]) => Rewrite::StripQuery(listed(named)),
            (b"cookies", []) => Rewrite::StripCookies(Names::default()),
            (b"cookies", [except, names @ ..]) if except.is("except") && !names.is_empty() => {
                Rewrite::StripCookies(listed(names))
            }
            _ => {
                values.wrong(scope, what, HELP);
                return None;
            }
        };
        self.rewrites.push(rewrite);
        Some(())
    }

    /// `accept-encoding`, which always is, `accept-language`, `query-order`, `case`.
    pub(super) fn normalise(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        for (word, item) in values.items() {
            match item.as_str() {
                // Only which codings are accepted tells variants apart.
                "accept-encoding" => {}
                "accept-language" => self.rewrites.push(Rewrite::SortLanguages),
                "query-order" => self.rewrites.push(Rewrite::SortQuery),
                "case" => self.rewrites.push(Rewrite::LowerPath),
                _ => {
                    values.wrong(
                        scope,
                        word,
                        "there are `accept-encoding`, `accept-language`, `query-order` and `case`",
                    );
                    return None;
                }
            }
        }
        Some(())
    }

    /// `all`, `keyed`.
    pub(super) fn forward(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let word = values.only(scope)?;
        self.forward_keyed = match &*word.lossy() {
            "all" => false,
            "keyed" => true,
            _ => {
                values.wrong(scope, word, "write `all`, or `keyed`: a server gets what the key and `Vary` name");
                return None;
            }
        };
        Some(())
    }

    pub(super) fn wait(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let word = values.only(scope)?;
        self.wait = match &*word.lossy() {
            "on" => Some(WAIT_ON),
            "off" => None,
            text => {
                let time = seconds(text);
                if time.is_none() {
                    values.wrong(scope, word, "write `on`, `off` or a time such as `5s`");
                }
                Some(time?)
            }
        };
        Some(())
    }

    /// `finish`, `abandon`, `finish-if N%/SIZE`.
    pub(super) fn fill(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        const HELP: &str = "write `finish`, `abandon` or `finish-if 50%/1m`";
        self.fill = match values.words {
            [one] if one.is("finish") => FillMode::Finish,
            [one] if one.is("abandon") => FillMode::Abandon,
            [one, when] if one.is("finish-if") => {
                let found = finish_if(&when.lossy());
                if found.is_none() {
                    values.wrong(scope, when, HELP);
                }
                found?
            }
            [first, ..] => {
                values.wrong(scope, first, HELP);
                return None;
            }
            [] => return None,
        };
        Some(())
    }

    pub(super) fn honour(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        let word = values.only(scope)?;
        if !word.is("client") {
            values.wrong(scope, word, "only `honour client` exists");
            return None;
        }
        self.honour_client = true;
        Some(())
    }

    pub(super) fn ignore(&mut self, scope: &mut Scope<'_>, values: &Values<'_>) -> Option<()> {
        for (word, item) in values.items() {
            // What the client asks for is ignored unless `honour client` says otherwise.
            if item == "client" {
                continue;
            }
            let Some((name, set)) = IGNORABLE.iter().find(|(name, _)| *name == item) else {
                let nearest = suggest::nearest(&item, IGNORABLE.iter().map(|(name, _)| *name));
                let message = format!("`{item}` is nothing that could be ignored");
                scope.report(Diagnostic::error(codes::BAD_PARAMETER, word.span, message).did_you_mean(nearest));
                return None;
            };
            set(&mut self.ignore);
            self.ignored.push(name);
        }
        Some(())
    }
}

/// `on`, `off`, `T`: how long something stale may be served.
fn window(scope: &mut Scope<'_>, values: &Values<'_>) -> Option<Duration> {
    let word = values.only(scope)?;
    let time = match &*word.lossy() {
        "on" => Some(FOREVER),
        "off" => Some(Duration::ZERO),
        text => seconds(text),
    };
    if time.is_none() {
        values.wrong(scope, word, "write `on`, `off` or a time such as `1h`");
    }
    time
}

/// `1 day`, `30 s`.
fn in_two_words(number: &Word, unit: &Word) -> bool {
    const UNITS: [&str; 5] = ["second", "minute", "min", "hour", "day"];
    let name = unit.lossy().to_ascii_lowercase();
    let known = unit::TIMES.contains(&&*name) || UNITS.contains(&name.strip_suffix('s').unwrap_or(&name));
    known && !name.ends_with("us") && name != "ms" && unit::number(&number.text).is_some()
}

/// `MIN..MAX`, one of them may be missing.
fn range_of(text: &str) -> Option<Ttl> {
    let (min, max) = text.split_once("..")?;
    let bound = |text: &str| if text.is_empty() { Some(None) } else { seconds(text).map(Some) };
    let (min, max) = (bound(min)?, bound(max)?);
    let empty = min.is_none() && max.is_none();
    let ordered = min.zip(max).is_none_or(|(min, max)| min <= max);
    (!empty && ordered).then_some(Ttl::Auto { min, max })
}

/// `N%/SIZE`.
fn finish_if(text: &str) -> Option<FillMode> {
    let (percent, bytes) = text.split_once("%/")?;
    let percent = percent.parse().ok().filter(|percent| *percent <= 100)?;
    Some(FillMode::FinishIf { percent, bytes: unit::size(bytes.as_bytes())? })
}
