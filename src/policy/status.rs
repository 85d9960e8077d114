//! `Cache-Status` (RFC 9211).

use std::io::Write;

/// Why a request went forward (§2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// The cache was configured not to handle it.
    Bypass,
    /// The method's semantics.
    Method,
    /// Nothing for this URI.
    UriMiss,
    /// Something for this URI, but not for these request fields.
    VaryMiss,
    /// Nothing usable, no more specific word.
    Miss,
    /// A directive of the request.
    Request,
    /// A stale response.
    Stale,
    /// A partial response.
    Partial,
}

impl Forward {
    /// The token of §2.2.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// What one `Cache-Status` member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Status<'a> {
    /// `hit`.
    pub hit: bool,
    /// `fwd=`.
    pub forward: Option<Forward>,
    /// `fwd-status=`: the status the origin gave when it differs from what is served.
    pub forward_status: Option<u16>,
    /// `ttl=`: remaining lifetime in seconds, negative when stale.
    pub ttl: Option<i64>,
    /// `stored`.
    pub stored: bool,
    /// `collapsed`.
    pub collapsed: bool,
    /// `detail=`: a reason's word.
    pub detail: Option<&'a str>,
}

impl Status<'_> {
    /// Appends the member for the cache named `tidegate`, without a field name or line end. Allocates nothing else.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"tidegate");
        // `hit` and `fwd` exclude each other (§2.2).
        if self.hit {
            out.extend_from_slice(b"; hit");
        } else if let Some(forward) = self.forward {
            out.extend_from_slice(b"; fwd=");
            out.extend_from_slice(forward.as_str().as_bytes());
            if let Some(status) = self.forward_status {
                number(b"; fwd-status=", i64::from(status), out);
            }
        }
        if let Some(ttl) = self.ttl {
            number(b"; ttl=", ttl, out);
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            write_detail(detail, out);
        }
    }
}

fn number(name: &[u8], value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    // Writing into a vector cannot fail.
    let _ = write!(out, "{value}");
}

/// A token where it can be one, else a string (RFC 8941 §3.3.3); bytes that a string cannot hold are left out.
fn write_detail(detail: &str, out: &mut Vec<u8>) {
    let is_token = detail.starts_with(|first: char| first.is_ascii_alphabetic() || first == '*')
        && detail.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte));
    if is_token {
        out.extend_from_slice(detail.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in detail.bytes().filter(|byte| matches!(byte, b' '..=b'~')) {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(status: Status<'_>) -> String {
        let mut out = Vec::new();
        status.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_hit_says_what_is_left() {
        let status = Status { hit: true, ttl: Some(30), forward: Some(Forward::Stale), ..Status::default() };
        assert_eq!(text(status), "tidegate; hit; ttl=30");
        assert_eq!(text(Status { hit: true, ttl: Some(-4), ..Status::default() }), "tidegate; hit; ttl=-4");
    }

    #[test]
    fn a_miss_says_why() {
        let status = Status {
            forward: Some(Forward::UriMiss),
            forward_status: Some(304),
            stored: true,
            collapsed: true,
            detail: Some("no-store"),
            ..Status::default()
        };
        assert_eq!(text(status), "tidegate; fwd=uri-miss; fwd-status=304; stored; collapsed; detail=no-store");
    }

    #[test]
    fn a_detail_that_is_no_token_is_a_string() {
        let status = Status { detail: Some("two \"words\"\n"), ..Status::default() };
        assert_eq!(text(status), "tidegate; detail=\"two \\\"words\\\"\"");
    }
}
