//! Earlier evaluations, found among the runs of a service.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::error::Result;
use crate::model::evaluation::{Earlier, Included};
use crate::model::ids::ServiceKey;
use crate::model::outcome::TaskResult;
use crate::model::run::{Run, SequenceRun, TaskRecord};
use crate::store::{ReadStore, RunFilter};

/// How many runs are read at once.
const PAGE: u32 = 50;
/// How many pages are read at most: what is older says little of today.
const MOST_PAGES: u32 = 20;

/// What the ended runs of a sequence were evaluated to, newest first.
///
/// # Errors
/// If a run cannot be read.
pub(crate) async fn earlier(
    store: &dyn ReadStore,
    (service, sequence): (&ServiceKey, &str),
    included: Included,
    most: u32,
) -> Result<Vec<Earlier>> {
    let mut filter = RunFilter {
        project: Some(service.project.clone()),
        stage: Some(service.stage.clone()),
        service: Some(service.service.to_string()),
        sequences: Some(true),
        open: Some(false),
        limit: PAGE,
        ..RunFilter::default()
    };
    let (mut found, most) = (Vec::new(), usize::try_from(most).unwrap_or(usize::MAX));
    for _page in 0..MOST_PAGES {
        let runs = store.runs(&filter).await?.whole()?;
        let of_sequence = |run: &SequenceRun| run.sequence() == sequence;
        let sequences = runs.iter().filter_map(|run| run.value.sequence()).filter(|run| of_sequence(run));
        found.extend(sequences.filter_map(|run| evaluated(run, included)));
        let oldest = runs.last().map(|run| Run::id(&run.value).clone());
        if found.len() >= most || oldest.is_none() {
            break;
        }
        filter.before = oldest;
    }
    found.truncate(most);
    Ok(found)
}

/// What a run was evaluated to last, if that counts.
fn evaluated(run: &SequenceRun, included: Included) -> Option<Earlier> {
    let has = |task: &TaskRecord| !task.evaluation.is_null();
    let (index, task) = run.tasks.iter().enumerate().rev().find(|(_, task)| has(task))?;
    let result = task.outcome?.result;
    let counts = match included {
        Included::All => true,
        Included::Pass => result == TaskResult::Pass,
        Included::PassOrWarn => result != TaskResult::Fail,
    };
    let indicators = task.evaluation["indicatorResults"].as_array().into_iter().flatten();
    let measured = indicators.filter(|indicator| indicator["value"]["success"] == Value::Bool(true));
    let value = |indicator: &Value| -> Option<(String, Number)> {
        let value = &indicator["value"];
        Some((value["metric"].as_str()?.to_owned(), value["value"].as_number()?.clone()))
    };
    let values: BTreeMap<String, Number> = measured.filter_map(value).collect();
    counts.then(|| Earlier { event: format!("{}.finished", run.triggered_id(index)), values })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::sequence::machine::task_records;
    use crate::manifest::digest;
    use crate::model::ids::Destination;
    use crate::model::outcome::{Outcome, Status};
    use crate::model::project::Procedure;
    use crate::model::shipyard::{Sequence, Task};

    fn run(result: Option<TaskResult>) -> SequenceRun {
        let tasks = vec![Task::named("evaluation"), Task::named("release")];
        let sequence = Sequence { name: "check".into(), tasks, ..Sequence::default() };
        let tasks = task_records(&sequence);
        let service = ServiceKey { project: "shop".into(), stage: "dev".into(), service: "web".into() };
        let procedure = digest::stored(Procedure { sequence, ..Procedure::default() });
        let revision = ("repo".into(), "a".into());
        let draft = SequenceRun::draft(service, Destination::local("shop".into()), revision, procedure);
        let mut run = SequenceRun { id: "r1".into(), tasks, ..draft };
        if let Some(result) = result {
            run.tasks[0].offers = 1;
            run.tasks[0].outcome = Some(Outcome { status: Status::Succeeded, result });
            run.tasks[0].evaluation = json!({"indicatorResults": [
                {"value": {"metric": "time", "value": 5, "success": true}},
                {"value": {"metric": "errors", "value": 0, "success": false}},
            ]});
        }
        run
    }

    #[test]
    fn an_evaluation_counts_by_its_result_and_by_what_had_a_value() {
        use TaskResult::{Fail, Pass, Warning};
        let of = |result| {
            Some(Earlier { event: "r1.0.1.finished".into(), values: [("time".into(), 5.into())].into() })
                .filter(|_| result)
        };
        for (result, included, counts) in [
            (Some(Pass), Included::All, true),
            (Some(Fail), Included::All, true),
            (Some(Pass), Included::Pass, true),
            (Some(Warning), Included::Pass, false),
            (Some(Warning), Included::PassOrWarn, true),
            (Some(Fail), Included::PassOrWarn, false),
            (None, Included::All, false),
        ] {
            assert_eq!(evaluated(&run(result), included), of(counts), "{result:?} {included:?}");
        }
    }
}
