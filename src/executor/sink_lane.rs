//! One sink: takes the events that wait for it and posts them, those of one context one after the other in their order, those
//! of several side by side. What is not taken is tried again, ever later, and keeps its own context waiting, and no other, up to
//! as many as are posted side by side. Once a sink that took nothing takes something, all that waits is tried at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::transition::Input;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::executor::outbox::{STORE_PAUSE, pause_after};
use crate::executor::sinks::Subscriber;
use crate::model::action::Action;
use crate::model::event::Event;
use crate::model::time::Timestamp;
use crate::sinks::{Refusal, Sink};
use crate::store::{OutboxRow, Write};

/// How many events are posted side by side.
const AT_ONCE: usize = 16;
/// How long an event is tried for.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// How long to wait when nothing is known to come: a safety net, not a schedule.
const IDLE: Duration = Duration::from_secs(30);

/// Tells one sink.
pub struct SinkLane {
    driver: Driver,
    subscriber: Arc<Subscriber>,
    sink: Arc<dyn Sink>,
    /// What was not taken, by when it is tried again; nobody else claims it, nor what comes after it in its context.
    held: BTreeMap<(Timestamp, i64), Held>,
    /// Whether nothing of what was told last was answered by more than that it is to be told again.
    is_away: bool,
}

/// An event that was not taken.
struct Held {
    row: OutboxRow,
    failures: u32,
}

impl std::fmt::Debug for SinkLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkLane").field("sink", &self.subscriber.name).finish_non_exhaustive()
    }
}

/// What became of an event.
enum Delivery {
    Taken,
    /// Tried again, after this at least.
    Again {
        problem: String,
        after: Duration,
    },
    Never {
        problem: String,
    },
}

impl Delivery {
    /// Why it was not taken, if it was not.
    fn problem(&self) -> Option<String> {
        match self {
            Delivery::Taken => None,
            Delivery::Again { problem, .. } | Delivery::Never { problem } => Some(problem.clone()),
        }
    }
}

impl SinkLane {
    /// A lane in which nothing was told yet.
    pub fn new(driver: Driver, subscriber: Arc<Subscriber>, sink: Arc<dyn Sink>) -> Self {
        Self { driver, subscriber, sink, held: BTreeMap::new(), is_away: false }
    }

    /// Works until told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        let subscriber = self.subscriber.clone();
        let mut by_safety_net = false;
        while !stop.is_cancelled() {
            let pause = tokio::select! {
                () = stop.cancelled() => return,
                worked = self.work_through(by_safety_net) => worked.unwrap_or_else(|failure| {
                    let (sink, problem) = (&subscriber.name, failure.one_line());
                    tracing::error!(%sink, problem, "cannot read or remember what a sink was told");
                    STORE_PAUSE
                }),
            };
            by_safety_net = false;
            tokio::select! {
                () = stop.cancelled() => {}
                () = subscriber.woken() => {}
                () = tokio::time::sleep(pause) => by_safety_net = pause == IDLE,
            }
        }
    }

    /// Tells everything that is due; says how long nothing more will come by itself.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn work(&mut self) -> Result<Duration> {
        self.work_through(false).await
    }

    /// The same; what only the safety net finds is counted. That is what was free to be told before it looked: what comes after
    /// an event that it tells only now had to wait.
    async fn work_through(&mut self, mut by_safety_net: bool) -> Result<Duration> {
        loop {
            let now = self.driver.clock.now();
            let mut rows = self.due(now);
            let room = AT_ONCE.saturating_sub(self.held.len() + rows.len());
            if room > 0 {
                let claimed =
                    self.driver.claim(&self.subscriber.lane(), u32::try_from(room).unwrap_or(u32::MAX)).await?;
                if by_safety_net {
                    let overlooked = claimed.iter().filter(|row| row.was_overlooked(now)).count();
                    self.driver.metrics.lost_wakeups(&self.subscriber.lane(), overlooked);
                }
                rows.extend(claimed.into_iter().map(|row| Held { row, failures: 0 }));
            }
            by_safety_net = false;
            if rows.is_empty() {
                return Ok(self.next_work().await?.map_or(IDLE, |due| due.since(now).min(IDLE)));
            }
            let deliveries = futures::future::join_all(rows.iter().map(|held| self.tell(&held.row))).await;
            let (took, problem) = (
                deliveries.iter().any(|delivery| matches!(delivery, Delivery::Taken)),
                deliveries.iter().find_map(Delivery::problem),
            );
            let is_there = deliveries.iter().any(|delivery| !matches!(delivery, Delivery::Again { .. }));
            let mut failed = None;
            for (held, delivery) in rows.into_iter().zip(deliveries) {
                match self.remember(&held, delivery).await {
                    Ok(None) => {}
                    Ok(Some(due)) => self.hold(due, Held { failures: held.failures.saturating_add(1), ..held }),
                    Err(failure) => {
                        failed = Some(failure);
                        self.hold(now + STORE_PAUSE, held);
                    }
                }
            }
            if let Some(failure) = failed {
                return Err(failure);
            }
            match problem {
                Some(problem) => self.subscriber.fails(problem, now),
                None if took && self.held.is_empty() => self.subscriber.works(),
                None => {}
            }
            if is_there && self.is_away {
                let held = std::mem::take(&mut self.held);
                held.into_values().for_each(|held| self.hold(now, held));
            }
            self.is_away = !is_there;
        }
    }

    /// When it is to work again although nobody wakes it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn next_work(&self) -> Result<Option<Timestamp>> {
        let next = self.driver.store.next_due(&self.subscriber.lane(), self.driver.clock.now()).await?;
        let held = self.held.keys().next().map(|(due, _)| *due);
        Ok(next.into_iter().chain(held).min())
    }

    fn hold(&mut self, due: Timestamp, held: Held) {
        self.held.insert((due, held.row.id.0), held);
    }

    /// What is to be tried again now.
    fn due(&mut self, now: Timestamp) -> Vec<Held> {
        let later = self.held.split_off(&(now, i64::MAX));
        std::mem::replace(&mut self.held, later).into_values().collect()
    }

    async fn tell(&self, row: &OutboxRow) -> Delivery {
        let event = match &row.action {
            Ok(Action::Send { event, .. }) => event,
            Ok(_) => return Delivery::Never { problem: "it is no event".to_owned() },
            Err(problem) => return Delivery::Never { problem: problem.clone() },
        };
        match self.sink.post(event, self.driver.clock.now()).await {
            Ok(()) => Delivery::Taken,
            Err(Refusal::Never(failure)) => Delivery::Never { problem: failure.one_line() },
            Err(Refusal::Later { failure, .. }) if self.driver.clock.now().since(row.asked_at) > PATIENCE => {
                Delivery::Never { problem: format!("{}, for more than a day", failure.one_line()) }
            }
            Err(Refusal::Later { failure, after }) => Delivery::Again { problem: failure.one_line(), after },
        }
    }

    /// Remembers what became of an event; says when it is to be told again, if it is.
    async fn remember(&self, held: &Held, delivery: Delivery) -> Result<Option<Timestamp>> {
        let Held { row, failures } = held;
        let (driver, sink, action) = (&self.driver, &self.subscriber.name, &row.key);
        driver.metrics.action(action, if matches!(delivery, Delivery::Taken) { "performed" } else { "failed" });
        let history = match delivery {
            Delivery::Taken => None,
            Delivery::Again { problem, after } => {
                tracing::warn!(%sink, action, problem, "a sink does not take an event and is told again");
                return Ok(Some(driver.clock.now() + pause_after(*failures).max(after)));
            }
            Delivery::Never { problem } => {
                tracing::error!(%sink, action, problem, "a sink is not told an event");
                not_told(row, problem, driver.clock.now())
            }
        };
        let done = Input::Write(Box::new(Write::Done(row.id)));
        driver.commit(&history.into_iter().chain([done]).collect::<Vec<_>>()).await?;
        Ok(None)
    }
}

/// What the history of a run says of an event that a sink is never told.
fn not_told(row: &OutboxRow, problem: String, at: Timestamp) -> Option<Input> {
    let Ok(Action::Send { sink, about, event }) = &row.action else { return None };
    let (sink, kind, id) = (sink.clone(), event.kind.clone(), event.id.clone());
    let event = Box::new(Event::NotTold { sink, kind, id, problem });
    Some(Input::Write(Box::new(Write::Event { run: about.clone(), at, event })))
}

#[cfg(test)]
mod tests;
