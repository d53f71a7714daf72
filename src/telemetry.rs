//! What the daemon tells about itself: lines in a log, numbers under `/metrics`.
//!
//! A log line reads alone and its fields can be searched for; a failure is logged once, where it is handled.

mod metrics;

use std::io::{self, IsTerminal};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{Context, Failure, Result};

pub use self::metrics::{METRICS_CONTENT_TYPE, Metrics};

/// The variable that says what is logged, such as `debug` or `launchway::source=trace,info`.
pub const FILTER_VARIABLE: &str = "LAUNCHWAY_LOG";
/// What is logged unless told otherwise.
pub const DEFAULT_FILTER: &str = "info";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people; in colour on a terminal.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Begins to log to standard error, once per process. `filter` is what [`FILTER_VARIABLE`] holds, or takes its place.
///
/// # Errors
/// If the filter cannot be read, or something logs already.
pub fn init(format: LogFormat, filter: &str) -> Result<()> {
    let filter = parse_filter(filter)?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Human => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
    started.map_err(|error| Failure::stalled("cannot begin to log").because(error))
}

fn parse_filter(filter: &str) -> Result<Targets> {
    filter
        .parse::<Targets>()
        .or_stalled(|| format!("`{FILTER_VARIABLE}` has no meaning: `{filter}`"))
        .map_err(|failure| failure.hint("a level such as `debug`, or `launchway::source=trace,info`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_a_list() {
        for filter in [DEFAULT_FILTER, "debug", "launchway::source=trace,warn"] {
            assert_eq!(parse_filter(filter).unwrap().to_string(), filter);
        }
        let problem = parse_filter("launchway=loud").unwrap_err().one_line();
        assert!(problem.contains(FILTER_VARIABLE) && problem.contains("such as `debug`"), "{problem}");
    }
}
