//! Where something of a service is under way.

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Complaint, Outcome};
use crate::error::Failure;
use crate::server::view::{List, RunView};

/// The project and the stage in which something of a service is under way: the ones that the user names, or the only ones.
pub(super) async fn place(service: &str, client: &Client, global: &Global) -> Outcome<(String, String)> {
    let project = project(client, global).await?;
    if let Some(stage) = &global.stage {
        return Ok((project, stage.clone()));
    }
    let parameters = [
        ("project", Some(project.as_str())),
        ("service", Some(service)),
        ("kind", Some("sequence")),
        ("open", Some("true")),
    ];
    let open: List<RunView> = client.get("runs", &parameters).await?;
    let mut stages: Vec<String> = open.items.into_iter().map(|run| run.stage).collect();
    stages.sort();
    stages.dedup();
    match stages.as_slice() {
        [stage] => Ok((project, stage.clone())),
        [] => Err(Complaint::failed(Failure::stalled(format!("nothing of `{service}` is under way")))),
        several => {
            let choices: Vec<String> = several.iter().map(|stage| format!("--stage {stage}")).collect();
            let failure = Failure::stalled(format!("something of `{service}` is under way in more than one stage"));
            Err(Complaint::usage(failure.hint(format!("choose one: {}", choices.join(", ")))))
        }
    }
}
