//! Writes check runs through GitHub's API, as the App that they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde::Deserialize;

use super::check_run::{COMPLETED, CheckRun, rendered};
use super::writer::{WRITES, limited, manners, spend, url, words};
use crate::clock::Clock;
use crate::error::Result;
use crate::forge::answer::{Meaning, Words};
use crate::forge::api::Answer;
use crate::forge::ask::asking;
use crate::forge::budget::Budget;
use crate::forge::hosted::{Call, HostSettings, HostedWriter, StatusApi};
use crate::forge::paging::{More, Page, pages};
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Runs of a page: each may tell some kilobytes.
const PAGE_SIZE: usize = 50;

/// A writer to GitHub for the App of this id.
pub(super) async fn writer(settings: HostSettings, app: u64, clock: Arc<dyn Clock>) -> Result<Arc<dyn StatusWriter>> {
    let api = settings.api();
    let checks = Checks { settings, app, writes: Budget::new(WRITES) };
    Ok(Arc::new(HostedWriter::new(api, manners(), checks, clock).await?))
}

#[derive(Debug)]
struct Checks {
    settings: HostSettings,
    app: u64,
    writes: Budget,
}

/// A page of the runs of a commit.
#[derive(Deserialize)]
struct Listed {
    check_runs: Vec<CheckRun>,
}

/// Where a run is written.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    New,
    Over(u64),
}

impl Checks {
    fn url<'a>(&'a self, rest: impl IntoIterator<Item = &'a str>) -> Url {
        url(&self.settings, rest)
    }

    fn page(&self, commit: &CommitId, page: usize) -> Url {
        let url = self.url(["commits", commit.as_str(), "check-runs"]);
        let (size, page, app) = (PAGE_SIZE.to_string(), page.to_string(), self.app.to_string());
        asking(url, &[("filter", "latest"), ("app_id", &app), ("per_page", &size), ("page", &page)])
    }
}

/// The newest run of each name that this App has made.
fn newest(all: Vec<CheckRun>, app: u64) -> Vec<CheckRun> {
    let mut newest: BTreeMap<String, CheckRun> = BTreeMap::new();
    for run in all.into_iter().filter(|run| run.app.as_ref().is_some_and(|maker| maker.id == app)) {
        match newest.get(&run.name) {
            Some(known) if known.id > run.id => {}
            Some(_) | None => drop(newest.insert(run.name.clone(), run)),
        }
    }
    newest.into_values().collect()
}

/// Where a run is written, given those that are there. GitHub changes nothing of how one ended, and takes no annotation back:
/// another one takes its place.
fn place(wanted: &CheckRun, present: &[CheckRun]) -> Place {
    let known = present.iter().find(|run| run.name == wanted.name);
    let ends_otherwise = |run: &CheckRun| {
        run.status == COMPLETED && (&run.status, &run.conclusion) != (&wanted.status, &wanted.conclusion)
    };
    let known = known.filter(|run| !ends_otherwise(run) && run.output.annotated() == 0);
    known.and_then(|run| run.id).map_or(Place::New, Place::Over)
}

#[async_trait]
impl StatusApi for Checks {
    type Status = CheckRun;

    fn writer(&self) -> &'static str {
        "github-app"
    }

    fn words(&self) -> Words {
        words(&self.settings, "the App needs `Checks: read and write`, and whoever installed it has to accept that")
    }

    fn shows_details(&self) -> bool {
        true
    }

    fn meaning(&self, answer: &Answer, _: Timestamp) -> Option<Meaning> {
        if let Some(until) = limited(answer) {
            return Some(Meaning::Limited(until));
        }
        (answer.status.as_u16() == 422 && answer.says("no commit found")).then_some(Meaning::Gone)
    }

    fn rendered(&self, status: &CommitStatus) -> CheckRun {
        rendered(status, self.settings.public_url.as_deref())
    }

    async fn present(&self, call: Call<'_>, commit: &CommitId) -> Result<Vec<CheckRun>, Refusal> {
        let page = async |at: usize| -> Result<Option<Page<CheckRun>>, Refusal> {
            let part: Option<(Listed, More)> = call.get_part(self, self.page(commit, at + 1), commit).await?;
            Ok(part.map(|(listed, more)| Page::new(listed.check_runs, more)))
        };
        Ok(newest(pages(PAGE_SIZE, page).await?.unwrap_or_default(), self.app))
    }

    async fn post(
        &self,
        call: Call<'_>,
        commit: &CommitId,
        run: &CheckRun,
        present: &[CheckRun],
    ) -> Result<(), Refusal> {
        spend(&self.writes, call.now(), "check runs")?;
        let written = match place(run, present) {
            Place::New => call.post(self, self.url(["check-runs"]), run, commit).await,
            Place::Over(id) => {
                let url = self.url(["check-runs", &id.to_string()]);
                let change = CheckRun { head_sha: String::new(), ..run.clone() };
                call.write(self, Method::PATCH, url, &change, commit).await
            }
        };
        written.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(id: u64, app: u64, status: &str, conclusion: &str, annotations: usize) -> CheckRun {
        let conclusion = Some(conclusion).filter(|it| !it.is_empty()).map_or(Value::Null, Value::from);
        let output = json!({"title": "it", "summary": "it", "annotations_count": annotations});
        let run = json!({
            "id": id, "name": "launchway/dev", "status": status, "conclusion": conclusion, "output": output, "app": {"id": app},
        });
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn what_has_ended_otherwise_or_is_annotated_is_left_as_it_is() {
        for (known, wanted, expected) in [
            (None, ("queued", ""), Place::New),
            (Some(("queued", "", 0)), ("in_progress", ""), Place::Over(7)),
            (Some(("in_progress", "", 0)), ("completed", "success"), Place::Over(7)),
            (Some(("completed", "success", 0)), ("completed", "success"), Place::Over(7)),
            (Some(("completed", "success", 0)), ("queued", ""), Place::New),
            (Some(("completed", "failure", 0)), ("completed", "success"), Place::New),
            (Some(("completed", "failure", 2)), ("completed", "failure"), Place::New),
        ] {
            let present: Vec<CheckRun> = known.iter().map(|(it, how, notes)| run(7, 1, it, how, *notes)).collect();
            assert_eq!(place(&run(0, 1, wanted.0, wanted.1, 0), &present), expected, "{known:?} {wanted:?}");
        }
    }

    #[test]
    fn the_newest_run_of_a_name_counts_and_those_of_others_do_not() {
        let all = vec![run(3, 1, "completed", "failure", 0), run(5, 1, "queued", "", 0), run(9, 2, "queued", "", 0)];
        for all in [all.clone(), all.into_iter().rev().collect()] {
            let ids: Vec<_> = newest(all, 1).into_iter().map(|run| run.id).collect();
            assert_eq!(ids, [Some(5)]);
        }
    }
}
