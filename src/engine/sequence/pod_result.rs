//! How a task went whose pod has ended: by its exit code, and by what it has written of that.
//!
//! What it writes has the shape of the data of a `.finished` event, and comes to the same. But an exit code that says that it
//! failed has the last word, and where nobody knows how the pod ended, or something else than its command ended it, what it
//! had written by then says nothing.

use std::iter;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::engine::lifecycle::policy;
use crate::engine::sequence::incoming::left;
use crate::engine::sequence::machine::aggregate;
use crate::model::outcome::{FailureReason, Outcome, PodOutcome, Status, TaskResult};
use crate::model::pod::PodResult;

/// What of the data of a `.finished` event is no task's own.
const KNOWN: [&str; 8] = ["status", "result", "message", "labels", "project", "stage", "service", "temporaryData"];

/// How a task went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What counts.
    pub outcome: Outcome,
    /// What happened, for people.
    pub message: String,
    /// What it leaves to the tasks that follow; `null` if nothing.
    pub data: Value,
}

/// What a pod says of how it went.
#[derive(Default)]
struct Said {
    status: Option<Status>,
    result: Option<TaskResult>,
    message: String,
    data: Value,
}

/// How a task went whose pod has ended after `took`.
pub fn judge(ended: &PodOutcome, result: Option<&PodResult>, took: Duration) -> Judged {
    let told = policy::describe(ended, took);
    let by_exit_code = match ended {
        PodOutcome::Succeeded => Outcome::PASS,
        PodOutcome::Failed { .. } => Outcome::FAIL,
        PodOutcome::Unknown { .. } => Outcome::UNKNOWN,
    };
    let alone = |outcome, message| Judged { outcome, message, data: Value::Null };
    let ended_by_itself =
        matches!(ended, PodOutcome::Succeeded | PodOutcome::Failed { reason: FailureReason::Error, .. });
    match result.filter(|_| ended_by_itself).map(read) {
        None => alone(by_exit_code, told),
        Some(Ok(said)) => both(by_exit_code, told, said),
        Some(Err(wrong)) if by_exit_code.passes() => {
            let message = format!("what it wrote to the file that LAUNCHWAY_RESULT names {wrong}");
            alone(Outcome::ERRORED, message)
        }
        Some(Err(wrong)) => {
            alone(by_exit_code, format!("{told}; what it wrote to the file that LAUNCHWAY_RESULT names {wrong}"))
        }
    }
}

/// What counts of what the exit code says and of what was written.
fn both(by_exit_code: Outcome, told: String, said: Said) -> Judged {
    let status = said.status.unwrap_or(Status::Succeeded);
    let of_status = if status == Status::Succeeded { TaskResult::Pass } else { TaskResult::Fail };
    let result = said.result.unwrap_or(of_status);
    let outcome = Outcome { status, result: result.max(by_exit_code.result) };
    let overruled = said.result.filter(|result| *result < by_exit_code.result);
    let message = match (by_exit_code.passes(), said.message.as_str(), overruled) {
        (true, "", _) => told,
        (true, message, _) => message.to_owned(),
        (false, _, Some(result)) => format!("{told}; what it wrote of it, `{}`, does not count", result.as_str()),
        (false, "", None) => told,
        (false, message, None) => format!("{message}; it {told}"),
    };
    Judged { outcome: aggregate(iter::once(outcome)), message, data: said.data }
}

/// What a pod says; else what is wrong with it, to be said after `what it wrote`.
fn read(result: &PodResult) -> Result<Said, String> {
    let written = match result {
        PodResult::Written(written) => written,
        PodResult::Unusable(wrong) => return Err(wrong.clone()),
    };
    let Some(fields) = written.as_object() else {
        return Err(r#"is no JSON object: write one, such as {"result": "warning", "message": "slow"}"#.to_owned());
    };
    let unknown = fields.iter().find(|(key, value)| !KNOWN.contains(&key.as_str()) && !value.is_object());
    if let Some((key, _)) = unknown {
        return Err(format!(
            "has an unknown key `{key}`: put what is for other tasks into a mapping of the task's name"
        ));
    }
    let statuses = [Status::Succeeded, Status::Errored, Status::Aborted, Status::Unknown];
    let results = [TaskResult::Pass, TaskResult::Warning, TaskResult::Fail];
    Ok(Said {
        status: word(fields, "status", &statuses.map(|status| (status.as_str(), status)))?,
        result: word(fields, "result", &results.map(|result| (result.as_str(), result)))?,
        message: text(fields, "message")?.to_owned(),
        data: left(written),
    })
}

fn word<T: Copy>(fields: &Map<String, Value>, key: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
    let said = text(fields, key)?;
    match words.iter().find(|(word, _)| *word == said) {
        Some((_, meant)) => Ok(Some(*meant)),
        None if said.is_empty() => Ok(None),
        None => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("has an unknown {key} `{said}`: write {}", words.join(", ")))
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<&'a str, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("has a {key} that is no text: put it into quotes")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOK: Duration = Duration::from_secs(2);

    fn failed(reason: FailureReason) -> PodOutcome {
        PodOutcome::Failed { code: 3, reason, message: String::new() }
    }

    fn judged(ended: &PodOutcome, written: Value) -> Judged {
        judge(ended, Some(&PodResult::Written(written)), TOOK)
    }

    #[test]
    fn without_a_word_the_exit_code_decides() {
        for (ended, outcome, message) in [
            (PodOutcome::Succeeded, Outcome::PASS, "succeeded in 2.0s"),
            (failed(FailureReason::Error), Outcome::FAIL, "failed with exit code 3 after 2.0s"),
            (
                PodOutcome::unknown("its shim was killed"),
                Outcome::UNKNOWN,
                "ended in an unknown way: its shim was killed",
            ),
        ] {
            let message = message.to_owned();
            assert_eq!(judge(&ended, None, TOOK), Judged { outcome, message, data: Value::Null });
        }
    }

    #[test]
    fn what_was_written_says_how_it_went_but_a_failing_exit_code_never_passes() {
        let warning = Outcome { status: Status::Succeeded, result: TaskResult::Warning };
        let (good, bad) = (PodOutcome::Succeeded, failed(FailureReason::Error));
        let code = "failed with exit code 3 after 2.0s";
        for (ended, written, outcome, message) in [
            (&good, json!({}), Outcome::PASS, "succeeded in 2.0s".to_owned()),
            (&good, json!({"result": "pass", "message": "40 of 40"}), Outcome::PASS, "40 of 40".to_owned()),
            (&good, json!({"result": "warning", "message": "slow"}), warning, "slow".to_owned()),
            (&good, json!({"result": "fail", "message": "3 failed"}), Outcome::FAIL, "3 failed".to_owned()),
            (&good, json!({"status": "errored", "message": "no load"}), Outcome::ERRORED, "no load".to_owned()),
            (&good, json!({"status": "errored", "result": "pass"}), Outcome::ERRORED, "succeeded in 2.0s".to_owned()),
            (&good, json!({"result": null, "message": null}), Outcome::PASS, "succeeded in 2.0s".to_owned()),
            (&bad, json!({"message": "3 failed"}), Outcome::FAIL, format!("3 failed; it {code}")),
            (&bad, json!({"result": "fail"}), Outcome::FAIL, code.to_owned()),
            (&bad, json!({"status": "errored"}), Outcome::ERRORED, code.to_owned()),
            (
                &bad,
                json!({"result": "pass", "message": "40 of 40"}),
                Outcome::FAIL,
                format!("{code}; what it wrote of it, `pass`, does not count"),
            ),
        ] {
            let judged = judged(ended, written.clone());
            assert_eq!((judged.outcome, judged.message), (outcome, message), "{written}");
        }
    }

    #[test]
    fn what_it_leaves_to_others_is_what_an_executor_would() {
        let written = json!({
            "result": "pass", "message": "ok", "status": "succeeded", "project": "shop", "temporaryData": {"a": 1},
            "test": {"score": 97.5}, "labels": {"build": "17"},
        });
        let expected = json!({"test": {"score": 97.5}, "labels": {"build": "17"}});
        assert_eq!(judged(&PodOutcome::Succeeded, written.clone()).data, expected);
        assert_eq!(judged(&failed(FailureReason::Error), written).data, expected, "a failed test has results too");
        assert_eq!(judged(&PodOutcome::Succeeded, json!({"result": "pass"})).data, Value::Null);
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_says_what_to_do() {
        for (written, wrong) in [
            (json!([1]), "is no JSON object: write one, such as"),
            (json!({"result": "failed"}), "has an unknown result `failed`: write pass, warning, fail"),
            (json!({"status": "done"}), "has an unknown status `done`: write succeeded, errored, aborted, unknown"),
            (json!({"message": 3}), "has a message that is no text"),
            (json!({"result": true}), "has a result that is no text"),
            (json!({"reslut": "fail"}), "has an unknown key `reslut`"),
        ] {
            let by_success = judged(&PodOutcome::Succeeded, written.clone());
            assert_eq!((by_success.outcome, &by_success.data), (Outcome::ERRORED, &Value::Null), "{written}");
            let expected = format!("what it wrote to the file that LAUNCHWAY_RESULT names {wrong}");
            assert!(by_success.message.starts_with(&expected), "{}", by_success.message);
            let by_failure = judged(&failed(FailureReason::Error), written);
            assert_eq!(by_failure.outcome, Outcome::FAIL);
            assert!(by_failure.message.contains("exit code 3") && by_failure.message.contains(&expected));
        }
        let broken = PodResult::Unusable("is no JSON: EOF while parsing an object at line 1 column 1".to_owned());
        assert_eq!(judge(&PodOutcome::Succeeded, Some(&broken), TOOK).outcome, Outcome::ERRORED);
    }

    #[test]
    fn what_did_not_end_by_itself_has_said_nothing() {
        let ends = [failed(FailureReason::DeadlineExceeded), failed(FailureReason::Cancelled), PodOutcome::unknown("")];
        for ended in ends {
            let judged = judged(&ended, json!({"result": "pass", "test": {"score": 1}}));
            assert_eq!((judged.outcome.passes(), judged.data), (false, Value::Null), "{ended:?}");
        }
    }
}
