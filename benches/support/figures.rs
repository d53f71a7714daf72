//! Times, by rank.

use std::time::Duration;

/// Prints the middle, the 99th percentile and the longest of some times.
pub(crate) fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    let (middle, high, longest) = (rank(50), rank(99), rank(100));
    println!("{what}: p50 {middle:.1?}, p99 {high:.1?}, longest {longest:.1?} of {}", times.len());
}
