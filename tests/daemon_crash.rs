//! A daemon that is killed at every record that it writes about its outbox, before and after it is durable, and
//! started again: the deployment ends as if nothing had happened.
//!
//! The dying daemon is this very program, started again: its store kills it. So this test has a `main` of its own.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]
#![expect(clippy::print_stdout, reason = "the test runner reads it")]

mod support {
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod daemon;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git;
}

mod crash {
    pub(crate) mod deadly_store;
    pub(crate) mod sweep;
}

use std::ffi::OsString;
use std::process::ExitCode;

/// The verb by which this program is the daemon that dies.
const VERB: &str = "deadly-daemon";
const NAME: &str = "a_daemon_killed_at_any_record_goes_on";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Pods, services and builds are processes of the program that the daemon is.
    if let Some(code) = launchway::runtime::local::process_entry(&arguments) {
        return code;
    }
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words[..] {
        [VERB, config, state, record, moment] => crash::sweep::daemon(config, state, record, moment),
        _ if words.contains(&"--list") => println!("{NAME}: test"),
        _ if chosen(&words) => crash::sweep::run(),
        _ => {}
    }
    ExitCode::SUCCESS
}

/// Whether the words on the command line, as `cargo test` hands them on, choose this test.
fn chosen(words: &[&str]) -> bool {
    let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
    filters.peek().is_none() || filters.any(|filter| NAME.contains(filter))
}
