//! Files and documents that say nothing now although something of them is applied: taken for what declares nothing, they
//! would delete it.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{NOT_APPLIED, Problem, Severity};
use crate::model::ids::StageName;
use crate::model::object::{Object, ObjectKey};
use crate::model::project::{Project, StageContent};
use crate::plan::build::Applied;

/// Something behind which an applied object may have vanished. What else is wrong is a warning.
#[derive(Debug)]
enum Suspect<'a> {
    /// A file of which nothing is declared: it may have declared anything.
    File(&'a Problem),
    /// A document whose kind is none that is applied: it may have stood for the objects that it names.
    Document(&'a Problem),
}

/// An applied object that a project declares no longer.
#[derive(Debug)]
struct Gone<'a> {
    stage: &'a StageName,
    /// Whether there is such a stage now. With one that is taken out of the shipyard all goes, as is meant.
    stays: bool,
    object: &'a Object,
}

/// The applied revision as its files declare it: records tell in which file an object was when it changed last, and files are
/// renamed.
#[derive(Clone, Copy, Debug)]
pub struct Earlier<'a> {
    /// What it declares.
    pub project: &'a Project,
    /// What was wrong with its files already.
    pub problems: &'a [Problem],
}

/// What is applied and declared no longer, and behind what it may have vanished.
#[derive(Debug)]
pub struct Vanished<'a> {
    gone: Vec<Gone<'a>>,
    suspects: Vec<Suspect<'a>>,
}

impl<'a> Vanished<'a> {
    /// What a project declares no longer of what is `applied`.
    pub fn of(project: &'a Project, problems: &'a [Problem], applied: &'a BTreeMap<StageName, Applied>) -> Self {
        let gone: Vec<Gone<'_>> =
            applied.iter().flat_map(|(stage, seen)| gone(stage, project.stage(stage), seen)).collect();
        if gone.is_empty() || problems.is_empty() {
            return Self { gone, suspects: Vec::new() };
        }
        Self { gone, suspects: suspects(problems, &files(project)) }
    }

    /// Whether the applied revision has to be read to tell: a file of which nothing could be read may have got another name.
    pub fn needs_earlier(&self) -> bool {
        self.silent().any(|problem| problem.is_unread)
    }

    /// The problems that break the revision, as errors: of what was applied something is declared no longer, and may have
    /// vanished behind them. A document may have been moved in the same push, so its file does not matter. Nothing is known of an
    /// `earlier` revision that cannot be read any more: anything that is gone may have been where nothing can be read now.
    pub fn breaking(&self, earlier: Option<Earlier<'_>>) -> Vec<Problem> {
        self.suspects.iter().filter_map(|suspect| self.breaks(suspect, earlier)).collect()
    }

    /// What is wrong in files of which nothing is declared.
    fn silent(&self) -> impl Iterator<Item = &'a Problem> {
        self.suspects.iter().filter_map(|suspect| match suspect {
            Suspect::File(problem) => Some(*problem),
            Suspect::Document(_) => None,
        })
    }

    fn breaks(&self, suspect: &Suspect<'_>, earlier: Option<Earlier<'_>>) -> Option<Problem> {
        match suspect {
            Suspect::File(problem) => {
                if self.gone.iter().any(|gone| gone.was_in(&problem.file, earlier)) {
                    return Some(as_error(problem));
                }
                let lost = self.hidden_in(problem, earlier)?;
                let what = would_be_deleted(&lost.object.key, lost.file(earlier), &problem.file);
                Some(as_error(problem).hint(format!("{what}: is it here now? If not, `exclude` this file")))
            }
            Suspect::Document(problem) => {
                let lost = problem.may_stand_for.iter().find_map(|key| first(&self.gone, key))?;
                let (key, kind) = (&lost.key, &lost.key.kind);
                let place = would_be_deleted(key, &lost.location.file, &problem.file);
                Some(as_error(problem).hint(format!(
                    "{place}: did you mean `{kind}`? If not, remove this document too, or `exclude` its file"
                )))
            }
        }
    }

    /// What may have got into a file of which nothing can be read since this revision: something else that is declared no longer
    /// since then. What nobody could read before has declared nothing.
    fn hidden_in(&self, problem: &Problem, earlier: Option<Earlier<'_>>) -> Option<&Gone<'a>> {
        let is_known = |known: &Problem| known.is_unread && known.file == problem.file;
        if !problem.is_unread || earlier.is_some_and(|earlier| earlier.problems.iter().any(is_known)) {
            return None;
        }
        let is_new = |gone: &Gone<'_>| earlier.is_none_or(|earlier| gone.declared(earlier).is_some());
        let is_elsewhere = |gone: &Gone<'_>| self.silent().any(|other| gone.was_in(&other.file, earlier));
        self.gone.iter().find(|gone| gone.stays && is_new(gone) && !is_elsewhere(gone))
    }
}

impl Gone<'_> {
    /// What the applied revision says of it.
    fn declared<'b>(&self, earlier: Earlier<'b>) -> Option<&'b Object> {
        earlier.project.stage(self.stage)?.objects.get(&self.object.key).map(|object| &**object)
    }

    /// Whether a file declared it, by its record or by the applied revision.
    fn was_in(&self, file: &str, earlier: Option<Earlier<'_>>) -> bool {
        self.object.location.file == file || self.file(earlier) == file
    }

    /// The file in which it was declared last.
    fn file<'b>(&'b self, earlier: Option<Earlier<'b>>) -> &'b str {
        &earlier.and_then(|earlier| self.declared(earlier)).unwrap_or(self.object).location.file
    }
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

/// The files that declare anything.
fn files(project: &Project) -> BTreeSet<&str> {
    let objects = project.stages.iter().flat_map(|stage| stage.objects.iter());
    objects.map(|object| object.location.file.as_str()).collect()
}

fn suspects<'a>(problems: &'a [Problem], declaring: &BTreeSet<&str>) -> Vec<Suspect<'a>> {
    let (documents, files): (Vec<_>, Vec<_>) = problems.iter().partition(|problem| problem.code == NOT_APPLIED);
    let silent = files.into_iter().filter(|problem| !declaring.contains(problem.file.as_str())).map(Suspect::File);
    silent.chain(documents.into_iter().map(Suspect::Document)).collect()
}

fn would_be_deleted(key: &ObjectKey, file: &str, here: &str) -> String {
    let place = if file == here { "here".to_owned() } else { format!("in `{file}`") };
    format!("{key} was declared {place}, and would be deleted")
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
        Problem::error(&place, "yaml", "is no YAML").warning().unread()
    }

    fn config_in(file: &str, name: &str) -> Object {
        let mut config = deployment_config(name, "a", 1, serde_json::json!({}));
        config.location.file = file.into();
        config
    }

    fn told(now: &[Object], problems: &[Problem], applied: &[Object]) -> Vec<String> {
        told_after((applied, &[]), now, problems, applied)
    }

    /// `earlier` is what the applied revision declares, and what was wrong with its files; `recorded` what is applied, as it was
    /// declared when it changed last.
    fn told_after(
        (earlier, known): (&[Object], &[Problem]),
        now: &[Object],
        problems: &[Problem],
        recorded: &[Object],
    ) -> Vec<String> {
        let declares = |objects| project(Shipyard::implicit(), objects);
        let (earlier, now) = (declares(earlier), declares(now));
        let applied = assumed(&declares(recorded), &"repo".into(), &CommitId::new("c"));
        let vanished = Vanished::of(&now, problems, &applied);
        let breaking = vanished.breaking(Some(Earlier { project: &earlier, problems: known }));
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
    fn a_file_that_was_renamed_breaks_its_revision_like_any_other() {
        let (web, api) = (|file| config_in(file, "web"), config_in("api.yaml", "api"));
        let recorded = [web("web.yaml"), api.clone()];
        let problems = [problem("app.yaml")];
        // Whether the push before renamed the file, or this one; what was wrong before; what is declared of `web` now.
        let renamed = ([web("app.yaml"), api.clone()], []);
        let (renames, is_known) = ((recorded.clone(), []), (recorded.clone(), [problem("app.yaml")]));
        let is_gone = || vec![api.clone()];
        assert_eq!(
            told_after((&renamed.0, &renamed.1), &is_gone(), &problems, &recorded),
            ["app.yaml:3:1: error: is no YAML"]
        );
        let told = told_after((&renames.0, &renames.1), &is_gone(), &problems, &recorded);
        let hint = "(DeploymentConfig/web was declared in `web.yaml`, and would be deleted: is it here now?";
        assert!(told.len() == 1 && told[0].contains("app.yaml:3:1: error: ") && told[0].contains(hint), "{told:?}");
        assert!(told_after((&is_known.0, &is_known.1), &is_gone(), &problems, &recorded).is_empty(), "it never was");
        let stays = [web("other.yaml"), api.clone()];
        assert!(told_after((&renames.0, &renames.1), &stays, &problems, &recorded).is_empty(), "it is elsewhere");
        let only_a_part = [config_in("web.yaml", "cart"), api.clone()];
        let told = told_after((&renames.0, &renames.1), &only_a_part, &problems, &recorded);
        assert_eq!(told.len(), 1, "it was split off: {told:?}");
        assert!(
            told_after((std::slice::from_ref(&api), &[]), &is_gone(), &problems, &recorded).is_empty(),
            "it went earlier"
        );
        let was_read = Problem { is_unread: false, ..problem("app.yaml") };
        assert!(told_after((&renames.0, &[]), &is_gone(), &[was_read], &recorded).is_empty(), "nothing hides there");
        // It was put into another file without a change, and is back where its record has it.
        let (joined, back) = ([web("all.yaml"), config_in("all.yaml", "api")], [config_in("all.yaml", "api")]);
        let told = told_after((&joined, &[]), &back, &[problem("web.yaml")], &recorded);
        assert_eq!(told, ["web.yaml:3:1: error: is no YAML"]);
    }

    #[test]
    fn nothing_is_deleted_beside_an_unreadable_file_where_nobody_knows_what_was_in_it() {
        let project = |objects: &[Object]| project(Shipyard::implicit(), objects);
        let (now, recorded) = (project(&[]), project(&[config_in("web.yaml", "web")]));
        let applied = assumed(&recorded, &"repo".into(), &CommitId::new("c"));
        let problems = [problem("chart.yaml")];
        let vanished = Vanished::of(&now, &problems, &applied);
        assert!(vanished.needs_earlier());
        assert_eq!(vanished.breaking(None).len(), 1);
        assert_eq!(vanished.breaking(Some(Earlier { project: &recorded, problems: &problems })), []);
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
        assert!(Vanished::of(&project, &[stranger], &applied).breaking(None).is_empty());
    }
}
