//! Who is told what happens: each sink has a lane of its own, is asked for what its subscriptions take of the news of a
//! transaction, in that transaction, and woken after it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::model::action::{Action, Lane};
use crate::model::ids::SinkName;
use crate::model::run::{Run, SequenceRun};
use crate::model::sink::Subscription;
use crate::model::time::Timestamp;
use crate::report::cloud_event;
use crate::report::subscription::is_told;
use crate::store::Write;

/// One sink.
#[derive(Debug)]
pub struct Subscriber {
    /// Its name.
    pub name: SinkName,
    subscriptions: Vec<Subscription>,
    wake: Notify,
}

impl Subscriber {
    /// A sink that is told what one of its subscriptions takes.
    pub fn new(name: SinkName, subscriptions: Vec<Subscription>) -> Self {
        Self { name, subscriptions, wake: Notify::new() }
    }

    /// Where its events wait.
    pub fn lane(&self) -> Lane {
        Lane::Sink(self.name.clone())
    }

    /// Waits until there may be something to do.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// All sinks.
#[derive(Debug, Default)]
pub struct Subscribers(Vec<Arc<Subscriber>>);

impl Subscribers {
    /// These, and no others.
    pub fn new(sinks: Vec<Arc<Subscriber>>) -> Self {
        Self(sinks)
    }

    /// What asks the sinks for the news of runs: of each what it was, if it was there, and what has become of it.
    pub(super) fn ask<'a>(
        &self,
        changed: impl Iterator<Item = (Option<&'a Run>, &'a Run)>,
        now: Timestamp,
    ) -> Vec<Write> {
        if self.0.is_empty() {
            return Vec::new(); // which costs nothing where nobody is told
        }
        let of_sequences =
            changed.filter_map(|(before, after)| Some((before.and_then(Run::sequence), after.sequence()?)));
        of_sequences.flat_map(|(before, after)| self.news(before, after, now)).collect()
    }

    fn news(&self, before: Option<&SequenceRun>, after: &SequenceRun, now: Timestamp) -> Vec<Write> {
        let mut asked = Vec::new();
        for event in cloud_event::news(before, after) {
            for sink in self.0.iter().filter(|sink| is_told(&sink.subscriptions, &event)) {
                let (sink, event) = (sink.name.clone(), Box::new(event.clone()));
                let action = Box::new(Action::Send { sink, about: after.id.clone(), event });
                let run = Action::events_of(after.context.as_deref().unwrap_or(after.id.as_str()));
                asked.push(Write::Ask { run, action, due: now, at: now });
            }
        }
        asked
    }

    /// Wakes those whose lanes were asked.
    pub(super) fn wake(&self, asked: &BTreeSet<Lane>) {
        self.0.iter().filter(|sink| asked.contains(&sink.lane())).for_each(|sink| sink.wake.notify_one());
    }
}
