//! `launchway history`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get::short;
use super::moment::{age, between};
use super::output::{Exit, Outcome, Output, Table};
use super::target::{ConfigName, config_path};
use crate::server::view::{HistoryRow, List, RunView};

/// Show the versions of a deployment config, or the last deployments of all
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway history\n  launchway history dc/web -s production")]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    config: Option<ConfigName>,
    /// At most so many, if no deployment config is named
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_read(global).await?;
    match &arguments.config {
        Some(name) => {
            let config = name.find(&client, global).await?;
            let rows: List<HistoryRow> = client.get(&format!("{}/history", config_path(&config)), &[]).await?;
            output.show(&rows, versions)?;
        }
        None => {
            let limit = arguments.limit.to_string();
            let parameters = [
                ("kind", Some("deployment")),
                ("repository", global.repository.as_deref()),
                ("stage", global.stage.as_deref()),
                ("limit", Some(limit.as_str())),
            ];
            output.show(&client.get("runs", &parameters).await?, deployments)?;
        }
    }
    Ok(Exit::Good)
}

fn versions(rows: &List<HistoryRow>) -> String {
    let mut table = Table::new(["REVISION", "STATUS", "CAUSE", "COMMIT", "AGE", "TOOK", "MESSAGE"]);
    for row in &rows.items {
        table.row([
            row.version.to_string(),
            row.status.clone(),
            row.cause.clone(),
            short(&row.commit),
            age(&row.created_at),
            row.ended_at.as_deref().map(|ended| between(&row.created_at, ended)).unwrap_or_default(),
            row.message.clone(),
        ]);
        for scaling in &row.scalings {
            let (version, what) = (row.version.to_string(), scaling.message());
            table.row([
                version,
                "Scaled".to_owned(),
                what,
                String::new(),
                age(&scaling.at),
                String::new(),
                String::new(),
            ]);
        }
    }
    table.render("No rollout history found.")
}

fn deployments(runs: &List<RunView>) -> String {
    let mut table = Table::new(["DEPLOYMENT", "STAGE", "STATUS", "CAUSE", "COMMIT", "AGE", "MESSAGE"]);
    for run in &runs.items {
        table.row([
            run.name.clone(),
            run.stage.clone(),
            run.status.clone(),
            run.cause.clone(),
            short(&run.commit),
            age(&run.created_at),
            run.message.clone(),
        ]);
    }
    table.render("No rollout history found.")
}
