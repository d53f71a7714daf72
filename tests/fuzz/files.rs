//! What people commit: YAML as such, a whole project of it, and requests for rollbacks.

use std::collections::BTreeMap;

use launchway::error::Result;
use launchway::manifest::{Content, FileEntry, FileKind, Files, Options, Problem, Severity, Snapshot, rollback, yaml};
use launchway::model::ids::RepositoryName;
use launchway::model::seed::Seed;

/// Begins each file of a project, with its path after it.
const FILE: &str = "#=# ";

/// What documents come to: every place that is named is one of the text.
pub(crate) fn documents(input: &[u8]) -> String {
    let reading = yaml::read(input);
    let lines = u32::try_from(input.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count()).unwrap() + 1;
    for error in &reading.errors {
        assert!((1..=lines).contains(&error.position.line) && error.position.column > 0, "{error:?}");
    }
    for document in &reading.documents {
        serde_json::to_vec(&document.value).unwrap();
        let at = document.position("");
        assert!((1..=lines).contains(&at.line), "a document at {at:?} of {lines} lines");
    }
    let errors: Vec<_> = reading.errors.iter().map(|error| format!("{} {}", error.code, error.message)).collect();
    format!("{} {errors:?}", reading.documents.len())
}

/// What a project comes to. Read as the next revision of another one, it comes to the same.
pub(crate) fn project(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let tree = Tree::of(&text);
    let options = Options { repository: RepositoryName::new("shop"), seed: Seed::NONE };
    let snapshot = Snapshot::read(&tree, &options).unwrap();
    let outcome = snapshot.project();
    let has_error = outcome.problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(outcome.project.is_none(), has_error, "{:?}", outcome.problems);
    for Problem { file, line, column, .. } in &outcome.problems {
        assert!(tree.0.contains_key(file) || tree.is_above(file), "`{file}` is no file of the project");
        assert!(*line > 0 && *column > 0, "{file}:{line}:{column}");
    }
    let before = tree.half();
    let changed: Vec<_> = tree.differs_from(&before).map(|path| (path.clone(), tree.entry(path))).collect();
    let next = Snapshot::read(&before, &options).unwrap().update(&changed, &tree, &options).unwrap();
    assert_eq!(next.project(), outcome, "read as the next revision it is another project");
    outcome.problems.iter().map(|problem| format!("{} {}\n", problem.code, problem.message)).collect()
}

/// What requests for rollbacks come to.
pub(crate) fn rollbacks(input: &[u8]) -> String {
    match rollback::requests("rollback.yaml", input) {
        Ok(requests) => {
            assert!(!requests.is_empty());
            format!("{}", requests.len())
        }
        Err(problems) => {
            assert!(!problems.is_empty() && problems.iter().all(|problem| problem.line > 0));
            problems.iter().map(|problem| format!("{} {}\n", problem.code, problem.message)).collect()
        }
    }
}

/// Files in memory, by path.
struct Tree(BTreeMap<String, String>);

impl Tree {
    /// A text with a line before each file that tells its path.
    fn of(text: &str) -> Self {
        let parts = text.split(FILE).filter_map(|part| part.split_once('\n'));
        let is_path = |path: &str| {
            let mut parts = path.split('/');
            parts.all(|part| !part.is_empty() && part != "." && part != ".." && !part.contains('\0'))
        };
        let files = parts.filter(|(path, _)| is_path(path));
        let mut files: BTreeMap<_, _> = files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        let folders: Vec<String> = files.keys().flat_map(|path| above(path).map(str::to_owned)).collect();
        folders.iter().for_each(|folder| drop(files.remove(folder)));
        Self(files)
    }

    /// An earlier revision: without every second file, and with another text in the rest.
    fn half(&self) -> Self {
        let files = self.0.iter().step_by(2);
        Self(files.map(|(path, text)| (path.clone(), text.replacen("replicas: ", "replicas: 1", 1))).collect())
    }

    fn differs_from(&self, before: &Self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|(path, text)| before.0.get(*path) != Some(*text)).map(|(path, _)| path)
    }

    fn entry(&self, path: &str) -> Option<FileEntry> {
        let kind = FileKind::File { executable: path.contains("bin/") };
        Some(FileEntry { path: path.to_owned(), kind, id: id(self.0.get(path)?) })
    }

    fn is_above(&self, folder: &str) -> bool {
        folder.is_empty() || self.0.keys().any(|path| above(path).any(|above| above == folder))
    }
}

fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(end, _)| path.get(..end))
}

fn id(content: &str) -> String {
    content.bytes().fold(0_u64, |id, byte| id.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)).to_string()
}

impl Files for Tree {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        Ok(self.0.keys().filter_map(|path| self.entry(path)).collect())
    }

    fn read(&self, entry: &FileEntry) -> Result<Content> {
        Ok(Content::Whole(self.0[&entry.path].clone().into_bytes()))
    }

    fn limit(&self) -> u64 {
        1 << 20
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        let inside: Vec<&str> =
            self.0.iter().filter(|(file, _)| above(file).any(|above| above == path)).map(|(_, it)| &**it).collect();
        Ok((!inside.is_empty()).then(|| id(&inside.concat())))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        Ok(self.entry(path).map(|entry| entry.kind))
    }
}
