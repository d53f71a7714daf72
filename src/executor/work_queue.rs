//! What is to be reconciled next, and when.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::transition::Touched;
use crate::executor::line::Line;
use crate::executor::set_aside::Item;
use crate::model::ids::{ConfigKey, Namespace, ProjectName, ServiceKey, StageName};
use crate::model::pod::{PodId, PodOwner};
use crate::model::time::Timestamp;
use crate::model::transaction::ObjectPlace;
use crate::runtime::RuntimeChange;

/// What is to be reconciled.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    pub(super) everything: bool,
    pub(super) services: ServicesDue,
    /// Images that were prepared.
    pub(super) images: BTreeSet<String>,
    /// Run-once pods.
    pub(super) pods: BTreeSet<PodId>,
    pub(super) configs: Line<ConfigKey>,
    /// How many of them are left from when everything was to be reconciled.
    pub(super) stock: usize,
    pub(super) later: BTreeMap<Item, Timestamp>,
    /// When everything is reconciled again, because something is there that no record names.
    pub(super) orphans: Option<Timestamp>,
    /// How many pods had changed without an announcement.
    pub(super) overlooked: usize,
}

/// Which services may have to answer otherwise than they do.
#[derive(Debug, Default)]
pub(super) struct ServicesDue {
    /// All of them.
    pub(super) all: bool,
    /// What of these objects follows.
    pub(super) some: BTreeSet<ObjectPlace>,
    /// Those that failed, to be tried again: nothing else follows.
    pub(super) again: BTreeSet<ObjectPlace>,
    /// What was in these places ends, unless it is there again.
    pub(super) left: BTreeSet<(Namespace, ObjectPlace)>,
    /// Sequences of these wait for what is delivered with them to listen.
    pub(super) awaited: BTreeSet<ServiceKey>,
}

impl WorkQueue {
    /// Everything is to be reconciled.
    pub(crate) fn everything() -> Self {
        let mut queue = Self::default();
        queue.add_everything();
        queue
    }

    /// Everything is to be reconciled again.
    pub(crate) fn add_everything(&mut self) {
        self.everything = true;
        self.services.all = true;
    }

    /// Whether all that was there has been reconciled, whatever came after it.
    pub(crate) fn has_caught_up(&self) -> bool {
        !self.everything && self.stock == 0
    }

    /// Whether anything is to be done now.
    pub(crate) fn has_work(&self) -> bool {
        self.everything
            || self.services.is_due()
            || !self.images.is_empty()
            || !self.pods.is_empty()
            || !self.configs.is_empty()
    }

    pub(crate) fn touched(&mut self, change: Result<Touched, RecvError>) {
        match change {
            Ok(touched) => {
                self.configs.extend(touched.configs);
                // Whatever no record names is judged again, services too: what came of the last time is forgotten.
                if (touched.services || !touched.left.is_empty()) && self.orphans.is_some() {
                    self.add_everything();
                }
                self.services.all |= touched.services;
                self.services.some.extend(touched.objects);
                self.services.left.extend(touched.left);
                self.services.awaited.extend(touched.awaited);
            }
            Err(_) => self.add_everything(),
        }
    }

    pub(crate) fn changed(&mut self, change: Result<RuntimeChange, RecvError>) {
        match change {
            Ok(RuntimeChange::Pod(_, PodOwner::Version { config, .. })) => self.configs.extend([config]),
            Ok(RuntimeChange::Pod(pod, PodOwner::Run { .. })) => drop(self.pods.insert(pod)),
            Ok(RuntimeChange::Image(image)) => drop(self.images.insert(image)),
            Ok(RuntimeChange::Overlooked(count)) => self.overlooked += count,
            Ok(RuntimeChange::Pod(_, PodOwner::Unknown) | RuntimeChange::Everything) | Err(_) => self.add_everything(),
        }
    }

    /// Takes in everything that was announced so far.
    pub(crate) fn take_in(&mut self, touched: &mut Receiver<Touched>, changes: &mut Receiver<RuntimeChange>) {
        while let Some(change) = announced(touched) {
            self.touched(change);
        }
        while let Some(change) = announced(changes) {
            self.changed(change);
        }
    }

    /// When something of it comes due by itself.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.later.values().copied().chain(self.orphans).min()
    }

    pub(crate) fn come_due(&mut self, now: Timestamp) {
        if self.orphans.take_if(|at| *at <= now).is_some() {
            self.add_everything();
        }
        let due: Vec<Item> = self.later.extract_if(.., |_, at| *at <= now).map(|(item, _)| item).collect();
        for item in due {
            match item {
                Item::Config(config) => self.configs.extend([config]),
                Item::Service(place) => drop(self.services.again.insert(place)),
                Item::Awaiting(service) => drop(self.services.awaited.insert(service)),
                Item::Pod(pod) => drop(self.pods.insert(pod)),
                Item::Run(_) | Item::Namespace(_) | Item::Leftover(..) => self.add_everything(),
            }
        }
    }
}

/// What was announced, or that something was missed.
fn announced<T: Clone>(receiver: &mut Receiver<T>) -> Option<Result<T, RecvError>> {
    use tokio::sync::broadcast::error::TryRecvError;
    match receiver.try_recv() {
        Ok(change) => Some(Ok(change)),
        Err(TryRecvError::Lagged(missed)) => Some(Err(RecvError::Lagged(missed))),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
    }
}

impl ServicesDue {
    fn is_due(&self) -> bool {
        let none = self.some.is_empty() && self.again.is_empty() && self.left.is_empty() && self.awaited.is_empty();
        self.all || !none
    }

    /// Nothing is due any more; the stages that it was about, `None` for all.
    pub(super) fn take_stages(&mut self) -> BTreeSet<Option<(ProjectName, StageName)>> {
        let Self { all, some, .. } = std::mem::take(self);
        let stages = some.into_iter().map(|place| Some((place.project, place.stage)));
        if all { BTreeSet::from([None]) } else { stages.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::{Kind, ObjectKey};

    fn config(name: &str) -> ConfigKey {
        ConfigKey { project: "shop".into(), stage: "dev".into(), name: name.to_owned() }
    }

    #[test]
    fn what_was_missed_makes_everything_due() {
        let mut queue = WorkQueue::default();
        queue.touched(Ok(Touched::default()));
        assert!(!queue.has_work());
        queue.touched(Err(RecvError::Lagged(1)));
        assert!(queue.has_work() && queue.everything);
    }

    #[test]
    fn what_no_record_names_is_judged_again_with_its_services_when_something_goes() {
        let place = ObjectPlace {
            project: "shop".into(),
            stage: "dev".into(),
            key: ObjectKey { kind: Kind::Service, name: "front".into() },
        };
        let left = Touched { left: [("shop-dev".into(), place)].into(), ..Touched::default() };
        let switched = Touched { services: true, ..Touched::default() };
        for (orphans, touched, everything, services) in [
            (None, left.clone(), false, false),
            (None, switched.clone(), false, true),
            (None, Touched::default(), false, false),
            (Some(Timestamp(9)), left, true, true),
            (Some(Timestamp(9)), switched, true, true),
            (Some(Timestamp(9)), Touched::default(), false, false),
        ] {
            let mut queue = WorkQueue { orphans, ..WorkQueue::default() };
            queue.touched(Ok(touched.clone()));
            assert_eq!((queue.everything, queue.services.all), (everything, services), "{orphans:?} {touched:?}");
        }
    }

    #[test]
    fn what_is_due_later_comes_at_its_time() {
        let mut queue = WorkQueue::default();
        queue.later.insert(Item::Config(config("web")), Timestamp(2));
        queue.later.insert(Item::Config(config("api")), Timestamp(1));
        assert_eq!((queue.next_due(), queue.has_work()), (Some(Timestamp(1)), false));
        queue.come_due(Timestamp(1));
        assert_eq!(queue.configs.take(9), [config("api")]);
        assert_eq!(queue.next_due(), Some(Timestamp(2)));
    }
}
