//! Exchanges with odd heads, put together from lists of odd pieces.

/// One exchange.
pub(super) struct Case {
    pub(super) method: &'static str,
    pub(super) request: String,
    pub(super) response: String,
}

/// Takes one of each list: `index` chooses for each how far in it is.
pub(super) fn case(mut index: impl FnMut(usize) -> usize) -> Case {
    let lines = |name: &str, values: &[&str], end: &str| {
        values.iter().map(|value| format!("{name}: {value}{end}")).collect::<String>()
    };
    let target = TARGETS[index(TARGETS.len())];
    let method = if target == "*" { "OPTIONS" } else { METHODS[index(METHODS.len())] };
    let authority = target.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap());
    let host = authority.unwrap_or(["t.example", "t.example:8080", "127.0.0.1"][index(3)]);
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    request += &lines("X", VALUES[index(VALUES.len())], "\r\n");
    request += &lines("Cookie", COOKIES[index(COOKIES.len())], "\r\n");
    for name in ["Authorization", "X-Auth"] {
        let credentials = CREDENTIALS[index(CREDENTIALS.len())];
        if !credentials.is_empty() {
            request += &format!("{name}: {credentials}\r\n");
        }
    }
    let body = if method == "PUT" { "body" } else { "" };
    if matches!(method, "POST" | "PUT" | "PATCH") {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    let response = lines("X", VALUES[index(VALUES.len())], "\n")
        + &lines("Set-Cookie", SET_COOKIES[index(SET_COOKIES.len())], "\n");
    Case { method, request: request + "\r\n" + body, response: response.trim_end_matches('\n').to_owned() }
}

/// Targets; what is not sent as it stands here would be refused by one of the two.
const TARGETS: &[&str] = &[
    "/",
    "/p/a?x=1",
    "http://1.2.3.4:81/p/a?x=1",
    "http://1.2.3.4/",
    "https://1.2.3.4/?q",
    "http://foo.example:8080/",
    "*",
    "/x?a=1",
    "/x?b=2&a=3&a=4",
    "/x;a=7?a=8",
    "/x;b=7?a=8&c=1;b=9",
    "/x?A=5",
    "/x?a",
    "/x?a&b=1",
    "/x?a=",
    "/x?&&b=1",
    "/x?aa=1&xa=2&a=3",
    "/x?b==1&c=d=e",
    "/x?n=12abc&b=-3",
    "/x/a=5/b=6",
    "/x?c=1?a=2",
    "/x?n=",
    "/x?",
    "/x?=v&b",
    "/x?a=1.5&n=-0012",
    "/x?a=%41&b=+1",
    "/a//b/../c?x",
    "/x?a=1;a=2&a;b",
    "/x;;a=1;b",
    "/?/a=3&b=4",
];

/// Values of the field that is asked for.
pub(super) const VALUES: &[&[&str]] = &[
    &[],
    &["a"],
    &["a, b"],
    &["a,b", "c"],
    &["\"a,b\",c"],
    &["a,,b"],
    &[",a"],
    &["a,"],
    &[""],
    &["a", "", "b"],
    &["\"a\\\",b\",c"],
    &["12abc, 7"],
    &["-5"],
    &["+5"],
    &["99999999999999999999"],
    &["0x10"],
    &["10.0.0.1"],
    &["10.0.0.1:80"],
    &["[::1]:80"],
    &["::1"],
    &["10.0.0.1, 10.0.0.2"],
    &["10.0.0"],
    &["10.0.0.1.5"],
    &["::ffff:1.2.3.4"],
    &["1.2.3.4:"],
    &["1.2.3.4:x"],
    &["01.2.3.4"],
    &["300.1.1.1, 1.1.1.1"],
    &["a\t,\tb"],
    &["un\"q,c"],
    &[",", ","],
    &["1.2.3.4x"],
    &["1.2.3.4:99999"],
    &["-"],
    &["--5"],
    &["5-"],
    &[" , "],
    &["a;b"],
];

const COOKIES: &[&[&str]] = &[
    &[],
    &["a=1"],
    &["a=1; a=2"],
    &["a=1", "a=2"],
    &["a=\"x;y\"; b=2"],
    &["a=\"x,y\", b=2"],
    &["a"],
    &["a; b=1"],
    &["a="],
    &["a=; b=3"],
    &["b=3;a="],
    &["b=3; a="],
    &["$Version=1; a=2; $Path=/"],
    &["a = 5 ; b=6"],
    &[" a=1;;b=2;"],
    &["a=1,b=2"],
    &["a=\"un; b=2"],
    &["aa=1;a=3x"],
    &["a=b=c; b==x"],
    &["a=\"x\\\"y;z\"; b=4"],
    &["a=1;\tb=2"],
    &["b=q\"r;s\"t; c=3"],
    &["=v; b=1"],
    &["a=1;b"],
    &["a=1;b;c=2"],
    &["a=x\"y,z\";c=4"],
    &["a=x y z; c=1"],
    &["b=3,a=, c=4"],
    &["$a=1; b=2"],
    &["a=-7; b=\" 9\""],
    &[";;;"],
    &["a=1; A=2"],
];

const SET_COOKIES: &[&[&str]] = &[
    &[],
    &["a=1,2; path=/; b=3", "b=\"q;w\"; x", "c", "d="],
    &["a=1; expires=Thu, 01 Jan; path=/"],
    &["a=; b=1"],
    &["a=5x; HttpOnly", "a=6"],
    &["b = 7 ;path=/"],
    &["$a=1; a=2"],
    &["x; a=1"],
];

const CREDENTIALS: &[&str] = &[
    "",
    "Basic dXNlcjpwYTpzcw==",
    "BASIC  dXNlcjpw",
    "Basic Og==",
    "basic dXNlcg==",
    "Basic dXNlcjpwcA",
    "Basic dXNlcjpwYR==",
    "Basic dXNlcg==OnB3",
    "Basic ???",
    "Digest foo",
    "bearer tt",
    "Bearer  a b",
    "Bearer",
    "Bearerx",
    "Basic dXNlcjo=",
    "Basic dXNl cjo=",
];

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "GET"];
