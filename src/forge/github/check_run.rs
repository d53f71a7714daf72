//! Check runs in GitHub's words.

use serde::{Deserialize, Serialize};

use super::status::absent_is_empty;
use crate::engine::lifecycle::policy::TOO_LONG;
use crate::forge::hosted::link;
use crate::forge::text::one_line;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::report::IGNORED;
use crate::report::markdown::block;

/// Names are compared whole by branch protections; ours are made of names, which are shorter.
const NAME_LIMIT: usize = 255;
/// One line over a page.
const TITLE_LIMIT: usize = 255;
/// GitHub refuses more in a request.
const ANNOTATIONS: usize = 50;
/// More of a message than anybody reads at a line of a file.
const MESSAGE_LIMIT: usize = 2000;

/// What a run is that has come to its end.
pub(super) const COMPLETED: &str = "completed";

/// A check run, as it is sent and as it is read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CheckRun {
    /// GitHub's; nothing, as long as it is not there.
    #[serde(skip_serializing)]
    pub(super) id: Option<u64>,
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) head_sha: String,
    /// What it is about, as launchway calls it.
    #[serde(default, deserialize_with = "absent_is_empty")]
    pub(super) external_id: String,
    pub(super) status: String,
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    pub(super) conclusion: String,
    /// Where there is none, GitHub shows the page of the App.
    #[serde(default, deserialize_with = "absent_is_empty", skip_serializing_if = "String::is_empty")]
    pub(super) details_url: String,
    pub(super) output: Output,
    /// Who made it.
    #[serde(skip_serializing)]
    pub(super) app: Option<Maker>,
}

/// Who made a run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Maker {
    pub(super) id: u64,
}

/// What a run says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Output {
    #[serde(default, deserialize_with = "absent_is_empty")]
    pub(super) title: String,
    /// Markdown.
    #[serde(default, deserialize_with = "absent_is_empty")]
    pub(super) summary: String,
    /// They are told apart from the rest of it, and never taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) annotations: Vec<Annotation>,
    /// How many GitHub has.
    #[serde(default, skip_serializing)]
    annotations_count: usize,
}

/// Something about a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Annotation {
    path: String,
    start_line: u32,
    end_line: u32,
    annotation_level: String,
    message: String,
}

impl Output {
    /// How many annotations there are, or are to be.
    pub(super) fn annotated(&self) -> usize {
        self.annotations_count.max(self.annotations.len())
    }
}

/// Whether readers see the same in both.
impl PartialEq for CheckRun {
    fn eq(&self, other: &Self) -> bool {
        let are_linked = [self, other].iter().all(|run| !run.details_url.is_empty());
        self.seen() == other.seen() && (!are_linked || self.details_url == other.details_url)
    }
}

impl CheckRun {
    /// What readers see of it, but for where it leads.
    fn seen(&self) -> ([&str; 5], usize) {
        let Output { title, summary, .. } = &self.output;
        ([&self.name, &self.status, &self.conclusion, title, summary], self.output.annotated())
    }
}

/// A status as a check run. `public_url` is the daemon's public address, if it has one.
pub(super) fn rendered(status: &CommitStatus, public_url: Option<&str>) -> CheckRun {
    let (state, conclusion) = state(status);
    let title = one_line(status.description.trim_end_matches([':', ' ']), TITLE_LIMIT);
    let problems = status.details.iter().flat_map(|details| &details.problems);
    let annotations: Vec<Annotation> = problems.filter_map(|problem| annotation(problem)).collect();
    let summary = summary(status, annotations.len());
    CheckRun {
        id: None,
        name: one_line(&status.context, NAME_LIMIT),
        head_sha: status.commit.to_string(),
        external_id: status.context.clone(),
        status: state.to_owned(),
        conclusion: conclusion.to_owned(),
        details_url: link(status, public_url),
        output: Output {
            title: if title.is_empty() { status.state.to_string() } else { title },
            summary,
            annotations: annotations.into_iter().take(ANNOTATIONS).collect(),
            annotations_count: 0,
        },
        app: None,
    }
}

/// GitHub's status and conclusion. A branch protection takes what was skipped and what is neutral as if it had succeeded: only
/// what had nothing to do, or failed where that is ignored, may be so.
fn state(status: &CommitStatus) -> (&'static str, &'static str) {
    match status.state {
        StatusState::Pending => ("queued", ""),
        StatusState::Running => ("in_progress", ""),
        StatusState::Success if status.description.starts_with(IGNORED) => (COMPLETED, "neutral"),
        StatusState::Success => (COMPLETED, "success"),
        StatusState::Failure | StatusState::Error if status.description.starts_with(TOO_LONG) => {
            (COMPLETED, "timed_out")
        }
        StatusState::Failure | StatusState::Error => (COMPLETED, "failure"),
        StatusState::Cancelled | StatusState::Skipped => (COMPLETED, "cancelled"),
        StatusState::Unchanged => (COMPLETED, "skipped"),
    }
}

/// All that there is to say. What users have written stands in code, where it neither links nor calls anybody.
fn summary(status: &CommitStatus, annotations: usize) -> String {
    let mut text = block(std::slice::from_ref(&status.description));
    let Some(details) = &status.details else { return text };
    let parts = [("Its last lines of output:", &details.output), ("In the files:", &details.problems)];
    for (what, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push_str(&format!("\n{what}\n\n{}", block(lines)));
    }
    if annotations > ANNOTATIONS {
        let more = annotations - ANNOTATIONS;
        text.push_str(&format!("\n{more} more are not shown at their lines; `launchway validate` tells all.\n"));
    }
    text
}

/// A problem at its line, if it has one: `file:line:column: error: message`.
fn annotation(problem: &str) -> Option<Annotation> {
    let levels = [(": error: ", "failure"), (": warning: ", "warning")];
    let found = levels.iter().filter_map(|(mark, level)| Some((problem.find(mark)?, *mark, *level)));
    let (at, mark, level) = found.min()?;
    let mut place = problem[..at].rsplitn(3, ':');
    let (column, line, path) = (place.next()?, place.next()?, place.next()?);
    let line: u32 = line.parse().ok().filter(|line| *line > 0)?;
    column.parse::<u32>().ok()?;
    let message = one_line(&problem[at + mark.len()..], MESSAGE_LIMIT);
    let is_whole = !path.is_empty() && !message.is_empty();
    let (path, annotation_level) = (path.to_owned(), level.to_owned());
    is_whole.then_some(Annotation { path, start_line: line, end_line: line, annotation_level, message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::commit_status::Details;

    fn status(state: StatusState, description: &str) -> CommitStatus {
        CommitStatus {
            path: Some("/runs/01ABC".to_owned()),
            ..CommitStatus::new(
                "1111111111111111111111111111111111111111".into(),
                "launchway/dev/web",
                state,
                description,
            )
        }
    }

    #[test]
    fn every_state_has_githubs_word() {
        for (state, description, expected) in [
            (StatusState::Pending, "", ("queued", "")),
            (StatusState::Running, "waits for approval", ("in_progress", "")),
            (StatusState::Success, "version 3", ("completed", "success")),
            (StatusState::Success, "ignored: failed with exit code 1", ("completed", "neutral")),
            (StatusState::Unchanged, "nothing changed", ("completed", "skipped")),
            (StatusState::Failure, "failed with exit code 1", ("completed", "failure")),
            (StatusState::Failure, "took too long and was ended after 3s", ("completed", "timed_out")),
            (StatusState::Error, "1 problem", ("completed", "failure")),
            (StatusState::Cancelled, "by ann", ("completed", "cancelled")),
            (StatusState::Skipped, "superseded by 1a2b3c4", ("completed", "cancelled")),
        ] {
            let run = rendered(&status(state, description), None);
            assert_eq!((run.status.as_str(), run.conclusion.as_str()), expected, "{state} {description}");
        }
    }

    #[test]
    fn the_body_is_githubs() {
        let sent = rendered(&status(StatusState::Running, "version 2: 1 of 3"), Some("https://deploy.example"));
        let expected = json!({
            "name": "launchway/dev/web", "head_sha": "1111111111111111111111111111111111111111",
            "external_id": "launchway/dev/web", "status": "in_progress",
            "details_url": "https://deploy.example/runs/01ABC",
            "output": {"title": "version 2: 1 of 3", "summary": "    version 2: 1 of 3\n"},
        });
        assert_eq!(serde_json::to_value(&sent).unwrap(), expected);
        let ended = serde_json::to_value(rendered(&status(StatusState::Success, ""), None)).unwrap();
        assert_eq!((&ended["conclusion"], &ended["output"]["title"]), (&json!("success"), &json!("success")));
        assert!(ended.get("details_url").is_none());
        let read = json!({
            "id": 7, "name": "launchway/dev/web", "head_sha": "1111", "external_id": null, "status": "in_progress",
            "conclusion": null, "details_url": "https://the.app", "app": {"id": 3, "slug": "launchway"},
            "output": {"title": "version 2: 1 of 3", "summary": "    version 2: 1 of 3\n", "text": null,
                       "annotations_count": 0, "annotations_url": "https://git.example/annotations"},
        });
        let read: CheckRun = serde_json::from_value(read).unwrap();
        assert_eq!(read, rendered(&status(StatusState::Running, "version 2: 1 of 3"), None));
        assert_ne!(read, sent);
        assert_ne!(read, rendered(&status(StatusState::Running, "version 2: 2 of 3"), None));
    }

    #[test]
    fn problems_stand_at_their_lines() {
        for (problem, expected) in [
            (
                "a.yaml:3:5: error: spec.a: must be text (quote it)",
                Some(("a.yaml", 3, "failure", "spec.a: must be text (quote it)")),
            ),
            ("b/c d.yaml:1:1: warning: unused: error: no", Some(("b/c d.yaml", 1, "warning", "unused: error: no"))),
            ("odd:7:name.yaml:12:1: error: x", Some(("odd:7:name.yaml", 12, "failure", "x"))),
            ("3 more, which `launchway validate` shows", None),
            ("a.yaml:0:0: error: x", None),
            ("a.yaml: error: x", None),
            (":1:1: error: x", None),
        ] {
            let found = annotation(problem);
            let told = found.as_ref().map(|it| (&*it.path, it.start_line, &*it.annotation_level, &*it.message));
            assert_eq!(told, expected, "{problem}");
            assert!(found.is_none_or(|it| it.start_line == it.end_line));
        }
    }

    #[test]
    fn what_is_too_much_is_counted_and_nothing_written_by_users_is_markdown() {
        let problems: Vec<String> = (1..=60).map(|line| format!("a.yaml:{line}:1: error: @ann `x`")).collect();
        let details = Details::new("sha256:1".into(), vec!["<b>no</b>".to_owned()], problems);
        let run = rendered(&CommitStatus { details: Some(details), ..status(StatusState::Error, "60 problems") }, None);
        assert_eq!((run.output.annotations.len(), run.output.annotated()), (50, 50));
        let summary = run.output.summary;
        assert!(
            summary.contains("and 20 more\n") && summary.contains("\n10 more are not shown at their lines"),
            "{summary}"
        );
        assert!(summary.contains("Its last lines of output:\n\n    <b>no</b>\n"), "{summary}");
        let is_code = |line: &str| line.starts_with("    ") || !line.contains(['@', '<']);
        assert!(summary.lines().all(is_code), "{summary}");
    }
}
