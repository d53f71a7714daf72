//! Whatever anybody sends or commits is read or refused: nothing panics, hangs, or is taken for what it is not.
//!
//! `cargo test` reads the corpus and a few mutations, always the same. `FUZZ_SECONDS=60 cargo test --release --test fuzz` goes on
//! for as long in each campaign, from a seed that it tells (`FUZZ_SEED` plays it again); with `FUZZ_KEEP=1`, inputs that come to what none
//! did before stay in `tests/fuzz/corpus`. An input that fails stays there in any case, and is a test from then on.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test, that is how it fails")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "that is what it has to tell")]

mod campaign;
mod files;
mod git_server;
mod message;
mod mutation;
mod requests;
#[path = "../http_api/support.rs"]
#[expect(dead_code, reason = "it serves the tests of the API, which need more")]
mod support;
mod webhooks;

use campaign::campaign;

#[test]
fn webhooks() {
    campaign("webhooks", webhooks::receive);
}

#[test]
fn yaml() {
    campaign("yaml", files::documents);
}

#[test]
fn projects() {
    campaign("projects", files::project);
}

#[test]
fn rollback_requests() {
    campaign("rollbacks", files::rollbacks);
}

#[test]
fn answers_of_git_servers() {
    let server = git_server::GitServer::start();
    campaign("git", |answer| server.tells(answer));
}

#[test]
fn events() {
    let server = requests::Server::start();
    campaign("events", |input| server.send_event(input));
}

#[test]
fn queries() {
    let server = requests::Server::start();
    campaign("queries", |input| server.ask(input));
}
