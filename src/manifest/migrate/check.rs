//! What is written is read again: a file that would be refused is not written.

use crate::manifest::edit::Config;
use crate::manifest::object::{Declarations, Source};
use crate::manifest::problem::Problem;
use crate::manifest::stage_context::StageContext;
use crate::manifest::yaml;

/// What is wrong in a file by itself, whatever else is in its tree.
pub(super) fn problems(file: &str, text: &str) -> Vec<Problem> {
    let mut declarations = Declarations::default();
    for document in &yaml::read(text.as_bytes()).documents {
        declarations.add(&Source::new(file, document, &StageContext::nowhere(), None));
    }
    declarations.problems
}

/// That a migration made no error which was not there `before`. It is told where the file says it that people wrote, in which
/// the deployment config was `origin` and `written` what was found: what is an error in a `Deployment` may have been
/// a warning there.
///
/// # Errors
/// The first one that is new.
pub(super) fn nothing_new(
    origin: &Config,
    written: &[Problem],
    (before, now): (&[Problem], &[Problem]),
) -> Result<(), Box<Problem>> {
    let is_known = |new: &Problem| {
        before.iter().any(|old| old.is_error() && (&old.code, &old.message) == (&new.code, &new.message))
    };
    let Some(new) = now.iter().find(|problem| problem.is_error() && !is_known(problem)) else { return Ok(()) };
    let same = |old: &&Problem| old.message == new.message && old.pointer.starts_with(&origin.pointer);
    let old =
        written.iter().filter(same).find(|old| (old.line, old.column) > (origin.location.line, origin.location.column));
    let message = format!("what it becomes would be refused: {}: {}", new.field, new.message);
    let mut problem = *origin.problem("/spec/strategy", message);
    if let Some(old) = old {
        (problem.line, problem.column) = (old.line, old.column);
    }
    problem.hint =
        new.hint.clone().or(Some("remove it, or write it where it has an effect, and migrate again".to_owned()));
    Err(Box::new(problem))
}
