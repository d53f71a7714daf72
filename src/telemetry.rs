//! What the daemon tells about itself: lines in a log, numbers under `/metrics`.
//!
//! A log line reads alone and its fields can be searched for; a failure is logged once, where it is handled.

mod metrics;

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

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
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Human => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::stalled("cannot begin to log").because(error))
}

fn parse_filter(filter: &str) -> Result<EnvFilter> {
    EnvFilter::try_new(filter)
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
