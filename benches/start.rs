//! What a daemon costs that has nothing to do, and each pod's shim: `cargo bench --bench start`.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has no result")]
#![expect(clippy::print_stdout, reason = "that is its result")]

mod support {
    pub(crate) mod daemon;
    pub(crate) mod figures;
    pub(crate) mod git;
    pub(crate) mod import;
    pub(crate) mod kernel;
}

use std::path::Path;
use std::time::Instant;

use support::daemon::{Daemon, PROGRAM, wait_until};
use support::import::Importer;
use support::kernel::{kernel_says, mib};
use support::{figures, git};

const STARTS: usize = 20;
const PODS: usize = 4;

const CONFIG: &str = "\
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: web}
spec:
  replicas: 4
  selector: {app: web}
  triggers: [{type: ConfigChange}]
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'git:web', command: [sleep, '3600']}]}
";

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let files = [("web.yaml", CONFIG), ("web/README", "Nothing is needed.\n")];
    let mut importer = Importer::start(&bare);
    importer.commit(files.map(|(path, content)| (path.to_owned(), content.to_owned())));
    importer.end();
    let mut daemon = Daemon::start(folder.path(), &bare);
    wait_until("the pods run", || daemon.ask(&["rollout", "status", "dc/web"]));
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        daemon.kill();
        std::mem::forget(daemon); // what it runs is to go on
        let begin = Instant::now();
        daemon = Daemon::start(folder.path(), &bare);
        starts.push(begin.elapsed());
    }
    figures::tell("from the daemon's start to ready, with pods that run", starts);
    tell_memory("daemon", &daemon.process.id().to_string());
    let shims = shims(&folder.path().join("state"));
    assert_eq!(shims.len(), PODS, "one shim a pod");
    shims.iter().for_each(|shim| tell_memory("shim", shim));
    let size = std::fs::metadata(PROGRAM).unwrap().len();
    println!("program: {}.{} MB", size / 1_000_000, size / 100_000 % 10);
}

/// Resident memory, and the part that no other process shares; the rest are pages of the program's file.
fn tell_memory(what: &str, process: &str) {
    let (resident, own) = (kernel_says(process, "status", "VmRSS"), kernel_says(process, "status", "RssAnon"));
    println!("{what}: {} resident, {} of that its own", mib(resident), mib(own));
}

/// The processes that own the pods of a state folder.
fn shims(state: &Path) -> Vec<String> {
    let is_shim = |process: &String| {
        let line = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.starts_with("launchway\0shim\0") && line.contains(&*state.to_string_lossy())
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(is_shim).collect()
}
