//! Lanes over a store in memory and writers that do as the test says.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::clock::{Clock as _, CountingIds, ManualClock};
use crate::error::Failure;
use crate::executor::comments::NoComments;
use crate::executor::deployer_tokens::DeployerTokens;
use crate::executor::outbox::Outbox;
use crate::executor::perform::Performer;
use crate::executor::previews::NoPreviews;
use crate::executor::proposals::NoProposals;
use crate::forge::Refusal;
use crate::model::action::Action;
use crate::model::event::Timer;
use crate::model::ids::WriterName;
use crate::model::state::{RepositoryState, RevisionResult, RevisionState, Versioned};
use crate::simulation::indicators::PretendedIndicators;
use crate::simulation::memory_store::MemoryDisk;
use crate::simulation::runtime::PretendedRuntime;
use crate::store::Write;

/// What a writer does with what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Takes,
    Hangs,
    IsBusy,
    Refuses,
    LostItsCommits,
}

/// Remembers how often each commit was written.
struct Pen {
    name: &'static str,
    mood: watch::Sender<Mood>,
    written: Mutex<BTreeMap<CommitId, usize>>,
    asked: watch::Sender<usize>,
}

impl Pen {
    fn new(name: &'static str, mood: Mood) -> Arc<Self> {
        let (mood, asked) = (watch::Sender::new(mood), watch::Sender::new(0));
        Arc::new(Self { name, mood, written: Mutex::default(), asked })
    }

    fn becomes(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    fn written(&self) -> BTreeMap<CommitId, usize> {
        self.written.lock().unwrap().clone()
    }

    fn asked(&self) -> usize {
        *self.asked.borrow()
    }
}

#[async_trait]
impl StatusWriter for Pen {
    fn name(&self) -> WriterName {
        self.name.into()
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        self.asked.send_modify(|asked| *asked += 1);
        let mood = *self.mood.subscribe().wait_for(|mood| *mood != Mood::Hangs).await.unwrap();
        match mood {
            Mood::Takes | Mood::Hangs => {}
            Mood::IsBusy => return Err(Refusal::Busy(Failure::transient("no answer"))),
            Mood::Refuses => return Err(Refusal::All(Failure::stalled("no such token"))),
            Mood::LostItsCommits => return Err(Refusal::Commit(Failure::stalled("no such commit"))),
        }
        let mut written = self.written.lock().unwrap();
        statuses.iter().for_each(|status| *written.entry(status.commit.clone()).or_default() += 1);
        Ok(())
    }

    fn batch(&self) -> usize {
        1
    }
}

/// A daemon's outbox and reporter, and some repositories.
struct Desk {
    clock: Arc<ManualClock>,
    driver: Driver,
    reporter: Arc<StatusReporter>,
}

impl Desk {
    async fn with(repositories: &[(&str, &[&Arc<Pen>])]) -> Self {
        Self::on(&MemoryDisk::default(), repositories).await
    }

    async fn on(disk: &MemoryDisk, repositories: &[(&str, &[&Arc<Pen>])]) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let store = Arc::new(disk.open(clock.clone()));
        let driver = Driver::new(store, clock.clone(), Arc::new(CountingIds::default()));
        let reporter = Arc::new(StatusReporter::new(driver.clone()));
        for (name, pens) in repositories {
            if driver.store.repository(&(*name).into()).await.unwrap().is_none() {
                let state = RepositoryState::new((*name).into(), "https://git.example/shop.git", "main");
                let put = Write::Repository(Versioned { version: 0, value: state }.shared());
                driver.commit(&[Input::Write(Box::new(put))]).await.unwrap();
            }
            reporter
                .write_to(&(*name).into(), pens.iter().map(|pen| (*pen).clone() as Arc<dyn StatusWriter>).collect());
        }
        Self { clock, driver, reporter }
    }

    /// Revisions that cannot be read: each has one status. They have news.
    async fn report(&self, repository: &str, commits: impl IntoIterator<Item = u32>) {
        let mut inputs = Vec::new();
        for number in commits {
            let revision = RevisionState {
                repository: repository.into(),
                commit: commit(number),
                subject: "typo".into(),
                at: Timestamp(i64::from(number)),
                result: RevisionResult::Broken { problems: vec!["app.yaml:1:1: error".into()] },
                summary: None,
                again: 0,
                warnings: Vec::new(),
            };
            inputs.push(Input::Write(Box::new(Write::Revision(Box::new(revision)))));
            inputs.push(Input::Report(repository.into(), commit(number)));
        }
        self.driver.commit(&inputs).await.unwrap();
    }

    async fn problem(&self, repository: &str) -> Option<String> {
        self.driver.store.repository(&repository.into()).await.unwrap().unwrap().value.status_problem()
    }

    /// Everything works by itself until the token is cancelled.
    fn work(&self, stop: &CancellationToken) -> [JoinHandle<()>; 2] {
        let runtime = Arc::new(PretendedRuntime::new(self.clock.clone()));
        let outbox = Outbox::new(Performer {
            driver: self.driver.clone(),
            runtime,
            proposals: Arc::new(NoProposals),
            indicators: Arc::<PretendedIndicators>::default(),
            previews: Arc::new(NoPreviews),
            comments: Arc::new(NoComments),
            tokens: DeployerTokens::new(b"pretended", self.driver.store.incarnation().clone()),
        });
        [tokio::spawn(outbox.run(stop.clone())), tokio::spawn(self.reporter.clone().run(stop.clone()))]
    }

    async fn outbox(&self) -> Vec<String> {
        self.driver.store.outbox(None).await.unwrap().into_iter().map(|row| row.key).collect()
    }

    /// Looks at every commit until what is asked for is true.
    async fn until(&self, what: &str, is_true: impl AsyncFn() -> bool) {
        let mut changes = self.driver.changes();
        let wait = async {
            while !is_true().await {
                drop(changes.recv().await);
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect(what);
    }
}

fn commit(number: u32) -> CommitId {
    CommitId::new(format!("{number:040x}"))
}

fn once(commits: impl IntoIterator<Item = u32>) -> BTreeMap<CommitId, usize> {
    commits.into_iter().map(|number| (commit(number), 1)).collect()
}

#[tokio::test]
async fn the_problems_of_a_writer_end_when_it_is_configured_no_longer() {
    let (disk, stays, goes) =
        (MemoryDisk::default(), Pen::new("gitea", Mood::Refuses), Pen::new("environments", Mood::Refuses));
    let desk = Desk::on(&disk, &[("shop", &[&stays, &goes])]).await;
    desk.report("shop", 1..=1).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!(desk.problem("shop").await.unwrap(), "environments: no such token; gitea: no such token");
    let desk = Desk::on(&disk, &[("shop", &[&stays])]).await;
    let stop = CancellationToken::new();
    stop.cancel();
    desk.reporter.clone().run(stop).await;
    assert_eq!(desk.problem("shop").await.unwrap(), "gitea: no such token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_hangs_holds_up_nothing_but_itself() {
    let (hung, notes, other) =
        (Pen::new("gitea", Mood::Hangs), Pen::new("notes", Mood::Takes), Pen::new("notes", Mood::Takes));
    let desk = Desk::with(&[("slow", &[&hung, &notes]), ("quick", &[&other])]).await;
    let stop = CancellationToken::new();
    let tasks = desk.work(&stop);
    desk.report("slow", 1..=300).await;
    hung.asked.subscribe().wait_for(|asked| *asked == 1).await.unwrap();
    desk.report("quick", 1..=5).await;
    let timer = Action::SetTimer { timer: Timer::Deadline, due: desk.clock.now() };
    let ask = Write::Ask { run: "r1".into(), action: Box::new(timer), due: desk.clock.now(), at: desk.clock.now() };
    desk.driver.commit(&[Input::Write(Box::new(ask))]).await.unwrap();
    desk.until("the other repository's statuses", async || other.written() == once(1..=5)).await;
    desk.until("the other writer's statuses", async || notes.written() == once(1..=300)).await;
    desk.until("the timer", async || !desk.outbox().await.contains(&"timer/deadline".to_owned())).await;
    assert_eq!((hung.asked(), hung.written()), (1, BTreeMap::new()), "one at a time");
    hung.becomes(Mood::Takes);
    desk.until("everything", async || desk.outbox().await.is_empty()).await;
    assert_eq!(hung.written(), once(1..=300));
    stop.cancel();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn each_writer_has_its_own_ledger() {
    let (forge, notes) = (Pen::new("gitea", Mood::IsBusy), Pen::new("notes", Mood::Takes));
    let desk = Desk::with(&[("shop", &[&forge, &notes])]).await;
    desk.report("shop", [1]).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!((forge.written(), notes.written()), (BTreeMap::new(), once([1])));
    forge.becomes(Mood::Takes);
    desk.clock.advance_to(desk.reporter.next_due().await.unwrap().expect("it is tried again"));
    desk.report("shop", [1]).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!((forge.written(), notes.written()), (once([1]), once([1])), "nobody writes twice");
    assert_eq!(desk.outbox().await, [""; 0]);
}

#[tokio::test]
async fn a_busy_writer_is_left_alone_for_longer_each_time() {
    let forge = Pen::new("gitea", Mood::IsBusy);
    let desk = Desk::with(&[("shop", &[&forge])]).await;
    desk.report("shop", 1..=9).await;
    let mut pauses = Vec::new();
    for tries in 1..=4 {
        desk.reporter.drain().await.unwrap();
        desk.report("shop", [10]).await;
        desk.reporter.drain().await.unwrap();
        assert_eq!(forge.asked(), tries, "not for other commits either");
        let due = desk.reporter.next_due().await.unwrap().expect("it is tried again");
        pauses.push(due.since(desk.clock.now()).as_secs());
        desk.clock.advance_to(due);
    }
    assert_eq!(pauses, [1, 2, 4, 8]);
    assert_eq!(desk.problem("shop").await, None);
    forge.becomes(Mood::Takes);
    desk.reporter.drain().await.unwrap();
    assert_eq!(forge.written(), once(1..=10));
}

#[tokio::test]
async fn what_was_refused_is_written_once_it_is_taken_for_older_commits_too() {
    let forge = Pen::new("gitea", Mood::Refuses);
    let desk = Desk::with(&[("shop", &[&forge])]).await;
    desk.report("shop", 1..=5).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!(desk.problem("shop").await.as_deref(), Some("gitea: no such token"));
    let rows = desk.driver.store.outbox(None).await.unwrap();
    let parked = rows.iter().all(|row| row.due.is_none() && row.attempts == 0 && row.problem == "no such token");
    assert!(rows.len() == 5 && parked, "{rows:?}");
    let asked = forge.asked();
    desk.driver.writers.retry(&"shop".into());
    desk.reporter.drain().await.unwrap();
    assert_eq!(forge.asked(), asked + 1, "one is enough to learn that nothing has changed");
    forge.becomes(Mood::Takes);
    desk.reporter.drain().await.unwrap();
    assert_eq!(forge.asked(), asked + 1, "nothing is tried without a reason");
    desk.driver.writers.retry(&"shop".into());
    desk.reporter.drain().await.unwrap();
    assert_eq!(forge.written(), once(1..=5));
    assert_eq!((desk.problem("shop").await, desk.outbox().await), (None, Vec::new()));
}

#[tokio::test]
async fn what_is_refused_again_and_again_is_tried_ever_less_however_often_somebody_asks() {
    let forge = Pen::new("notes", Mood::Refuses);
    let desk = Desk::with(&[("shop", &[&forge])]).await;
    desk.report("shop", 1..=1).await;
    desk.reporter.drain().await.unwrap();
    let asked = forge.asked();
    for _second in 0..120 {
        desk.driver.writers.retry(&"shop".into());
        desk.reporter.drain().await.unwrap();
        desk.clock.advance_to(desk.driver.clock.now() + Duration::from_secs(1));
    }
    let tried = forge.asked() - asked;
    assert!((5..=10).contains(&tried), "tried {tried} times in two minutes");
    forge.becomes(Mood::Takes);
    let lane = &desk.reporter.lanes()[0];
    while let Some(next) = lane.next_work().await.unwrap() {
        desk.clock.advance_to(next);
        desk.reporter.drain().await.unwrap();
    }
    assert_eq!(forge.written(), once(1..=1), "what was asked for is not forgotten");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_is_tried_again_by_the_next_daemon() {
    let (forge, disk) = (Pen::new("gitea", Mood::Refuses), MemoryDisk::default());
    let desk = Desk::on(&disk, &[("shop", &[&forge])]).await;
    desk.report("shop", 1..=3).await;
    desk.reporter.drain().await.unwrap();
    forge.becomes(Mood::Takes);
    let (next, stop) = (Desk::on(&disk, &[("shop", &[&forge])]).await, CancellationToken::new());
    let tasks = next.work(&stop);
    next.until("everything", async || next.outbox().await.is_empty()).await;
    assert_eq!((forge.written(), next.problem("shop").await), (once(1..=3), None));
    stop.cancel();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn news_that_is_taken_brings_what_was_refused_with_it() {
    let forge = Pen::new("gitea", Mood::Refuses);
    let desk = Desk::with(&[("shop", &[&forge])]).await;
    desk.report("shop", 1..=3).await;
    desk.reporter.drain().await.unwrap();
    forge.becomes(Mood::Takes);
    desk.report("shop", [4]).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!(forge.written(), once(1..=4));
}

#[tokio::test]
async fn a_commit_that_is_gone_is_given_up_and_others_are_written() {
    let forge = Pen::new("gitea", Mood::LostItsCommits);
    let desk = Desk::with(&[("shop", &[&forge])]).await;
    desk.report("shop", [1]).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!(desk.outbox().await, [""; 0]);
    assert_eq!(desk.problem("shop").await.as_deref(), Some("gitea: no such commit"));
    forge.becomes(Mood::Takes);
    desk.report("shop", [2]).await;
    desk.reporter.drain().await.unwrap();
    assert_eq!((forge.written(), desk.problem("shop").await), (once([2]), None));
}
