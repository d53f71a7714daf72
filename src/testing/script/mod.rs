//! Stories as text: one command a line, `#` begins a comment. Below each command stands what happened.
//!
//! ```text
//! shipyard dev:deployment,test+5m production   stages in order, with their tasks (`deployment` unless given)
//! sequence dev verify:check, drop dev.verify   one more sequence of a stage, with its tasks; one less
//! triggered production on dev.delivery.finished result=fail
//! triggered dev.verify on dev.delivery.finished test.result=fail|warning status!=aborted
//! queue dev.delivery all         which runs of a sequence have their turn: `newest` or `all`
//! limit dev.delivery verify retries=1 timeout=5m start=1m heartbeat=30s executors=one,two condition=onFailure   of a task
//! task test retries=2 timeout=60               how a task runs
//! declare web image=a replicas=2 pre=Abort     a deployment config, in every stage or with stage=…; keys add up,
//!                                              an empty value takes one away
//! declare web strategy=Canary steps=10+5m?Abort,50+resume   weights with a pause and an analysis each
//! declare web strategy=BlueGreen keep=10m analysis=Abort    also strategy=AB weight=20
//! declare web strategy=Custom                  its deployer is the pod `web-N-deploy`; deployer=yes with Rolling and Recreate
//! object ConfigMap colors red=1 service=web    any other object
//! object Service front app=web port=81 service=web   one that leads to pods, on port 80 unless given
//! remove web [stage=…]                         takes every object of that name away
//! push, sync, allow-prune                      a new revision; the last one as it was pushed, perhaps with more rights
//! fail|unknown|hang|refuse|linger|die|heal PREFIX  how pods behave from now on; `fail PREFIX exit N`
//! end POD [exit N], gone POD                   a pod that hung ends, one that lingered is gone
//! finish                                       all that hang end well or become ready, all that linger are gone
//! stop-listening SERVICE REASON, let-listen SERVICE  a `Service` cannot listen from now on, or can
//! hold-image PART, free-image PART             images that are being prepared
//! settle, pass 11m                             everything happens; time passes
//! reconcile                                    one step towards what is wanted
//! crash, reboot, lose POD                      the daemon, the machine, a pod dies
//! hold STAGE SERVICE REASON, release           `*` for all; `release dev/web` lets go on what is paused
//! cancel, retry, latest, undo, scale dc        by hand; `undo dev/web 1`, `scale dev/web 5`
//! pause, resume, promote dc                    by hand
//! deployer dc new=1 old=2, deployer dc until=50   what the deployer that is at work asks for
//! rollback dc… [to=N] [revision=N] [only=PART] [dry]   several together; `dry` only says what that would do
//! on-failure pull-request|both                 what failed is proposed to go back in a pull request, or goes back at once beside
//! propose dc… [to=N]                           a person proposes that
//! merge N, close N, losing N                   a person decides about a pull request; so many answers of its host are lost
//! trigger STAGE/SERVICE [WHY FORCED]           the head's delivery again
//! rerun STAGE/SERVICE [from-start]             its last sequence, from the task that failed
//! down, up                                     the whole repository
//! environments, environments away|losing|back  a host shows deployments; it is out of reach, its answers are lost, or neither
//! environments protect STAGE                   it takes none there, until `environments back`
//! show pods|configs|objects|runs|holds|plan|traffic|environments|proposals|statuses N
//! check                                        the first stage serves what is declared, unless that failed
//! ```

pub(crate) mod declared;
pub(crate) mod deployer;
mod environments;
mod head;
mod proposals;
mod rollback;
mod show;

use std::path::Path;
use std::time::Duration;

use crate::clock::Clock as _;
use crate::control::commands::by_hand;
use crate::engine::by_hand::{Images, Resumed};
use crate::engine::rollback::evaluate::{Stage, evaluate};
use crate::engine::sync::Trigger;
use crate::error::{Context, Failure, Result};
use crate::executor::switch;
use crate::forge::pull_request::PullRequestState;
use crate::model::hold::{Lifted, Release};
use crate::model::ids::{
    ConfigKey, Namespace, PodName, ProjectName, RepositoryName, ServiceKey, ServiceName, StageName,
};
use crate::model::object::Kind;
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::{PodId, PodPhase};
use crate::model::project::Project;
use crate::model::state::{Attempt, spec_of};
use crate::simulation::runtime::Behaviour;
use crate::simulation::world::{REPOSITORY, World};
use crate::testing::rerun::rerun;
use crate::testing::script::declared::Declared;
use crate::testing::script::environments::{Environments, Mood};
use crate::testing::world::{config_key, hold_scope};

/// Who acts by hand in stories.
const WHO: &str = "ann";

/// A story being played.
struct Play<'a> {
    folder: &'a Path,
    world: World,
    /// What the files say now.
    declared: Declared,
    /// What they said at the last push: a revision stays what it is.
    pushed: Project,
    /// Where it is told what is deployed, if a host shows that.
    environments: Option<Environments>,
    /// How many of the runtime's deeds are written.
    told: usize,
    out: String,
}

/// Plays a story in a world whose store lives in `folder` and tells what happened. At its end, planning again must find
/// nothing to do, and a crash must change nothing.
///
/// # Errors
/// If a line cannot be understood, the store fails, or one of the two does not hold.
pub async fn play(story: &str, folder: &Path) -> Result<String> {
    let world = World::open(folder)?;
    let (declared, environments, told, out) = Default::default();
    let pushed = Declared::default().project()?;
    let mut play = Play { folder, world, declared, pushed, environments, told, out };
    for (number, line) in story.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(command, _)| command).trim();
        if line.is_empty() {
            continue;
        }
        play.tell(&format!("> {line}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = play.command(&words).await;
        done.map_err(|failure| Failure::stalled(format!("line {}: {line}", number + 1)).because(failure))?;
        play.deeds();
    }
    play.plans_nothing_again().await?;
    play.told_the_truth().await?;
    play.remembers_what_is_stored().await?;
    play.survives_a_crash().await?;
    Ok(play.out)
}

impl Play<'_> {
    async fn remembers_what_is_stored(&self) -> Result<()> {
        let mut wrong = self.world.driver.misremembered().await?;
        wrong.extend(self.world.missaid().await?);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::stalled(format!("remembered otherwise than stored: {wrong:?}")))
    }

    fn tell(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn tell_all(&mut self, lines: Vec<String>) {
        lines.iter().for_each(|line| self.tell(&format!("  {line}")));
    }

    /// What was done to pods since it was last told.
    fn deeds(&mut self) {
        let deeds = self.world.runtime.deeds();
        let lines = deeds[self.told..].iter().map(show::deed).collect();
        self.told = deeds.len();
        self.tell_all(lines);
    }

    async fn command(&mut self, words: &[&str]) -> Result<()> {
        match words {
            _ if Declared::knows(words) => self.declared.change(words),
            ["push" | "allow-prune" | "sync"] => self.push(words[0]).await,
            ["reconcile"] => self.world.reconcile().await,
            ["settle"] => self.settle().await,
            ["pass", time] => self.world.pass(duration(time)?).await,
            ["show", what @ ..] => self.show(what).await,
            ["check"] => self.check().await,
            ["crash"] => self.crash(),
            ["environments", mood @ ..] => self.environments(mood),
            ["propose", what @ ..] => self.propose(what).await,
            ["merge", pull] => self.decide(pull, PullRequestState::Merged),
            ["close", pull] => self.decide(pull, PullRequestState::Closed),
            ["losing", answers] => {
                self.world.hosting.lose_answers(number(answers)?);
                Ok(())
            }
            [
                "hold" | "release" | "cancel" | "retry" | "latest" | "pause" | "resume" | "promote" | "undo"
                | "rollback" | "scale" | "deployer" | "trigger" | "rerun" | "down" | "up",
                ..,
            ] => {
                match self.by_hand(words).await {
                    Ok(line) => self.tell(&format!("  {line}")),
                    Err(failure) => self.tell(&format!("  refused: {}", failure.one_line())),
                }
                Ok(())
            }
            _ => self.pods(words),
        }
    }

    fn pods(&mut self, words: &[&str]) -> Result<()> {
        let runtime = self.world.runtime.clone();
        match words {
            ["fail", prefix, "exit", code] => runtime.behave(prefix, Behaviour::fails(number(code)?)),
            ["unknown", prefix] => {
                let outcome = PodOutcome::unknown("its supervisor died");
                runtime.behave(prefix, Behaviour::Ends(outcome));
            }
            ["hang", prefix] => runtime.behave(prefix, Behaviour::Hangs),
            ["refuse", prefix] => runtime.behave(prefix, Behaviour::CannotStart("no such program".into())),
            ["die", prefix] => runtime.behave(prefix, Behaviour::Dies),
            ["linger", prefix] => runtime.behave(prefix, Behaviour::Lingers),
            ["heal", prefix] => runtime.behave(prefix, Behaviour::Good),
            ["end", pod] => runtime.set_phase(&pod_id(pod)?, PodPhase::Ended { outcome: PodOutcome::Succeeded }),
            ["end", pod, "exit", code] => {
                let (code, reason, message) = (number(code)?, FailureReason::Error, format!("exit {code}"));
                let outcome = PodOutcome::Failed { code, reason, message };
                runtime.set_phase(&pod_id(pod)?, PodPhase::Ended { outcome });
            }
            ["gone", pod] => {
                let (code, reason, message) = (143, FailureReason::Cancelled, "ended on request".to_owned());
                let outcome = PodOutcome::Failed { code, reason, message };
                runtime.set_phase(&pod_id(pod)?, PodPhase::Ended { outcome });
            }
            ["stop-listening", service, reason @ ..] => runtime.keep_from_listening(service, Some(&reason.join(" "))),
            ["let-listen", service] => runtime.keep_from_listening(service, None),
            ["hold-image", part] => runtime.hold_image(part, true),
            ["free-image", part] => runtime.hold_image(part, false),
            ["finish"] => runtime.finish(),
            ["reboot"] => runtime.reboot(),
            ["lose", pod] => runtime.lose(&pod_id(pod)?),
            _ => return Err(Failure::stalled("this is no command")),
        }
        Ok(())
    }

    /// In the first stage, every deployment config serves what is declared, unless that was attempted and failed or must
    /// not start; and as many pods of it are ready as are wanted.
    async fn check(&mut self) -> Result<()> {
        let project = self.declared.project()?;
        let Some(stage) = project.stages.first() else { return Ok(()) };
        for declared in stage.objects.iter().filter(|object| object.key.kind == Kind::DeploymentConfig) {
            let spec = spec_of(declared).or_stalled(|| format!("cannot read {}", declared.key))?;
            if spec.paused {
                continue;
            }
            let state = self.world.config(stage.name.as_str(), &declared.key.name).await?;
            let serves = state.serving.as_ref().is_some_and(|it| it.object.template() == declared.template());
            let failed =
                |attempt: &Attempt| attempt.version.object.digest == declared.digest && attempt.outcome.is_some();
            let counts = state.wanted.at(self.world.clock.now()).counts();
            let ready = self.world.runtime.pods().into_iter().filter(|pod| {
                let of_config = pod.version().filter(|(config, _)| *config == &state.key);
                let wanted = of_config.is_some_and(|(_, version)| counts.contains_key(&version));
                wanted && matches!(pod.phase, PodPhase::Ready { .. })
            });
            let complete = ready.count() == counts.values().sum::<u32>() as usize;
            if !complete || !(serves || state.attempted.as_ref().is_some_and(failed)) {
                let told = show::config(&state);
                return Err(Failure::stalled(format!(
                    "{} is not brought up: {told}\nafter\n{}",
                    declared.key, self.out
                )));
            }
        }
        Ok(())
    }

    async fn by_hand(&mut self, words: &[&str]) -> Result<String> {
        let driver = self.world.driver.clone();
        let repository = RepositoryName::new("repo");
        Ok(match words {
            ["hold", stage, service, reason @ ..] => {
                let scope = hold_scope(&ProjectName::new("shop"), stage, service);
                let hold = by_hand::place_hold(&driver, scope, reason.join(" "), WHO).await?;
                format!("holds {}", hold.scope)
            }
            ["release"] => {
                let holds: Vec<_> = driver.store.holds().await?.whole()?.into_iter().map(|hold| hold.id).collect();
                let released = holds.len();
                let release = Release { holds, ..Release::default() };
                by_hand::release(&driver, &ProjectName::new("shop"), &release, WHO).await?;
                self.world.sync_again(&self.pushed, false).await?;
                format!("released {released}")
            }
            ["release", dc] => {
                let lifted = Lifted { config: key(dc)?, by: WHO.to_owned(), since: driver.clock.now() };
                let release = Release { paused: vec![lifted], ..Release::default() };
                by_hand::release(&driver, &ProjectName::new("shop"), &release, WHO).await?;
                self.world.sync_again(&self.pushed, false).await?;
                "lets it go on".to_owned()
            }
            ["cancel", dc] => match by_hand::cancel(&driver, &key(dc)?, WHO).await? {
                Some(cancelled) => format!("cancels {}", cancelled.what),
                None => "there is no such deployment config".to_owned(),
            },
            ["retry", dc] => format!("retries {}", by_hand::retry(&driver, &key(dc)?, WHO).await?),
            ["latest", dc] => {
                format!("starts #{}", by_hand::latest(&driver, &key(dc)?, Images::Newest, false, WHO).await?)
            }
            [verb @ ("pause" | "resume" | "promote"), dc] => self.steer(verb, &key(dc)?).await?,
            ["undo", dc, to @ ..] => {
                let to = to.first().map(|to| number(to)).transpose()?;
                format!("goes back to #{}", by_hand::undo(&driver, &key(dc)?, to, false, WHO).await?.to)
            }
            ["rollback", words @ ..] => self.roll_back(words).await?,
            ["scale", dc, replicas] => {
                by_hand::scale(&driver, &key(dc)?, number(replicas)?, WHO).await?;
                "scaled".to_owned()
            }
            ["deployer", dc, words @ ..] => deployer::asks(&driver, &key(dc)?, words).await?,
            ["trigger", service, force @ ..] => self.trigger(service, &force.join(" ")).await?,
            ["rerun", place, from @ ..] => {
                let ConfigKey { project, stage, name } = key(place)?;
                let service = ServiceKey { project, stage, service: ServiceName::new(name) };
                rerun(&driver, &service, from == ["from-start"], WHO).await?;
                "runs again".to_owned()
            }
            ["down"] => format!("takes {} down", switch::down(&driver, &repository, WHO).await?),
            ["up"] => {
                switch::up(&driver, &repository, WHO).await?;
                "comes up".to_owned()
            }
            _ => return Err(Failure::stalled("this is no command")),
        })
    }

    async fn trigger(&mut self, service: &str, reason: &str) -> Result<String> {
        let (stage, service) = service.split_once('/').ok_or_else(|| Failure::stalled("say <stage>/<service>"))?;
        let force = Some(reason).filter(|reason| !reason.is_empty());
        let (stage, service) = (StageName::new(stage), ServiceName::new(service));
        let asked = Trigger { stage: &stage, service: Some(&service), force, by: WHO, incoming: None };
        Ok(format!("starts {}", self.world.trigger(&self.pushed, asked).await?.len()))
    }

    async fn steer(&mut self, verb: &str, config: &ConfigKey) -> Result<String> {
        let driver = self.world.driver.clone();
        let done = match verb {
            "promote" => return Ok(format!("promotes #{}", by_hand::promote(&driver, config, WHO).await?)),
            "pause" => by_hand::pause(&driver, config, WHO).await?,
            _ => {
                let (resumed, planned_anew) = by_hand::resume(&driver, config, WHO).await?;
                if planned_anew.is_some() {
                    self.world.sync_again(&self.pushed, false).await?;
                }
                resumed != Resumed::default()
            }
        };
        Ok(if done { format!("{verb}d") } else { format!("already {verb}d") })
    }

    /// Says what goes back, what stays, and what differs then.
    async fn roll_back(&self, words: &[&str]) -> Result<String> {
        let asked = rollback::asked(words)?;
        let store = &*self.world.driver.store;
        let configs = store.configs(None, None).await?.whole()?.into_iter().map(|config| config.value);
        let objects = store.objects(None, None, None).await?.whole()?.into_iter().map(|object| object.value.object);
        let stage = Stage { configs: configs.collect(), objects: objects.collect() };
        let started = by_hand::roll_back(&self.world.driver, &asked, words.contains(&"dry"), WHO).await?;
        Ok(rollback::told(&started, &evaluate(&started, &stage)).join("\n  "))
    }

    async fn show(&mut self, what: &[&str]) -> Result<()> {
        let store = &*self.world.driver.store;
        let lines = match what {
            ["pods"] => self.world.runtime.pods().iter().map(show::pod).collect(),
            ["configs"] => {
                store.configs(None, None).await?.whole()?.iter().map(|config| show::config(&config.value)).collect()
            }
            ["objects"] => {
                let objects = store.objects(None, None, None).await?;
                objects.whole()?.iter().map(|object| show::object(&object.value)).collect()
            }
            ["runs"] => self.world.runs().await?.iter().map(show::run).collect(),
            ["holds"] => store.holds().await?.whole()?.iter().map(show::hold).collect(),
            ["environments"] => self.shown_environments().await?,
            ["proposals"] => self.proposals().await?,
            ["reads"] => self.world.runtime.reads().iter().map(show::read).collect(),
            ["traffic"] => self.world.runtime.services().iter().map(show::traffic).collect(),
            ["plan"] => show::plan(&self.world.plan_again(&self.declared.project()?).await?),
            ["statuses", push] => self.world.statuses(number(push)?).await?,
            _ => return Err(Failure::stalled("this cannot be shown")),
        };
        self.tell_all(lines);
        Ok(())
    }

    /// The daemon dies and another takes its place; time and pods go on.
    fn crash(&mut self) -> Result<()> {
        self.world = World::around(self.folder, self.world.surroundings.clone())?;
        self.environments.iter().for_each(|environments| environments.join(&self.world));
        Ok(())
    }

    /// What a host shows of deployments, and what is known to be missing there.
    async fn shown_environments(&self) -> Result<Vec<String>> {
        let mut lines: Vec<String> = self.environments.iter().flat_map(Environments::shown).collect();
        let repository = self.world.driver.store.repository(&RepositoryName::new(REPOSITORY)).await?;
        lines.extend(repository.and_then(|repository| repository.value.status_problem()));
        Ok(lines)
    }

    fn environments(&mut self, mood: &[&str]) -> Result<()> {
        if self.environments.is_none() {
            self.environments.insert(Environments::default()).join(&self.world);
        }
        let protected = if let ["protect", stage] = mood { Some(StageName::new(*stage)) } else { None };
        let mood = match mood {
            [] | ["back"] => Mood::Takes,
            ["away"] => Mood::IsAway,
            ["losing"] => Mood::LosesAnswers,
            ["protect", _] => Mood::Takes,
            _ => return Err(Failure::stalled("a host is not so")),
        };
        if let Some(environments) = &self.environments {
            environments.becomes(mood);
            environments.protects(protected.clone());
        }
        if protected.is_none() {
            self.world.driver.writers.retry(&RepositoryName::new(REPOSITORY)); // as every look at the repository does
        }
        Ok(())
    }

    /// Everything that a crash must not change.
    async fn everything(&self) -> Result<Vec<String>> {
        let store = &*self.world.driver.store;
        let mut lines: Vec<String> = self.world.runtime.deeds().iter().map(show::deed).collect();
        lines.extend(self.world.runs().await?.iter().map(|run| format!("{run:?}")));
        lines.extend(store.configs(None, None).await?.whole()?.iter().map(|config| format!("{:?}", config.value)));
        lines.extend(store.outbox(None).await?.iter().map(|row| format!("{row:?}")));
        lines.extend(self.world.written().iter().map(|status| format!("{status:?}")));
        Ok(lines)
    }

    async fn survives_a_crash(&mut self) -> Result<()> {
        let before = self.everything().await?;
        self.crash()?;
        self.world.settle().await?;
        let after = self.everything().await?;
        let differs = before.iter().zip(&after).find(|(before, after)| before != after);
        if let Some((before, after)) = differs {
            return Err(Failure::stalled(format!("a crash at the end changed\n  {before}\ninto\n  {after}")));
        }
        if before.len() != after.len() {
            return Err(Failure::stalled("a crash at the end led to more"));
        }
        Ok(())
    }

    async fn told_the_truth(&self) -> Result<()> {
        match self.world.untrue_statuses().await?.first() {
            Some(untrue) => Err(Failure::stalled(format!("a commit says something else: {untrue}"))),
            None => Ok(()),
        }
    }

    async fn plans_nothing_again(&mut self) -> Result<()> {
        self.world.settle().await?;
        self.deeds();
        let Ok(plan) = self.world.plan_again(&self.pushed).await else {
            return Ok(()); // refused: then nothing is to be done either
        };
        let holds = self.world.driver.store.holds().await?.whole()?;
        for ServiceKey { project, stage, service } in self.world.would_start(&self.pushed).await? {
            let held = holds.iter().any(|hold| hold.scope.covers(&project, &stage, &service));
            if !held {
                let plan = show::plan(&plan).join("\n  ");
                return Err(Failure::stalled(format!(
                    "pushing the same again still does\n  {plan}\nafter\n{}",
                    self.out
                )));
            }
        }
        Ok(())
    }
}

pub(crate) fn number<T: std::str::FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_malformed| Failure::stalled(format!("`{word}` is no number")))
}

/// `11m`, `90s`, `500ms`, `1h`.
pub(crate) fn duration(word: &str) -> Result<Duration> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    let count: u64 = number(&word[..digits])?;
    let unit = match &word[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        unit => return Err(Failure::stalled(format!("`{unit}` is no unit of time"))),
    };
    Ok(Duration::from_millis(count * unit))
}

/// `dev/web`.
fn key(word: &str) -> Result<ConfigKey> {
    let (stage, name) = word.split_once('/').ok_or_else(|| Failure::stalled("say <stage>/<name>"))?;
    Ok(config_key(stage, name))
}

/// `dev/web-1-0`.
fn pod_id(word: &str) -> Result<PodId> {
    let (stage, name) = word.split_once('/').ok_or_else(|| Failure::stalled("say <stage>/<pod>"))?;
    Ok(PodId { namespace: Namespace::new(format!("shop-{stage}")), name: PodName::new(name) })
}
