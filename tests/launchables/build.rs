//! What `bin/build` may do, and what becomes of it.

use std::fs;
use std::time::Duration;

use launchway::error::Class;
use launchway::model::pod::SecurityContext;
use launchway::runtime::local::launchable::{BuildLimits, Limits};

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
fn a_builder_whose_interpreter_is_missing_says_which() {
    let world = World::new(&[("bin/build", "#!/usr/bin/no-such-python\n")]);
    let failure = prepare(&world.open(), &tree('a')).unwrap_err().to_string();
    let expected = "cannot be started: its interpreter `/usr/bin/no-such-python` is missing on this machine";
    assert!(failure.contains(expected), "{failure}");
}

#[test]
fn a_build_that_hangs_is_ended_with_all_that_it_started() {
    let mut world =
        World::new(&[("bin/build", "#!/bin/sh\necho begun\nsetsid sleep 1000 &\necho $! > child\nsleep 1000\n")]);
    world.settings.limits.build.time = Duration::from_secs(1);
    let failure = prepare(&world.open(), &tree('a')).unwrap_err();
    let expected =
        "`bin/build` of `git:apps/web` took longer than 1 s: its `limits.build.time`; its last lines:\nbegun";
    assert_eq!(failure.to_string(), expected);
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
    let (journal, gate) = (world.journal(), world.outside.path().join("gate"));
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
    let (journal, gate) = (world.journal(), world.outside.path().join("gate"));
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

#[test]
fn what_a_build_leaves_behind_is_measured_like_any_launchable() {
    let mut world = World::new(&[("bin/build", "#!/bin/sh\nhead -c 8388608 /dev/zero > big\nln -s /bin/sh python\n")]);
    world.settings.limits.bytes = 1 << 20;
    let failure = prepare(&world.open(), &tree('a')).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "`bin/build` of `git:apps/web` left too much: the launchable has more than 1048576 bytes (leave out what is not \
         needed, or raise the repository's `limits.launchable` in the daemon's configuration)"
    );
    world.settings.limits_by_repository.insert(repository(), Limits::default());
    let launchables = world.open();
    launchables.forget_failure(&repository(), &tree('a')).unwrap();
    prepare(&launchables, &tree('a')).unwrap();
}

#[test]
fn a_build_that_takes_too_much_is_ended_and_says_which_limit_it_was() {
    let cases = [
        ("for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait", "had more than 5 processes at once", "processes"),
        (
            "for i in 1 2 3; do head -c 900000 /dev/zero > $HOME/$i; done; sleep 1000",
            "filled more than 1048576",
            "disk",
        ),
        ("exec head -c 2097152 /dev/zero > big", "wrote a file of more than 1048576 bytes", "disk"),
        ("exec python3 -c 'bytearray(1 << 30)'", "ended with exit code 1", ""),
    ];
    for (script, expected, key) in cases {
        let mut world = World::new(&[]);
        let files = vec![("bin/build", format!("#!/bin/sh\n{script}\n"))];
        std::sync::Arc::get_mut(&mut world.trees).unwrap().files = files;
        // A program like `python3` may be a script that starts a few others before it is one.
        let processes = if key == "processes" { 5 } else { 50 };
        let build = BuildLimits { processes, disk: 1 << 20, memory: 256 << 20, ..BuildLimits::default() };
        world.settings.limits.build = build;
        let told = prepare(&world.open(), &tree('a')).unwrap_err().to_string();
        let limit = format!(": its `limits.build.{key}`");
        assert!(told.contains(expected) && (key.is_empty() || told.contains(&limit)), "{told}");
        assert!(!key.is_empty() || told.contains("MemoryError") || told.contains("limits.build.memory"), "{told}");
    }
}

#[test]
fn a_build_reaches_its_tree_and_its_home_and_nothing_of_the_daemons() {
    let mut world = World::new(&[]);
    let (state, journal) = (world.root.path().to_owned(), world.journal());
    fs::write(state.join("operator-token"), "the-token").unwrap();
    let script = format!(
        "#!/bin/sh\nset -e\ntouch tree $HOME/home $TMPDIR/tmp\necho ran > {}\n! cat {1}/operator-token\n! touch {1}/new\n\
         ! cat /proc/$PPID/environ\n! cat /proc/$PPID/root{1}/operator-token\n",
        journal.display(),
        state.display()
    );
    std::sync::Arc::get_mut(&mut world.trees).unwrap().files = vec![("bin/build", script)];
    let path = prepare(&world.open(), &tree('a')).unwrap();
    assert!(path.join("tree").exists() && world.journal_lines() == 1);
    let log = fs::read_to_string(path.parent().unwrap().join("build.log")).unwrap();
    assert!(!log.contains("the-token") && log.contains("operator-token"), "{log}");
    assert!(!path.parent().unwrap().join("scratch").exists());
}
