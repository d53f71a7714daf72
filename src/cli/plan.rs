//! `launchway plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::arguments::Global;
use super::client::{Client, STORE_FILE};
use super::here;
use super::output::{Complaint, Exit, Outcome, Output, heading};
use super::target;
use crate::clock::{Clock, SystemClock};
use crate::control::watched::TreeFiles;
use crate::engine::by_hand::no_stage;
use crate::engine::unreadable::{Earlier, Vanished};
use crate::error::{Failure, Result};
use crate::executor::applied::shown;
use crate::manifest::{self, Snapshot};
use crate::model::ids::{CommitId, RepositoryName, StageName};
use crate::model::project::Project;
use crate::model::seed::Seed;
use crate::plan::assumed::assumed;
use crate::plan::build::{self, Applied, Revision};
use crate::server::view::{ChangeView, PlanView};
use crate::source::{Limits, RemoteUrl, Repository};
use crate::store::ReadStore as _;
use crate::store::sqlite::SqliteReader;

/// Show what a revision would do and why, from Git alone
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway plan --from HEAD~1\n  launchway plan /srv/git/shop.git --to main -o json\n  launchway plan --from applied --exit-code\n\nExits with 1 if the revision would be refused."
)]
pub(super) struct Arguments {
    /// A work tree or a bare repository, or a folder inside
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// Compare with this revision as if it were deployed, or with what is `applied` [default: with nothing]
    #[arg(long, value_name = "REV")]
    from: Option<String>,
    /// The revision
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    to: String,
    /// Exit with 10 if there are changes
    #[arg(long)]
    exit_code: bool,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let mut plan = plan(arguments, global).await?;
    if let Some(stage) = &global.stage {
        plan.changes.retain(|change| &change.stage == stage || change.decision == "refuse");
    }
    output.show(&plan, human)?;
    let refused = plan.changes.iter().any(|change| change.decision == "refuse");
    let changes = plan.changes.iter().any(|change| change.decision != "none");
    Ok(match (refused, changes && arguments.exit_code) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Changes,
        (false, false) => Exit::Good,
    })
}

async fn plan(arguments: &Arguments, global: &Global) -> Outcome<PlanView> {
    let repository = Repository::around(&arguments.path, Limits::default())?;
    let name = match arguments.from.as_deref() {
        Some("applied") => watched_name(&repository, global).await?,
        _ => global.repository.clone(),
    };
    let store = match arguments.from.as_deref() {
        Some("applied") => Some(SqliteReader::open(&global.state_folder()?.join(STORE_FILE))?),
        _ => None,
    };
    let read = Reader::new(repository, name, seed_of(store.as_ref()).await?)?;
    let to = read.commit(&arguments.to)?;
    let (project, problems) = read.project(&to)?;
    let Some(project) = project else { return Ok(refused(&to, problems)?) };
    let compared = match (store, arguments.from.as_deref()) {
        (Some(store), _) => applied(&store, &read, &project, &problems).await?,
        (None, Some(from)) => read.assumed(project, &problems, from)?,
        (None, None) => Compared { project, from: None, applied: BTreeMap::new(), lost: Vec::new() },
    };
    let Compared { project, from, applied, lost } = compared;
    if let Some(stage) = &global.stage {
        refuse_unknown(stage, &project, &applied)?;
    }
    if !lost.is_empty() {
        return Ok(PlanView { from, ..refused(&to, as_errors(problems, lost))? });
    }
    let revision = Revision {
        repository: read.name.clone(),
        commit: to.clone(),
        subject: read.repository.commit_info(&to)?.subject,
        at: SystemClock.now(),
        prune_allowed: false,
    };
    let mut view = match build::build(&project, &revision, &applied) {
        Ok(plan) => PlanView::new(&plan, from),
        Err(refusal) => PlanView { from, changes: vec![ChangeView::refused("", &refusal.reason)], ..empty(&to) },
    };
    view.problems = as_values(&problems)?;
    Ok(view)
}

/// Who mistypes a stage must not believe that nothing is to be done there.
fn refuse_unknown(stage: &str, project: &Project, applied: &BTreeMap<StageName, Applied>) -> Outcome<()> {
    let known: BTreeSet<&StageName> = project.stages.iter().map(|stage| &stage.name).chain(applied.keys()).collect();
    if known.iter().any(|known| known.as_str() == stage) {
        return Ok(());
    }
    Err(Complaint::usage(no_stage(&project.name, stage, known.into_iter())))
}

/// What the server calls a repository on this machine that it watches, or whose `origin` it watches, unless the user
/// says which.
async fn watched_name(repository: &Repository, global: &Global) -> Outcome<Option<String>> {
    let client = Client::to_read(global).await?;
    if let Some(name) = &global.repository {
        return Ok(Some(target::repository(&client, Some(name)).await?.name));
    }
    match here::owned(repository, target::watched(&client).await?).0 {
        none if none.is_empty() => Ok(None),
        own => target::only_repository(own).map(|own| Some(own.name)),
    }
}

/// The plan of a revision whose files are broken: nothing but what refuses it.
fn refused(to: &CommitId, problems: Vec<manifest::Problem>) -> Result<PlanView> {
    let errors = problems.iter().filter(|problem| problem.is_error());
    let changes = errors.map(|problem| ChangeView::refused(&problem.file, &problem.to_string())).collect();
    Ok(PlanView { problems: as_values(&problems)?, changes, ..empty(to) })
}

fn empty(to: &CommitId) -> PlanView {
    PlanView {
        from: None,
        to: to.to_string(),
        digest: String::new(),
        problems: Vec::new(),
        changes: Vec::new(),
        carriers: BTreeSet::new(),
    }
}

fn as_values(problems: &[manifest::Problem]) -> Result<Vec<serde_json::Value>> {
    let value = |problem| {
        serde_json::to_value(problem).map_err(|error| Failure::stalled("cannot write a problem").because(error))
    };
    problems.iter().map(value).collect()
}

/// A project, and what it is compared with.
struct Compared {
    project: Arc<Project>,
    from: Option<String>,
    applied: BTreeMap<StageName, Applied>,
    /// What must not be taken for deleted.
    lost: Vec<manifest::Problem>,
}

/// All problems, of which `lost` are errors whatever they were before.
fn as_errors(problems: Vec<manifest::Problem>, mut lost: Vec<manifest::Problem>) -> Vec<manifest::Problem> {
    let place = |problem: &manifest::Problem| (problem.file.clone(), problem.line, problem.column);
    let worse: BTreeSet<_> = lost.iter().map(place).collect();
    lost.extend(problems.into_iter().filter(|problem| !worse.contains(&place(problem))));
    lost.sort();
    lost
}

/// Reads revisions of one repository.
struct Reader {
    repository: Repository,
    name: RepositoryName,
    seed: Seed,
}

impl Reader {
    /// `name` is what the repository is watched by, if anybody says so: projects without a name have it.
    fn new(repository: Repository, name: Option<String>, seed: Seed) -> Result<Self> {
        let short = || RemoteUrl::parse(&repository.git_dir().to_string_lossy(), false).map(|url| url.short_name());
        let name = name.map_or_else(short, Ok)?;
        Ok(Self { name: RepositoryName::new(name), repository, seed })
    }

    fn project(&self, commit: &CommitId) -> Result<(Option<Arc<Project>>, Vec<manifest::Problem>)> {
        let (tree, limit) = (self.repository.tree(commit)?, Limits::default().manifest);
        let files = TreeFiles { tree, limit, mirror: None };
        let options = manifest::Options { repository: self.name.clone(), seed: self.seed.clone() };
        let outcome = Snapshot::read(&files, &options)?.project().clone();
        Ok((outcome.project, outcome.problems))
    }

    /// What the applied revision declares, and what was wrong with its files; nothing, if it is not here.
    async fn earlier(&self, store: &SqliteReader) -> Result<Option<(Arc<Project>, Vec<manifest::Problem>)>> {
        let applied = store.repository(&self.name).await?.and_then(|known| known.value.applied);
        let Some(commit) = applied else { return Ok(None) };
        if !self.repository.contains(&commit)? {
            return Ok(None);
        }
        let (project, problems) = self.project(&commit)?;
        Ok(project.map(|project| (project, problems)))
    }

    /// The revision that somebody has typed.
    fn commit(&self, revision: &str) -> Outcome<CommitId> {
        self.repository.resolve(revision).map_err(Complaint::usage)
    }

    /// What is applied as if a revision were deployed whole.
    fn assumed(&self, to: Arc<Project>, problems: &[manifest::Problem], from: &str) -> Outcome<Compared> {
        let from = self.commit(from)?;
        let (project, broken) = self.project(&from)?;
        let is_broken = || {
            let first = broken.iter().find(|problem| problem.is_error()).map(ToString::to_string).unwrap_or_default();
            let message = format!("`{}` is broken, so nothing can be compared with it: {first}", from.short());
            Complaint::failed(Failure::stalled(message))
        };
        let project = project.ok_or_else(is_broken)?;
        let applied = assumed(&project, &self.name, &from);
        let earlier = Earlier { project: &project, problems: &broken };
        let lost = Vanished::of(&to, problems, &applied).breaking(Some(earlier));
        Ok(Compared { project: to, from: Some(from.to_string()), applied, lost })
    }
}

/// What is applied and held by the state folder's word.
async fn applied(
    store: &SqliteReader,
    read: &Reader,
    project: &Arc<Project>,
    problems: &[manifest::Problem],
) -> Result<Compared> {
    let seen = shown(store, project).await?;
    let vanished = Vanished::of(project, problems, &seen.stages);
    let earlier = if vanished.needs_earlier() { read.earlier(store).await? } else { None };
    let lost = vanished.breaking(earlier.as_ref().map(|(project, problems)| Earlier { project, problems }));
    Ok(Compared { project: seen.project, from: Some("applied".to_owned()), applied: seen.stages, lost })
}

/// With the seed of what is applied, generated values are what they are there.
async fn seed_of(store: Option<&SqliteReader>) -> Result<Seed> {
    let seed = match store {
        Some(store) => store.seed().await?,
        None => None,
    };
    Ok(seed.unwrap_or(Seed::NONE))
}

fn human(plan: &PlanView) -> String {
    let mut text = String::new();
    let mut place = String::new();
    for change in &plan.changes {
        let here = format!("{} {}", change.stage, change.service);
        if here != place {
            text.push_str(&format!("{}\n", heading(here.trim())));
            place = here;
        }
        text.push_str(&human_change(change));
    }
    text.push_str(&rest(plan));
    let warnings = plan.problems.iter().filter(|problem| problem["severity"] == "warning");
    for warning in warnings {
        let part = |name: &str| warning[name].as_str().unwrap_or_default().to_owned();
        let (line, column) = (&warning["line"], &warning["column"]);
        text.push_str(&format!("warning: {}:{line}:{column}: {}\n", part("file"), part("message")));
    }
    text
}

/// What is to be said where there is nothing to do, and of what is under way.
fn rest(plan: &PlanView) -> String {
    let carriers: Vec<String> =
        plan.carriers.iter().map(|commit| CommitId::new(commit.as_str()).short().to_owned()).collect();
    let under_way = format!("what is under way with the delivery of {}", carriers.join(", "));
    match (plan.changes.is_empty(), carriers.is_empty()) {
        (true, true) => "Nothing to do.\n".to_owned(),
        (true, false) => format!("Nothing to do beside {under_way}.\n"),
        (false, true) => String::new(),
        (false, false) => format!("This comes beside {under_way}.\n"),
    }
}

fn human_change(change: &ChangeView) -> String {
    let object = format!("{}/{}", change.kind, change.name);
    let mut text = format!("  {} {}", change.decision, object.trim_matches('/'));
    if !change.cause.is_empty() {
        text.push_str(&format!(": {}", change.cause));
    }
    text.push('\n');
    for reason in &change.reasons {
        text.push_str(&format!("    {}\n", reason.pointer));
        for line in reason.lines() {
            text.push_str(&format!("      {} {}\n", line.sign, line.text));
        }
    }
    text
}
