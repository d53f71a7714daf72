//! Files that cannot be read although something of them is applied: taken for files that declare nothing, they would
//! delete it.

use std::collections::BTreeSet;

use crate::manifest::Problem;
use crate::model::project::Project;

/// The problems of files of which nothing is declared now. What is wrong with others is a warning.
pub fn suspects<'a>(project: &Project, problems: &'a [Problem]) -> Vec<&'a Problem> {
    if problems.is_empty() {
        return Vec::new();
    }
    let objects = project.stages.iter().flat_map(|stage| stage.objects.iter());
    let declaring: BTreeSet<&str> = objects.map(|object| object.location.file.as_str()).collect();
    problems.iter().filter(|problem| !declaring.contains(problem.file.as_str())).collect()
}

/// Those of the suspects that break their revision, for people: `applied` are the files of which something is applied.
pub fn breaking(suspects: &[&Problem], applied: &BTreeSet<String>) -> Vec<String> {
    suspects.iter().filter(|problem| applied.contains(&problem.file)).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Location;
    use crate::model::shipyard::Shipyard;
    use crate::testing::world::{deployment_config, project};

    fn problem(file: &str) -> Problem {
        let place = Location { file: file.into(), line: 3, column: 1 };
        Problem::error(&place, "yaml", "is no YAML")
    }

    #[test]
    fn a_file_that_cannot_be_read_breaks_its_revision_only_where_something_of_it_would_go() {
        let mut web = deployment_config("web", "a", 1, serde_json::json!({}));
        web.location.file = "web.yaml".into();
        let project = project(Shipyard::implicit(), &[web]);
        let problems = [problem("web.yaml"), problem("api.yaml"), problem("notes.yaml")];
        let suspects = suspects(&project, &problems);
        assert_eq!(suspects, [&problems[1], &problems[2]], "the first still declares something");
        let applied = BTreeSet::from(["web.yaml".to_owned(), "api.yaml".to_owned()]);
        let breaking = breaking(&suspects, &applied);
        assert!(matches!(&breaking[..], [one] if one.starts_with("api.yaml:3:1")), "{breaking:?}");
    }
}
