//! How the tasks of a stage run: which `Task` objects are for it, and where it is not clear which of them counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assemble::twice;
use super::file::Resolved;
use super::layout::{Layout, StageLayout};
use crate::manifest::problem::Problem;
use crate::model::ids::ServiceName;
use crate::model::project::TaskDefinition;
use crate::model::shipyard::Task;

/// The definitions of a stage's tasks, by name.
pub(super) fn tasks<'a>(
    stage: &StageLayout,
    layout: &Layout,
    files: impl Iterator<Item = &'a Arc<Resolved>>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Vec<TaskDefinition>> {
    let mut tasks: BTreeMap<String, Vec<TaskDefinition>> = BTreeMap::new();
    for file in files {
        for (declared, definition) in file.parsed.declarations.tasks.iter().zip(&file.tasks) {
            for unknown in definition.stages.iter().filter(|stage| layout.shipyard.stage(stage).is_none()) {
                let message = format!("the task `{}` is for a stage `{unknown}`, which does not exist", declared.name);
                problems.push(Problem::error(&definition.location, "not-found", message).warning());
            }
            if !declared.runs_in(&stage.name) {
                continue;
            }
            problems.extend(is_for_nothing(layout, &declared.name, definition));
            let same = tasks.entry(declared.name.clone()).or_default();
            if let Some(first) = same.iter().find(|other| overlaps(other, definition)) {
                problems.push(twice(&format!("Task/{}", declared.name), &first.location, &definition.location));
            }
            same.push(TaskDefinition::clone(definition));
        }
    }
    for (name, definitions) in &tasks {
        problems.extend(ambiguous(stage, layout, name, definitions));
    }
    let named = |name: &str| tasks.get(name).map_or(&[][..], Vec::as_slice);
    let doubts = layout.doubts.iter().filter(|it| it.stage == stage.name && it.holds(named(&it.task.name)));
    problems.extend(doubts.map(|doubt| doubt.problem.clone()));
    tasks
}

/// Whether two definitions of a task would both run for a service, and say that they are for the same.
fn overlaps(one: &TaskDefinition, other: &TaskDefinition) -> bool {
    let for_same_services = match (one.services.is_empty(), other.services.is_empty()) {
        (true, true) => true,
        (false, false) => one.services.iter().any(|service| other.services.contains(service)),
        _ => false,
    };
    for_same_services && one.properties == other.properties
}

/// That no task of its name has the properties that a definition is for, as where one of them is mistyped.
fn is_for_nothing(layout: &Layout, name: &str, definition: &TaskDefinition) -> Option<Problem> {
    let sequences = layout.shipyard.stages.iter().flat_map(|stage| &stage.sequences);
    let mut named = sequences.flat_map(|sequence| &sequence.tasks).filter(|task| task.name == name).peekable();
    let is_known = named.peek().is_some();
    if !is_known || named.any(|task| definition.is_for(task)) {
        return None;
    }
    let message = format!("no task `{name}` of the shipyard has the `properties` that this one is for");
    let problem = Problem::error(&definition.location, "not-found", message).warning();
    Some(problem.hint("write them as in the shipyard: a text is no number, and each of them must be there"))
}

/// Where several definitions are for a task of the shipyard and none of them is for less than all others.
fn ambiguous(stage: &StageLayout, layout: &Layout, name: &str, definitions: &[TaskDefinition]) -> Vec<Problem> {
    let sequences = layout.shipyard.stage(&stage.name).map_or(&[][..], |stage| &stage.sequences);
    let tasks = sequences.iter().flat_map(|sequence| &sequence.tasks).filter(|task| task.name == name);
    let named: BTreeSet<&ServiceName> = definitions.iter().flat_map(|definition| &definition.services).collect();
    let services = || named.iter().copied().map(Some).chain([None]);
    let pairs = tasks.flat_map(|task| services().map(move |service| (task, service)));
    let problem = |(task, service): (&Task, Option<&ServiceName>)| {
        let best = TaskDefinition::best(definitions, (&stage.name, service), task);
        let [first, .., last] = best[..] else { return None };
        if overlaps(first, last) {
            return None; // which is said already
        }
        let of = service.map_or(String::new(), |service| format!(" of service `{service}`"));
        let message =
            format!("it is not clear whether a task `{name}`{of} with these `properties` runs as this one says");
        let hint = format!(
            "the Task at {} is for it too, and neither is for less: add one that is for all of what both name, or take \
             something out of one",
            first.location
        );
        Some(Problem::error(&last.location, "ambiguous", message).hint(hint))
    };
    pairs.filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use crate::manifest::snapshot::tests::{Tree, messages};

    const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - {name: test, properties: {teststrategy: functional}}
      - {name: test, properties: {teststrategy: performance, tool: k6}}
  - {name: production, sequences: [{name: delivery, tasks: [{name: test}]}]}
";

    /// What is wrong with tasks that are for this, each in a file of its own, `a.yaml`, `b.yaml` and so on.
    fn problems(specs: &[&str]) -> Vec<String> {
        let task = |spec: &&str| {
            format!(
                "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {{name: test}}\n\
                 spec: {{image: host, command: ['true']{spec}}}\n"
            )
        };
        let names = ["a.yaml", "b.yaml", "c.yaml"];
        let tasks: Vec<String> = specs.iter().map(task).collect();
        let mut files = vec![("shipyard.yaml", SHIPYARD)];
        files.extend(names.into_iter().zip(tasks.iter().map(String::as_str)));
        messages(&Tree::of(&files).read())
    }

    #[test]
    fn tasks_of_one_name_are_told_apart_by_properties() {
        let none: [&str; 0] = [];
        let performance = ", properties: {teststrategy: performance}";
        assert_eq!(problems(&["", performance]), none);
        assert_eq!(problems(&["", performance, ", services: [web]"]).len(), 1, "`web` has two for its performance");
        let both = ", services: [web], properties: {teststrategy: performance}";
        assert_eq!(problems(&[performance, both, ", services: [web]"]), none, "one is for less than each of them");
        assert_eq!(problems(&["", ", properties: {teststrategy: functional}", performance]), none);
    }

    #[test]
    fn what_is_not_clear_is_an_error_that_names_both_places() {
        let (by_strategy, by_tool) = (", properties: {teststrategy: performance}", ", properties: {tool: k6}");
        let found = problems(&[by_strategy, by_tool]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with("b.yaml:1:1: error: it is not clear whether"), "{found:#?}");
        assert!(found[0].contains("the Task at a.yaml:1:1 is for it too"), "{found:#?}");
        let twice = problems(&[by_tool, by_tool]);
        assert!(twice.len() == 1 && twice[0].contains("Task/test is declared twice"), "{twice:#?}");
        assert_eq!(
            problems(&[by_strategy, ", properties: {tool: jmeter}"]).len(),
            1,
            "which is only that no task has it"
        );
    }

    #[test]
    fn a_task_that_resembles_one_that_is_built_in_is_a_warning_unless_somebody_is_said_to_do_it() {
        let shipyard = |task: &str| {
            format!(
                "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  \
                 - {{name: dev, sequences: [{{name: delivery, tasks: [{{name: deployment}}, {task}]}}]}}\n"
            )
        };
        let task = "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: deploment}\nspec: {image: host, command: ['true']}\n";
        for (declared, files, expected) in [
            ("{name: deploment}", &[][..], Some("`deployment`")),
            ("{name: Evaluation}", &[], Some("`evaluation`")),
            ("{name: evaluaton}", &[], Some("`evaluation`")),
            ("{name: aproval}", &[], Some("`approval`")),
            ("{name: development}", &[], None),
            ("{name: deploment, executors: [helm-service]}", &[], None),
            ("{name: deploment}", &[("task.yaml", task)], None),
        ] {
            let shipyard = shipyard(declared);
            let files = [&[("shipyard.yaml", shipyard.as_str())], files].concat();
            let found = messages(&Tree::of(&files).read());
            let told = found.iter().find(|told| told.contains("did you mean"));
            let is_expected = match (told, expected) {
                (Some(told), Some(meant)) => told.contains(meant) && told.starts_with("shipyard.yaml:6:"),
                (told, expected) => told.is_none() && expected.is_none(),
            };
            assert!(is_expected && (expected.is_some() || found.is_empty()), "{declared}: {found:#?}");
        }
    }

    #[test]
    fn what_has_no_effect_depends_on_who_does_the_task() {
        let task = |name: &str, spec: &str| {
            format!(
                "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {{name: {name}}}\nspec: {{image: host, command: ['true']{spec}}}\n"
            )
        };
        let all = "heartbeat: 1m, startTimeout: 1m, retries: 1, timeout: 5m";
        let (theirs, judged) = ("executors: [a]", "executors: [a], properties: {objectives: [{sli: a}]}");
        let pod = &["executors", "heartbeat", "startTimeout"][..];
        for (name, rest, spec, expected) in [
            ("test", theirs, None, &[][..]),
            ("test", theirs, Some(""), pod),
            ("test", theirs, Some(", services: [web]"), &[]),
            ("test", "executors: [a], properties: {a: b}", Some(", properties: {a: b}"), pod),
            ("rollback", theirs, None, &[]),
            ("rollback", theirs, Some(""), pod),
            ("rollback", "", None, &["heartbeat", "retries", "startTimeout", "timeout"]),
            ("rollback", "", Some(""), &pod[1..]),
            ("rollback", "properties: {deploymentstrategy: user_managed}", None, &[]),
            ("approval", theirs, None, &["heartbeat", "retries", "startTimeout"]),
            ("approval", theirs, Some(""), pod),
            ("evaluation", judged, None, pod),
            ("evaluation", judged, Some(""), pod),
            ("evaluation", theirs, None, &[]),
            ("deployment", "executors: [a], properties: {deploymentstrategy: user_managed}", Some(""), pod),
        ] {
            let shipyard = format!(
                "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  \
                 - {{name: dev, sequences: [{{name: delivery, tasks: [{{name: {name}, {all}, {rest}}}]}}]}}\n"
            );
            let task = spec.map(|spec| task(name, spec));
            let mut files = vec![("shipyard.yaml", shipyard.as_str())];
            files.extend(task.as_deref().map(|task| ("task.yaml", task)));
            let found = messages(&Tree::of(&files).read());
            // The place is that of the value, which stands after its key.
            let key = |told: &String| {
                let column = told.split(':').nth(2).and_then(|column| column.parse::<usize>().ok());
                let before = shipyard.lines().nth(5).and_then(|line| line.get(..column? - 1)).unwrap_or_default();
                before.rsplit([',', '{']).next().unwrap_or_default().trim_matches([' ', ':']).to_owned()
            };
            let mut keys: Vec<String> = found.iter().filter(|told| told.contains("has no effect")).map(key).collect();
            keys.sort();
            assert_eq!(keys, expected, "{name} {rest} {spec:?}: {found:#?}");
        }
    }

    #[test]
    fn an_evaluation_whose_objectives_are_misspelt_is_a_warning() {
        for (declared, is_told) in [
            ("{name: evaluation, properties: {objective: [{sli: a}]}}", true),
            ("{name: evaluate, properties: {Objectives: [{sli: a}]}}", true),
            ("{name: evaluation, properties: {objective: [{sli: a}]}, executors: [lighthouse-service]}", false),
            ("{name: evaluation, properties: {timeframe: 5m}}", false),
            ("{name: evaluation}", false),
            ("{name: test, properties: {objective: speed}}", false),
        ] {
            let shipyard = SHIPYARD.replace("{name: test, properties: {teststrategy: functional}}", declared);
            let found = messages(&Tree::of(&[("shipyard.yaml", &shipyard)]).read());
            let told = found.iter().any(|told| told.contains("did you mean `objectives`?"));
            assert_eq!(told, is_told, "{declared}: {found:#?}");
        }
    }

    #[test]
    fn a_rollback_that_takes_back_what_goes_well_is_a_warning() {
        let task = "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: rollback}\nspec: {image: host, command: ['true']}\n";
        for (tasks, files, is_told) in [
            ("{name: deployment}, {name: test}, {name: rollback}", &[][..], true),
            ("{name: deployment}, {name: rollback}", &[("task.yaml", task)], false),
            ("{name: deployment}, {name: rollback, condition: onFailure}", &[], false),
            ("{name: deployment}, {name: rollback, condition: always}", &[], false),
            ("{name: deployment}, {name: rollback, executors: [a]}", &[], false),
            ("{name: deployment, properties: {deploymentstrategy: user_managed}}, {name: rollback}", &[], false),
            ("{name: rollback}, {name: deployment}", &[], false),
        ] {
            let shipyard = format!(
                "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  \
                 - {{name: dev, sequences: [{{name: delivery, tasks: [{tasks}]}}]}}\n"
            );
            let files = [&[("shipyard.yaml", shipyard.as_str())], files].concat();
            let found = messages(&Tree::of(&files).read());
            let told = found.iter().any(|told| told.contains("each delivery that goes well is taken back"));
            assert_eq!(told, is_told, "{tasks}: {found:#?}");
        }
    }

    #[test]
    fn properties_that_no_task_has_are_a_warning() {
        let found = problems(&[", properties: {teststrategy: performace}"]);
        assert!(found.len() == 1 && found[0].starts_with("a.yaml:1:1: warning: no task `test`"), "{found:#?}");
    }
}
