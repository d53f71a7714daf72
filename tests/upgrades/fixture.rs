//! The state folder that the program of schema 2 has left in the middle of the rollout, as text below `schema-2/`; see
//! the file README.md there.
//!
//! What differs from one machine and one day to another stands in braces: `{ROOT}` the folder of the world, `{NOW-7}` seven
//! milliseconds before it was left, `{ADDRESS}` the service's, `{PORT}` a port of a pod, `{UID}` what no two pods share.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use launchway::clock::{Clock, SystemClock};
use rusqlite::Connection;
use serde_json::Value;

use super::rollout::{PODS, commit, read, service_folder, services_folder};
use crate::support::daemon::World;

/// What of the service the daemon writes.
const SERVICE_FILES: [&str; 2] = ["service.json", "endpoints.json"];
/// What is a time of the rollout: all of it took less than this many milliseconds, and its timers are due within it.
const DAY: i64 = 86_400_000;

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrades/schema-2")
}

/// Puts the state folder in place and starts the shims of all that ran; gives the commits.
pub(super) fn load(world: &World) -> [String; 2] {
    let commits = commit(world);
    world.git.push();
    let filled = Filled::new(world);
    load_store(&world.state(), &filled);
    let pods = world.state().join("local/pods/shop-default");
    fs::create_dir_all(world.state().join("local/changes")).unwrap();
    for pod in fs::read_dir(folder().join("pods")).unwrap() {
        let name = pod.unwrap().file_name();
        let (from, to) = (folder().join("pods").join(&name), pods.join(&name));
        copy(&filled, &from, &to);
        fs::write(to.join("connections"), "").unwrap();
        if !to.join("status.json").exists() {
            start("shim", &to);
        }
    }
    copy(&filled, &folder().join("services/web"), &service_folder(world));
    start("service-shim", &services_folder(world));
    commits
}

/// Makes the store of a state folder.
pub(super) fn load_store(state: &Path, filled: &Filled) {
    fs::create_dir_all(state).unwrap();
    let store = Connection::open(state.join("store.db")).unwrap();
    store.execute_batch(&filled.text(&fs::read_to_string(folder().join("store.sql")).unwrap())).unwrap();
}

fn copy(filled: &Filled, from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        fs::write(to.join(file.file_name()), filled.text(&text)).unwrap();
    }
}

/// Starts a shim whose daemon, here a shell, is gone.
fn start(verb: &str, folder: &Path) {
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" &", "sh", env!("CARGO_BIN_EXE_launchway-shim"), verb]).arg(folder).current_dir("/");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).status().unwrap();
    assert!(status.success());
}

/// Takes from what the shims wrote that it has a version: those of before did not say so.
pub(super) fn forget_versions(world: &World) {
    let ready = PODS.iter().map(|pod| world.state().join("local/pods/shop-default").join(pod).join("ready"));
    for file in ready.filter(|file| file.exists()) {
        let mut value = read(&file);
        assert!(value.as_object_mut().unwrap().remove("v").is_some(), "{}", file.display());
        // By a rename, as all that others read is written.
        let draft = file.with_extension("draft");
        fs::write(&draft, value.to_string()).unwrap();
        fs::rename(draft, file).unwrap();
    }
}

/// What stands in the place of braces.
pub(super) struct Filled {
    root: String,
    address: String,
    now: i64,
}

impl Filled {
    pub(super) fn new(world: &World) -> Self {
        Self { root: world.git.root().display().to_string(), address: free_address().to_string(), now: now() }
    }

    fn text(&self, template: &str) -> String {
        let text = template.replace("{ROOT}", &self.root).replace("{ADDRESS}", &self.address);
        let text = replace_each(&text, "{PORT}", || free_port().to_string());
        let text = replace_each(&text, "{UID}", || format!("{:x}-0", unique()));
        let mut parts = text.split("{NOW");
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (offset, rest) = part.split_once('}').unwrap();
            filled += &(self.now + offset.parse::<i64>().unwrap_or_default()).to_string();
            filled += rest;
        }
        filled
    }
}

fn replace_each(text: &str, key: &str, value: impl Fn() -> String) -> String {
    let mut parts = text.split(key);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &value() + part)
}

/// Another number at each call, far from those of other tests.
fn unique() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(1);
    (std::process::id() << 8) + LAST.fetch_add(1, Ordering::Relaxed)
}

fn free_address() -> Ipv4Addr {
    let candidates = std::iter::repeat_with(|| {
        let [.., second, third, last] = unique().to_be_bytes();
        Ipv4Addr::new(127, 192 | second >> 3, third, last)
    });
    let is_free = |address: &Ipv4Addr| TcpListener::bind((*address, 8088)).is_ok();
    candidates.take(100).find(is_free).unwrap()
}

fn free_port() -> u16 {
    let candidates = std::iter::repeat_with(|| 20_000 + u16::try_from(unique() % 10_000).unwrap());
    candidates.take(100).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

fn now() -> i64 {
    SystemClock.now().0
}

/// Writes the state folder of a daemon that was killed in the middle of the rollout down as text.
pub(super) fn record(world: &World) {
    drop(fs::remove_dir_all(folder().join("pods")));
    let service = service_folder(world);
    let address = read(&service.join("service.json"))["address"].as_str().unwrap().to_owned();
    let recorded = Filled { root: world.git.root().display().to_string(), address, now: now() };
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, recorded.template(text)).unwrap();
    };
    for (pod, from) in world.pod_folders() {
        let to = folder().join("pods").join(pod.trim_start_matches("shop-default/"));
        let (mut record, status) = (read(&from.join("pod.json")), read(&from.join("status.json")));
        record["uid"] = "{UID}".into();
        write(to.join("pod.json"), &pretty(&record));
        if status["phase"] == "ended" {
            write(to.join("status.json"), &pretty(&status));
        }
    }
    for file in SERVICE_FILES {
        write(folder().join("services/web").join(file), &pretty(&read(&service.join(file))));
    }
    write(folder().join("store.sql"), &dump(&world.state(), &world.git.path("copy")));
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

impl Filled {
    /// The text with braces where this stands.
    fn template(&self, text: &str) -> String {
        let text = text.replace(&self.root, "{ROOT}").replace(&self.address, "{ADDRESS}");
        let mut template = String::new();
        let (mut rest, mut before) = (&*text, ' ');
        while let Some(first) = rest.chars().next() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits.max(first.len_utf8()));
            template += &match number.parse::<i64>() {
                Ok(time) if !before.is_alphanumeric() && (time - self.now).abs() < DAY => {
                    format!("{{NOW{:+}}}", time - self.now)
                }
                Ok(_) if template.ends_with("\"real\": ") => "{PORT}".to_owned(),
                _ => number.to_owned(),
            };
            (rest, before) = (after, number.chars().last().unwrap_or(' '));
        }
        template
    }
}

/// The store as SQL text. It is read from a copy, so that it stays as the killed daemon left it.
fn dump(state: &Path, copy: &Path) -> String {
    fs::create_dir_all(copy).unwrap();
    for file in ["store.db", "store.db-wal"] {
        fs::copy(state.join(file), copy.join(file)).unwrap();
    }
    let store = Connection::open(copy.join("store.db")).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut lines = vec!["PRAGMA journal_mode = WAL;\nPRAGMA foreign_keys = OFF;\nBEGIN;".to_owned()];
    let shape = |kinds: &str| {
        let sql = format!(
            "SELECT sql || ';' FROM sqlite_schema WHERE type IN ({kinds}) AND sql IS NOT NULL \
                           AND name NOT LIKE 'sqlite%' ORDER BY rowid"
        );
        texts(&sql)
    };
    lines.extend(shape("'table'"));
    for table in
        texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY rowid")
    {
        let columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let values: Vec<String> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
        let row = values.join(" || ', ' || ");
        lines.extend(texts(&format!("SELECT 'INSERT INTO {table} VALUES (' || {row} || ');' FROM {table}")));
    }
    lines.extend(texts("SELECT 'UPDATE sqlite_sequence SET seq = ' || seq || ' WHERE name = ' || quote(name) || ';' FROM sqlite_sequence"));
    lines.extend(shape("'index', 'trigger'"));
    for pragma in ["application_id", "user_version"] {
        let value: i64 = store.pragma_query_value(None, pragma, |row| row.get(0)).unwrap();
        lines.push(format!("PRAGMA {pragma} = {value};"));
    }
    lines.push("COMMIT;\n".to_owned());
    lines.join("\n")
}
