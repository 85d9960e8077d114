//! Directives for caches like this one (RFC 9213): they stand in for `Cache-Control`, `Expires` and `Pragma`.

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::directive::CacheControl;
use crate::message::Fields;

/// The fields that are for us, the first that is sound counts (RFC 9213 §2.2).
const FIELDS: [&str; 2] = ["tidegate-cache-control", "cdn-cache-control"];

/// The directives of the field that is for us; `None`: there is none, or it is empty or no dictionary of structured
/// fields (RFC 9213 §2.1, RFC 9651 §3.2). Parameters say nothing.
pub(super) fn of(fields: &Fields) -> Option<CacheControl> {
    let mut found = CacheControl { targeted: true, ..CacheControl::default() };
    each(fields, |name, value| found.take(name, value)).then_some(found)
}

/// Hands each directive of the field that is for us to `take`; `false`: there is no such field.
pub(super) fn each(fields: &Fields, mut take: impl FnMut(&[u8], Option<&[u8]>)) -> bool {
    let Some(directives) = FIELDS.iter().find_map(|name| dictionary(fields, name)) else { return false };
    for (name, entry) in &directives {
        let name = name.as_str().as_bytes();
        let ListEntry::Item(item) = entry else { continue };
        match &item.bare_item {
            BareItem::Boolean(true) => take(name, None),
            BareItem::Boolean(false) => {}
            BareItem::Integer(number) => take(name, Some(number.to_string().as_bytes())),
            // Names of fields; where a number belongs, a text is none.
            BareItem::String(text) if names_fields(name) => take(name, Some(text.as_str().as_bytes())),
            BareItem::Token(text) if names_fields(name) => take(name, Some(text.as_str().as_bytes())),
            _ => take(name, Some(b"?")),
        }
    }
    true
}

fn names_fields(name: &[u8]) -> bool {
    matches!(name, b"private" | b"no-cache")
}

fn dictionary(fields: &Fields, name: &str) -> Option<Dictionary> {
    let lines: Vec<_> = fields.all(name).collect();
    let directives = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
    (!directives.is_empty()).then_some(directives)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::directive::Scope;

    fn cdn(lines: &[&str]) -> Option<CacheControl> {
        of(&lines.iter().map(|line| ("CDN-Cache-Control", *line)).collect())
    }

    #[test]
    fn directives_are_read_as_structured_fields() {
        let found = cdn(&["max-age=60, must-revalidate", "private=\"set-cookie\", no-cache=?0, foo;bar=1"]).unwrap();
        let expected = CacheControl {
            max_age: Some(Duration::from_secs(60)),
            must_revalidate: true,
            private: Scope::Fields,
            targeted: true,
            ..CacheControl::default()
        };
        assert_eq!(found, expected);
        assert_eq!(cdn(&["private"]).unwrap().private, Scope::Whole);
        assert_eq!(cdn(&["max-age=99999999999"]).unwrap().max_age, Some(Duration::from_secs(1 << 31)));
    }

    #[test]
    fn what_is_no_dictionary_is_not_there() {
        for line in ["", "  ", "max-age=60, &&&&", "MaX-aGe=60", "max-age =60", "max-age= 60", "max-age=60 private"] {
            assert_eq!(cdn(&[line]), None, "{line}");
        }
        assert_eq!(of(&Fields::new()), None);
    }

    /// What has no number is stale at once, as everywhere (RFC 9111 §4.2.1).
    #[test]
    fn a_wrong_type_says_what_a_malformed_number_says() {
        for line in ["max-age=\"60\"", "max-age", "max-age=-60", "max-age=1.5"] {
            assert_eq!(cdn(&[line]).unwrap().max_age, Some(Duration::ZERO), "{line}");
        }
        assert!(cdn(&["no-store=1"]).unwrap().no_store, "whatever restricts counts");
    }

    #[test]
    fn ours_comes_before_that_of_all_such_caches() {
        let lines = [("CDN-Cache-Control", "max-age=1"), ("Tidegate-Cache-Control", "max-age=2")];
        assert_eq!(of(&lines.into_iter().collect()).unwrap().max_age, Some(Duration::from_secs(2)));
        let lines = [("CDN-Cache-Control", "max-age=1"), ("Tidegate-Cache-Control", "max age")];
        assert_eq!(of(&lines.into_iter().collect()).unwrap().max_age, Some(Duration::from_secs(1)));
    }
}
