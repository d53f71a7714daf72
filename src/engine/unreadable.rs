//! Files and documents that say nothing now although something of them is applied: taken for what declares nothing, they
//! would delete it.

use std::collections::BTreeSet;

use crate::manifest::{NOT_APPLIED, Problem, Severity};
use crate::model::object::{Object, ObjectKey};
use crate::model::project::Project;

/// Something behind which an applied object may have vanished. What else is wrong is a warning.
#[derive(Debug)]
pub struct Suspect<'a> {
    problem: &'a Problem,
    /// The objects that a document may have stood for, which nobody declares in its file now; a file may have declared any.
    keys: Option<Vec<&'a ObjectKey>>,
}

/// Where applied objects were declared: their files, and what they are.
#[derive(Debug, Default)]
pub struct Origins(BTreeSet<(String, ObjectKey)>);

impl Origins {
    /// Adds an object.
    pub fn add(&mut self, object: &Object) {
        self.0.insert((object.location.file.clone(), object.key.clone()));
    }

    /// Those of a revision that is applied whole.
    pub fn of(project: &Project) -> Self {
        let mut origins = Self::default();
        project.stages.iter().flat_map(|stage| stage.objects.iter()).for_each(|object| origins.add(object));
        origins
    }

    fn of_file(&self, file: &str) -> impl Iterator<Item = &ObjectKey> {
        let is_in = move |(of, _): &&(String, ObjectKey)| of == file;
        self.0.iter().filter(is_in).map(|(_, key)| key)
    }
}

/// The problems of files of which nothing is declared now, and of documents whose kind is none that is applied.
pub fn suspects<'a>(project: &Project, problems: &'a [Problem]) -> Vec<Suspect<'a>> {
    if problems.is_empty() {
        return Vec::new();
    }
    let declared = Origins::of(project);
    let files: BTreeSet<&str> = declared.0.iter().map(|(file, _)| file.as_str()).collect();
    let suspect = |problem: &'a Problem| {
        if problem.code != NOT_APPLIED {
            return (!files.contains(problem.file.as_str())).then_some(Suspect { problem, keys: None });
        }
        let is_gone = |key: &&ObjectKey| !declared.0.contains(&(problem.file.clone(), (*key).clone()));
        let gone: Vec<_> = problem.may_stand_for.iter().filter(is_gone).collect();
        (!gone.is_empty()).then_some(Suspect { problem, keys: Some(gone) })
    };
    problems.iter().filter_map(suspect).collect()
}

/// Those of the suspects that break their revision, as errors.
pub fn breaking(suspects: &[Suspect<'_>], applied: &Origins) -> Vec<Problem> {
    suspects.iter().filter_map(|suspect| suspect.breaks(applied)).collect()
}

impl Suspect<'_> {
    fn breaks(&self, applied: &Origins) -> Option<Problem> {
        let mut lost = applied.of_file(&self.problem.file);
        let error = Problem { severity: Severity::Error, ..self.problem.clone() };
        let Some(keys) = &self.keys else { return lost.next().map(|_| error) };
        let lost = lost.find(|key| keys.contains(key))?;
        let kind = &lost.kind;
        Some(error.hint(format!("{lost} was declared here: did you mean `{kind}`? If not, remove the document")))
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
        applied.iter().for_each(|object| origins.add(object));
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
        let elsewhere = config_in("other.yaml", "web");
        let table = [
            ("it stood for it", vec![api()], vec![web(), api()], 1),
            ("it is still declared", vec![web()], vec![web()], 0),
            ("another one goes", vec![], vec![api()], 0),
            ("it was declared elsewhere", vec![], vec![elsewhere], 0),
        ];
        for (case, now, applied, expected) in table {
            let told = told(&now, std::slice::from_ref(&stranger), &applied);
            assert_eq!(told.len(), expected, "{case}: {told:?}");
            let hint = "(DeploymentConfig/web was declared here: did you mean `DeploymentConfig`?";
            assert!(told.iter().all(|told| told.contains(": error: ") && told.contains(hint)), "{told:?}");
        }
    }
}
