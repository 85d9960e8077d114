//! Whole configurations: what they say when they load, what is said when they do not.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{Loaded, load, render, testing::Desk};
use crate::{
    config::{BindAddress, Config, LogTarget, ServerAddress},
    policy::terms::Ttl,
};

/// What fixtures may refer to.
fn desk() -> Desk {
    Desk::new()
        .with_var("ORIGIN", "192.0.2.7:8080")
        .with_file("token", "s3cret\n")
        .with_file("blank-token", "\n")
        .with_file("networks.lst", "# ours\n10.0.0.0/8\n  300.1.1.1\norigin.test\n192.0.2.0/33\n")
        .with_file("regexes.lst", "^/ok\n/a(b\n/x(?=y)\n")
        .with_file("numbers.lst", "5\n7:\nnine\n")
        .with_file("values.map", "/a 1\n/b\n/c three\n")
        .with_host("origin.test", [192, 0, 2, 1])
}

fn loaded(text: &str) -> Loaded {
    load(vec![("site.cfg".into(), text.into())], &desk(), false)
}

/// The configuration of a text that loads.
fn config(text: &str) -> Config {
    let loaded = loaded(text);
    let found = render(&loaded, false);
    loaded.config.unwrap_or_else(|| panic!("{found}"))
}

fn files(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cfg"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Each `NAME.cfg` beside the findings it must give, as shown to people, in `NAME.txt`.
/// `NAME.lenient.cfg` is loaded so. `TIDEGATE_BLESS=1` writes the files anew.
#[test]
fn fixtures_are_found_wanting_as_written() {
    let mut different = Vec::new();
    for path in files("tests/fixtures/lang") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let lenient = name.ends_with(".lenient.cfg");
        let loaded = load(vec![(name.clone(), fs::read(&path).unwrap())], &desk(), lenient);
        let found = render(&loaded, false);
        let expected = path.with_extension("txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, &found).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != found {
            different.push(format!("--- {name}\n{found}"));
        }
    }
    assert!(different.is_empty(), "TIDEGATE_BLESS=1 accepts these:\n{}", different.join("\n"));
}

/// What ships must load, without an error and without a warning.
#[test]
fn shipped_files_load() {
    for path in files("rules").into_iter().chain(files("examples")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let loaded = load(vec![(name, fs::read(&path).unwrap())], &desk(), false);
        let calm = loaded.diagnostics.iter().all(|found| found.severity == super::diag::Severity::Note);
        assert!(loaded.config.is_some() && calm, "{}", render(&loaded, false));
    }
}

/// A small generator of numbers (xorshift); a test prints its seed when it fails.
struct Dice(u64);

impl Dice {
    fn byte(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.to_be_bytes()[3]
    }

    fn roll(&mut self, below: usize) -> usize {
        let bytes = [self.byte(), self.byte(), self.byte(), 0];
        u32::from_le_bytes(bytes) as usize % below.max(1)
    }
}

fn mutate(text: &mut Vec<u8>, dice: &mut Dice) {
    const PIECES: &[&[u8]] = &[
        b"\"",
        b"'",
        b"\\",
        b"\\x",
        b"$",
        b"${",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"#",
        b"\xff",
        b"%[",
        b"(",
        b")",
        b",",
        b"{",
        b"}",
        b"if",
        b"unless",
        b"-m",
        b"acl ",
        b"from ",
        b"no ",
        b"\xef\xbb\xbf",
        b".if\n",
        b".endif\n",
        b"99999999999999999999",
    ];
    for _ in 0..=dice.roll(6) {
        let at = dice.roll(text.len() + 1);
        match dice.roll(4) {
            0 => drop(text.splice(at..at, PIECES[dice.roll(PIECES.len())].iter().copied())),
            1 => drop(text.drain(at..(at + dice.roll(12)).min(text.len()))),
            2 if at < text.len() => text[at] = dice.byte(),
            _ => {
                let copied = text[at..(at + dice.roll(60)).min(text.len())].to_vec();
                let to = dice.roll(text.len() + 1);
                text.splice(to..to, copied);
            }
        }
    }
}

/// Loading returns, whatever the bytes are, and what it found can be shown.
#[test]
fn no_text_makes_loading_panic() {
    let seed = match std::env::var("TIDEGATE_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::from(SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos()) << 8 | 1,
    };
    let mut dice = Dice(seed);
    let corpus: Vec<_> =
        ["tests/fixtures/lang", "rules", "examples"].iter().flat_map(|directory| files(directory)).collect();
    let corpus: Vec<_> = corpus.into_iter().map(|path| fs::read(path).unwrap()).collect();
    for round in 0..1500 {
        let mut text = corpus[dice.roll(corpus.len())].clone();
        mutate(&mut text, &mut dice);
        let returned = std::panic::catch_unwind(|| {
            let loaded = load(vec![("a.cfg".into(), text.clone())], &desk(), round % 2 == 0);
            render(&loaded, true)
        });
        assert!(returned.is_ok(), "TIDEGATE_SEED={seed}, round {round}:\n{}", text.escape_ascii());
    }
}

#[test]
fn a_small_configuration_says_what_it_says() {
    let config = config(
        "global\n nbthread 3\n maxconn 100\n hard-stop-after 5s\n tune.front off\n tune.misdirected on\n log stderr format raw local0\n\
         defaults\n mode http\n log global\n timeout client 7s\n timeout connect 250\n timeout server 1m\n option forwardfor except 10.0.0.0/8\n\
         frontend web\n bind *:80,[::1]:81,/run/web.sock\n bind :8000-8002\n maxconn 9\n default_backend app\n\
         backend app\n balance roundrobin\n server a 127.0.0.1:8080\n server b unix@/run/b.sock\n server c origin.test:81\n\
         admin\n bind 127.0.0.1:9180\n bind 0.0.0.0:9181\n token-file token\n",
    );
    assert_eq!(config.global.threads, Some(3));
    assert_eq!(config.global.maxconn, Some(100));
    assert_eq!(config.global.hard_stop_after, Duration::from_secs(5));
    assert!(!config.global.front && config.global.misdirected);
    let web = &config.frontends[0];
    let binds: Vec<_> = web.binds.iter().map(|bind| bind.address.to_string()).collect();
    let expected = ["0.0.0.0:80", "[::1]:81", "/run/web.sock", "0.0.0.0:8000", "0.0.0.0:8001", "0.0.0.0:8002"];
    assert_eq!(binds, expected);
    assert_eq!(web.binds[0].place.to_string(), "site.cfg:16");
    assert_eq!(web.maxconn, Some(9));
    let targets: Vec<_> = web.log.loggers.iter().map(|logger| &logger.target).collect();
    assert_eq!(targets, [&LogTarget::Stderr]);
    assert_eq!(web.timeouts.client, Duration::from_secs(7));
    assert_eq!(web.timeouts.http_request, Duration::from_secs(7));
    assert_eq!(web.forwardfor.as_ref().unwrap().except, [("10.0.0.0".parse().unwrap(), 8)]);
    assert_eq!(web.default_backend.unwrap().index(), 0);
    let app = &config.backends[0];
    assert_eq!(app.timeouts.connect, Duration::from_millis(250));
    assert_eq!(app.timeouts.server, Duration::from_secs(60));
    let addresses: Vec<_> = app.servers.iter().map(|server| server.address.clone()).collect();
    let tcp = |text: &str| ServerAddress::Tcp(text.parse().unwrap());
    assert_eq!(addresses, [tcp("127.0.0.1:8080"), ServerAddress::Unix("/run/b.sock".into()), tcp("192.0.2.1:81")]);
    let admin = config.admin.unwrap();
    assert_eq!(admin.token.as_deref(), Some("s3cret"));
    assert_eq!(admin.binds.len(), 2);
}

#[test]
fn addresses_are_read_as_in_haproxy() {
    for (text, expected) in [
        ("*:80", "0.0.0.0:80"),
        (":80", "0.0.0.0:80"),
        (":::80", "[::]:80"),
        ("[::]:80", "[::]:80"),
        ("::1:80", "[::1]:80"),
        ("ipv4@127.0.0.1:0", "127.0.0.1:0"),
        ("ipv6@*:80", "[::]:80"),
        ("origin.test:80", "192.0.2.1:80"),
    ] {
        let config = config(&format!("listen a\n bind {text}\n server s 127.0.0.1:1\n"));
        let expected: SocketAddr = expected.parse().unwrap();
        assert_eq!(config.frontends[0].binds[0].address, BindAddress::Tcp(expected), "{text}");
    }
}

#[test]
fn what_stands_later_wins_and_named_defaults_are_found() {
    let config = config(
        "defaults base\n timeout client 1s\n timeout server 1s\ndefaults more from base\n timeout server 2s\ndefaults\n timeout client 9s\n\
         listen a from more\n bind :1\n timeout client 3s\n server s 127.0.0.1:1\n\
         listen b\n bind :2\n server s 127.0.0.1:1\n no option forwardfor\n",
    );
    assert_eq!(config.frontends[0].timeouts.client, Duration::from_secs(3));
    assert_eq!(config.backends[0].timeouts.server, Duration::from_secs(2));
    assert_eq!(config.frontends[1].timeouts.client, Duration::from_secs(9));
    assert_eq!(config.backends[1].timeouts.server, Duration::from_secs(60));
}

#[test]
fn a_listen_serves_itself_and_keeps_its_rules_in_front() {
    let config = config(
        "listen a\n bind :1\n server s 127.0.0.1:1\n cache-rule r\nlisten b\n bind :2\n server s 127.0.0.1:1\n cache-rule s\n\
         frontend c\n bind :3\n default_backend b\n",
    );
    assert_eq!(config.frontends[0].default_backend.unwrap().index(), 0);
    assert!(config.backends[0].cache_rules.is_empty());
    assert_eq!(config.frontends[1].default_backend.unwrap().index(), 1);
    let from_outside = config.frontends[2].default_backend.unwrap();
    assert_eq!(config.backends[from_outside.index()].name, "b");
    assert_eq!(config.backends[from_outside.index()].cache_rules, config.frontends[1].cache_rules);
}

/// The numbers that HAProxy 2.6 gives these.
#[test]
fn proxies_and_binds_are_numbered_around_written_ids() {
    let config = config(
        "defaults\n mode http\nlisten l1\n bind :80 name n1\n bind :81\n bind :82 id 9\n bind :83\n server s 127.0.0.1:9\n\
         backend bb\n id 2\n server s 127.0.0.1:9\nfrontend f1\n bind :84\n bind :85 id 1\n default_backend bb\n\
         backend b2\n server s 127.0.0.1:9\nfrontend f2\n bind :86,:87-88\n default_backend b2\n",
    );
    let fronts: Vec<_> = config.frontends.iter().map(|front| (front.name.as_str(), front.number)).collect();
    assert_eq!(fronts, [("l1", 1), ("f1", 3), ("f2", 5)]);
    let backs: Vec<_> = config.backends.iter().map(|back| (back.name.as_str(), back.number)).collect();
    assert_eq!(backs, [("l1", 1), ("bb", 2), ("b2", 4)]);
    let binds: Vec<Vec<_>> =
        config.frontends.iter().map(|front| front.binds.iter().map(|bind| bind.name.number).collect()).collect();
    assert_eq!(binds, [vec![1, 2, 9, 4], vec![2, 1], vec![1, 2, 3]]);
    assert_eq!(config.frontends[0].binds[0].name.name.as_deref(), Some("n1"));
}

#[test]
fn tls_of_a_bind_is_kept() {
    let config = config(
        "global\n crt-base /etc/tls\nlisten a\n bind :443 ssl crt a.pem crt /b alpn h2,http/1.1 strict-sni name x\n server s 127.0.0.1:1\n",
    );
    let tls = config.frontends[0].binds[0].tls.as_ref().unwrap();
    assert_eq!(tls.certificates, [PathBuf::from("/etc/tls/a.pem"), PathBuf::from("/b")]);
    assert_eq!(tls.alpn, ["h2", "http/1.1"]);
    assert!(tls.strict_sni);
}

#[test]
fn stores_are_declared_chosen_and_made() {
    let declared = config(
        "cache edge\n memory 2m\n max-object-size 1m\n max-variants 4\ncache old\n total-max-size 4\n max-secondary-entries 9\n process-vary on\n\
         listen a\n bind :1\n server s 127.0.0.1:1\n cache-rule r store old\n",
    );
    assert_eq!(declared.stores[0].memory, 2 << 20);
    assert_eq!(declared.stores[0].max_object_size, 1 << 20);
    assert_eq!(declared.stores[1].memory, 4 << 20);
    assert_eq!(declared.stores[1].max_variants, 9);
    assert_eq!(declared.cache_rules[0].store.index(), 1);
    let capped = config(
        "cache old\n total-max-size 4\n max-age 60\nlisten a\n bind :1\n server s 127.0.0.1:1\n cache-rule r\n cache-rule s ttl 5m\n",
    );
    let minute = Duration::from_secs(60);
    assert_eq!(capped.cache_rules[0].terms.ttl, Ttl::Auto { min: None, max: Some(minute) });
    assert_eq!(capped.cache_rules[1].terms.ttl, Ttl::Fixed(5 * minute));
    let made = config("listen a\n bind :1\n server s 127.0.0.1:1\n cache-rule r\n");
    assert_eq!((made.stores[0].name.as_str(), made.stores[0].memory), ("default", 64 << 20));
    let nuster = config(
        "global\n nuster cache on data-size 100m dict-size 1m\nlisten a\n bind :1\n server s 127.0.0.1:1\n nuster cache on\n nuster rule r\n",
    );
    assert_eq!((nuster.stores[0].name.as_str(), nuster.stores[0].memory), ("nuster", 100 << 20));
    let off = config("listen a\n bind :1\n server s 127.0.0.1:1\n nuster rule r\n nuster cache off\n");
    assert!(off.frontends[0].cache_rules.is_empty());
}

#[test]
fn files_are_one_configuration_and_order_is_kept() {
    let files = vec![
        ("a.cfg".to_owned(), b"frontend web\n bind :80\n default_backend app\n".to_vec()),
        ("b.cfg".to_owned(), b"backend app\n server s 127.0.0.1:1".to_vec()),
    ];
    let loaded = load(files, &desk(), false);
    assert!(loaded.config.is_some() && loaded.diagnostics.is_empty(), "{}", render(&loaded, false));
    assert!(load(Vec::new(), &desk(), false).config.is_some());
}
