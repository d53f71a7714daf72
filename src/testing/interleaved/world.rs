//! The world in which a story with interleavings happens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, ManualClock};
use crate::error::{Failure, Result};
use crate::model::ids::{ConfigKey, Namespace, PodName, RepositoryName, StageName};
use crate::model::outcome::PodOutcome;
use crate::model::pod::PodId;
use crate::model::run::Run;
use crate::model::time::Timestamp;
use crate::simulation::memory_store::MemoryDisk;
use crate::simulation::runtime::{Behaviour, PretendedRuntime};
use crate::store::{ReadStore, RunFilter, Store};
use crate::testing::interleaved::alarm::Alarms;
use crate::testing::interleaved::checks::{Checks, Invariant, Moment, Violation};
use crate::testing::interleaved::daemon::{Daemon, Surroundings};
use crate::testing::interleaved::events::Events;
use crate::testing::interleaved::executors;
use crate::testing::interleaved::fault::Made;
use crate::testing::interleaved::hosting::{Hosting, Pushed, Refuses};
use crate::testing::interleaved::people;
use crate::testing::interleaved::scheduler::Scheduler;
use crate::testing::interleaved::trace::Trace;
use crate::testing::script::declared::Declared;
use crate::testing::script::{duration, number};

/// The line of a story in which somebody listens, from its beginning.
const LISTENS: &str = "listen";
/// Daemons ask the store for everything.
const FORGETS: &str = "forgetful";
/// When every story begins.
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);
/// The repository that lines are about unless they name another.
const REPOSITORY: &str = "one";
/// More turns than any story takes that comes to rest.
const TURNS: u64 = 400_000;
/// How often everything that hangs is ended and time passes at the end: deployments, hooks, and what follows them.
const ROUNDS: usize = 4;
/// The same, as long as a person has to let anything go on: of deliveries that each have their turn, one after another.
const MOST_ROUNDS: usize = 40;
/// Longer than any timer of a rollout.
const LONG: Duration = Duration::from_secs(11 * 60);

/// Whether what must hold did, if the simulation itself did not fail.
type Played = Result<Result<(), Violation>>;

/// Goes on with what follows, or ends with what did not hold.
macro_rules! held {
    ($played:expr) => {
        match $played? {
            Ok(()) => {}
            Err(violation) => return Ok(Err(violation)),
        }
    };
}

/// A daemon in its surroundings, and the tasks of both.
#[derive(Debug)]
pub(super) struct World {
    around: Surroundings,
    scheduler: Scheduler,
    daemon: Daemon,
    /// Daemons that were taken over and did not notice yet.
    taken_over: Vec<Daemon>,
    lives: u64,
    declared: BTreeMap<RepositoryName, Declared>,
    checks: Checks,
    /// Once everything is to come to its end, what was answered of what is left to people and executors.
    answered: Option<BTreeSet<String>>,
    /// Where `TRACE` is set, what happens is printed turn by turn.
    trace: Option<Trace>,
}

impl World {
    /// A world with every repository that `lines` name, in which nothing was pushed yet. `only` one thing matters, or
    /// everything.
    pub(super) fn new(order: u64, lines: &[String], only: Option<Invariant>) -> Self {
        let clock = Arc::new(ManualClock::new(BEGINNING));
        let made = Made::default();
        let around = Surroundings {
            disk: MemoryDisk::default(),
            runtime: Arc::new(PretendedRuntime::new(clock.clone())),
            hosting: Hosting::new(made.clone()),
            events: Events::new(lines.iter().any(|line| line == LISTENS), made.clone()),
            ids: Arc::default(),
            alarms: Alarms::new(clock.clone()),
            clock,
            is_forgetful: lines.iter().any(|line| line == FORGETS || line.starts_with("fault ")),
            made,
        };
        let named = lines.iter().filter_map(|line| line.strip_prefix('@')?.split(' ').next());
        let names: BTreeSet<&str> = named.chain([REPOSITORY]).collect();
        let declared = names.into_iter().map(|name| (RepositoryName::new(name), Declared::default()));
        let declared: BTreeMap<RepositoryName, Declared> = declared.collect();
        declared.keys().for_each(|name| around.hosting.request_sync(name));
        let scheduler = Scheduler::new(order);
        let daemon = Daemon::start(&around, &scheduler.spawner(), 1);
        let checks = Checks::new(&around, order, only);
        let trace = std::env::var_os("TRACE").map(|_| Trace::default());
        Self { around, scheduler, daemon, taken_over: Vec::new(), lives: 1, declared, checks, answered: None, trace }
    }

    /// How many turns were taken.
    pub(super) fn turns(&self) -> u64 {
        self.scheduler.turns()
    }

    /// Plays lines, heals everything, and checks.
    pub(super) fn play(&mut self, lines: &[String]) -> Played {
        for line in lines {
            if let Some(trace) = &mut self.trace {
                trace.line(line);
            }
            let (repository, words) = match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
                Some((repository, rest)) => (repository, rest),
                None => (REPOSITORY, line.as_str()),
            };
            let words: Vec<&str> = words.split_whitespace().collect();
            held!(self.line(&RepositoryName::new(repository), &words));
        }
        held!(self.heal());
        held!(self.checks.at_rest(&self.around, Moment::Untouched));
        self.command(&RepositoryName::new(REPOSITORY), &["release"]);
        for repository in self.around.hosting.repositories() {
            self.command(&repository, &["up"]);
        }
        held!(self.heal());
        self.checks.at_rest(&self.around, Moment::Freed)
    }

    fn line(&mut self, repository: &RepositoryName, words: &[&str]) -> Played {
        match words {
            ["turns", turns] => return self.turns_pass(number(turns)?),
            ["settle"] => return self.come_to_rest(),
            ["fault", word] => self.around.made.make(word)?,
            ["pass", time] => return self.pass(duration(time)?),
            ["push", how @ ..] => self.push(repository, how)?,
            ["refuse-statuses", "busy"] => self.around.hosting.refuse(repository, Some(Refuses::Busy)),
            ["refuse-statuses", "rights"] => self.around.hosting.refuse(repository, Some(Refuses::Rights)),
            ["take-statuses"] => self.take_statuses(repository),
            [LISTENS | FORGETS] => {}
            ["refuse-events"] => self.around.events.be_busy(true),
            ["take-events"] => self.around.events.be_busy(false),
            ["crash"] => self.crash(),
            ["takeover"] => self.take_over(),
            ["lose-store"] => {
                self.around.disk.lose();
                self.checks.store_changed_hands(&self.around);
                self.crash();
            }
            ["backup", name] => people::now(self.around.disk.read(self.around.clock.clone()).backup(Path::new(name)))?,
            ["restore", name] => {
                // What was made in the copy's life is older than this one.
                self.around.clock.advance(Duration::from_millis(1));
                self.around.disk.restore(Path::new(name), self.around.clock.now())?;
                self.checks.store_changed_hands(&self.around);
                self.crash();
            }
            ["prune", _] => {
                // Nothing is forgotten in the millisecond in which it was made, which tells names apart that come again.
                self.around.clock.advance(Duration::from_millis(1));
                self.checks.pruned();
                self.command(repository, words);
            }
            _ if people::knows(words) => {
                self.checks.people_act();
                self.command(repository, words);
            }
            _ if Declared::knows(words) => {
                self.declared.get_mut(repository).map_or(Ok(()), |declared| declared.change(words))?;
            }
            _ => self.pods(words)?,
        }
        Ok(Ok(()))
    }

    fn push(&mut self, repository: &RepositoryName, how: &[&str]) -> Result<()> {
        let Some(declared) = self.declared.get(repository) else { return Ok(()) };
        let pushed = match how {
            [] => Pushed::OnTop(Arc::new(declared.project()?)),
            ["rewritten"] => Pushed::Instead(Arc::new(declared.project()?)),
            ["broken"] => Pushed::Broken,
            ["back"] => Pushed::Back,
            _ => return Err(Failure::stalled("this is no way to push")),
        };
        self.around.hosting.push(repository, pushed);
        Ok(())
    }

    /// A person sees to it that statuses are taken, and says so: `launchway sync` does.
    fn take_statuses(&self, repository: &RepositoryName) {
        self.around.hosting.refuse(repository, None);
        self.daemon.driver.writers.retry(repository);
    }

    /// A person asks for something; it is under way while the next lines happen, and dies with the daemon.
    fn command(&mut self, repository: &RepositoryName, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let Some(project) = self.declared.get(repository).map(|declared| declared.name.clone()) else { return };
        let daemon = self.daemon.clone();
        let asked = people::ask(daemon, repository.clone(), project, words);
        self.scheduler.spawner().spawn(self.daemon.group, asked);
    }

    fn pods(&mut self, words: &[&str]) -> Result<()> {
        let runtime = &self.around.runtime;
        match words {
            ["prepare", image] => runtime.hold_image(image, true),
            ["prepared", image] => runtime.hold_image(image, false),
            ["fail", prefix] => runtime.behave(prefix, Behaviour::fails(1)),
            ["unknown", prefix] => {
                let outcome = PodOutcome::unknown("its supervisor died");
                runtime.behave(prefix, Behaviour::Ends(outcome));
            }
            ["hang", prefix] => runtime.behave(prefix, Behaviour::Hangs),
            ["linger", prefix] => runtime.behave(prefix, Behaviour::Lingers),
            ["refuse", prefix] => runtime.behave(prefix, Behaviour::CannotStart("no such program".into())),
            ["heal", prefix] => runtime.behave(prefix, Behaviour::Good),
            ["stop-listening", service, reason @ ..] => runtime.keep_from_listening(service, Some(&reason.join(" "))),
            ["let-listen", service] => runtime.keep_from_listening(service, None),
            ["finish"] => self.finish(),
            ["reboot"] => runtime.reboot(),
            ["lose", pod] => {
                let unknown = || Failure::stalled("say <namespace>/<pod>");
                let (namespace, name) = pod.split_once('/').ok_or_else(unknown)?;
                runtime.lose(&PodId { namespace: Namespace::new(namespace), name: PodName::new(name) });
            }
            _ => return Err(Failure::stalled(format!("`{}` is no line of a story", words.join(" ")))),
        }
        Ok(())
    }

    /// The daemon dies where it stands, and another begins.
    fn crash(&mut self) {
        self.scheduler.end(self.daemon.group);
        self.begin();
    }

    /// Another daemon begins while the first goes on.
    fn take_over(&mut self) {
        self.taken_over.push(self.daemon.clone());
        self.begin();
    }

    fn begin(&mut self) {
        self.lives += 1;
        self.checks.life_begins();
        self.daemon = Daemon::start(&self.around, &self.scheduler.spawner(), self.lives);
    }

    /// One turn, and what must hold after it; nothing if nobody can go on. A daemon that notices that it was taken over
    /// stops.
    fn turn(&mut self) -> Result<Option<Result<(), Violation>>> {
        if !self.scheduler.step() {
            return Ok(None);
        }
        let (stops, go_on) = self.taken_over.drain(..).partition(|daemon| daemon.driver.fenced().is_cancelled());
        self.taken_over = go_on;
        let stops: Vec<Daemon> = stops;
        stops.iter().for_each(|daemon| self.scheduler.end(daemon.group));
        if self.scheduler.turns() > TURNS {
            return Ok(Some(Err(Violation::restless())));
        }
        if let Some(trace) = &mut self.trace {
            trace.after_turn(self.scheduler.turns(), &self.around)?;
        }
        self.checks.after_turn(&self.around).map(Some)
    }

    fn turns_pass(&mut self, turns: u64) -> Played {
        for _ in 0..turns {
            match self.turn()? {
                Some(Ok(())) => {}
                Some(violated) => return Ok(violated),
                None => break,
            }
        }
        Ok(Ok(()))
    }

    /// Everything happens that can happen without time passing.
    fn come_to_rest(&mut self) -> Played {
        loop {
            while let Some(held) = self.turn()? {
                if held.is_err() {
                    return Ok(held);
                }
            }
            if !self.answer()? {
                return self.checks.rested(&self.around);
            }
        }
    }

    /// Once everything is to come to its end, people and executors do what is left to them; says whether there was anything.
    fn answer(&mut self) -> Result<bool> {
        let Some(answered) = &mut self.answered else { return Ok(false) };
        let store = self.around.disk.read(self.around.clock.clone());
        let open = RunFilter { open: Some(true), sequences: Some(true), ..RunFilter::default() };
        let (mut any, spawner) = (false, self.scheduler.spawner());
        for run in people::now(store.runs(&open))?.whole()?.iter().filter_map(|run| run.value.sequence()) {
            let Some((task, _)) = run.offered().filter(|(task, _)| answered.insert(run.triggered_id(*task))) else {
                continue;
            };
            for line in executors::answers(run, task) {
                let words = line.split(' ').map(str::to_owned).collect();
                let (repository, project) = (run.repository.clone(), run.service.project.clone());
                spawner.spawn(self.daemon.group, people::ask(self.daemon.clone(), repository, project, words));
            }
            any = true;
        }
        Ok(any)
    }

    /// Time passes, and everything happens that was due on the way.
    fn pass(&mut self, time: Duration) -> Played {
        let end = self.around.clock.now() + time;
        loop {
            held!(self.come_to_rest());
            match self.around.alarms.next() {
                Some(due) if due <= end => self.around.alarms.advance_to(due),
                _ => break,
            }
        }
        self.around.alarms.advance_to(end);
        self.come_to_rest()
    }

    /// Whatever hangs comes to its end.
    fn finish(&mut self) {
        self.checks.finishing(&self.around.runtime);
        self.around.runtime.finish();
    }

    /// A person lets every rollout go on that waits for one; says whether any did.
    fn resume_rollouts(&mut self) -> Result<bool> {
        let store = self.around.disk.read(self.around.clock.clone());
        let open = RunFilter { open: Some(true), ..RunFilter::default() };
        let mut any = false;
        for run in people::now(store.runs(&open))?.whole()? {
            let Run::Deployment(run) = run.value else { continue };
            if run.waits_for_a_person() {
                any = true;
                let words = vec!["resume".to_owned(), format!("{}/{}", run.config.stage, run.config.name)];
                let asked = people::ask(self.daemon.clone(), run.repository, run.config.project, words);
                self.scheduler.spawner().spawn(self.daemon.group, asked);
            }
        }
        Ok(any)
    }

    /// Nothing hangs any more, and enough time passes for everything to end.
    fn heal(&mut self) -> Played {
        self.around.runtime.behave("", Behaviour::Good);
        self.around.runtime.prepare_all();
        self.around.runtime.let_all_listen();
        self.around.events.be_busy(false);
        self.answered = Some(BTreeSet::new());
        for repository in self.around.hosting.repositories() {
            self.take_statuses(&repository);
        }
        for round in 0..MOST_ROUNDS {
            self.finish();
            let resumed = self.resume_rollouts()?;
            held!(self.pass(LONG));
            if round + 1 >= ROUNDS && !resumed {
                break;
            }
        }
        self.answered = None;
        Ok(Ok(()))
    }
}

/// `dev/web` of a project.
pub(super) fn config_key(project: &crate::model::ids::ProjectName, word: &str) -> Result<ConfigKey> {
    let (stage, name) = word.split_once('/').ok_or_else(|| Failure::stalled("say <stage>/<name>"))?;
    Ok(ConfigKey { project: project.clone(), stage: StageName::new(stage), name: name.to_owned() })
}
