//! `launchway validate`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::output::{Exit, Outcome, Output, colored};
use super::work_tree::WorkTree;
use crate::error::Result;
use crate::manifest::{Options, Problem, Severity, Snapshot};
use crate::model::ids::RepositoryName;

/// Check files or a work tree, committed or not, without a server
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway validate\n  launchway validate deploy/web.yaml -o json\n\nExits with 1 if there are errors."
)]
pub(super) struct Arguments {
    /// Files, or folders of repositories
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    problems: Vec<Problem>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let report = check(&arguments.paths)?;
    output.show(&report, human)?;
    let failed = report.problems.iter().any(Problem::is_error);
    Ok(if failed { Exit::Failed } else { Exit::Good })
}

/// The problems of the named files, or of everything below the named folders.
fn check(paths: &[PathBuf]) -> Result<Report> {
    let mut found = BTreeMap::new();
    for path in paths {
        let tree = WorkTree::around(path)?;
        let chosen = tree.relative(path)?;
        let options = Options { repository: RepositoryName::new(tree.name()) };
        let snapshot = Snapshot::read(&tree, &options)?;
        let inside = |file: &str| {
            chosen.is_empty() || file.strip_prefix(&chosen).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let problems = snapshot.project().problems.iter().filter(|problem| inside(&problem.file));
        found.extend(problems.map(|problem| (problem.clone(), ())));
    }
    Ok(Report { problems: found.into_keys().collect() })
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
    use std::fs;

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
        assert!(check(&[good]).expect("readable").problems.is_empty());
        let problems = check(&[folder.path().to_owned()]).expect("readable").problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!((problems[0].file.as_str(), problems[0].line), ("launchway.yaml", 4));
    }
}
