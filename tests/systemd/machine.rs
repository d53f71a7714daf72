//! A machine with a real systemd: namespaces of its own, and a disk that is this machine's with what was changed on it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::packaged::eventually;

/// A machine, on or off.
pub(crate) struct Machine {
    disk: tempfile::TempDir,
    running: Option<Child>,
}

impl Machine {
    /// One with an empty disk, off. The disk is in memory, because the files of this machine are seen through it.
    pub(crate) fn new() -> Self {
        Self {
            disk: tempfile::Builder::new().prefix("launchway-machine-").tempdir_in("/dev/shm").unwrap(),
            running: None,
        }
    }

    /// Switches it on, and waits until systemd has started everything.
    pub(crate) fn boot(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systemd/boot.sh");
        let log = std::fs::File::create(self.disk.path().join("console")).unwrap();
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh"])
            .arg(script)
            .arg(self.disk.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.running = Some(command.spawn().unwrap());
        let state = || String::from_utf8(self.try_run("systemctl is-system-running")?.stdout).ok();
        let is_up = || state().filter(|state| ["running", "degraded"].contains(&state.trim()));
        let state = eventually(&format!("it boots: {}", self.disk.path().join("console").display()), is_up);
        assert_eq!(state.trim(), "running", "{}", self.run("systemctl --failed --no-pager"));
    }

    /// Switches it off as a person does, and waits until it is.
    pub(crate) fn power_off(&mut self) {
        // The answer may be lost, because whom it comes from ends.
        self.try_run("systemctl poweroff");
        let mut running = self.running.take().unwrap();
        eventually("it goes off", || running.try_wait().unwrap());
    }

    /// A file of the running machine.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init().unwrap()))
    }

    /// What a script of the shell prints there.
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.try_run(script).unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {:?}: {said}{complained}", output.status.into_raw());
        said
    }

    /// The same, whatever becomes of it; `None` while the machine is not on.
    pub(crate) fn try_run(&self, script: &str) -> Option<Output> {
        let init = self.init()?.to_string();
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &init, "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--root", "--wd=/"]);
        command.args([
            "env",
            "-i",
            "HOME=/root",
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "sh",
            "-ec",
            script,
        ]);
        Some(command.stdin(Stdio::null()).output().unwrap())
    }

    /// The id of its first process, as it is known here.
    fn init(&self) -> Option<u32> {
        let unshare = self.running.as_ref()?.id();
        let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).ok()?;
        children.split_ascii_whitespace().next()?.parse().ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // With it everything ends that it has started; both calls fail only if it is gone.
            running.kill().ok();
            running.wait().ok();
        }
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let groups = mounts.lines().find(|line| line.starts_with("cgroup2 ")).and_then(|line| line.split(' ').nth(1));
        if let (Some(groups), Some(name)) = (groups, self.disk.path().file_name()) {
            remove_group(&Path::new(groups).join(name));
        }
    }
}

/// Removes a control group with those inside; what is still busy stays, and is empty soon.
fn remove_group(group: &Path) {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).for_each(|inner| remove_group(&inner));
    std::fs::remove_dir(group).ok();
}
