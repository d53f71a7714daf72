//! What keeps something from being as it is wanted, as it was found last: nothing of it outlives the process.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::Failure;
use crate::model::ids::{ConfigKey, ProjectName, StageName};

/// The pause after the first failure to start pods; it doubles with each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause between two tries to start pods.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What is in the way, by what it keeps back.
#[derive(Debug)]
pub struct Hindrances<K = ConfigKey>(Mutex<BTreeMap<K, Hindrance>>);

#[derive(Debug, Default)]
struct Hindrance {
    message: String,
    /// What is announced when it has passed.
    until: Option<String>,
    /// How often that was tried.
    tries: u32,
}

impl<K> Default for Hindrances<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl Hindrances {
    /// The deployment configs of a stage, or all, that something is in the way of.
    pub(super) fn within(&self, stage: Option<&(ProjectName, StageName)>) -> Vec<ConfigKey> {
        let there =
            |key: &&ConfigKey| stage.is_none_or(|(project, stage)| (&key.project, &key.stage) == (project, stage));
        self.all().keys().filter(there).cloned().collect()
    }
}

impl<K: Clone + Ord + Display> Hindrances<K> {
    /// What is in the way of something, if anything is known.
    pub fn of(&self, what: &K) -> Option<String> {
        self.all().get(what).map(|hindrance| hindrance.message.clone())
    }

    /// What waits for an announcement.
    pub(super) fn waiting_for(&self, announced: &str) -> Vec<K> {
        let all = self.all();
        let waits = all.iter().filter(|(_, hindrance)| hindrance.until.as_deref() == Some(announced));
        waits.map(|(what, _)| what.clone()).collect()
    }

    /// Notes what is in the way of something; says how long to wait before that is tried again.
    pub(super) fn note(&self, what: &K, failure: &Failure) -> Duration {
        let message = failure.one_line();
        let mut all = self.all();
        let hindrance = all.entry(what.clone()).or_default();
        if hindrance.message != message {
            tracing::warn!(%what, problem = message, "something is not as it is wanted, and is tried again");
            hindrance.message = message;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(hindrance.tries)).min(LONGEST_PAUSE);
        hindrance.tries += 1;
        hindrance.until = failure.awaits().map(ToOwned::to_owned);
        pause
    }

    /// Nothing is in the way of something any more.
    pub(super) fn forget(&self, what: &K) {
        self.all().remove(what);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<K, Hindrance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_tried_again_ever_more_seldom_until_it_is_gone() {
        let (hindrances, config) =
            (Hindrances::default(), ConfigKey { project: "p".into(), stage: "s".into(), name: "web".into() });
        let pauses =
            |failure: &Failure| (0..9).map(|_| hindrances.note(&config, failure).as_secs()).collect::<Vec<_>>();
        assert_eq!(pauses(&Failure::transient("no room")), [2, 4, 8, 16, 32, 64, 128, 256, 300]);
        assert_eq!(hindrances.of(&config).as_deref(), Some("no room"));
        let (here, there) = (("p".into(), "s".into()), ("p".into(), "t".into()));
        assert_eq!((hindrances.within(Some(&here)), hindrances.within(Some(&there))), (vec![config.clone()], vec![]));
        assert!(hindrances.waiting_for("image").is_empty());
        hindrances.forget(&config);
        assert_eq!((hindrances.of(&config), hindrances.within(None)), (None, vec![]));
    }
}
