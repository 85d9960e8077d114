//! The codes of findings about words, lines, sections and names. A code keeps its meaning for ever;
//! one that is no longer given is not used again.

macro_rules! codes {
    ($(#[doc = $doc:literal] $name:ident = $code:literal;)+) => {
        $(#[doc = $doc] pub const $name: &str = $code;)+

        /// Every code of this file and what it means.
        pub const ALL: &[(&str, &str)] = &[$(($code, $doc)),+];
    };
}

codes! {
    /// A quote is opened and not closed on its line.
    OPEN_QUOTE = "E0101";
    /// `\x` is not followed by two hexadecimal digits.
    BAD_HEX = "E0102";
    /// A `$` in double quotes is not followed by a variable's name, or its brace is not closed.
    BAD_VARIABLE = "E0103";
    /// A NUL byte.
    NUL = "E0104";
    /// A carriage return inside a line, with more behind it.
    STRAY_RETURN = "E0105";
    /// A word is empty: HAProxy ends a line there.
    EMPTY_WORD = "E0106";
    /// A backslash at the end of a line: lines cannot be continued.
    CONTINUATION = "E0107";
    /// The lines of a conditional block (`.if` and its kin) do not fit together.
    CONDITIONAL = "E0108";
    /// A file is too large.
    TOO_LARGE = "E0109";
    /// An environment variable is not set and has no default.
    UNSET_VARIABLE = "W0110";
    /// A character that looks like a blank or a quote and is none.
    LOOKALIKE = "W0111";
    /// A variable outside double quotes stays as it is written.
    UNQUOTED_VARIABLE = "W0112";
    /// A condition behind `.if` or `.elif` cannot be read.
    BAD_CONDITION = "E0113";
    /// The file says itself that it must not be loaded (`.alert`).
    ALERT = "E0114";
    /// A warning that the file gives itself (`.warning`).
    OWN_WARNING = "W0115";
    /// A note that the file gives itself (`.notice`).
    OWN_NOTE = "N0116";

    /// A line stands before the first section of its file.
    NO_SECTION = "E0201";
    /// A section's head is not as it should be.
    SECTION_HEAD = "E0202";
    /// A word nobody knows.
    UNKNOWN_WORD = "E0203";
    /// A known word in a section where it has no place.
    MISPLACED = "E0204";
    /// A known word that changes traffic and is not built.
    REFUSED = "E0205";
    /// A known word that is read and has no effect.
    ACCEPTED = "N0206";
    /// A word is missing.
    MISSING_WORD = "E0207";
    /// A word too many.
    EXTRA_WORD = "E0208";
    /// A number, time, size or switch cannot be read.
    BAD_VALUE = "E0209";
    /// An address cannot be read, resolved or used.
    BAD_ADDRESS = "E0210";
    /// A name has characters that names cannot have.
    BAD_NAME = "E0211";
    /// A name is used twice.
    DUPLICATE = "E0212";
    /// A frontend and a backend share a name.
    SHARED_NAME = "W0213";
    /// A backend is named that does not exist.
    UNKNOWN_BACKEND = "E0214";
    /// A `defaults` section is named that does not exist above.
    UNKNOWN_DEFAULTS = "E0215";
    /// A store is named that does not exist.
    UNKNOWN_STORE = "E0216";
    /// Several stores exist and a caching rule names none.
    WHICH_STORE = "E0217";
    /// Caching rules exist and no store: one was made.
    DEFAULT_STORE = "N0218";
    /// A mode other than `http`.
    MODE = "E0219";
    /// A frontend listens nowhere.
    NO_BIND = "E0220";
    /// Two binds share an address.
    SAME_ADDRESS = "E0221";
    /// A frontend has no backend for what no `use_backend` matches.
    NO_DEFAULT_BACKEND = "W0222";
    /// A backend in use has no server.
    NO_SERVER = "W0223";
    /// A line that can never be reached.
    UNREACHABLE = "W0224";
    /// An ACL that nothing uses.
    UNUSED_ACL = "W0225";
    /// A rule runs earlier than its place in the file suggests.
    ORDER = "W0226";
    /// Rules in a `defaults` section without a name.
    ANONYMOUS_RULES = "E0227";
    /// TLS settings that do not fit together.
    TLS = "E0228";
    /// The admin listener can be reached from elsewhere and asks for no token.
    OPEN_ADMIN = "E0229";
    /// A file cannot be read.
    UNREADABLE = "E0230";
    /// An old form of a word, translated.
    TRANSLATED = "N0231";
    /// A setting that is there twice, or that another one takes the effect from.
    OVERRIDDEN = "W0232";
    /// nuster would need a switch here that Tidegate does not.
    NUSTER_SWITCH = "N0233";
    /// Caching rules that are switched off.
    SWITCHED_OFF = "W0234";
    /// A server is a bind of the gateway itself, and its requests come back.
    LOOP = "W0235";
    /// A store that is too small to be of use, or larger than the machine.
    STORE_SIZE = "W0236";
    /// A certificate cannot be used.
    CERTIFICATE = "E0237";
    /// An `http-errors` section has no page for a status that is asked of it.
    NO_PAGE = "W0250";
    /// A user or a group of a `userlist` that is not as it should be.
    USERS = "E0251";
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
