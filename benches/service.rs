//! A service beside what else could lead to its pods: `cargo bench --bench service`.
//!
//! One backend answers clients that reach it directly, through the service proxy, and through HAProxy, where that is
//! installed. All three are driven by the same clients, in turns, so that what else runs on the machine disturbs them
//! alike: requests one after the other on `LAUNCHWAY_CLIENTS` (50) connections, for `LAUNCHWAY_ROUNDS` (7) rounds. Then
//! `LAUNCHWAY_CONNECTIONS` (10,000, as far as the limit of open files goes) connections make one request each, and wait.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod kernel;
}
mod proxying {
    pub(crate) mod backend;
    pub(crate) mod load;
    pub(crate) mod ways;
}

use std::time::Duration;

use proxying::backend::Backend;
use proxying::load::{Load, drive, wait_idle};
use proxying::ways::{HaProxy, Service, Way};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::kernel::{kernel_says, mib};

/// How long each is driven in each round.
const ROUND: Duration = Duration::from_secs(3);
/// The open files of this process that are no idle connections.
const OTHER_FILES: u64 = 200;
/// The files that the service proxy may open for each connection of one service, which gets half of its connections at most: a
/// third of all are for sockets, and each connection has two.
const FILES_EACH: u64 = 7;

fn main() {
    let files = raise_open_files();
    let backend = Backend::start();
    let ways: Vec<Way> =
        [Some(Way::Direct(backend.address())), Service::start(&backend), HaProxy::start(&backend, files)]
            .into_iter()
            .flatten()
            .collect();
    println!("{} clients; {}", number("LAUNCHWAY_CLIENTS", 50), load_average());
    let mut seen: Vec<Vec<Load>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..number("LAUNCHWAY_ROUNDS", 7) {
        for (way, seen) in ways.iter().zip(&mut seen) {
            // The first one finds connections and caches cold.
            let load = drive(way.address(), number("LAUNCHWAY_CLIENTS", 50), ROUND, way.process());
            if round > 0 {
                seen.push(load);
            }
        }
    }
    println!("{:<10} {:>12} {:>10} {:>10} {:>16}", "way", "requests/s", "p50", "p99", "CPU a request");
    ways.iter().zip(&seen).for_each(|(way, seen)| tell(way.name(), seen));
    let most = files.saturating_sub(OTHER_FILES).min(files / FILES_EACH);
    let connections = u64::from(number("LAUNCHWAY_CONNECTIONS", 10_000)).min(most);
    println!("\nresident memory with {connections} connections that have made a request; {files} files may be open");
    ways.iter().for_each(|way| tell_memory(way, connections));
    println!("at the end: {}", load_average());
}

/// The medians of some rounds.
fn tell(name: &str, rounds: &[Load]) {
    let median = |of: fn(&Load) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    println!(
        "{name:<10} {:>12.0} {:>7.0} µs {:>7.0} µs {:>13.1} µs",
        median(|load| load.rate),
        median(|load| load.middle),
        median(|load| load.high),
        median(|load| load.processor)
    );
}

fn tell_memory(way: &Way, connections: u64) {
    let Some(process) = way.process() else { return };
    let resident = |field| kernel_says(&process.to_string(), "status", field);
    let before = resident("VmRSS");
    let idle = wait_idle(way.address(), connections);
    println!(
        "{:<10} {} before, {} with them, {} of that its own; {} at the peak",
        way.name(),
        mib(before),
        mib(resident("VmRSS")),
        mib(resident("RssAnon")),
        mib(resident("VmHWM"))
    );
    idle.ask_each_again();
}

fn raise_open_files() -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum.unwrap_or(u64::MAX)
}

fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |value| value.parse().unwrap())
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    format!("the machine's load is {}", text.split(' ').take(3).collect::<Vec<_>>().join(", "))
}
