//! What a push costs in a repository of many services, at first and after many pushes. None of them has a pod: measured
//! is what launchway does.

use std::time::Duration;

use super::declared::{config, configs};
use crate::support::daemon::Daemon;
use crate::support::git;
use crate::support::import::Importer;

/// Pushes of one service that are measured together: the kernel counts processor time in hundredths of a second.
const TOGETHER: u32 = 20;

pub(crate) fn measure(services: u32, pushes: u32) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bare = git::bare(folder.path());
    let mut importer = Importer::start(&bare);
    importer.commit(configs(services, 0, "first"));
    let daemon = Daemon::start(folder.path(), &bare);
    daemon.wait_for_rest(services.into());
    let mut repository = Repository { services, importer, daemon, pushed: 0 };
    let (one, all) = (repository.one(TOGETHER), repository.all());
    println!("{services} services, processor time of a push at first: of one {one:.1?}, of all {all:.2?} each");
    repository.one(pushes);
    let (one, all) = (repository.one(TOGETHER), repository.all());
    println!("{services} services, the same after {pushes} pushes: of one {one:.1?}, of all {all:.2?} each");
    repository.importer.end();
}

struct Repository {
    services: u32,
    importer: Importer,
    daemon: Daemon,
    pushed: u32,
}

impl Repository {
    /// Pushes of one service each, one after the other; what one takes to its end.
    fn one(&mut self, pushes: u32) -> Duration {
        let before = self.daemon.processor_time();
        for _ in 0..pushes {
            let say = self.say();
            let number = self.pushed * 7 % self.services;
            self.push(vec![config(number, 0, &say)], 1);
        }
        (self.daemon.processor_time() - before) / pushes
    }

    /// A push of all services; what each takes to its end.
    fn all(&mut self) -> Duration {
        let before = self.daemon.processor_time();
        let say = self.say();
        self.push(configs(self.services, 0, &say), self.services);
        (self.daemon.processor_time() - before) / self.services
    }

    fn say(&mut self) -> String {
        self.pushed += 1;
        format!("push {}", self.pushed)
    }

    fn push(&mut self, files: Vec<(String, String)>, deliveries: u32) {
        let delivered = self.daemon.delivered();
        self.importer.commit(files);
        let all = delivered + u64::from(deliveries);
        self.daemon.wait_for_rest(all);
    }
}
