//! What a process takes of the processor.

use std::time::Duration;

/// Kernel ticks of a second of processor time.
const TICKS: u64 = 100;

/// The processor time that a process took so far.
pub(crate) fn processor_time(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 1000 / TICKS)
}
