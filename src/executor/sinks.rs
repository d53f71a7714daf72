//! Who is told what happens: each sink has a lane of its own, is asked for what its subscriptions take of the news of a
//! transaction, in that transaction, and woken after it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::model::action::{Action, Lane};
use crate::model::ids::SinkName;
use crate::model::run::Run;
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
    /// What of its address is shown.
    pub place: String,
    subscriptions: Vec<Subscription>,
    wake: Notify,
    trouble: Mutex<Option<Trouble>>,
}

/// That a sink does not take what it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Since when, as far as this process knows.
    pub since: Timestamp,
    /// What came of the last event that was not taken, for people.
    pub problem: String,
}

impl Subscriber {
    /// A sink that is told what one of its subscriptions takes.
    pub fn new(name: SinkName, place: String, subscriptions: Vec<Subscription>) -> Self {
        Self { name, place, subscriptions, wake: Notify::new(), trouble: Mutex::default() }
    }

    /// What keeps it from being told, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that it did not take an event, and why.
    pub(super) fn fails(&self, problem: String, now: Timestamp) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let since = trouble.as_ref().map_or(now, |trouble| trouble.since);
        *trouble = Some(Trouble { since, problem });
    }

    /// Notes that it takes everything.
    pub(super) fn works(&self) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
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

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Subscriber> {
        self.0.iter().map(|sink| &**sink)
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
        let mut asked = Vec::new();
        for (run, event) in cloud_event::news(of_sequences) {
            for sink in self.0.iter().filter(|sink| is_told(&sink.subscriptions, &event)) {
                let (sink, event) = (sink.name.clone(), Box::new(event.clone()));
                let action = Box::new(Action::Send { sink, about: run.id.clone(), event });
                let run = Action::events_of(run.context.as_deref().unwrap_or(run.id.as_str()));
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
