//! Plays a script: what a daemon would tell, and where everything would stand.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::engine::by_hand::{self, Meant, Part, Verdict};
use crate::error::{Failure, Result};
use crate::manifest::Problem;
use crate::model::cloud_event::{CloudEvent, PREFIX, Phase};
use crate::model::data::merge;
use crate::model::ids::{RunId, ServiceKey};
use crate::model::outcome::PodOutcome;
use crate::model::pod::PodResult;
use crate::model::project::Project;
use crate::model::run::{DoneBy, Run, SequenceRun, SequenceState};
use crate::model::state::RevisionResult;
use crate::report::cloud_event;
use crate::server::view::SequenceView;
use crate::simulation::memory_store::MemoryDisk;
use crate::simulation::outcome::{Simulation, Step, Waiting};
use crate::simulation::runtime::{Behaviour, failed};
use crate::simulation::script::{Command, ExecutorAnswer, Line, Place, Pods, Script, TaskName};
use crate::simulation::world::{BEGINNING, Surroundings, World};

/// The most events that a simulation tells: whatever is more, no script needs to know.
const MOST_EVENTS: usize = 20_000;
/// The most moments at which something happens while time passes.
const MOST_MOMENTS: usize = 100_000;
/// Who acts by hand.
const WHO: &str = "somebody";
/// Who tells what is no task's.
const SOURCE: &str = "script";

/// What was played of a script.
#[derive(Debug)]
pub struct Played {
    /// What comes of it, as far as it goes.
    pub simulation: Simulation,
    /// The line after which it does not go on, because that asks for what cannot be.
    pub stopped: Option<Problem>,
}

/// A script being played.
struct Play<'a> {
    script: &'a Script,
    project: &'a Project,
    world: World,
    /// What executors do by themselves, the newest last.
    answers: Vec<(Option<String>, Option<ExecutorAnswer>)>,
    /// How many events were told from outside, for their ids.
    sent: usize,
    /// What was heard, by source, id and type.
    heard: BTreeSet<(String, String, String)>,
    /// What was heard since the last step.
    news: Vec<CloudEvent>,
}

/// What would come of a project's head and a script, up to a line that asks for what cannot be.
///
/// # Errors
/// If the head is not planned, or more happens than is told.
pub async fn play(project: &Arc<Project>, script: &Script) -> Result<Played> {
    let surroundings = Surroundings::default();
    let store = MemoryDisk::default().open(surroundings.clock());
    let mut world = World::over(Arc::new(store), surroundings);
    match world.push(project).await? {
        RevisionResult::Planned(_) => {}
        RevisionResult::Refused { reason } => return Err(Failure::stalled(reason)),
        RevisionResult::Broken { problems } => return Err(Failure::stalled(problems.join("; "))),
    }
    let (answers, sent, heard, news) = Default::default();
    let mut play = Play { script, project, world, answers, sent, heard, news };
    play.come_to_rest().await?;
    let mut steps = Vec::new();
    if !play.news.is_empty() {
        steps.push(Step { line: 0, command: "push".to_owned(), ignored: String::new(), events: play.take_news() });
    }
    let mut stopped = None;
    for line in &script.lines {
        let ignored = match play.line(line).await {
            Ok(ignored) => ignored,
            Err(problem) => {
                stopped = Some(problem);
                break;
            }
        };
        let (command, events) = (line.text.clone(), play.take_news());
        steps.push(Step { line: line.number, command, ignored, events });
    }
    let mut runs = play.runs().await?;
    let waiting = runs.iter().filter(|run| run.ended_at.is_none()).map(Waiting::of).collect();
    runs.reverse();
    let simulation = Simulation { began: BEGINNING, steps, waiting, states: SequenceView::of_runs(&runs) };
    Ok(Played { simulation, stopped })
}

impl Play<'_> {
    fn take_news(&mut self) -> Vec<CloudEvent> {
        std::mem::take(&mut self.news)
    }

    /// Carries out a line, and all that follows from it; says why it has no effect, if it has none.
    async fn line(&mut self, line: &Line) -> Result<String, Problem> {
        let done = match self.carry_out(&line.command).await {
            Ok(ignored) => self.come_to_rest().await.map(|()| ignored),
            Err(failure) => Err(failure),
        };
        done.map_err(|failure| {
            let problem = Problem::error(&line.location(&self.script.file), "script", format!("{failure:#}"));
            match failure.hint_text() {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        })
    }

    async fn carry_out(&mut self, command: &Command) -> Result<String> {
        match command {
            Command::Send { kind, service, data } => {
                let own = json!({ "project": self.project.name, "service": service });
                let event = self.event(kind.clone(), SOURCE, merge(data.clone(), own));
                return self.tell(&event).await;
            }
            Command::Task { task, phases, answer } => return self.task(task, phases, answer).await,
            Command::Answer { task, answer } => self.answers.push((task.clone(), answer.clone())),
            Command::Decide { place, approve, reason } => {
                let verdict = Verdict { approve: *approve, reason, meant: Meant::default(), by: WHO };
                let service = self.key(place);
                self.world.driver.decide(|transition| by_hand::decide(transition, &service, verdict)).await?;
            }
            Command::Pause { place, paused } => self.pause(place, *paused).await?,
            Command::Abort { place } => {
                let service = self.key(place);
                self.world.driver.decide(|transition| by_hand::abort(transition, &service, WHO)).await?;
            }
            Command::Rerun { place, sequence, from_start } => {
                self.rerun(place, sequence.as_deref(), *from_start).await?;
            }
            Command::Measure { indicator, value } => self.world.indicators.set(indicator, value),
            Command::Pods { prefix, behaviour, writes } => {
                let written = (!writes.is_null()).then(|| PodResult::Written(writes.clone()));
                let behaviour = match (behaviour, written) {
                    (Pods::Hang, _) => Behaviour::Hangs,
                    (Pods::Work, None) => Behaviour::Good,
                    (Pods::Fail(code), None) => Behaviour::fails(*code),
                    (Pods::Work, Some(written)) => Behaviour::Writes(PodOutcome::Succeeded, written),
                    (Pods::Fail(code), Some(written)) => Behaviour::Writes(failed(*code), written),
                };
                self.world.runtime.behave(prefix, behaviour);
            }
            Command::Pass(time) => {
                let end = self.world.clock.now() + *time;
                for _ in 0..MOST_MOMENTS {
                    self.come_to_rest().await?;
                    if !self.world.pass_on(end).await? {
                        return Ok(String::new());
                    }
                }
                return Err(
                    Failure::stalled("more happens in that time than is told").hint("let less time pass at once")
                );
            }
        }
        Ok(String::new())
    }

    fn key(&self, place: &Place) -> ServiceKey {
        let Place { stage, service } = place.clone();
        ServiceKey { project: self.project.name.clone(), stage, service }
    }

    async fn pause(&self, place: &Place, paused: bool) -> Result<()> {
        let service = self.key(place);
        let runs = self.runs().await?;
        let open = runs.iter().filter(|run| run.ended_at.is_none());
        let Some(context) = open.clone().find(|run| run.service == service).and_then(|run| run.context.clone()) else {
            return Err(Failure::stalled(format!("nothing of {service} is under way")));
        };
        let same = open.filter(|run| run.context.as_ref() == Some(&context)).map(|run| run.id.clone());
        let runs: Vec<RunId> = same.collect();
        let part = Part { project: self.project.name.clone(), context: Some(context), stage: None };
        let done = self.world.driver.decide(|transition| match paused {
            true => by_hand::pause_delivery(transition, &part, &runs, WHO),
            false => by_hand::resume_delivery(transition, &part, &runs, WHO),
        });
        done.await.map(|_| ())
    }

    async fn rerun(&self, place: &Place, sequence: Option<&str>, from_start: bool) -> Result<()> {
        let service = self.key(place);
        let is_meant =
            |run: &&SequenceRun| run.service == service && sequence.is_none_or(|sequence| sequence == run.sequence());
        let runs = self.runs().await?;
        let Some(last) = runs.iter().rev().find(is_meant) else {
            return Err(Failure::stalled(format!("no such sequence of {service} has run")));
        };
        let id = last.id.clone();
        self.world.driver.decide(|transition| by_hand::rerun(transition, &id, from_start, WHO)).await?;
        Ok(())
    }

    /// An executor does something to the open task of a name.
    async fn task(&mut self, name: &TaskName, phases: &[Phase], answer: &ExecutorAnswer) -> Result<String> {
        let open: Vec<CloudEvent> = self.runs().await?.iter().filter_map(begun_or_open).collect();
        let asked = format!("{PREFIX}{}.triggered", name.task);
        let is_meant = |event: &&CloudEvent| {
            let is_there = |place: &Place| {
                event.text("stage") == place.stage.as_str() && event.text("service") == place.service.as_str()
            };
            event.kind == asked && name.place.as_ref().is_none_or(is_there)
        };
        let named: Vec<&CloudEvent> = open.iter().filter(is_meant).collect();
        match named[..] {
            [task] => self.tell_of(task, &name.task, phases, answer).await,
            [] => Err(none_open(&name.task, &open)),
            ref several => {
                let places: Vec<String> = several.iter().map(|event| task_at(event, &name.task)).collect();
                let failure = Failure::stalled(format!("several tasks `{}` are open", name.task));
                Err(failure.hint(format!("name one: {}", places.join(", "))))
            }
        }
    }

    async fn tell_of(
        &mut self,
        task: &CloudEvent,
        name: &str,
        phases: &[Phase],
        answer: &ExecutorAnswer,
    ) -> Result<String> {
        let mut ignored = String::new();
        for phase in phases {
            let mut data = json!({});
            for key in ["project", "stage", "service"] {
                data[key] = task.data[key].clone();
            }
            if *phase == Phase::Finished {
                data = merge(data, json!({ "status": "succeeded", "result": "pass" }));
            }
            // What is said of how it went is said at its end.
            let given = if *phase == Phase::Started && phases.len() > 1 { Value::Null } else { answer.data.clone() };
            let data = if given.is_null() { data } else { merge(data, given) };
            let event = self.event(format!("{PREFIX}{name}.{}", phase.word()), &answer.by, data);
            ignored = self.tell(&CloudEvent { triggeredid: Some(task.id.clone()), ..event }).await?;
        }
        Ok(ignored)
    }

    /// An event from outside; executors' ids say so, and are the same each time.
    fn event(&mut self, kind: String, source: &str, data: Value) -> CloudEvent {
        self.sent += 1;
        let event = CloudEvent::of(kind, format!("{source}-{}", self.sent), data);
        CloudEvent { source: source.to_owned(), ..event }
    }

    async fn tell(&mut self, event: &CloudEvent) -> Result<String> {
        let received = self.world.tell(event, WHO).await?;
        self.world.settle().await?;
        Ok(received.ignored)
    }

    /// Everything happens that needs no time, and is heard.
    async fn come_to_rest(&mut self) -> Result<()> {
        loop {
            self.world.settle().await?;
            self.hear().await?;
            if !self.answer().await? {
                return Ok(());
            }
        }
    }

    /// Executors do what they do by themselves; says whether there was anything.
    async fn answer(&mut self) -> Result<bool> {
        let mut answered = false;
        for run in self.runs().await? {
            let Some((index, task)) = run.offered() else { continue };
            let is_theirs = run.done_by(index) == DoneBy::Executors;
            let fits = |(name, _): &&(Option<String>, Option<ExecutorAnswer>)| match name {
                Some(name) => *name == task.name,
                None => is_theirs,
            };
            let answer = self.answers.iter().rev().find(fits).and_then(|(_, answer)| answer.clone());
            let (Some(answer), true, Some(open)) = (answer, task.executors.is_empty(), cloud_event::open_task(&run))
            else {
                continue;
            };
            let phases: &[Phase] = if is_theirs { &[Phase::Started, Phase::Finished] } else { &[Phase::Finished] };
            answered |= self.tell_of(&open, &task.name, phases, &answer).await?.is_empty();
            self.hear().await?;
        }
        Ok(answered)
    }

    /// What was told since the last time, oldest first.
    async fn hear(&mut self) -> Result<()> {
        let mut news = Vec::new();
        for event in self.runs().await?.iter().flat_map(cloud_event::of_run) {
            if self.heard.insert((event.source.clone(), event.id.clone(), event.kind.clone())) {
                news.push(event);
            }
        }
        news.sort_by(|one, other| one.time.cmp(&other.time));
        self.news.extend(news);
        if self.heard.len() > MOST_EVENTS {
            return Err(Failure::stalled(format!("more than {MOST_EVENTS} events follow")).hint("shorten the script"));
        }
        Ok(())
    }

    /// The sequences, oldest first.
    async fn runs(&self) -> Result<Vec<SequenceRun>> {
        let runs = self.world.runs().await?;
        Ok(runs.iter().filter_map(Run::sequence).cloned().collect())
    }
}

/// The task of a run that an executor may tell something of: one that is open, or that is to end.
fn begun_or_open(run: &SequenceRun) -> Option<CloudEvent> {
    match run.state {
        SequenceState::Ending { task, .. } => {
            let id = run.triggered_id(task);
            cloud_event::of_run(run).into_iter().find(|event| event.id == id)
        }
        _ => cloud_event::open_task(run),
    }
}

fn task_at(event: &CloudEvent, task: &str) -> String {
    format!("{}/{}/{task}", event.text("stage"), event.text("service"))
}

fn none_open(task: &str, open: &[CloudEvent]) -> Failure {
    let open: Vec<String> = open
        .iter()
        .map(|event| task_at(event, event.short_kind().strip_suffix(".triggered").unwrap_or_default()))
        .collect();
    let failure = Failure::stalled(format!("no task `{task}` is open to executors then"));
    match open[..] {
        [] => failure.hint("none is: start a sequence, let time pass, or approve"),
        _ => failure.hint(format!("open: {}", open.join(", "))),
    }
}
