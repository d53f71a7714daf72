//! What `bin/build` may do, and what becomes of it.

use std::fs;
use std::time::Duration;

use launchway::error::Class;
use launchway::model::pod::SecurityContext;

use crate::support::{World, eventually, prepare, repository, tree};

#[test]
fn a_builder_runs_once_in_its_tree_and_its_result_is_sealed() {
    let world = World::new(&[("bin/build", "#!/bin/sh\nset -e\npwd > where\necho $HOME > home\necho built\n")]);
    let launchables = world.open();
    let path = prepare(&launchables, &tree('a')).unwrap();
    assert_eq!(fs::read_to_string(path.join("where")).unwrap().trim(), path.display().to_string());
    let home = fs::read_to_string(path.join("home")).unwrap();
    assert!(!std::path::Path::new(home.trim()).exists(), "the builder's home is removed");
    assert_eq!(fs::read_to_string(path.parent().unwrap().join("build.log")).unwrap(), "built\n");
}

#[test]
fn a_builder_sees_nothing_of_the_environment_that_it_need_not_see() {
    let world = World::new(&[("bin/build", "#!/bin/sh\nenv | cut -d= -f1 > names\n")]);
    let path = prepare(&world.open(), &tree('a')).unwrap();
    let names = fs::read_to_string(path.join("names")).unwrap();
    assert!(names.lines().any(|name| name == "PATH"));
    assert!(!names.lines().any(|name| name.starts_with("CARGO")), "{names}");
}

#[test]
fn a_build_that_fails_shows_its_last_lines_and_is_remembered_until_forgotten() {
    let mut world = World::new(&[]);
    let journal = world.journal();
    let script =
        format!("#!/bin/sh\necho run >> {}\nfor i in 1 2 3; do echo line $i; done\nexit 3\n", journal.display());
    std::sync::Arc::get_mut(&mut world.trees).unwrap().files = vec![("bin/build", script)];
    let launchables = world.open();
    let failure = prepare(&launchables, &tree('a')).unwrap_err();
    assert_eq!(failure.class(), Class::Stalled);
    let expected = "`bin/build` of `git:apps/web` ended with exit code 3; its last lines:\nline 1\nline 2\nline 3";
    assert_eq!(failure.to_string(), expected);
    assert!(failure.hint_text().unwrap().contains("push a change that builds, or retry"));
    assert_eq!(prepare(&world.open(), &tree('a')).unwrap_err().to_string(), expected);
    assert_eq!(world.journal_lines(), 1);
    launchables.forget_failure(&repository(), &tree('a')).unwrap();
    prepare(&launchables, &tree('a')).unwrap_err();
    assert_eq!(world.journal_lines(), 2);
}

#[test]
fn a_build_that_hangs_is_ended_with_all_that_it_started() {
    let mut world =
        World::new(&[("bin/build", "#!/bin/sh\necho begun\nsetsid sleep 1000 &\necho $! > child\nsleep 1000\n")]);
    world.settings.build_patience = Duration::from_secs(1);
    let failure = prepare(&world.open(), &tree('a')).unwrap_err();
    assert_eq!(failure.to_string(), "`bin/build` of `git:apps/web` took longer than 1 s; its last lines:\nbegun");
}

#[test]
fn what_a_build_leaves_running_ends_with_it() {
    let world = World::new(&[("bin/build", "#!/bin/sh\nsetsid sleep 1000 &\necho $! > child\n")]);
    let path = prepare(&world.open(), &tree('a')).unwrap();
    let child = fs::read_to_string(path.join("child")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", child.trim())).exists());
}

#[test]
fn a_build_goes_on_without_the_daemon_and_is_not_started_twice() {
    let mut world = World::new(&[]);
    let (journal, gate) = (world.journal(), world.root.path().join("gate"));
    let script = format!(
        "#!/bin/sh\necho run >> {}\nwhile ! [ -e {} ]; do sleep 0.01; done\n",
        journal.display(),
        gate.display()
    );
    std::sync::Arc::get_mut(&mut world.trees).unwrap().files = vec![("bin/build", script)];
    let before = world.open();
    before.prepare(&repository(), &tree('a'), SecurityContext::default()).unwrap_err();
    eventually("the build has begun", || world.journal_lines() == 1);
    let after = world.open();
    let waiting = after.prepare(&repository(), &tree('a'), SecurityContext::default()).unwrap_err();
    assert_eq!(waiting.class(), Class::Waiting);
    fs::write(gate, "").unwrap();
    prepare(&after, &tree('a')).unwrap();
    assert_eq!(world.journal_lines(), 1);
}

#[test]
fn a_builder_that_is_killed_is_no_result_and_the_next_one_builds_alone() {
    let mut world = World::new(&[]);
    let (journal, gate) = (world.journal(), world.root.path().join("gate"));
    let script = format!(
        "#!/bin/sh\necho $PPID $$ >> {}\nwhile ! [ -e {} ]; do sleep 0.01; done\n",
        journal.display(),
        gate.display()
    );
    std::sync::Arc::get_mut(&mut world.trees).unwrap().files = vec![("bin/build", script)];
    let launchables = world.open();
    launchables.prepare(&repository(), &tree('a'), SecurityContext::default()).unwrap_err();
    eventually("the build has begun", || world.journal_lines() == 1);
    let pids = fs::read_to_string(&journal).unwrap();
    let (builder, build) = pids.trim().split_once(' ').unwrap();
    let builder = rustix::process::Pid::from_raw(builder.parse().unwrap()).unwrap();
    rustix::process::kill_process(builder, rustix::process::Signal::KILL).unwrap();
    let failure = prepare(&launchables, &tree('a')).unwrap_err();
    let expected = (Class::Transient, "the builder ended without a result".to_owned());
    assert_eq!((failure.class(), failure.to_string()), expected);
    launchables.forget_failure(&repository(), &tree('a')).unwrap();
    launchables.prepare(&repository(), &tree('a'), SecurityContext::default()).unwrap_err();
    eventually("the next build has begun", || world.journal_lines() == 2);
    let environment = fs::read(format!("/proc/{build}/environ")).unwrap_or_default();
    assert!(environment.is_empty(), "the first build still runs");
    fs::write(gate, "").unwrap();
    prepare(&launchables, &tree('a')).unwrap();
}
