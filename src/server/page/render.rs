//! Values into HTML.

use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::response::Html;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::Value;

use crate::server::problem::Problem;
use crate::server::view::{ChangeView, DiffLine, DifferenceView};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("moment", |time: &str| moment(time));
    environment.add_filter("short", |commit: &str| commit.get(..7).unwrap_or(commit).to_owned());
    environment.set_loader(|name| Ok(source(name).map(str::to_owned)));
    environment
});

fn source(name: &str) -> Option<&'static str> {
    Some(match name {
        "base.html" => include_str!("../templates/base.html"),
        "changes.html" => include_str!("../templates/changes.html"),
        "overview.html" => include_str!("../templates/overview.html"),
        "problem.html" => include_str!("../templates/problem.html"),
        "revision.html" => include_str!("../templates/revision.html"),
        "run.html" => include_str!("../templates/run.html"),
        _ => return None,
    })
}

/// A time without its fraction: `2026-11-21 08:30:00 UTC`.
fn moment(time: &str) -> String {
    let seconds = time.split(['.', 'Z']).next().unwrap_or(time);
    format!("{} UTC", seconds.replace('T', " "))
}

/// A template with its values filled in.
///
/// # Errors
/// If the template does not fit its values.
pub(super) fn page(name: &str, values: &Value) -> Result<Html<String>, Problem> {
    let template = TEMPLATES.get_template(name);
    let text = template.and_then(|template| template.render(minijinja::value::Serde(values)));
    text.map(Html)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot render `{name}`: {error:#}")))
}

/// A change with its differences as lines.
#[derive(Debug, Serialize)]
pub(super) struct ChangeLines {
    change: ChangeView,
    differences: Vec<DifferenceLines>,
}

#[derive(Debug, Serialize)]
struct DifferenceLines {
    pointer: String,
    lines: Vec<DiffLine>,
}

/// Changes with what differs, line by line.
pub(super) fn changes(changes: &[ChangeView]) -> Vec<ChangeLines> {
    let lines = |reason: &DifferenceView| DifferenceLines { pointer: reason.pointer.clone(), lines: reason.lines() };
    let differences = |change: &ChangeView| change.reasons.iter().map(lines).collect();
    changes.iter().map(|change| ChangeLines { change: change.clone(), differences: differences(change) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_wrote_is_never_markup() {
        let problem = Problem::not_found("<script>alert(1)</script>");
        let page = page("problem.html", &serde_json::json!({ "problem": problem })).expect("rendered").0;
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    }

    #[test]
    fn a_moment_is_short() {
        assert_eq!(moment("2026-11-21T08:30:00.125Z"), "2026-11-21 08:30:00 UTC");
        assert_eq!(moment("2026-11-21T08:30:00Z"), "2026-11-21 08:30:00 UTC");
    }
}
