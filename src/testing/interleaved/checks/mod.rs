//! What must hold: after every turn, and once everything has come to rest.

mod heads;
mod kept;
mod pods;
mod quiet;
mod rest;
mod sequences;
mod services;
mod slots;
mod statuses;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::clock::CountingIds;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::simulation::runtime::PretendedRuntime;
use crate::testing::interleaved::checks::pods::Pods;
use crate::testing::interleaved::checks::sequences::Sequences;
use crate::testing::interleaved::checks::slots::Slots;
use crate::testing::interleaved::daemon::Surroundings;

/// What holds in every story, whatever happens in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Nothing goes on for ever without time passing.
    ComesToRest,
    /// Of the runs of a slot at most one is under way.
    OneRunPerSlot,
    /// A held service is not started, except to go back to what ran before.
    HoldsHold,
    /// No ready pod is ended while that leaves fewer than promised.
    PodsAsPromised,
    /// A deployment config has one hook under way.
    OneHookAtOnce,
    /// No try of a hook or task is started twice.
    RunsOnce,
    /// A revision makes at most one version of a deployment config, unless a person asks for more.
    OneVersionARevision,
    /// Every run ends, unless it waits for a person.
    EveryRunEnds,
    /// Each task of a sequence begins once and after those before it, and what has ended stays as it ended.
    TasksInOrder,
    /// An event from outside has its effect once, and none if it is late, too early, or about nothing.
    EventsCountOnce,
    /// Who listens hears all that happens to sequences, in its order.
    EverythingIsHeard,
    /// What goes on says what it waits for, or that is there or asked for.
    SaysWhatItWaitsFor,
    /// What is down runs nothing.
    DownIsDown,
    /// The pods that are there are those of the version, and of the content, that the record names.
    RecordedServes,
    /// The services that are recorded answer as they are recorded, and no other.
    ServicesLead,
    /// What pods read is there as long as something runs with it, and nothing is kept that nothing runs with.
    FindsWhatItReads,
    /// The record credits a commit with what serves that declares it.
    CreditIsDue,
    /// What became of a hook or task is what became of a pod that was started for it.
    OwnPods,
    /// A head that was pushed was synced.
    HeadsAreSeen,
    /// Of repositories that declare one project exactly one has it.
    OneOwner,
    /// In a namespace are the pods of one stage of one project.
    OneStageANamespace,
    /// Planning the head again starts nothing.
    PlanIsEmpty,
    /// What is declared serves, unless it was tried and failed.
    HeadRuns,
    /// What stands on a commit is what a rendering says that knows nothing of earlier ones.
    StatusesAreFresh,
    /// Nothing on a commit says that something is still to come.
    StatusesEnd,
}

/// Something that does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What should.
    pub invariant: Invariant,
    /// What is instead.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.what)
    }
}

impl Violation {
    fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into() }
    }

    /// Turns are taken without end.
    pub(super) fn restless() -> Self {
        Self::new(Invariant::ComesToRest, "turns are taken without end")
    }
}

/// More runs than any story has: what a check would start is none of them.
const APART: i64 = 10_000_000;

/// All that holds at the end of a story is asked at one of so many of the moments at which it could end: that is dear.
const CHOSEN: u64 = 3;

/// What grows with everything that happens: in the store, to pods, in repositories.
type Moved = (u64, u64, usize);

/// When to check whether everything has come to where it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// What people held or took down is still so.
    Untouched,
    /// Nothing is held or down any more, and every head was synced again.
    Freed,
}

/// Whether something holds, if it could be found out.
pub(super) type Held = Result<Result<(), Violation>>;

/// Looks at everything without taking part.
#[derive(Debug)]
pub(super) struct Checks {
    /// Reads the store beside the daemon.
    driver: Driver,
    commits: u64,
    announced: u64,
    /// What there was when all of it was checked last at rest.
    rested: Option<Moved>,
    /// How many of these moments there were; from what is counted, the story's order says.
    moments: u64,
    slots: Slots,
    sequences: Sequences,
    pods: Pods,
    /// How many daemons there were.
    lives: u64,
    /// Whether the store was lost or replaced by a copy: then hosts may show what nobody remembers.
    another_store: bool,
    /// Whether runs were deleted.
    pruned: bool,
    /// Whether people asked for something: what is deployed may be what they wanted.
    people_acted: bool,
    /// All that matters, if not everything does.
    only: Option<Invariant>,
}

impl Checks {
    /// Nothing was seen yet of the story with this order; only one thing matters, or everything.
    pub(super) fn new(around: &Surroundings, order: u64, only: Option<Invariant>) -> Self {
        let store = Arc::new(around.disk.read(around.clock.clone()));
        let ids = CountingIds::after(APART);
        let driver = Driver::new(store, around.clock.clone(), Arc::new(ids));
        let (slots, sequences, pods) = Default::default();
        Self {
            driver,
            commits: 0,
            announced: 0,
            rested: None,
            moments: order,
            slots,
            sequences,
            pods,
            lives: 1,
            another_store: false,
            pruned: false,
            people_acted: false,
            only,
        }
    }

    /// The store was lost or replaced by an earlier copy of it.
    pub(super) fn store_changed_hands(&mut self, around: &Surroundings) {
        self.another_store = true;
        self.rested = None;
        self.commits = u64::MAX; // a copy may have as many commits as what it replaces
        self.slots = Slots::found_in(&around.disk);
        self.sequences = Sequences::default();
        self.pods.store_changed_hands();
    }

    /// Another daemon begins.
    pub(super) fn life_begins(&mut self) {
        self.lives += 1;
    }

    /// Runs that nothing needs may be gone from now on.
    pub(super) fn pruned(&mut self) {
        self.pruned = true;
    }

    /// A person asks for something.
    pub(super) fn people_act(&mut self) {
        self.people_acted = true;
    }

    /// What must hold after every turn, as far as anything has changed in it.
    pub(super) fn after_turn(&mut self, around: &Surroundings) -> Held {
        let commits = around.disk.commits();
        if commits != self.commits {
            self.commits = commits;
            self.pods.promises(&*self.driver.store, around)?;
            let slots = self.slots.check(&*self.driver.store, &around.disk)?;
            let sequences = self.sequences.check(&*self.driver.store, &around.disk)?;
            if let Some(violation) = [slots, sequences].into_iter().filter_map(Result::err).find(|it| self.matters(it))
            {
                return Ok(Err(violation));
            }
        }
        let announced = around.runtime.announced();
        if announced != self.announced {
            self.announced = announced;
            if let Err(violation) = self.pods.check(&around.runtime)?
                && self.matters(&violation)
            {
                return Ok(Err(violation));
            }
        }
        Ok(Ok(()))
    }

    /// Pods that hang are about to become ready.
    pub(super) fn finishing(&mut self, runtime: &PretendedRuntime) {
        self.pods.finishing(runtime);
    }

    /// What must hold whenever nothing can happen without time passing, also while pods hang and hosts refuse statuses; and, at
    /// some of the moments after which nothing comes by itself, all that must hold at the end.
    pub(super) fn rested(&mut self, around: &Surroundings) -> Held {
        self.pods.rested();
        let moved = Some((around.disk.commits(), around.runtime.announced(), around.hosting.pushes()));
        if std::mem::replace(&mut self.rested, moved) == moved {
            return Ok(Ok(())); // time has passed, and nothing else
        }
        self.moments = self.moments.wrapping_add(1);
        let is_chosen = self.moments.is_multiple_of(CHOSEN);
        let store = &*self.driver.store;
        let rest = rest::At { store, around, moment: Moment::Untouched };
        let heads = heads::Heads { driver: &self.driver, around };
        self.hold(&[
            &|| rest.own_pods(),
            &|| rest.credit(),
            &|| heads.one_owner(),
            &|| sequences::say_what_they_wait_for(&around.disk),
            &|| rest.what_goes_on_waits_for_something(),
            &|| rest.only_what_is_named_serves(),
            &|| statuses::fresh(store, around, self.another_store, self.pruned, &rest.reports()),
            // What another store has left may answer on until the next time that everything is judged.
            &|| if self.another_store { Ok(Ok(())) } else { rest.only_recorded_services_answer() },
            &|| match is_chosen && rest.nothing_is_to_come() {
                true => self.at_rest(around, Moment::Untouched),
                false => Ok(Ok(())),
            },
        ])
    }

    fn matters(&self, violation: &Violation) -> bool {
        self.only.is_none_or(|only| only == violation.invariant)
    }

    /// What must hold once nothing is under way any more.
    pub(super) fn at_rest(&self, around: &Surroundings, moment: Moment) -> Held {
        let store = &*self.driver.store;
        let rest = rest::At { store, around, moment };
        let heads = heads::Heads { driver: &self.driver, around };
        self.hold(&[
            &|| rest.runs_ended(),
            &|| self.sequences.ended_stay(store),
            &|| sequences::events_count_once(store, &around.events),
            &|| match self.another_store {
                true => Ok(Ok(())),
                false => sequences::all_is_heard(store, &around.events, self.lives),
            },
            &|| rest.down_is_down(),
            &|| rest.record_serves(),
            &|| rest.services_lead(),
            &|| if self.another_store { Ok(Ok(())) } else { rest.finds_what_it_reads() },
            &|| rest.own_pods(),
            &|| if self.people_acted || self.another_store { Ok(Ok(())) } else { rest.one_version_a_revision() },
            &|| heads.one_owner(),
            &|| heads.check(),
            &|| rest.credit(),
            &|| statuses::fresh(store, around, self.another_store, self.pruned, &BTreeSet::new()),
            &|| statuses::ended(store, around),
        ])
    }

    fn hold(&self, checks: &[&dyn Fn() -> Held]) -> Held {
        for check in checks {
            if let Err(violation) = check()?
                && self.matters(&violation)
            {
                return Ok(Err(violation));
            }
        }
        Ok(Ok(()))
    }
}
