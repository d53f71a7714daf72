//! `launchway history`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::get::short;
use super::moment::{age, between, instant};
use super::output::{Exit, Outcome, Output, Table};
use super::target::{ConfigName, config_path};
use crate::server::view::{HistoryRow, List, RunView, ScalingView};

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

/// Versions and what people did to their number of pods, in the order in which it happened.
fn versions(rows: &List<HistoryRow>) -> String {
    let mut happened: Vec<(&str, [String; 7])> = Vec::new();
    for row in &rows.items {
        happened.push((&row.created_at, version(row)));
        happened.extend(row.scalings.iter().map(|scaling| (scaling.at.as_str(), scaled(row, scaling))));
    }
    happened.sort_by_key(|(at, _)| instant(at));
    let mut table = Table::new(["REVISION", "STATUS", "CAUSE", "COMMIT", "AGE", "TOOK", "MESSAGE"]);
    happened.into_iter().for_each(|(_, cells)| table.row(cells));
    table.render("No rollout history found.")
}

fn version(row: &HistoryRow) -> [String; 7] {
    [
        row.version.to_string(),
        row.status.clone(),
        row.cause.clone(),
        short(&row.commit),
        age(&row.created_at),
        row.ended_at.as_deref().map(|ended| between(&row.created_at, ended)).unwrap_or_default(),
        row.message.clone(),
    ]
}

fn scaled(row: &HistoryRow, scaling: &ScalingView) -> [String; 7] {
    let (version, what) = (row.version.to_string(), scaling.message());
    [version, "Scaled".to_owned(), what, String::new(), age(&scaling.at), String::new(), String::new()]
}

fn deployments(runs: &List<RunView>) -> String {
    let mut table = Table::new(["DEPLOYMENT", "REPOSITORY", "STAGE", "STATUS", "CAUSE", "COMMIT", "AGE", "MESSAGE"]);
    for run in &runs.items {
        table.row([
            run.name.clone(),
            run.repository.clone(),
            run.stage.clone(),
            run.status.clone(),
            run.cause.clone(),
            short(&run.commit),
            age(&run.created_at),
            run.message.clone(),
        ]);
    }
    table.without_common("REPOSITORY").render("No rollout history found.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::shown;

    #[test]
    fn what_happened_to_an_older_version_later_stands_later() {
        let scaling = |minute: u32| ScalingView {
            from: 1,
            to: 2,
            by: "ann".into(),
            at: format!("2026-11-21T08:{minute:02}:00Z"),
        };
        let row = |version: u32, minute: u32, scalings: &[u32]| HistoryRow {
            version,
            status: "Complete".into(),
            cause: "config change".into(),
            details: Default::default(),
            commit: "1a2b3c4d".into(),
            run: String::new(),
            created_at: format!("2026-11-21T08:{minute:02}:00Z"),
            ended_at: None,
            message: String::new(),
            scalings: scalings.iter().map(|minute| scaling(*minute)).collect(),
        };
        let rows = List::from_iter([row(1, 0, &[10, 30]), row(2, 20, &[])]);
        let mut printed = Vec::new();
        std::io::Write::write_all(&mut anstream::StripStream::new(&mut printed), shown(&versions(&rows)).as_bytes())
            .expect("written");
        let printed = String::from_utf8(printed).expect("text");
        let order = printed.lines().skip(1).map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        assert_eq!(order.collect::<Vec<_>>(), ["1 Complete", "1 Scaled", "2 Complete", "1 Scaled"], "{printed}");
    }
}
