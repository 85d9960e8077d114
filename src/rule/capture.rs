//! What a frontend keeps of an exchange for its log: `capture request header` and its kin (HAProxy manual §8.7, §8.8).

use std::sync::{Mutex, MutexGuard, PoisonError};

use bumpalo::Bump;

use crate::message::{Fields, members};

/// What a frontend captures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// Slots of the request, in order.
    pub request: Vec<Slot>,
    /// Slots of the response, in order.
    pub response: Vec<Slot>,
    /// `capture cookie`.
    pub cookie: Option<CookieSlot>,
}

impl Captures {
    /// The most bytes that a place keeps; 0 when there is no such place.
    pub fn len(&self, place: Place) -> usize {
        match place {
            Place::Request(at) => self.request.get(at).map_or(0, |slot| slot.len),
            Place::Response(at) => self.response.get(at).map_or(0, |slot| slot.len),
            Place::RequestCookie | Place::ResponseCookie => self.cookie.as_ref().map_or(0, |slot| slot.len),
        }
    }

    /// Whether there is anything to capture.
    pub const fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty() && self.cookie.is_none()
    }
}

/// Room for one captured value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The field whose last line is captured; `None`: rules fill the slot.
    pub field: Option<Box<str>>,
    /// The most bytes kept.
    pub len: usize,
}

/// The cookie that is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieSlot {
    /// What it begins with, `=` included where the name is to be exact.
    pub prefix: Box<[u8]>,
    /// The most bytes kept.
    pub len: usize,
}

/// One captured thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A slot of the request.
    Request(usize),
    /// A slot of the response.
    Response(usize),
    /// The cookie of the request.
    RequestCookie,
    /// The cookie of the response.
    ResponseCookie,
}

/// What has been captured of one exchange. Filled while samples are borrowed, so behind a lock that nobody else holds;
/// its room is reused.
#[derive(Debug, Default)]
pub struct Captured(Mutex<Kept>);

#[derive(Clone, Debug, Default)]
struct Kept {
    values: Vec<(Place, usize, usize)>,
    text: Vec<u8>,
}

impl Clone for Captured {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.kept().clone()))
    }
}

impl Captured {
    /// Forgets everything and keeps the room.
    pub fn clear(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        kept.values.clear();
        kept.text.clear();
    }

    /// Captures the first `len` bytes of a value in the place of what was there.
    pub fn set(&self, place: Place, value: &[u8], len: usize) {
        let mut kept = self.kept();
        let start = kept.text.len();
        kept.text.extend_from_slice(value.get(..len).unwrap_or(value));
        let end = kept.text.len();
        match kept.values.iter_mut().find(|(at, ..)| *at == place) {
            Some(slot) => *slot = (place, start, end),
            None => kept.values.push((place, start, end)),
        }
    }

    /// What was captured; `None` when nothing was.
    pub fn value<'s>(&self, place: Place, arena: &'s Bump) -> Option<&'s [u8]> {
        let kept = self.kept();
        let (_, start, end) = *kept.values.iter().find(|(at, ..)| *at == place)?;
        Some(arena.alloc_slice_copy(kept.text.get(start..end)?))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fields(&self, slots: &[Slot], place: fn(usize) -> Place, fields: &Fields) {
        for (at, slot) in slots.iter().enumerate() {
            if let Some(value) = slot.field.as_deref().and_then(|name| fields.last(name)) {
                self.set(place(at), value, slot.len);
            }
        }
    }

    /// Captures the fields of a request, before any rule.
    pub fn request(&self, captures: &Captures, fields: &Fields) {
        self.fields(&captures.request, Place::Request, fields);
    }

    /// Captures the fields of a response, before any rule.
    pub fn response(&self, captures: &Captures, fields: &Fields) {
        self.fields(&captures.response, Place::Response, fields);
    }

    /// Captures the first cookie that begins as asked, of a request that rules are done with.
    pub fn request_cookie(&self, captures: &Captures, fields: &Fields) {
        let Some(slot) = &captures.cookie else { return };
        let mut cookies =
            fields.all("cookie").flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
        if let Some(cookie) = cookies.find(|cookie| cookie.starts_with(&slot.prefix)) {
            self.set(Place::RequestCookie, cookie, slot.len);
        }
    }

    /// Captures the first cookie that a response sets and that begins as asked.
    pub fn response_cookie(&self, captures: &Captures, fields: &Fields) {
        let Some(slot) = &captures.cookie else { return };
        let set =
            fields.all("set-cookie").flat_map(members).filter_map(|cookie| cookie.split(|byte| *byte == b';').next());
        if let Some(cookie) = set.map(<[u8]>::trim_ascii).find(|cookie| cookie.starts_with(&slot.prefix)) {
            self.set(Place::ResponseCookie, cookie, slot.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_and_the_first_cookie_are_captured() {
        let slot = |name: &str, len| Slot { field: Some(name.into()), len };
        let captures = Captures {
            request: vec![slot("host", 10), slot("x-a", 2), Slot { field: None, len: 5 }],
            response: vec![slot("x-b", 9)],
            cookie: Some(CookieSlot { prefix: b"sid".as_slice().into(), len: 7 }),
        };
        let (captured, arena) = (Captured::default(), Bump::new());
        let fields =
            [("X-A", "one"), ("x-a", "two"), ("Cookie", "a=1; SID=0; sidx=abcdef; sid=2")].into_iter().collect();
        captured.request(&captures, &fields);
        captured.request_cookie(&captures, &fields);
        captured.set(Place::Request(2), b"from a rule", 5);
        let answer =
            [("X-B", "b, c"), ("Set-Cookie", "other=1; path=/"), ("Set-Cookie", "sid=9; path=/")].into_iter().collect();
        captured.response(&captures, &answer);
        captured.response_cookie(&captures, &answer);
        let places = [
            (Place::Request(0), None),
            (Place::Request(1), Some(&b"tw"[..])),
            (Place::Request(2), Some(b"from ")),
            (Place::Response(0), Some(b"b, c")),
            (Place::RequestCookie, Some(b"sidx=ab")),
            (Place::ResponseCookie, Some(b"sid=9")),
        ];
        for (place, expected) in places {
            assert_eq!(captured.clone().value(place, &arena), expected, "{place:?}");
        }
        captured.set(Place::Request(1), b"new", 9);
        assert_eq!(captured.value(Place::Request(1), &arena), Some(&b"new"[..]));
        let mut captured = captured;
        captured.clear();
        assert_eq!(captured.value(Place::Request(1), &arena), None);
    }
}
