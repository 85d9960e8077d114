//! When a rule set runs, and what of an exchange a sample needs.

/// When a rule set runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// `tcp-request connection`: a client has connected, and nothing more.
    Connection,
    /// `tcp-request session`: the connection is ready, its TLS session included.
    Session,
    /// `tcp-request content`: the request's head is there and not counted yet.
    Content,
    /// `http-request`: the request's head is there.
    Request,
    /// `tcp-response content`: on every response a backend or the cache delivers, before `http-response`.
    ResponseContent,
    /// `http-response`: on every response a backend or the cache delivers.
    Response,
    /// `http-after-response`: on everything a client gets, our own answers included.
    AfterResponse,
    /// `cache-response`: on what is about to be stored.
    CacheResponse,
    /// The condition of a caching rule: its request part at request time, the whole at response time.
    Caching,
    /// Formats of the log: the exchange is over, and of its messages only what was kept is there.
    Log,
}

impl Phase {
    /// Whether rules of this phase edit the response.
    pub const fn on_response(self) -> bool {
        matches!(self, Self::ResponseContent | Self::Response | Self::AfterResponse | Self::CacheResponse)
    }

    /// What is there when its rules run.
    pub const fn reach(self) -> Stage {
        match self {
            Self::Connection | Self::Session => Stage::Connection,
            Self::Content | Self::Request => Stage::Request,
            _ => Stage::Response,
        }
    }

    /// The keyword that opens a rule of this phase.
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Connection => "tcp-request connection",
            Self::Session => "tcp-request session",
            Self::Content => "tcp-request content",
            Self::ResponseContent => "tcp-response content",
            Self::Request => "http-request",
            Self::Response => "http-response",
            Self::AfterResponse => "http-after-response",
            Self::CacheResponse => "cache-response",
            Self::Caching => "cache-rule",
            Self::Log => "log-format",
        }
    }
}

/// The half of an exchange that must be there before a sample can be taken. Ordered: later includes earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing but the connection (`src`, `ssl_fc_sni`, constants, variables).
    Connection,
    /// The request's head.
    Request,
    /// The response's head.
    Response,
}

/// Where a sample comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The rule file itself.
    Constant,
    /// The client's connection.
    Connection,
    /// A variable.
    Variable,
    /// The running gateway: names, counts, clocks.
    Gateway,
    /// The backend, once one is chosen.
    Backend,
    /// How the response came about: from which server or store.
    Delivery,
    /// The request's head.
    Request,
    /// What was read of the request's body.
    Body,
    /// The response's head.
    Response,
}

impl Source {
    /// For people: whose the value is.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Connection => "of the connection",
            Self::Variable => "variable",
            Self::Gateway => "of the gateway",
            Self::Backend => "of the backend",
            Self::Delivery => "of the delivery",
            Self::Request => "of the request",
            Self::Body => "of the request's body",
            Self::Response => "of the response",
        }
    }

    /// What must have arrived before a sample of this source can be taken.
    pub const fn stage(self) -> Stage {
        match self {
            Self::Constant | Self::Connection | Self::Variable | Self::Gateway | Self::Backend => Stage::Connection,
            Self::Request | Self::Body => Stage::Request,
            Self::Response | Self::Delivery => Stage::Response,
        }
    }

    /// Whether the value is the same for every client that gets one response.
    pub const fn of_response_alone(self) -> bool {
        matches!(self, Self::Constant | Self::Response)
    }
}
