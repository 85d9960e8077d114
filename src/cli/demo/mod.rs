//! `demo`: the gateway before a small site of its own, with things to try.

mod site;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use tracing::level_filters::LevelFilter;

use super::{
    Exit,
    load::{self, System},
    run, say,
};
use crate::{
    config::{BindAddress, Config},
    gateway::listening,
    lang::Outside,
};

/// The demo's rules, as they ship.
const RULES: &str = include_str!("../../../rules/demo.cfg");
/// The ports that the rules name.
const PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9180;

/// What `demo` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The gateway's port on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The admin API's port on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = ADMIN_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    admin_port: u16,
}

/// Runs until it is stopped.
///
/// # Errors
/// A port is taken, or the gateway cannot start.
pub(super) fn demo(args: &Args) -> Result<(), Exit> {
    run::log_to_stderr(LevelFilter::WARN);
    for (port, option) in [(args.port, "--port"), (args.admin_port, "--admin-port")] {
        free(port).map_err(|error| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let why = listening::reason(&error, &BindAddress::Tcp(address));
            Exit::line(format_args!("cannot listen on {address}: {why}; {option} chooses another port"))
        })?;
    }
    let origin = site::start().map_err(Exit::line)?;
    let outside = Demo { origin };
    let rules = Rules { outside, port: args.port, admin_port: args.admin_port };
    let config = rules.load().map_err(Exit)?;
    say(what_to_try(args, origin));
    run::serve(config, move || rules.load())
}

/// Whether a port can be listened on; it is given back at once.
fn free(port: u16) -> io::Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop)
}

/// The demo's configuration, to be loaded again at each reload.
struct Rules {
    outside: Demo,
    port: u16,
    admin_port: u16,
}

impl Rules {
    fn load(&self) -> Result<Config, String> {
        let texts = vec![("rules/demo.cfg".to_owned(), RULES.as_bytes().to_vec())];
        let mut config = load::load_texts(texts, &self.outside, false)?.config;
        for bind in config.frontends.iter_mut().flat_map(|frontend| &mut frontend.binds) {
            set_port(&mut bind.address, PORT, self.port);
        }
        for (address, _) in config.admin.iter_mut().flat_map(|admin| &mut admin.binds) {
            set_port(address, ADMIN_PORT, self.admin_port);
        }
        Ok(config)
    }
}

fn set_port(address: &mut BindAddress, from: u16, to: u16) {
    if let BindAddress::Tcp(address) = address
        && address.port() == from
    {
        address.set_port(to);
    }
}

/// The machine, with the demo's origin in the variable that the rules read.
struct Demo {
    origin: SocketAddr,
}

impl Outside for Demo {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        System.read(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        if name == "TIDEGATE_DEMO_ORIGIN" { Some(self.origin.to_string()) } else { System.var(name) }
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        System.resolve(host, port)
    }
}

fn what_to_try(args: &Args, origin: SocketAddr) -> String {
    let site = format!("http://127.0.0.1:{}", args.port);
    let admin = format!("127.0.0.1:{}", args.admin_port);
    let other = if args.admin_port == ADMIN_PORT { String::new() } else { format!(" --admin {admin}") };
    format!(
        "\
The demo site is at {site}/ (its origin at {origin}, the admin API at {admin}).
Its rules are rules/demo.cfg. Ctrl-C ends it. Try in another terminal:

  curl -so /dev/null -D - {site}/photo.jpg
      a miss; once more: a hit. Cache-Status says which and why, Age how old it is
  curl -so /dev/null -D - {site}/api/time
      never stored: the origin says no-store
  curl -so /dev/null -D - {site}/login
      never stored: the answer sets a cookie
  curl -s -H 'Accept-Language: de' {site}/api/news
      one stored answer for each language: the origin says Vary
  time curl -s {site}/slow
      two seconds; once more: none
  for i in 1 2 3 4 5 6; do curl -si {site}/flaky | grep -i ^cache-status; sleep 1.5; done
      fresh for a second; the origin fails every third time, and what is stored hides it: fwd=stale
  cargo run --release -- purge{other} {site}/photo.jpg
      or: curl -H 'Content-Type: application/json' -d '{{\"url\":\"{site}/photo.jpg\"}}' http://{admin}/v1/purge
  curl -s http://{admin}/v1/stats
  curl -s http://{admin}/metrics | grep ^tidegate

"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_try_names_the_ports_in_use() {
        let args = Args { port: 18_080, admin_port: 19_180 };
        let text = what_to_try(&args, "127.0.0.1:5".parse().unwrap());
        assert!(text.contains("http://127.0.0.1:18080/photo.jpg") && text.contains("--admin 127.0.0.1:19180"));
        assert!(!text.contains(":8080") && !text.contains(":9180"), "{text}");
    }

    #[test]
    fn only_the_ports_of_the_rules_are_moved() {
        let mut address = BindAddress::Tcp("127.0.0.1:8080".parse().unwrap());
        set_port(&mut address, PORT, 1234);
        assert_eq!(address.to_string(), "127.0.0.1:1234");
        set_port(&mut address, PORT, 1);
        assert_eq!(address.to_string(), "127.0.0.1:1234");
    }
}
