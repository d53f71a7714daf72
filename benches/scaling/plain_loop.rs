//! What the machine can do: a plain loop that writes a pod's folder, durably, and starts its shim, which starts its
//! program. Nothing else.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::declared::configs;
use crate::support::daemon::{Daemon, PROGRAM, wait_until};
use crate::support::git;
use crate::support::import::Importer;

/// Shims that this process started, with the folders of their pods; with them goes what they run.
struct Shims(Vec<(PathBuf, Child)>);

impl Drop for Shims {
    fn drop(&mut self) {
        for (dir, _) in &self.0 {
            let asked = File::create(dir.join("stop"));
            // Opened to be read as well, which does not wait for a shim that is gone.
            let wake = asked.and_then(|_| File::options().read(true).write(true).open(dir.join("wake")));
            drop(wake.and_then(|mut wake| wake.write_all(b".")));
        }
        for (_, shim) in &mut self.0 {
            drop(shim.wait());
        }
    }
}

/// Says how many pods are ready a second. As many are started as the daemon deploys: beside ten thousand processes the machine takes
/// more for each.
pub(crate) fn measure(pods: u32) -> f64 {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    importer.commit(configs(1, 1, "first"));
    importer.end();
    // A daemon makes one pod, of which all others are copies.
    let daemon = Daemon::start(folder.path(), &bare);
    daemon.wait_for_rest(1);
    let mut namespaces = fs::read_dir(folder.path().join("state/local/pods")).unwrap();
    let first = namespaces.next().unwrap().unwrap().path().join("app-0-1-0");
    let record = fs::read_to_string(first.join("pod.json")).unwrap();
    let shim = Path::new(PROGRAM).with_file_name("launchway-shim");
    // A pod that does not lie in the state folder that is hidden from it is not started.
    let root = folder.path().join("state/local/loop");
    fs::create_dir_all(root.join("changes")).unwrap();
    let begin = Instant::now();
    let mut shims = Shims(Vec::new());
    for number in 0..pods {
        let dir = write_down(&root, &record, number);
        let mut command = Command::new(&shim);
        command.arg("shim").arg(&dir).env_clear().current_dir("/");
        let log = File::create(dir.join("shim.log")).unwrap();
        let shim = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        shims.0.push((dir, shim));
    }
    wait_until("all are ready", || (0..pods).rev().all(|number| dir(&root, number).join("ready").exists()));
    let took = begin.elapsed();
    let rate = f64::from(pods) / took.as_secs_f64();
    println!("the plain loop: {pods} pods in {took:.1?}, {rate:.0} a second");
    rate
}

fn dir(root: &Path, number: u32) -> PathBuf {
    root.join(format!("pods/shop/app-{number}-1-0"))
}

/// The folder of a pod, with its record on disk for good.
fn write_down(root: &Path, record: &str, number: u32) -> PathBuf {
    let dir = dir(root, number);
    fs::create_dir_all(&dir).unwrap();
    File::create(dir.join("connections")).unwrap();
    let change = root.join(format!("changes/app-{number}"));
    let mut record: serde_json::Value = serde_json::from_str(record).unwrap();
    record["uid"] = format!("loop-{number}").into();
    record["change"] = change.to_str().unwrap().into();
    let draft = dir.join(".pod.json.draft");
    let mut file = File::create(&draft).unwrap();
    file.write_all(&serde_json::to_vec(&record).unwrap()).unwrap();
    file.sync_all().unwrap();
    fs::rename(&draft, dir.join("pod.json")).unwrap();
    File::open(&dir).unwrap().sync_all().unwrap();
    dir
}
