//! `launchway release`: says first what it lets start.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Format, Outcome, Output};
use super::target::{self, Target};
use crate::control::commands::Done;
use crate::error::{Context, Failure};
use crate::model::ids::ServiceKey;
use crate::server::api::act::{PausedConfig, ReleaseRequest};
use crate::server::view::{ConfigView, HoldView, List, RepositoryView};

/// The fewest letters of a hold's id that name it.
const SHORTEST_ID: usize = 4;

/// Let things change again, after saying what that starts
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway release dc/web -s production\n  launchway release 01JD3ZQ6M2 --yes\n  launchway release -s production --dry-run"
)]
pub(super) struct Arguments {
    /// What is held or paused: dc/NAME, a service, a stage, or the id of a hold, which may be shortened
    #[arg(value_name = "WHAT")]
    #[arg(value_parser = canonical)]
    targets: Vec<String>,
    /// All holds of the repository, or of all where none is chosen; with -s those of the stage alone. What files pause
    /// stays paused
    #[arg(long, conflicts_with = "targets")]
    all: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only say what that would start
    #[arg(long)]
    dry_run: bool,
}

/// A deployment config as what holds it is listed, in whichever of its words a person names it.
fn canonical(target: &str) -> Result<String, std::convert::Infallible> {
    Ok(match target.parse() {
        Ok(Target::Config(name)) if target.contains('/') => format!("dc/{name}"),
        _ => target.to_owned(),
    })
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let parameters = [("repository", global.repository.as_deref())];
    let holds: List<HoldView> = client.get("holds", &parameters).await?;
    let chosen = match arguments.all {
        true => all(&holds.items, &client, global).await?,
        false => those_named(&holds.items, arguments, &client, global).await?,
    };
    let request = ReleaseRequest { dry_run: true, ..request(&chosen) };
    let foreseen: Done = client.post("releases", &request).await?;
    if arguments.dry_run {
        output.show(&foreseen, foretold)?;
        return Ok(Exit::Good);
    }
    if output.format() == Format::Human {
        output.line(foretold(&foreseen).trim_end())?;
    }
    if !arguments.yes && !chosen.is_empty() && !agreed()? {
        output.line("nothing was released")?;
        return Ok(Exit::Failed);
    }
    let done: Done = client.post("releases", &ReleaseRequest { dry_run: false, ..request }).await?;
    output.done(&done)
}

/// All holds, of the chosen repository or of all, and of the stage if one is chosen.
async fn all<'a>(holds: &'a [HoldView], client: &Client, global: &Global) -> Outcome<Vec<&'a HoldView>> {
    let chosen: Vec<RepositoryView> =
        target::chosen_one(client, global.repository.as_deref()).await?.into_iter().collect();
    let in_stage = |hold: &&HoldView| global.stage.as_deref().is_none_or(|stage| hold.stage.as_deref() == Some(stage));
    Ok(holds.iter().filter(in_stage).filter(|hold| !is_paused(hold) && is_of(&chosen, hold)).collect())
}

/// The holds that the arguments name.
async fn those_named<'a>(
    holds: &'a [HoldView],
    arguments: &Arguments,
    client: &Client,
    global: &Global,
) -> Outcome<Vec<&'a HoldView>> {
    let chosen = target::chosen(client, global.repository.as_deref()).await?;
    let (stage, place) = (global.stage.as_deref(), target::among(&chosen));
    let own: Vec<&HoldView> = holds.iter().filter(|hold| is_of(&chosen, hold)).collect();
    let mut found = Vec::new();
    for target in &arguments.targets {
        // A whole id is nobody else's, whatever work tree it is typed in.
        if let Some(hold) = holds.iter().find(|hold| !is_paused(hold) && hold.id.eq_ignore_ascii_case(target)) {
            found.push(hold);
            continue;
        }
        let services = services_of(target, client, global, &chosen).await?;
        found.extend(named(&own, target, stage, &services, &place)?);
    }
    match (&arguments.targets[..], stage) {
        ([], Some(stage)) => named(&own, stage, None, &BTreeSet::new(), &place),
        ([], None) => {
            let failure = Failure::stalled("nothing is named that is held");
            Err(Complaint::usage(failure.hint("`launchway get holds` lists what is held and paused")))
        }
        _ => Ok(found),
    }
}

/// Whether a hold may be meant. Of what no repository declares any more, nobody can tell whose it is.
fn is_of(chosen: &[RepositoryView], hold: &HoldView) -> bool {
    target::may_be_of(chosen, hold.repository.as_deref().unwrap_or_default())
}

/// Whether it is about one deployment config, and has no id of its own.
fn is_paused(hold: &HoldView) -> bool {
    matches!(hold.kind.as_str(), "paused" | "quarantine")
}

/// The services that a deployment config is delivered with.
async fn services_of(
    target: &str,
    client: &Client,
    global: &Global,
    chosen: &[RepositoryView],
) -> Outcome<BTreeSet<ServiceKey>> {
    let Some(name) = target.strip_prefix("dc/") else { return Ok(BTreeSet::new()) };
    let found = target::applied(name, client, global, chosen).await?;
    let service = |ConfigView { project, stage, service, .. }: ConfigView| ServiceKey {
        project: project.as_str().into(),
        stage: stage.as_str().into(),
        service: service.as_str().into(),
    };
    Ok(found.into_iter().map(service).collect())
}

/// The holds that somebody means; `services` are those of a deployment config that is named, `place` says where they
/// were looked for.
fn named<'a>(
    holds: &[&'a HoldView],
    target: &str,
    stage: Option<&str>,
    services: &BTreeSet<ServiceKey>,
    place: &str,
) -> Outcome<Vec<&'a HoldView>> {
    let is_id = |hold: &&HoldView| {
        let shortened = hold.id.get(..target.len()).is_some_and(|start| start.eq_ignore_ascii_case(target));
        !is_paused(hold) && target.len() >= SHORTEST_ID && shortened
    };
    let in_stage = |hold: &&HoldView| stage.is_none_or(|stage| hold.stage.as_deref() == Some(stage));
    let of_config = |hold: &&HoldView| match (&hold.stage, &hold.service) {
        (Some(at), Some(service)) if !is_paused(hold) => services.contains(&ServiceKey {
            project: hold.project.as_str().into(),
            stage: at.as_str().into(),
            service: service.as_str().into(),
        }),
        _ => canonical(&hold.id).is_ok_and(|named| named == target),
    };
    let of_service = |hold: &&HoldView| hold.service.as_deref() == Some(target);
    let of_stage = |hold: &&HoldView| hold.service.is_none() && hold.stage.as_deref() == Some(target);
    let by_id: Vec<_> = holds.iter().copied().filter(is_id).collect();
    let found: Vec<_> = match by_id.is_empty() {
        false => by_id,
        true => {
            let there = holds.iter().copied().filter(in_stage);
            there.filter(|it| of_config(it) || of_service(it) || of_stage(it)).collect()
        }
    };
    let places: BTreeSet<&str> = found.iter().map(|hold| hold.scope.as_str()).collect();
    match (found.is_empty(), places.len()) {
        (true, _) => {
            let failure = Failure::stalled(format!("there is no hold `{target}`{place}"));
            Err(Complaint::failed(failure.hint("`launchway get holds` lists what is held and paused")))
        }
        (false, 1) => Ok(found),
        (false, _) => {
            let choices = found.iter().map(|hold| format!("{} on {}", hold.id, hold.scope));
            let choices = choices.collect::<Vec<_>>().join("\n  ");
            let failure = Failure::stalled(format!("there is more than one hold `{target}`"));
            Err(Complaint::usage(failure.hint(format!("choose one, or a stage with `-s`:\n  {choices}"))))
        }
    }
}

fn request(chosen: &[&HoldView]) -> ReleaseRequest {
    let (paused, holds): (Vec<&HoldView>, Vec<&HoldView>) = chosen.iter().copied().partition(|hold| is_paused(hold));
    let config = |hold: &HoldView| PausedConfig {
        project: hold.project.clone(),
        stage: hold.stage.clone().unwrap_or_default(),
        name: hold.id.split_once('/').map_or(&*hold.id, |(_, name)| name).to_owned(),
    };
    ReleaseRequest {
        holds: holds.into_iter().map(|hold| hold.id.clone()).collect(),
        paused: paused.into_iter().map(config).collect(),
        dry_run: false,
    }
}

fn foretold(done: &Done) -> String {
    match done.starts.is_empty() {
        true => "nothing waits for this\n".to_owned(),
        false => format!("this lets start:\n  {}\n", done.starts.join("\n  ")),
    }
}

/// Asks a person who is there; a script is taken at its word.
fn agreed() -> Outcome<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let asked = || -> io::Result<String> {
        let mut stream = io::stderr();
        write!(stream, "release? [y/N] ")?;
        stream.flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().or_stalled(|| "cannot ask".to_owned())?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(id: &str, kind: &str, stage: Option<&str>, service: Option<&str>) -> HoldView {
        hold_in("shop", id, kind, stage, service)
    }

    fn hold_in(project: &str, id: &str, kind: &str, stage: Option<&str>, service: Option<&str>) -> HoldView {
        HoldView {
            id: id.to_owned(),
            kind: kind.to_owned(),
            scope: format!("{project}/{}/{}", stage.unwrap_or("*"), service.unwrap_or("*")),
            repository: Some(project.to_owned()),
            project: project.to_owned(),
            stage: stage.map(str::to_owned),
            service: service.map(str::to_owned),
            reason: String::new(),
            by: String::new(),
            since: None,
        }
    }

    fn service(project: &str, stage: &str, service: &str) -> ServiceKey {
        ServiceKey { project: project.into(), stage: stage.into(), service: service.into() }
    }

    #[test]
    fn a_hold_is_named_by_its_id_a_config_a_service_or_a_stage() {
        let holds = [
            hold("01AAAA", "hold", Some("dev"), Some("shop")),
            hold("01AABB", "rollback", Some("live"), Some("shop")),
            hold("01CCCC", "hold", Some("live"), None),
            hold("dc/web", "paused", Some("dev"), Some("cart")),
            hold("deploy/api", "paused", Some("dev"), Some("api")),
        ];
        let holds: Vec<&HoldView> = holds.iter().collect();
        let services = BTreeSet::from(["dev", "live"].map(|stage| service("shop", stage, "shop")));
        type Named = Result<&'static [&'static str], Exit>;
        let table: [(&str, Option<&str>, Named); 11] = [
            ("01AAAA", None, Ok(&["01AAAA"])),
            ("01cc", None, Ok(&["01CCCC"])),
            ("01AA", None, Err(Exit::Usage)),
            ("01C", None, Err(Exit::Failed)),
            ("shop", None, Err(Exit::Usage)),
            ("shop", Some("live"), Ok(&["01AABB"])),
            ("live", None, Ok(&["01CCCC"])),
            ("dc/shop", Some("dev"), Ok(&["01AAAA"])),
            ("dc/shop", None, Err(Exit::Usage)),
            ("cart", None, Ok(&["dc/web"])),
            ("gone", None, Err(Exit::Failed)),
        ];
        for (target, stage, expected) in table {
            let known = if target.starts_with("dc/") { services.clone() } else { BTreeSet::new() };
            let found = named(&holds, target, stage, &known, "");
            let ids = found.map(|found| found.iter().map(|hold| hold.id.as_str()).collect::<Vec<_>>());
            assert_eq!(ids.map_err(|complaint| complaint.exit), expected.map(<[&str]>::to_vec), "{target} {stage:?}");
        }
        for (target, name) in [("dc/web", "web"), ("deploy/api", "api"), ("dc/api", "api")] {
            let target = canonical(target).expect("it names one");
            let paused = named(&holds, &target, None, &BTreeSet::new(), "").expect("it is paused");
            let request = request(&paused);
            assert_eq!((request.holds.len(), request.paused[0].name.as_str()), (0, name));
        }
    }

    #[test]
    fn the_same_stage_and_service_of_another_project_are_not_meant() {
        let [bank, shop] = ["bank", "shop"].map(|project| hold_in(project, "01AAAA", "hold", Some("dev"), Some("web")));
        let services = BTreeSet::from([service("bank", "dev", "web")]);
        let found = |holds: &[&HoldView]| {
            let found = named(holds, "dc/web", Some("dev"), &services, " in `bank`");
            found.map(|found| found.iter().map(|hold| hold.project.clone()).collect::<Vec<_>>())
        };
        assert_eq!(found(&[&shop, &bank]).ok(), Some(vec!["bank".to_owned()]));
        let none = found(&[&shop]).expect_err("nothing of it is held");
        assert_eq!(none.failure.to_string(), "there is no hold `dc/web` in `bank`");
    }
}
