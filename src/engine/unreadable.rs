//! Files and documents that say nothing now although something of them is applied: taken for what declares nothing, they
//! would delete it.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{NOT_APPLIED, Problem, Severity};
use crate::model::ids::StageName;
use crate::model::object::{Object, ObjectKey};
use crate::model::project::{Project, StageContent};
use crate::plan::build::Applied;

/// Something behind which an applied object may have vanished. What else is wrong is a warning.
enum Suspect<'a> {
    /// A file of which nothing is declared: it may have declared anything.
    File(&'a Problem),
    /// A document whose kind is none that is applied: it may have stood for the objects that it names.
    Document(&'a Problem),
}

/// An applied object that a project declares no longer.
struct Gone<'a> {
    stage: &'a StageName,
    /// Whether there is such a stage now. With one that is taken out of the shipyard all goes, as is meant.
    stays: bool,
    object: &'a Object,
}

/// The problems of a project that break its revision, as errors: of what was `applied` something is declared no longer, and
/// may have vanished behind them. A document may have been moved in the same push, so its file does not matter.
pub fn breaking(project: &Project, problems: &[Problem], applied: &BTreeMap<StageName, Applied>) -> Vec<Problem> {
    let gone: Vec<Gone<'_>> =
        applied.iter().flat_map(|(stage, seen)| gone(stage, project.stage(stage), seen)).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    suspects(project, problems).into_iter().filter_map(|suspect| suspect.breaks(&gone)).collect()
}

/// What is applied in a stage and declared no longer. It is among what differs, so that no more is applied than was read.
fn gone<'a>(
    stage: &'a StageName,
    declared: Option<&'a StageContent>,
    seen: &'a Applied,
) -> impl Iterator<Item = Gone<'a>> {
    let configs = seen.configs.values().map(|config| &*config.object);
    let all = configs.chain(seen.objects.values().map(|object| &*object.object));
    let is_declared = move |object: &&Object| declared.is_some_and(|stage| stage.objects.contains(&object.key));
    all.filter(move |object| !is_declared(object)).map(move |object| Gone { stage, stays: declared.is_some(), object })
}

fn suspects<'a>(project: &Project, problems: &'a [Problem]) -> Vec<Suspect<'a>> {
    let (documents, files): (Vec<_>, Vec<_>) = problems.iter().partition(|problem| problem.code == NOT_APPLIED);
    let mut silent: BTreeSet<&str> = files.iter().map(|problem| problem.file.as_str()).collect();
    for object in project.stages.iter().flat_map(|stage| stage.objects.iter()) {
        if silent.is_empty() {
            break;
        }
        silent.remove(object.location.file.as_str());
    }
    let files = files.into_iter().filter(|problem| silent.contains(problem.file.as_str())).map(Suspect::File);
    files.chain(documents.into_iter().map(Suspect::Document)).collect()
}

impl Suspect<'_> {
    /// The problem as an error, if one of these has vanished behind it.
    fn breaks(&self, gone: &[Gone<'_>]) -> Option<Problem> {
        match self {
            Self::File(problem) => {
                let declared = |gone: &Gone<'_>| gone.object.location.file == problem.file;
                gone.iter().any(declared).then(|| as_error(problem))
            }
            Self::Document(problem) => {
                let lost = problem.may_stand_for.iter().find_map(|key| first(gone, key))?;
                let (key, file) = (&lost.key, &lost.location.file);
                let place = if *file == problem.file { "here".to_owned() } else { format!("in `{file}`") };
                let kind = &key.kind;
                Some(as_error(problem).hint(format!(
                    "{key} was declared {place}, and would be deleted: did you mean `{kind}`? If not, remove this document too, \
                     or `exclude` its file"
                )))
            }
        }
    }
}

/// What is gone under a key, in the first stage that stays.
fn first<'a>(gone: &[Gone<'a>], key: &ObjectKey) -> Option<&'a Object> {
    let here = gone.iter().filter(|gone| gone.stays && gone.object.key == *key);
    here.min_by_key(|gone| gone.stage).map(|gone| gone.object)
}

fn as_error(problem: &Problem) -> Problem {
    Problem { severity: Severity::Error, ..problem.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::CommitId;
    use crate::model::object::{Kind, Location};
    use crate::model::shipyard::Shipyard;
    use crate::plan::assumed::assumed;
    use crate::testing::world::{deployment_config, project};

    fn problem(file: &str) -> Problem {
        let place = Location { file: file.into(), line: 3, column: 1 };
        Problem::error(&place, "yaml", "is no YAML").warning()
    }

    fn config_in(file: &str, name: &str) -> Object {
        let mut config = deployment_config(name, "a", 1, serde_json::json!({}));
        config.location.file = file.into();
        config
    }

    fn told(now: &[Object], problems: &[Problem], applied: &[Object]) -> Vec<String> {
        let before = project(Shipyard::implicit(), applied);
        let applied = assumed(&before, &"repo".into(), &CommitId::new("c"));
        let breaking = breaking(&project(Shipyard::implicit(), now), problems, &applied);
        breaking.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_that_cannot_be_read_breaks_its_revision_only_where_something_of_it_would_go() {
        let now = [config_in("web.yaml", "web")];
        let problems = [problem("web.yaml"), problem("api.yaml"), problem("notes.yaml")];
        let breaking = told(&now, &problems, &[config_in("web.yaml", "web"), config_in("api.yaml", "api")]);
        assert_eq!(breaking, ["api.yaml:3:1: error: is no YAML"]);
        let moved = [config_in("web.yaml", "web"), config_in("web.yaml", "api")];
        let applied = [config_in("web.yaml", "web"), config_in("api.yaml", "api")];
        assert!(told(&moved, &problems, &applied).is_empty(), "what was moved is not lost");
    }

    #[test]
    fn a_document_of_another_kind_breaks_its_revision_only_where_it_stood_for_what_would_go() {
        let may_stand_for = vec![ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() }];
        let stranger = Problem { code: NOT_APPLIED.into(), may_stand_for, ..problem("web.yaml") };
        let (web, api) = (|| config_in("web.yaml", "web"), || config_in("web.yaml", "api"));
        let elsewhere = || config_in("other.yaml", "web");
        let table = [
            ("it stood for it", vec![api()], vec![web(), api()], 1),
            ("it is still declared", vec![web()], vec![web()], 0),
            ("another one goes", vec![], vec![api()], 0),
            ("it was moved, and is still declared", vec![elsewhere()], vec![web()], 0),
            ("it was moved and mistyped at once", vec![], vec![elsewhere()], 1),
        ];
        for (case, now, applied, expected) in table {
            let told = told(&now, std::slice::from_ref(&stranger), &applied);
            assert_eq!(told.len(), expected, "{case}: {told:?}");
            let place = if case.contains("moved") { "in `other.yaml`" } else { "here" };
            let hint = format!(
                "(DeploymentConfig/web was declared {place}, and would be deleted: did you mean `DeploymentConfig`?"
            );
            assert!(told.iter().all(|told| told.contains(": error: ") && told.contains(&hint)), "{told:?}");
        }
    }

    #[test]
    fn with_a_stage_goes_what_a_document_of_another_kind_is_named_like() {
        let may_stand_for = vec![ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() }];
        let stranger = Problem { code: NOT_APPLIED.into(), may_stand_for, ..problem("web.yaml") };
        let project = project(Shipyard::implicit(), &[config_in("web.yaml", "web")]);
        let mut applied = assumed(&project, &"repo".into(), &CommitId::new("c"));
        let of_stage = applied.values().next().cloned().expect("a stage");
        applied.insert(StageName::new("dev"), of_stage);
        assert!(breaking(&project, &[stranger], &applied).is_empty());
    }
}
