//! A real site, mirrored through the gateway twice.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::harness::{Gateway, Place, eventually, peers, site};

const NEEDS: &str = "mirror of a real site";
const PAGES: &str = "/usr/share/debian-reference";

/// nginx over the documentation; stopped when dropped.
struct Nginx {
    child: Child,
    dir: tempfile::TempDir,
    port: u16,
    _place: Place,
}

impl Nginx {
    fn start(program: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::hold();
        let port = place.address.port();
        let path = dir.path().display();
        let configuration = format!(
            "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;
            events {{ worker_connections 256; }}
            http {{
                types {{ text/html html; text/css css; image/png png; image/gif gif; application/pdf pdf; }}
                access_log {path}/access.log;
                client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;
                uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;
                server {{ listen 127.0.0.1:{port}; root {PAGES}; }}
            }}"
        );
        let file = dir.path().join("nginx.conf");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(dir.path()).arg("-c").arg(&file).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        eventually("nginx listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, dir, port, _place: place }
    }

    /// How often each target was asked for.
    fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.path().join("access.log")).unwrap_or_default();
        log.lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Mirrors the site into a new folder; the files' paths within the site.
fn mirror(wget: &Path, gateway: &Gateway) -> (tempfile::TempDir, BTreeSet<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let start = format!("http://{}/index.en.html", gateway.address());
    let output = Command::new(wget)
        .args([
            "--mirror",
            "--no-host-directories",
            "--page-requisites",
            "--no-verbose",
            "--tries=1",
            "-e",
            "robots=off",
        ])
        .arg("--directory-prefix")
        .arg(dir.path())
        .arg(start)
        .output()
        .unwrap();
    let mut files = BTreeSet::new();
    collect(dir.path(), dir.path(), &mut files);
    assert!(files.len() >= 15, "{} files: {}", files.len(), String::from_utf8_lossy(&output.stderr));
    (dir, files)
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

fn assert_same_as_package(dir: &Path, files: &BTreeSet<PathBuf>) {
    for file in files {
        let (fetched, shipped) = (fs::read(dir.join(file)).unwrap(), fs::read(Path::new(PAGES).join(file)).unwrap());
        assert!(fetched == shipped, "{} differs from the package's", file.display());
    }
}

#[test]
fn a_site_mirrored_twice_is_the_site() {
    let Some([nginx, wget]) = peers::need(NEEDS, ["nginx", "wget"]) else { return };
    if !Path::new(PAGES).join("index.en.html").is_file() {
        return peers::not_run(NEEDS, "debian-reference-en missing");
    }
    let nginx = Nginx::start(&nginx);
    let origin = ([127, 0, 0, 1], nginx.port).into();
    let gateway = Gateway::start(&site(origin, "    cache-rule site ttl 1h"));
    let (first, files) = mirror(&wget, &gateway);
    assert_same_as_package(first.path(), &files);
    let pages = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "html")).count();
    assert!(pages >= 15, "{pages} pages: {files:?}");
    let (asked, hits) = (nginx.requests(), gateway.metrics().outcome("hit"));
    let (second, again) = mirror(&wget, &gateway);
    assert_same_as_package(second.path(), &again);
    assert_eq!(files, again);
    let more = nginx.requests().split_off(asked.len());
    let of_files = |line: &&String| files.iter().any(|file| line.contains(&format!(" /{} ", file.display())));
    assert_eq!(more.iter().filter(of_files).count(), 0, "nginx is not asked for what is stored: {more:#?}");
    // The last of them is counted after its last byte has been sent.
    eventually("the second pass is all hits", || gateway.scrape().outcome("hit") - hits >= files.len() as u64);
    gateway.assert_law();
}
