//! A repository on this machine whose file system does not answer, as a mount whose server is gone.

use std::fs::{self, File, OpenOptions};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::daemon::{World, complaint, eventually, repository, sleeper};

#[test]
fn a_repository_whose_files_do_not_answer_is_said_so_and_nothing_else_waits() {
    let both = World::new(&[]);
    both.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "1"))]);
    both.git.git_in(both.git.root(), &["clone", "--quiet", "--bare", "origin.git", "dead.git"]);
    let dead = both.git.path("dead.git");
    let shop = repository("shop", &both.git.bare().display().to_string(), &[]);
    both.configure(&(shop + &repository("dead", &dead.display().to_string(), &["poll: 1s"])));
    both.start();
    let healthy = |name: &str| both.metric(&format!("launchway_repository_healthy{{repository=\"{name}\"}}"));
    eventually("both are healthy", || healthy("shop") + healthy("dead") > 1.5);

    // Whoever opens it for reading waits, as on such a mount.
    let branch = dead.join("refs/heads/main");
    mknodat(CWD, &branch, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    eventually("it is not healthy", || healthy("dead") < 0.5);
    let listed = both.json(&["repository", "list"]).to_string();
    assert!(listed.contains("the file system that it is on does not answer"), "{listed}");
    let commit = both.git.push_files(&[("web.yaml", &sleeper("web", "type: Recreate", "2"))]);
    both.status(&commit, "launchway/default", "success");
    assert_eq!(healthy("shop"), 1.0);
    let hung = || {
        let tasks = fs::read_dir(format!("/proc/{}/task", both.pid())).unwrap();
        let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "repository").count()
    };
    let before = both.metric("launchway_repository_syncs_total{repository=\"dead\"}");
    for _ in 0..3 {
        let sync = both.run(&["sync", "dead"]);
        assert!(complaint(&sync).contains("does not answer"), "{}", complaint(&sync));
    }
    assert!(both.metric("launchway_repository_syncs_total{repository=\"dead\"}") >= before + 3.0);
    eventually("one thread hangs, however often it was asked for", || hung() == 1);

    // It answers again: with nothing, and then as before.
    let fifo = dead.join("fifo");
    fs::rename(&branch, &fifo).unwrap();
    let answer: File = OpenOptions::new().write(true).open(&fifo).unwrap();
    drop(answer);
    eventually("it is healthy again", || healthy("dead") > 0.5);
    assert!(both.run(&["sync", "dead"]).status.success());
}
