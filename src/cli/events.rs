//! `launchway events`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get;
use super::output::{Complaint, Exit, Outcome, Output};
use super::target::{ConfigName, Target};
use crate::error::Failure;
use crate::model::ids::{ConfigKey, ServiceKey};
use crate::server::view::{EventView, List, RunDetail};

/// Show what happened to runs lately, oldest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway events\n  launchway events run/shop/dev/web-3\n  launchway events dc/web -s dev\n  launchway events -s production"
)]
pub(super) struct Arguments {
    /// Only of this run, as `run/ID`, or of a deployment config and its latest version, as `dc/NAME`
    #[arg(value_name = "TARGET")]
    target: Option<Target>,
    /// What follows this number, which `-o json` tells, instead of the last; 0: from the beginning
    #[arg(long, value_name = "NUMBER")]
    after: Option<i64>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u32,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    let runs = match &arguments.target {
        Some(target) => runs_of(target, &client, global).await?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let (after, limit) = (arguments.after.map(|after| after.to_string()), arguments.limit.to_string());
    let mut list = List::<EventView>::from_iter([]);
    for run in &runs {
        // A run's name says whose it is, and where.
        let chosen = |part: &Option<String>| part.clone().filter(|_| run.is_none());
        let (repository, stage) = (chosen(&global.repository), chosen(&global.stage));
        let parameters = [
            ("run", run.as_deref()),
            ("repository", repository.as_deref()),
            ("stage", stage.as_deref()),
            ("after", after.as_deref()),
            ("limit", Some(limit.as_str())),
        ];
        list.items.extend(client.get::<List<EventView>>("events", &parameters).await?.items);
    }
    list.items.sort_by_key(|event| event.number);
    let surplus = list.items.len().saturating_sub(usize::try_from(arguments.limit).unwrap_or(usize::MAX));
    match arguments.after {
        Some(_) => list.items.truncate(list.items.len() - surplus),
        None => drop(list.items.drain(..surplus)),
    }
    output.show(&list, get::events)?;
    Ok(Exit::Good)
}

/// Under what the events are remembered that are meant; a run must be there.
async fn runs_of(target: &Target, client: &Client, global: &Global) -> Outcome<Vec<String>> {
    match target {
        Target::Run(id) => {
            let detail: RunDetail = client.get(&format!("runs/{id}"), &[]).await?;
            Ok(vec![detail.run.id])
        }
        Target::Config(name) => {
            let config = ConfigName(name.clone()).find(client, global).await?;
            let (project, stage) = (config.project.as_str().into(), config.stage.as_str().into());
            let key = ConfigKey { project, stage, name: config.name };
            let latest = config.attempted.or(config.serving);
            let none = || Complaint::failed(Failure::waiting(format!("`{name}` was never deployed")));
            let service = ServiceKey {
                project: key.project.clone(),
                stage: key.stage.clone(),
                service: config.service.as_str().into(),
            };
            let latest = latest.ok_or_else(none)?.run;
            Ok(vec![latest, key.events().to_string(), service.events().to_string()])
        }
        Target::Revision(_) | Target::Pod(_) | Target::ImageStream(_) => {
            let failure = Failure::stalled("only runs and deployment configs have events");
            Err(Complaint::usage(failure.hint("`launchway get runs` lists runs")))
        }
    }
}
