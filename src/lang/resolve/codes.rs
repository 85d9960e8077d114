//! The codes of findings about expressions, ACLs, conditions (`03`), actions and formats (`04`) and
//! caching rules (`05`). A code keeps its meaning for ever; one that is no longer given is not used again.

macro_rules! codes {
    ($(#[doc = $doc:literal] $name:ident = $code:literal;)+) => {
        $(#[doc = $doc] pub const $name: &str = $code;)+

        /// Every code of this file and what it means.
        pub const ALL: &[(&str, &str)] = &[$(($code, $doc)),+];
    };
}

codes! {
    /// A fetch that does not exist.
    UNKNOWN_FETCH = "E0301";
    /// A converter that does not exist.
    UNKNOWN_CONVERTER = "E0302";
    /// A fetch or converter of HAProxy's that is not built yet.
    UNBUILT_SAMPLE = "E0303";
    /// An expression is not written as `fetch(arguments),converter(arguments)`.
    EXPRESSION_SHAPE = "E0304";
    /// An argument is missing.
    MISSING_ARGUMENT = "E0305";
    /// An argument too many.
    EXTRA_ARGUMENT = "E0306";
    /// An argument cannot be what it has to be.
    BAD_ARGUMENT = "E0307";
    /// A converter does not take what it is given.
    TYPES = "E0308";
    /// A sample of the response in a rule that runs before there is one.
    TOO_EARLY = "E0309";
    /// A variable's scope or name cannot be used.
    BAD_VARIABLE_NAME = "E0310";
    /// A file cannot be read.
    UNREADABLE_FILE = "E0311";
    /// A regular expression cannot be used.
    BAD_REGEX = "E0312";
    /// A pattern is not what its method needs.
    BAD_PATTERN = "E0313";
    /// A flag of an ACL that does not exist, or in the wrong place.
    BAD_FLAG = "E0314";
    /// A match method that does not exist or does not fit the sample.
    BAD_METHOD = "E0315";
    /// A sample that can be matched in several ways and no `-m` to choose one.
    METHOD_NEEDED = "E0316";
    /// An ACL that is not declared.
    UNKNOWN_ACL = "E0317";
    /// A condition or an ACL is not well formed.
    CONDITION_SHAPE = "E0318";
    /// An ACL's name has characters that names cannot have.
    BAD_ACL_NAME = "E0319";
    /// An ACL without patterns never matches.
    NO_PATTERN = "W0320";
    /// Converters take the match of a suffix form away.
    SUFFIX_DROPPED = "W0321";
    /// `-m` takes the place of a suffix form's match.
    SUFFIX_OVERRIDDEN = "W0322";
    /// A file is read as patterns in one place and as keys with values in another.
    LIST_SHAPE = "E0323";
    /// An entry of a map cannot be what the map asks for.
    BAD_ENTRY = "E0324";
    /// A key of a map has no value.
    NO_VALUE = "W0325";
    /// A file that rules change and nothing looks up.
    UNREAD_LIST = "W0326";
    /// An operator stands before a range.
    IDLE_OPERATOR = "W0329";

    /// An action that does not exist.
    UNKNOWN_ACTION = "E0401";
    /// An action, or a word of one, that is not built yet.
    UNBUILT_ACTION = "E0402";
    /// An action in a phase where it cannot run.
    ACTION_PHASE = "E0403";
    /// Words of an action are missing or too many.
    ACTION_SHAPE = "E0404";
    /// A word of an action cannot be what it has to be.
    BAD_VALUE = "E0405";
    /// A field name that is none (RFC 9110 §5.1).
    BAD_FIELD_NAME = "E0406";
    /// A field that only the gateway may write.
    FRAMING_FIELD = "E0407";
    /// A `%` that begins nothing.
    FORMAT_SHAPE = "E0408";
    /// A log alias that does not exist.
    UNKNOWN_ALIAS = "E0409";
    /// A control character where none may be.
    CONTROL_CHARACTER = "E0410";
    /// A replacement refers to nothing.
    BAD_REPLACEMENT = "E0411";
    /// What is stored for all clients would depend on one of them.
    STORED_FOR_ALL = "E0412";
    /// A field that a reply gets anyway.
    FIELD_IGNORED = "W0413";
    /// A format of the log asks for what is gone when it is written.
    TOO_LATE = "E0414";
    /// A flag of a format that does nothing.
    FORMAT_FLAG = "W0415";
    /// A file that should hold an HTTP response and does not.
    BAD_MESSAGE = "E0420";
    /// An `http-errors` section is named that does not exist.
    UNKNOWN_PAGES = "E0421";

    /// A parameter of caching rules that does not exist.
    UNKNOWN_PARAMETER = "E0501";
    /// A parameter of caching rules, or a value of one, that is not built yet.
    UNBUILT_PARAMETER = "E0502";
    /// A parameter is there twice.
    REPEATED_PARAMETER = "E0503";
    /// A parameter's value is missing or cannot be what it has to be.
    BAD_PARAMETER = "E0504";
    /// A component of a cache key that does not exist.
    UNKNOWN_COMPONENT = "E0505";
    /// A caching rule has no name or one that names cannot have.
    BAD_RULE_NAME = "E0506";
    /// A requirement of RFC 9111 is set aside.
    IGNORED_REQUIREMENT = "N0507";
    /// A value was too large and has been cut.
    CLAMPED = "W0508";
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_code_means_two_things() {
        let mut numbers: Vec<_> = super::ALL.iter().map(|(code, _)| &code[1..]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), super::ALL.len());
    }
}
