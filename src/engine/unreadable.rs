//! Files and documents that say nothing now although something of them is applied: taken for what declares nothing, they
//! would delete it.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{NOT_APPLIED, Problem, Severity};
use crate::model::ids::StageName;
use crate::model::object::{Object, ObjectKey};
use crate::model::project::Project;

/// Something behind which an applied object may have vanished. What else is wrong is a warning.
#[derive(Debug)]
pub struct Suspect<'a> {
    problem: &'a Problem,
    /// The objects that a document may have stood for, where nobody declares them now; a file may have declared any.
    gone: Option<Vec<(StageName, &'a ObjectKey)>>,
}

/// Where applied objects were declared: their files, by what they are.
#[derive(Debug, Default)]
pub struct Origins(BTreeMap<(StageName, ObjectKey), String>);

impl Origins {
    /// Adds an object of a stage.
    pub fn add(&mut self, stage: &StageName, object: &Object) {
        self.0.insert((stage.clone(), object.key.clone()), object.location.file.clone());
    }

    /// Those of a revision that is applied whole.
    pub fn of(project: &Project) -> Self {
        let mut origins = Self::default();
        for stage in &project.stages {
            stage.objects.iter().for_each(|object| origins.add(&stage.name, object));
        }
        origins
    }
}

/// The problems of files of which nothing is declared now, and of documents whose kind is none that is applied. A document may
/// have been moved in the same push, so its file does not matter.
pub fn suspects<'a>(project: &Project, problems: &'a [Problem]) -> Vec<Suspect<'a>> {
    if problems.is_empty() {
        return Vec::new();
    }
    let declared = Origins::of(project);
    let files: BTreeSet<&str> = declared.0.values().map(String::as_str).collect();
    let suspect = |problem: &'a Problem| {
        if problem.code != NOT_APPLIED {
            return (!files.contains(problem.file.as_str())).then_some(Suspect { problem, gone: None });
        }
        let stages = project.stages.iter().map(|stage| &stage.name);
        let keys = stages.flat_map(|stage| problem.may_stand_for.iter().map(|key| (stage.clone(), key)));
        let gone: Vec<_> =
            keys.filter(|(stage, key)| !declared.0.contains_key(&(stage.clone(), (*key).clone()))).collect();
        (!gone.is_empty()).then_some(Suspect { problem, gone: Some(gone) })
    };
    problems.iter().filter_map(suspect).collect()
}

/// Those of the suspects that break their revision, as errors.
pub fn breaking(suspects: &[Suspect<'_>], applied: &Origins) -> Vec<Problem> {
    suspects.iter().filter_map(|suspect| suspect.breaks(applied)).collect()
}

impl Suspect<'_> {
    fn breaks(&self, applied: &Origins) -> Option<Problem> {
        let file = &self.problem.file;
        let error = Problem { severity: Severity::Error, ..self.problem.clone() };
        let Some(gone) = &self.gone else { return applied.0.values().any(|of| of == file).then_some(error) };
        let lost = |(stage, key): &(StageName, &ObjectKey)| applied.0.get_key_value(&(stage.clone(), (*key).clone()));
        let ((_, lost), from) = gone.iter().find_map(lost)?;
        let place = if from == file { "here".to_owned() } else { format!("in `{from}`") };
        let kind = &lost.kind;
        Some(error.hint(format!(
            "{lost} was declared {place}, and would be deleted: did you mean `{kind}`? If not, remove this document too, \
             or `exclude` its file"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::{Kind, Location};
    use crate::model::shipyard::Shipyard;
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
        let mut origins = Origins::default();
        applied.iter().for_each(|object| origins.add(&StageName::new("default"), object));
        let suspects = suspects(&project(Shipyard::implicit(), now), problems);
        breaking(&suspects, &origins).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_that_cannot_be_read_breaks_its_revision_only_where_something_of_it_would_go() {
        let now = [config_in("web.yaml", "web")];
        let problems = [problem("web.yaml"), problem("api.yaml"), problem("notes.yaml")];
        let breaking = told(&now, &problems, &[config_in("web.yaml", "web"), config_in("api.yaml", "api")]);
        assert_eq!(breaking, ["api.yaml:3:1: error: is no YAML"]);
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
}
