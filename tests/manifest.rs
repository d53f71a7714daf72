//! Files as their users have them, through the room's public door.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use launchway::error::Result;
use launchway::manifest::{Content, FileEntry, FileKind, Files, LARGEST, Options, Snapshot};
use launchway::model::ids::RepositoryName;
use launchway::model::object::{Kind, Object, ObjectKey};
use launchway::model::seed::Seed;
use launchway::model::state::spec_of;

/// What takes much memory waits for what measures it.
static MEMORY: Mutex<()> = Mutex::new(());

/// The most bytes of a file that may declare something.
const LIMIT: u64 = 4 << 20;

/// A tree of files in memory that counts how often it is asked.
#[derive(Default)]
struct Tree {
    files: BTreeMap<String, String>,
    reads: Cell<usize>,
    folders: Cell<usize>,
    listings: Cell<usize>,
}

impl Tree {
    fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self { files, ..Self::default() }
    }

    fn entry(&self, path: &str) -> FileEntry {
        let id = format!("{:x}", self.files[path].len());
        FileEntry { path: path.to_owned(), kind: FileKind::File { executable: path.contains("bin/") }, id }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::read(self, &options()).expect("memory is readable")
    }
}

fn options() -> Options {
    Options { repository: RepositoryName::new("shop"), seed: Seed::NONE }
}

impl Files for Tree {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        self.listings.set(self.listings.get() + 1);
        Ok(self.files.keys().map(|path| self.entry(path)).collect())
    }

    fn read(&self, entry: &FileEntry) -> Result<Content> {
        self.reads.set(self.reads.get() + 1);
        let bytes = self.files[&entry.path].clone().into_bytes();
        let size = bytes.len() as u64;
        Ok(if size > LARGEST { Content::TooLarge(size) } else { Content::Whole(bytes) })
    }

    fn limit(&self) -> u64 {
        LIMIT
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        self.folders.set(self.folders.get() + 1);
        let inside = self.files.range(format!("{path}/")..format!("{path}0"));
        let text: Vec<_> = inside.map(|(path, text)| format!("{path}{}", text.len())).collect();
        Ok((!text.is_empty()).then(|| text.join("-")))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        Ok(self.files.get(path).map(|_| self.entry(path).kind))
    }
}

fn problems(snapshot: &Snapshot) -> Vec<String> {
    snapshot.project().problems.iter().map(ToString::to_string).collect()
}

fn object(snapshot: &Snapshot, kind: Kind, name: &str) -> Arc<Object> {
    let project = snapshot.project().project.as_ref().expect("no errors");
    Arc::clone(project.stages[0].objects.get(&ObjectKey { kind, name: name.to_owned() }).expect("declared"))
}

#[test]
fn an_exported_list_is_a_project_as_it_is() {
    let text = include_str!("manifest/exported.yaml");
    let snapshot =
        Tree::of([("all.yaml", text), ("frontend/bin/launch", "run"), ("frontend/bin/migrate", "run")]).snapshot();
    assert_eq!(problems(&snapshot), [] as [&str; 0]);
    let config = object(&snapshot, Kind::DeploymentConfig, "frontend");
    assert_eq!((config.location.line, config.location.column), (8, 3));
    let spec = spec_of(&config).expect("it was validated");
    assert_eq!(spec.replicas, Some(2));
    assert!(spec.template.spec.containers[0].image.starts_with("git:frontend@"));
    for (kind, name) in [(Kind::Service, "frontend"), (Kind::Secret, "database")] {
        assert_eq!(object(&snapshot, kind, name).service.as_str(), "frontend");
    }
}

#[test]
fn the_seeds_stream_of_json_objects_with_tabs_is_read() {
    let text = include_str!("manifest/rails.json");
    let refused = Tree::of([("rails.json", text)]).snapshot();
    let found = problems(&refused);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with(
        "rails.json:54:16: error: spec.template.spec.containers[0].image: the image `example/rails` cannot run here"
    ));
    assert!(found[1].starts_with(
        "rails.json:64:7: warning: spec.template.spec.containers[0].capabilities: the key `capabilities` is not known"
    ));
    let text = text.replace("example/rails", "git:rails");
    let snapshot = Tree::of([("rails.json", text.as_str()), ("rails/bin/launch", "run")]).snapshot();
    let rails = object(&snapshot, Kind::DeploymentConfig, "rails");
    assert_eq!(rails.service.as_str(), "rails");
    let unknown = rails.content.at("/spec/template/spec/containers/0/capabilities");
    assert!(unknown.is_some(), "what this program does not know is for a runtime that does");
}

#[test]
fn the_order_of_keys_and_comments_change_no_digest() {
    let one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1', y: '2'}\n";
    let other = "# moved\ndata:\n  y: \"2\"\n  x: \"1\"\nkind: ConfigMap\nmetadata:\n  name: a\napiVersion: v1\n";
    let digest = |text| object(&Tree::of([("a.yaml", text)]).snapshot(), Kind::ConfigMap, "a").digest.clone();
    assert_eq!(digest(one), digest(other));
}

#[test]
fn a_change_in_a_large_project_reads_what_changed_and_nothing_else() {
    let _memory = memory();
    let mut tree = Tree::default();
    for number in 0..500 {
        let config = format!(
            "apiVersion: v1\nkind: DeploymentConfig\nmetadata: {{name: s{number}}}\nspec:\n  replicas: 1\n  template:\n    \
             metadata: {{labels: {{app: s{number}}}}}\n    spec: {{containers: [{{name: a, image: 'git:services/s{number}'}}]}}\n"
        );
        tree.files.insert(format!("deploy/s{number}.yaml"), config);
        tree.files.insert(format!("services/s{number}/bin/launch"), "x".to_owned());
    }
    let snapshot = tree.snapshot();
    let before = object(&snapshot, Kind::DeploymentConfig, "s7");
    let untouched = object(&snapshot, Kind::DeploymentConfig, "s8");
    let counted = |tree: &Tree| (tree.listings.take(), tree.reads.take(), tree.folders.take());
    assert_eq!(counted(&tree), (1, 500, 500));

    tree.files.insert("services/s7/bin/launch".to_owned(), "changed".to_owned());
    let changed = vec![("services/s7/bin/launch".to_owned(), Some(tree.entry("services/s7/bin/launch")))];
    let snapshot = snapshot.update(&changed, &tree, &options()).expect("memory is readable");
    assert_eq!(counted(&tree), (0, 0, 1), "code: one folder is listed");
    assert_ne!(object(&snapshot, Kind::DeploymentConfig, "s7").digest, before.digest);
    assert!(Arc::ptr_eq(&object(&snapshot, Kind::DeploymentConfig, "s8"), &untouched), "the others are shared");

    let text = tree.files["deploy/s7.yaml"].replace("replicas: 1", "replicas: 12");
    tree.files.insert("deploy/s7.yaml".to_owned(), text);
    let changed = vec![("deploy/s7.yaml".to_owned(), Some(tree.entry("deploy/s7.yaml")))];
    let snapshot = snapshot.update(&changed, &tree, &options()).expect("memory is readable");
    assert_eq!(counted(&tree), (0, 1, 1), "a file: it is read, and its folder listed");
    assert_eq!(object(&snapshot, Kind::DeploymentConfig, "s7").content.value()["spec"]["replicas"], 12);
}

/// The examples of the documentation, by the path that their first line names.
fn examples() -> Vec<(String, String)> {
    let text = include_str!("../docs/file-formats.md");
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let named = |block: &str| Some((block.lines().next()?.strip_prefix("# ")?.to_owned(), block.to_owned()));
    blocks.filter_map(|(block, _)| named(block)).collect()
}

#[test]
fn the_documentations_examples_are_right() {
    let examples = examples();
    assert_eq!(examples.len(), 12);
    let code = [
        ("services/web/bin/launch", "run"),
        ("services/web/bin/migrate", "run"),
        ("services/cart/bin/launch", "run"),
        ("services/cart/bin/migrate", "run"),
        ("deployer/bin/launch", "run"),
        ("tests/bin/smoke", "run"),
        ("deploy/dev/colors.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: colors}}"),
        ("deploy/production/x", ""),
    ];
    for (path, text) in examples.iter().filter(|(path, _)| path == "shipyard.yaml") {
        let shipyard = Tree::of([(path.as_str(), text.as_str())]).snapshot();
        assert_eq!(problems(&shipyard), [] as [&str; 0]);
    }
    let (settings, rest): (Vec<_>, Vec<_>) =
        examples.iter().partition(|(path, _)| path == "launchway.yaml" || path.starts_with("ci/"));
    for files in [settings, rest] {
        let files = files.into_iter().map(|(path, text)| (path.as_str(), text.as_str()));
        let snapshot = Tree::of(files.chain(code)).snapshot();
        assert_eq!(problems(&snapshot), [] as [&str; 0]);
    }
}

#[test]
fn documents_that_are_none_of_ours_take_no_memory_beside_each_other() {
    let _memory = memory();
    let documents = format!("# kind apiVersion\n{}", "---\na:\n".repeat(100_000));
    let before = most_memory();
    let snapshot = Tree::of([("data.yaml", documents.as_str())]).snapshot();
    assert_eq!(problems(&snapshot), Vec::<String>::new());
    let taken = most_memory().saturating_sub(before);
    assert!(taken < 40_000, "{taken} KiB");
}

fn memory() -> MutexGuard<'static, ()> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most memory that this process has had, in KiB. The kernel counts roughly: it may say a little less later.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_file_beyond_the_limit_breaks_a_revision_only_if_it_looks_like_one_of_ours() {
    let _memory = memory();
    let filler = format!("# {}\n", "x".repeat(5 << 20));
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    let ours = format!("{config_map}{filler}");
    for (name, text, expected) in [
        ("data/cities.json", filler.clone(), "warning"),
        ("data/world.json", filler.repeat(4), "warning"),
        ("deploy/web.yaml", ours, "error"),
        ("launchway.yaml", filler, "error"),
    ] {
        let told = problems(&Tree::of([(name, text.as_str()), ("web.yaml", config_map)]).snapshot());
        let begin =
            format!("{name}:1:1: {expected}: the file has {} bytes, more than the limit of {LIMIT}", text.len());
        assert!(told.len() == 1 && told[0].starts_with(&begin), "{told:?}");
    }
}
