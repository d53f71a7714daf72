//! A lane over a store in memory, a clock that moves when it is told to, and a sink that does as the test says.

use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::Value;

use super::*;
use crate::clock::{Clock as _, CountingIds, ManualClock};
use crate::error::Failure;
use crate::executor::sinks::Subscribers;
use crate::model::cloud_event::CloudEvent;
use crate::model::ids::RunId;
use crate::simulation::memory_store::MemoryDisk;

/// What a sink answers.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Takes,
    Later(Duration),
    Never,
}

/// Remembers what it took, and answers to events whose id begins so as it is told to.
#[derive(Default)]
struct Ear {
    moods: Mutex<Vec<(&'static str, Mood)>>,
    asked: Mutex<Vec<String>>,
    taken: Mutex<Vec<String>>,
}

impl Ear {
    fn becomes(&self, prefix: &'static str, mood: Mood) {
        self.moods.lock().unwrap().push((prefix, mood));
    }

    /// What it was asked to take since the last time.
    fn asked(&self) -> String {
        std::mem::take(&mut *self.asked.lock().unwrap()).join(" ")
    }

    fn taken(&self) -> String {
        std::mem::take(&mut *self.taken.lock().unwrap()).join(" ")
    }
}

#[async_trait]
impl Sink for Ear {
    async fn post(&self, event: &CloudEvent, _now: Timestamp) -> Result<(), Refusal> {
        self.asked.lock().unwrap().push(event.id.clone());
        let moods = self.moods.lock().unwrap().clone();
        match moods.iter().rev().find(|(prefix, _)| event.id.starts_with(prefix)).map_or(Mood::Takes, |(_, mood)| *mood)
        {
            Mood::Takes => self.taken.lock().unwrap().push(event.id.clone()),
            Mood::Later(after) => return Err(Refusal::Later { failure: Failure::transient("busy"), after }),
            Mood::Never => return Err(Refusal::Never(Failure::stalled("no such hook"))),
        }
        Ok(())
    }
}

struct Desk {
    clock: Arc<ManualClock>,
    driver: Driver,
    subscriber: Arc<Subscriber>,
    ear: Arc<Ear>,
}

impl Desk {
    fn on(disk: &MemoryDisk, clock: Arc<ManualClock>, ear: Arc<Ear>) -> (Self, SinkLane) {
        let subscriber = Arc::new(Subscriber::new("ci".into(), "http://ci".into(), Vec::new()));
        let driver = Driver::new(Arc::new(disk.open(clock.clone())), clock.clone(), Arc::new(CountingIds::default()));
        let driver = driver.with_subscribers(Subscribers::new(vec![subscriber.clone()]));
        let lane = SinkLane::new(driver.clone(), subscriber.clone(), ear.clone());
        (Self { clock, driver, subscriber, ear }, lane)
    }

    fn new() -> (Self, SinkLane) {
        Self::on(&MemoryDisk::default(), Arc::new(ManualClock::new(Timestamp(1_000_000))), Arc::default())
    }

    /// Events happen, such as `a1`: the first of context `a`.
    async fn happen(&self, ids: &[&str]) {
        for id in ids {
            let event = Box::new(CloudEvent::of("sh.keptn.event.test.finished", *id, Value::Null));
            let action = Box::new(Action::Send { sink: self.subscriber.name.clone(), about: RunId::new("r1"), event });
            let (run, now) = (Action::events_of(&id[..1]), self.clock.now());
            let ask = Write::Ask { run, action, due: now, at: now };
            self.driver.commit(&[Input::Write(Box::new(ask))]).await.unwrap();
        }
    }

    async fn history(&self) -> Vec<String> {
        let events = self.driver.store.events(Some(&RunId::new("r1")), 0, 100).await.unwrap();
        let told = |event: &Event| match event {
            Event::NotTold { id, problem, .. } => format!("{id}: {problem}"),
            other => unreachable!("{other:?}"),
        };
        events.iter().map(|row| told(&row.event)).collect()
    }
}

#[tokio::test]
async fn events_of_a_context_keep_their_order_and_one_that_waits_keeps_no_other_context() {
    let (desk, mut lane) = Desk::new();
    desk.ear.becomes("a1", Mood::Later(Duration::ZERO));
    desk.happen(&["a1", "a2", "b1", "b2"]).await;
    let pause = lane.work().await.unwrap();
    assert_eq!((desk.ear.taken(), desk.ear.asked()), ("b1 b2".into(), "a1 b1 b2".into()));
    assert_eq!(pause, Duration::from_secs(1));
    desk.clock.advance(pause);
    assert_eq!(lane.work().await.unwrap(), Duration::from_secs(2), "ever later");
    desk.ear.becomes("a1", Mood::Takes);
    desk.clock.advance(Duration::from_secs(1));
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "", "it is not its time yet");
    desk.clock.advance(Duration::from_secs(1));
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "a1 a2");
    assert_eq!(desk.history().await, [""; 0]);
}

#[tokio::test]
async fn a_sink_that_is_back_is_told_at_once_what_waited_and_one_that_asks_for_time_gets_it() {
    let (desk, mut lane) = Desk::new();
    desk.ear.becomes("", Mood::Later(Duration::from_secs(120)));
    desk.happen(&["a1", "b1"]).await;
    assert_eq!(lane.work().await.unwrap(), Duration::from_secs(30), "it looks for more meanwhile");
    desk.ear.asked();
    desk.ear.becomes("", Mood::Takes);
    desk.clock.advance(Duration::from_secs(10));
    desk.happen(&["c1"]).await;
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "c1 a1 b1");
}

#[tokio::test]
async fn a_sink_is_in_trouble_from_what_it_does_not_take_until_it_takes_all_that_waits() {
    let (desk, mut lane) = Desk::new();
    let trouble = || desk.subscriber.trouble().map(|it| (it.since.0 - 1_000_000, it.problem));
    desk.happen(&["a1"]).await;
    lane.work().await.unwrap();
    assert_eq!(trouble(), None);
    desk.ear.becomes("a2", Mood::Later(Duration::from_secs(20)));
    desk.happen(&["a2"]).await;
    lane.work().await.unwrap();
    desk.clock.advance(Duration::from_secs(20));
    desk.happen(&["b1"]).await;
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "a1 b1");
    assert_eq!(trouble(), Some((0, "busy".into())), "since the first one, also where others are taken");
    desk.ear.becomes("a2", Mood::Never);
    desk.clock.advance(Duration::from_secs(20));
    lane.work().await.unwrap();
    assert_eq!(trouble(), Some((0, "no such hook".into())));
    desk.happen(&["c1"]).await;
    lane.work().await.unwrap();
    assert_eq!(trouble(), None);
}

#[tokio::test]
async fn no_more_waits_in_memory_than_is_told_side_by_side() {
    let (desk, mut lane) = Desk::new();
    desk.ear.becomes("", Mood::Later(Duration::from_secs(60)));
    let letters: Vec<String> = ('a'..='z').map(|letter| format!("{letter}1")).collect();
    desk.happen(&letters.iter().map(String::as_str).collect::<Vec<_>>()).await;
    lane.work().await.unwrap();
    assert_eq!((lane.held.len(), desk.ear.asked().split(' ').count()), (AT_ONCE, AT_ONCE));
    desk.ear.becomes("", Mood::Takes);
    desk.clock.advance(Duration::from_secs(60));
    lane.work().await.unwrap();
    assert_eq!((lane.held.len(), desk.ear.taken().split(' ').count()), (0, letters.len()));
}

#[tokio::test]
async fn what_is_refused_for_good_or_for_a_day_is_given_up_and_stands_in_the_history() {
    let (desk, mut lane) = Desk::new();
    desk.ear.becomes("a1", Mood::Never);
    desk.ear.becomes("b1", Mood::Later(Duration::ZERO));
    desk.happen(&["a1", "a2", "b1", "b2"]).await;
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "a2");
    desk.clock.advance(PATIENCE + Duration::from_secs(1));
    lane.work().await.unwrap();
    assert_eq!(desk.ear.taken(), "b2");
    assert_eq!(desk.history().await, ["a1: no such hook", "b1: busy, for more than a day"]);
}

#[tokio::test]
async fn what_waits_is_told_by_the_next_process_in_its_order() {
    let (disk, clock, ear) = (MemoryDisk::default(), Arc::new(ManualClock::new(Timestamp(1_000_000))), Arc::default());
    let (desk, mut lane) = Desk::on(&disk, clock.clone(), ear);
    desk.ear.becomes("", Mood::Later(Duration::ZERO));
    desk.happen(&["a1", "a2"]).await;
    lane.work().await.unwrap();
    let (again, mut lane) = Desk::on(&disk, clock, desk.ear.clone());
    again.ear.becomes("", Mood::Takes);
    lane.work().await.unwrap();
    assert_eq!(again.ear.taken(), "a1 a2");
}

#[tokio::test]
async fn what_only_the_safety_net_finds_is_counted_and_not_what_had_to_wait() {
    let (desk, mut lane) = Desk::new();
    desk.happen(&["a1", "a2", "b1"]).await;
    desk.clock.advance(Duration::from_secs(30));
    desk.happen(&["c1"]).await;
    lane.work_through(true).await.unwrap();
    assert_eq!(desk.ear.taken(), "a1 b1 c1 a2");
    let counted =
        || desk.driver.metrics.encode().lines().find(|line| line.contains("lost_wakeups_total{")).map(str::to_owned);
    assert_eq!(
        counted(),
        Some("launchway_lost_wakeups_total{lane=\"sinks/ci\"} 2".into()),
        "c1 is new, a2 came after a1"
    );
    desk.happen(&["d1"]).await;
    desk.clock.advance(Duration::from_secs(30));
    lane.work().await.unwrap();
    assert_eq!(
        counted(),
        Some("launchway_lost_wakeups_total{lane=\"sinks/ci\"} 2".into()),
        "somebody was woken for d1"
    );
}
