//! What webhooks cost, on loopback: `cargo bench --bench webhooks`.
//!
//! A real daemon watches a repository behind a Git server and hears of pushes by signed calls alone, as from Gitea, to which it writes
//! statuses. `LAUNCHWAY_PUSHES` (100) times, new code of a service is pushed and the call made: how long until it is answered, until
//! the first process of the new version runs, and from the end of the delivery to its status on the host. Then
//! `LAUNCHWAY_CLIENTS` (4) connections make calls that nobody signed, and that somebody else signed, for `LAUNCHWAY_SECONDS` (10) each:
//! how many are refused, and in how much memory.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    #[expect(dead_code, reason = "other benchmarks need more of it")]
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod kernel;
    pub(crate) mod processor;
    pub(crate) mod version;
}
mod calling {
    pub(crate) mod caller;
    pub(crate) mod git_server;
    pub(crate) mod host;
    pub(crate) mod place;
    pub(crate) mod pushed;
    pub(crate) mod refused;
}

fn main() {
    let place = calling::place::Place::start();
    println!("{}", load_average());
    calling::pushed::measure(&place, number("LAUNCHWAY_PUSHES", 100));
    let (clients, seconds) = (number("LAUNCHWAY_CLIENTS", 4), number("LAUNCHWAY_SECONDS", 10));
    calling::refused::measure(&place, clients, u64::from(seconds));
    println!("at the end: {}", load_average());
}

fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |value| value.parse().unwrap())
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    format!("the machine's load is {}", text.split(' ').take(3).collect::<Vec<_>>().join(", "))
}
