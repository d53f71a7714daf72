//! Where something of a service is or was under way.

use super::arguments::Global;
use super::client::Client;
use super::hold::project;
use super::output::{Complaint, Outcome};
use crate::error::Failure;
use crate::server::view::{List, RunView};

/// The project and the stage in which something of a service is under way: the ones that the user names, or the only ones.
pub(super) async fn place(service: &str, client: &Client, global: &Global) -> Outcome<(String, String)> {
    let several = format!("something of `{service}` is under way in more than one stage");
    let none = Failure::stalled(format!("nothing of `{service}` is under way"));
    let none = none.hint("`launchway get runs` tells how what was ended");
    place_of(service, Some("true"), (&several, none), (client, global)).await
}

/// The same of something that ran there, whether it has ended or not.
pub(super) async fn place_before(service: &str, client: &Client, global: &Global) -> Outcome<(String, String)> {
    let several = format!("something of `{service}` ran in more than one stage");
    let none = Failure::stalled(format!("nothing of `{service}` ran in any stage"));
    place_of(service, None, (&several, none), (client, global)).await
}

async fn place_of(
    service: &str,
    open: Option<&str>,
    (several, none): (&str, Failure),
    (client, global): (&Client, &Global),
) -> Outcome<(String, String)> {
    let project = project(client, global).await?;
    if let Some(stage) = &global.stage {
        return Ok((project, stage.clone()));
    }
    let stages = stages(&project, service, open, client).await?;
    let stage = only(stages, several)?.ok_or_else(|| Complaint::failed(none))?;
    Ok((project, stage))
}

/// Whether something of a service is or was under way, in whichever stage.
pub(super) async fn was_before(service: &str, client: &Client, global: &Global) -> bool {
    let stages = async { stages(&project(client, global).await?, service, None, client).await };
    stages.await.is_ok_and(|stages| !stages.is_empty())
}

/// The stages in which runs of a service are.
async fn stages(project: &str, service: &str, open: Option<&str>, client: &Client) -> Outcome<Vec<String>> {
    let parameters =
        [("project", Some(project)), ("service", Some(service)), ("kind", Some("sequence")), ("open", open)];
    let runs: List<RunView> = client.get("runs", &parameters).await?;
    let mut stages: Vec<String> = runs.items.into_iter().map(|run| run.stage).collect();
    stages.sort();
    stages.dedup();
    Ok(stages)
}

/// The only stage, if there is one; where there are several, an error that says how to choose.
fn only(mut stages: Vec<String>, several: &str) -> Outcome<Option<String>> {
    if stages.len() > 1 {
        let choices: Vec<String> = stages.iter().map(|stage| format!("--stage {stage}")).collect();
        let failure = Failure::stalled(several);
        return Err(Complaint::usage(failure.hint(format!("choose one: {}", choices.join(", ")))));
    }
    Ok(stages.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_stages_one_is_to_be_named() {
        let stages = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(only(stages(&["dev"]), "several").ok(), Some(Some("dev".to_owned())));
        assert_eq!(only(stages(&[]), "several").ok(), Some(None));
        let complaint = only(stages(&["dev", "production"]), "several").expect_err("ambiguous");
        assert_eq!(complaint.failure.hint_text(), Some("choose one: --stage dev, --stage production"));
    }
}
