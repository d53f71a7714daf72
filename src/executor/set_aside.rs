//! What failed while everything was reconciled. It is set aside: said once, and tried again ever more seldom, while
//! everything else goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Class, Result};
use crate::executor::hindrances::Hindrances;
use crate::model::ids::{ConfigKey, Namespace, RunId, ServiceKey};
use crate::model::pod::PodId;
use crate::model::transaction::ObjectPlace;

/// The longest pause before something is tried again that may pass by itself.
const SOON: Duration = Duration::from_secs(10);

/// What stands or falls alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A deployment config.
    Config(ConfigKey),
    /// An object that makes a service.
    Service(ObjectPlace),
    /// A run-once pod.
    Pod(PodId),
    /// A run that waits for a pod.
    Run(RunId),
    /// What there is in a namespace.
    Namespace(Namespace),
    /// A service that may have to end.
    Leftover(Namespace, String),
    /// A sequence of a service that waits for its `Service` objects to listen.
    Awaiting(ServiceKey),
}

/// What failed.
#[derive(Debug, Default)]
pub struct SetAside {
    hindrances: Hindrances<Item>,
    /// After which pauses something is tried again.
    again: Mutex<BTreeMap<Item, Duration>>,
}

impl SetAside {
    /// What came of an item; nothing, if it failed.
    pub(super) fn judge<T>(&self, item: Item, result: Result<T>) -> Option<T> {
        match result {
            Ok(done) => {
                self.hindrances.forget(&item);
                Some(done)
            }
            Err(failure) => {
                let pause = self.hindrances.note(&item, &failure);
                let longest = if failure.class() == Class::Stalled { pause } else { SOON };
                self.again().insert(item, pause.min(longest));
                None
            }
        }
    }

    /// Why an item failed when it was judged last; nothing, if it went well.
    pub(super) fn problem(&self, item: &Item) -> Option<String> {
        self.hindrances.of(item)
    }

    /// What failed since this was asked last, and after which pauses it is to be tried again.
    pub(super) fn take(&self) -> BTreeMap<Item, Duration> {
        std::mem::take(&mut *self.again())
    }

    fn again(&self) -> MutexGuard<'_, BTreeMap<Item, Duration>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Config(config) => write!(f, "deployment config {config}"),
            Item::Service(place) => write!(f, "{} of {}/{}", place.key, place.project, place.stage),
            Item::Pod(pod) => write!(f, "pod {pod}"),
            Item::Run(run) => write!(f, "run {run}"),
            Item::Namespace(namespace) => write!(f, "namespace {namespace}"),
            Item::Leftover(namespace, name) => write!(f, "service {namespace}/{name}"),
            Item::Awaiting(service) => write!(f, "the sequence of {service}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    #[test]
    fn what_failed_is_tried_again_ever_more_seldom_until_it_goes_well() {
        let (aside, item) = (SetAside::default(), Item::Namespace("shop".into()));
        let pauses = |failed: fn() -> Failure| {
            let pause = |_| {
                assert_eq!(aside.judge::<()>(item.clone(), Err(failed())), None);
                aside.take().remove(&item).unwrap_or_default().as_secs()
            };
            (0..5).map(pause).collect::<Vec<_>>()
        };
        assert_eq!(pauses(|| Failure::stalled("it is damaged")), [2, 4, 8, 16, 32]);
        assert_eq!(aside.judge(item.clone(), Ok(1)), Some(1));
        assert!(aside.take().is_empty());
        assert_eq!(pauses(|| Failure::transient("no room")), [2, 4, 8, 10, 10], "it begins anew");
    }
}
