//! `launchway validate`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::arguments::Global;
use super::output::{Exit, Outcome, Output, colored, remark};
use super::work_tree::WorkTree;
use crate::error::Result;
use crate::manifest::project::PROJECT_FILE;
use crate::manifest::{LARGEST, Options, Problem, Severity, Snapshot, is_shipyard};
use crate::model::ids::RepositoryName;
use crate::model::seed::Seed;

/// Check files or a work tree, committed or not, without a server
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway validate\n  launchway validate deploy/web.yaml -o json\n\nA file that is a shipyard is checked as the project's, whatever it is called.\n\nExits with 1 if there are errors, and with 0 where nothing is there to check, which it says."
)]
pub(super) struct Arguments {
    /// Files, or folders of repositories
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    problems: Vec<Problem>,
    /// Where nothing is ours, for people.
    #[serde(skip)]
    foreign: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let report = check(&arguments.paths, global.state_folder().ok().as_deref())?;
    output.show(&report, human)?;
    report.foreign.iter().for_each(|path| remark(foreign(path)));
    let failed = report.problems.iter().any(Problem::is_error);
    Ok(if failed { Exit::Failed } else { Exit::Good })
}

/// The problems of the named files, or of everything below the named folders. A state folder of this machine tells whether
/// it runs pods.
fn check(paths: &[PathBuf], state: Option<&Path>) -> Result<Report> {
    let (mut found, mut foreign) = (BTreeMap::new(), Vec::new());
    for path in paths {
        let tree = WorkTree::around(path)?.on_machine_of(state);
        let chosen = tree.relative(path)?;
        let options = Options { repository: RepositoryName::new(tree.name()), seed: Seed::NONE };
        let snapshot = match is_lone_shipyard(path, &chosen) {
            true => Snapshot::read_for_shipyard(&tree, &options, &chosen)?,
            false => Snapshot::read(&tree, &options)?,
        };
        let inside = |file: &str| {
            chosen.is_empty() || file.strip_prefix(&chosen).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let problems = snapshot.project().problems.iter().filter(|problem| inside(&problem.file));
        found.extend(problems.map(|problem| (problem.clone(), ())));
        if !snapshot.files().any(inside) {
            foreign.push(path.clone());
        }
    }
    Ok(Report { problems: found.into_keys().collect(), foreign })
}

/// Whether a named file is a shipyard, which need not be the project's to be checked.
fn is_lone_shipyard(path: &Path, chosen: &str) -> bool {
    let is_small = |found: fs::Metadata| found.is_file() && found.len() <= LARGEST;
    chosen != PROJECT_FILE
        && fs::metadata(path).is_ok_and(is_small)
        && fs::read(path).is_ok_and(|bytes| is_shipyard(&bytes))
}

/// Nothing is wrong there, but nothing is right either: somebody may mean another folder.
fn foreign(path: &Path) -> String {
    format!(
        "nothing was checked: `{}` has no shipyard, no deployment config and nothing else that is read",
        path.display()
    )
}

fn human(report: &Report) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        text.push_str(&format!("{problem:#}\n"));
    }
    let count = |severity: Severity| {
        let count = report.problems.iter().filter(|problem| problem.severity == severity).count();
        format!("{count} {severity}{}", if count == 1 { "" } else { "s" })
    };
    let failed = report.problems.iter().any(Problem::is_error);
    let verdict = colored(if failed { "failed" } else { "good" });
    text + &format!("{verdict}: {}, {}\n", count(Severity::Error), count(Severity::Warning))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_named_files_are_judged() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        write(
            "launchway.yaml",
            "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\nspec: {typo: 1}\n",
        );
        let good = write("settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n");
        let report = check(&[good], None).expect("readable");
        assert!(report.problems.is_empty() && report.foreign.is_empty(), "{report:?}");
        let problems = check(&[folder.path().to_owned()], None).expect("readable").problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!((problems[0].file.as_str(), problems[0].line), ("launchway.yaml", 4));
    }

    #[test]
    fn an_interpreter_is_looked_for_where_pods_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("web/bin")).expect("made");
        fs::create_dir(path("state")).expect("made");
        fs::write(path("web/bin/launch"), "#!/usr/bin/no-such-python -u\n").expect("written");
        fs::set_permissions(path("web/bin/launch"), fs::Permissions::from_mode(0o755)).expect("allowed");
        let config = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  \
                      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'git:web'}]}}\n";
        fs::write(path("web.yaml"), config).expect("written");
        fs::write(path("launchway.yaml"), "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\n")
            .expect("written");
        let problems = || check(&[folder.path().to_owned()], Some(&path("state"))).expect("readable").problems;
        assert_eq!(problems(), [], "nobody knows where they run");
        fs::write(path("state/daemon.json"), "{}").expect("written");
        let found = problems();
        let is_warned = |problem: &Problem| {
            !problem.is_error() && problem.message.contains("`/usr/bin/no-such-python`, which is missing")
        };
        assert!(matches!(&found[..], [problem] if is_warned(problem)), "{found:?}");
    }

    #[test]
    fn a_link_out_of_a_launchable_is_found_where_the_launchable_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("svc/bin")).expect("made");
        fs::write(path("svc/main"), "").expect("written");
        let config = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n  \
                      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'git:svc'}]}}\n";
        fs::write(path("web.yaml"), config).expect("written");
        fs::write(path("launchway.yaml"), "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\n")
            .expect("written");
        let found = |target: &str| {
            fs::remove_file(path("svc/bin/launch")).ok();
            std::os::unix::fs::symlink(target, path("svc/bin/launch")).expect("linked");
            check(&[folder.path().to_owned()], None).expect("readable").problems
        };
        assert_eq!(found("../main"), []);
        let problems = found("/bin/true");
        let is_told = |problem: &Problem| {
            problem.is_error()
                && (problem.file.as_str(), problem.line) == ("web.yaml", 6)
                && problem.message == "the link `svc/bin/launch` leads out of the launchable"
        };
        assert!(matches!(&problems[..], [problem] if is_told(problem)), "{problems:?}");
    }

    #[test]
    fn a_named_file_that_is_a_shipyard_is_checked_as_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let stages =
            "spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: test, retires: 1}]}]}]}\n";
        let codes = |text: &str| {
            fs::write(path("bad1.yaml"), text).expect("written");
            let problems = check(&[path("bad1.yaml")], None).expect("readable").problems;
            assert!(problems.iter().all(|problem| problem.file == "bad1.yaml"), "{problems:?}");
            problems.into_iter().map(|problem| problem.code).collect::<Vec<_>>()
        };
        for (head, expected) in [
            ("apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\n", &["unknown-key"][..]),
            ("apiVersion: 0.2.2\nkind: Shipyard\n", &["unknown-key"]),
            ("version: 0.2.0\nkind: Shipyard\n", &["unknown-key"]),
            ("apiVersion: spec.keptn.sh/9.9.9\nkind: Shipyard\n", &["shipyard-version", "unknown-key"]),
            ("kind: Shipyard\n", &["required", "unknown-key"]),
            ("apiVersion: spec.keptn.sh/0.2.2\n", &["unsupported-value", "unknown-key"]),
        ] {
            assert_eq!(codes(&format!("{head}{stages}")), expected, "{head}");
        }
        for other in
            ["apiVersion: example.com/v1\nkind: Shipyard\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"]
        {
            let codes = codes(&format!("{other}{stages}"));
            assert!(
                !codes.contains(&"required".to_owned()) && !codes.contains(&"shipyard-version".to_owned()),
                "{codes:?}"
            );
        }
        let old = "stages:\n- {name: dev, deployment_strategy: direct}\n";
        fs::write(path("old.yaml"), old).expect("written");
        let problems = check(&[path("old.yaml")], None).expect("readable").problems;
        assert!(matches!(&problems[..], [one] if one.code == "shipyard-version"), "{problems:?}");
    }

    #[test]
    fn where_nothing_is_ours_nothing_was_checked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("docs")).expect("made");
        fs::write(path("docs/Chart.yaml"), "name: web\nversion: 1\n").expect("written");
        let foreign = |paths: &[PathBuf]| check(paths, None).expect("readable").foreign;
        assert_eq!(foreign(&[path("docs")]), [path("docs")]);
        for (file, text) in [
            ("launchway.yaml", "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: shop}\n"),
            (
                "shipyard.yaml",
                "apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nspec: {stages: [{name: dev, sequences: []}]}\n",
            ),
        ] {
            fs::write(path(file), text).expect("written");
            let found = [path("docs"), folder.path().to_owned(), path(file)];
            assert_eq!(foreign(&found), [path("docs")], "{file}");
            fs::remove_file(path(file)).expect("removed");
        }
    }
}
