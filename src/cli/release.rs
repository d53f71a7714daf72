//! `launchway release`: says first what it lets start.

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Complaint, Exit, Format, Outcome, Output};
use crate::control::commands::Done;
use crate::error::{Context, Failure};
use crate::server::api::act::{PausedConfig, ReleaseRequest};
use crate::server::view::{ConfigView, HoldView, List};

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
    targets: Vec<String>,
    /// All holds; what files pause stays paused
    #[arg(long, conflicts_with = "targets")]
    all: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only say what that would start
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let holds = known(&client, global).await?;
    let mut chosen: Vec<&HoldView> = Vec::new();
    if arguments.all {
        chosen.extend(holds.iter().filter(|hold| !is_paused(hold)));
    }
    let stage = global.stage.as_deref();
    for target in &arguments.targets {
        let services = services_of(target, &client, global).await?;
        chosen.extend(named(&holds, target, stage, &services)?);
    }
    if let (false, [], Some(stage)) = (arguments.all, &arguments.targets[..], stage) {
        chosen.extend(named(&holds, stage, None, &BTreeSet::new())?);
    } else if !arguments.all && arguments.targets.is_empty() {
        let failure = Failure::stalled("nothing is named that is held");
        return Err(Complaint::usage(failure.hint("`launchway get holds` lists what is held and paused")));
    }
    let request = ReleaseRequest { dry_run: true, ..request(&chosen) };
    let foreseen: Done = client.post("releases", &request).await?;
    if arguments.dry_run {
        output.show(&foreseen, foretold)?;
        return Ok(Exit::Good);
    }
    if output.format() == Format::Human {
        output.bytes(foretold(&foreseen).as_bytes())?;
    }
    if !arguments.yes && !chosen.is_empty() && !agreed()? {
        output.line("nothing was released")?;
        return Ok(Exit::Failed);
    }
    let done: Done = client.post("releases", &ReleaseRequest { dry_run: false, ..request }).await?;
    output.done(&done)
}

/// What is held and paused, of one repository if it is chosen.
async fn known(client: &Client, global: &Global) -> Outcome<Vec<HoldView>> {
    let holds: List<HoldView> = client.get("holds", &[]).await?;
    let chosen = match global.repository {
        Some(_) => Some(project(client, global).await?),
        None => None,
    };
    Ok(holds.items.into_iter().filter(|hold| chosen.as_ref().is_none_or(|chosen| chosen == &hold.project)).collect())
}

fn is_paused(hold: &HoldView) -> bool {
    hold.kind == "paused"
}

/// The services, with their stages, that a deployment config is delivered with.
async fn services_of(target: &str, client: &Client, global: &Global) -> Outcome<BTreeSet<(String, String)>> {
    let Some(name) = target.strip_prefix("dc/") else { return Ok(BTreeSet::new()) };
    let parameters = [("name", Some(name)), ("repository", global.repository.as_deref())];
    let found: List<ConfigView> = client.get("deployments", &parameters).await?;
    Ok(found.items.into_iter().map(|config| (config.stage, config.service)).collect())
}

/// The holds that somebody means; `services` are those of a deployment config that is named.
fn named<'a>(
    holds: &'a [HoldView],
    target: &str,
    stage: Option<&str>,
    services: &BTreeSet<(String, String)>,
) -> Outcome<Vec<&'a HoldView>> {
    let is_id = |hold: &&HoldView| {
        let shortened = hold.id.get(..target.len()).is_some_and(|start| start.eq_ignore_ascii_case(target));
        !is_paused(hold) && target.len() >= SHORTEST_ID && shortened
    };
    let in_stage = |hold: &&HoldView| stage.is_none_or(|stage| hold.stage.as_deref() == Some(stage));
    let of_config = |hold: &&HoldView| match (&hold.stage, &hold.service) {
        (Some(at), Some(service)) if !is_paused(hold) => services.contains(&(at.clone(), service.clone())),
        _ => hold.id == target,
    };
    let of_service = |hold: &&HoldView| hold.service.as_deref() == Some(target);
    let of_stage = |hold: &&HoldView| hold.service.is_none() && hold.stage.as_deref() == Some(target);
    let by_id: Vec<_> = holds.iter().filter(is_id).collect();
    let found: Vec<_> = match by_id.is_empty() {
        false => by_id,
        true => holds.iter().filter(in_stage).filter(|it| of_config(it) || of_service(it) || of_stage(it)).collect(),
    };
    let places: BTreeSet<&str> = found.iter().map(|hold| hold.scope.as_str()).collect();
    match (found.is_empty(), places.len()) {
        (true, _) => {
            let failure = Failure::stalled(format!("there is no hold `{target}`"));
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
        name: hold.id.trim_start_matches("dc/").to_owned(),
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
        HoldView {
            id: id.to_owned(),
            kind: kind.to_owned(),
            scope: format!("shop/{}/{}", stage.unwrap_or("*"), service.unwrap_or("*")),
            project: "shop".to_owned(),
            stage: stage.map(str::to_owned),
            service: service.map(str::to_owned),
            reason: String::new(),
            by: String::new(),
            since: None,
        }
    }

    #[test]
    fn a_hold_is_named_by_its_id_a_config_a_service_or_a_stage() {
        let holds = [
            hold("01AAAA", "hold", Some("dev"), Some("shop")),
            hold("01AABB", "rollback", Some("live"), Some("shop")),
            hold("01CCCC", "hold", Some("live"), None),
            hold("dc/web", "paused", Some("dev"), Some("cart")),
        ];
        let services = BTreeSet::from([("dev".to_owned(), "shop".to_owned()), ("live".to_owned(), "shop".to_owned())]);
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
            let found = named(&holds, target, stage, &known);
            let ids = found.map(|found| found.iter().map(|hold| hold.id.as_str()).collect::<Vec<_>>());
            assert_eq!(ids.map_err(|complaint| complaint.exit), expected.map(<[&str]>::to_vec), "{target} {stage:?}");
        }
        let paused = named(&holds, "dc/web", None, &BTreeSet::new()).expect("it is paused");
        let request = request(&paused);
        assert_eq!((request.holds.len(), request.paused[0].name.as_str()), (0, "web"));
    }
}
