//! What a container may take, in the words of either version of control groups.

use crate::model::pod::Resources;
use crate::runtime::local::pod::quantity::{div_up, thousandths};

/// The period over which processor time is counted, in microseconds (the kernel's default).
const PERIOD: i128 = 100_000;
/// The least processor time in a period that the kernel takes, in microseconds.
const LEAST_QUOTA: i128 = 1000;

/// What a container may take; absent is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes.
    pub(super) memory: Option<i128>,
    /// Microseconds of processor time a period.
    pub(super) quota: Option<i128>,
}

/// Files of a group that together say one limit.
pub(super) type Files = Vec<(&'static str, String)>;

impl Limits {
    /// The limits of a container; what is not a quantity limits nothing.
    pub(crate) fn of(resources: &Resources) -> Self {
        let limit = |name: &str| resources.limits.get(name).and_then(thousandths).filter(|value| *value > 0);
        Self {
            memory: limit("memory").map(|value| div_up(value, 1000)),
            quota: limit("cpu").map(|value| (value * PERIOD / 1000).max(LEAST_QUOTA)),
        }
    }

    /// The controllers that enforce them.
    pub(super) fn controllers(self) -> impl Iterator<Item = &'static str> {
        self.memory.map(|_| "memory").into_iter().chain(self.quota.map(|_| "cpu"))
    }

    /// How each limit is said in a group of version 2, and in one of version 1.
    pub(super) fn files(self) -> Vec<[Files; 2]> {
        let memory = self
            .memory
            .map(|bytes| [vec![("memory.max", bytes.to_string())], vec![("memory.limit_in_bytes", bytes.to_string())]]);
        let processor = self.quota.map(|quota| {
            let first = vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota.to_string())];
            [vec![("cpu.max", format!("{quota} {PERIOD}"))], first]
        });
        memory.into_iter().chain(processor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limits(limits: serde_json::Value) -> Limits {
        Limits::of(&serde_json::from_value(json!({"limits": limits})).unwrap())
    }

    #[test]
    fn limits_are_said_in_the_words_of_either_version() {
        let both = limits(json!({"memory": "64Mi", "cpu": "250m"}));
        assert_eq!(both.controllers().collect::<Vec<_>>(), ["memory", "cpu"]);
        let said = |files: &[(&'static str, &str)]| -> Files {
            files.iter().map(|(file, value)| (*file, (*value).to_owned())).collect()
        };
        let memory = [said(&[("memory.max", "67108864")]), said(&[("memory.limit_in_bytes", "67108864")])];
        let first = said(&[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "25000")]);
        assert_eq!(both.files(), [memory, [said(&[("cpu.max", "25000 100000")]), first]]);
    }

    #[test]
    fn what_limits_nothing_says_nothing() {
        for none in [json!({}), json!({"memory": "much", "cpu": 0}), json!({"pods": 1})] {
            assert_eq!(limits(none), Limits::default());
        }
        let [[second, _]] = limits(json!({"cpu": "1m"})).files().try_into().unwrap();
        assert_eq!(second, [("cpu.max", "1000 100000".to_owned())]);
    }
}
