use super::*;
use crate::model::outcome::PodOutcome;
use crate::model::pod::Pod;
use crate::runtime::local::pod::logs::LogLimits;

fn id(name: &str) -> PodId {
    PodId { namespace: "n".into(), name: name.into() }
}

/// A pod that runs once, as the life of the store sees it that `origin` says.
fn entry(name: &str, origin: Origin) -> Entry {
    let owner = PodOwner::Run { run: "r".into(), step: "s".into(), since: Timestamp(0) };
    let (template, repository, commit) = (Default::default(), "r".into(), "c".into());
    let pod = Pod {
        id: id(name),
        owner: owner.clone(),
        template,
        repository,
        commit,
        run_once_seconds: None,
        tells_result: false,
        deploys: false,
    };
    let record = PodRecord {
        v: PodRecord::VERSION,
        uid: String::new(),
        created_at: Timestamp(0),
        incarnation: "one".into(),
        pod,
        objects: Vec::new(),
        address: Ipv4Addr::LOCALHOST,
        ports: Vec::new(),
        images: BTreeMap::new(),
        services: Vec::new(),
        search_path: String::new(),
        logs: LogLimits::default(),
        journal: None,
        claims: Default::default(),
        host_paths: Vec::new(),
        hidden: Vec::new(),
        api: None,
        change: Default::default(),
    };
    Entry::new(&record, PodDir::new(format!("/none/{name}")), None, (owner, origin))
}

fn ended() -> Option<PodStatus> {
    let phase = PodPhase::Ended { outcome: PodOutcome::Succeeded };
    let (boot_id, message) = Default::default();
    Some(PodStatus { intent: true, phase, message, ..PodStatus::beginning(boot_id, None) })
}

/// A hundred pods whose shims are watched.
fn settled() -> Table {
    let mut table = Table::default();
    for number in 0..100 {
        let name = format!("pod-{number}");
        table.insert(id(&name), entry(&name, Origin::Own));
        table.change(&id(&name), |entry| entry.watched = true);
    }
    table
}

#[test]
fn who_asks_for_pods_without_a_shim_looks_at_no_other() {
    let mut table = settled();
    assert!(table.index.unwatched.is_empty() && table.without_shim().is_empty());
    for gone in ["pod-7", "pod-8"] {
        table.change(&id(gone), |entry| entry.watched = false);
    }
    assert_eq!((table.index.unwatched.len(), table.without_shim()), (2, vec![id("pod-7"), id("pod-8")]));
    table.set_status(&id("pod-7"), ended());
    table.change(&id("pod-8"), |entry| entry.shim_started = Some(Instant::now()));
    assert_eq!(table.index.unwatched, [id("pod-8")].into(), "its shim may say soon that it is there");
    assert!(table.without_shim().is_empty());
    table.remove(&id("pod-8"));
    assert!(table.index.unwatched.is_empty());
}

#[test]
fn who_asks_for_what_cannot_be_read_looks_at_no_other() {
    let mut table = settled();
    assert!(!table.has_unreadable());
    for damaged in ["pod-7", "pod-8"] {
        table.cannot_read(&id(damaged), "damaged".into());
    }
    let ids = |table: &Table| table.unreadable().into_iter().map(|(id, ..)| id).collect::<Vec<_>>();
    assert_eq!((table.index.unreadable.len(), ids(&table)), (2, vec![id("pod-7"), id("pod-8")]));
    assert!(table.set_status(&id("pod-7"), None).is_some(), "it can be read again");
    table.remove(&id("pod-8"));
    assert!(ids(&table).is_empty() && !table.has_unreadable());
}

#[test]
fn who_asks_for_strangers_looks_at_no_other() {
    let mut table = settled();
    let (here, there) = ("n".into(), "m".into());
    assert!(table.strange_runs(&here).is_empty() && !table.has_strangers(&here));
    table.insert(id("old"), entry("old", Origin::Stranger));
    assert_eq!((table.strange_runs(&here), table.index.strange_in(&here).count()), (vec![id("old")], 1));
    assert!(table.has_strangers(&here) && !table.has_strangers(&there));
    table.change(&id("old"), |entry| entry.stop_requested = true);
    assert!(!table.has_strangers(&here) && table.strange_runs(&here).len() == 1, "it is ending");
    table.set_status(&id("old"), ended());
    assert!(table.strange_runs(&here).is_empty());
}

#[test]
fn a_pod_that_ended_with_an_earlier_run_of_the_machine_keeps_none_from_starting() {
    let phase = PodPhase::Ended { outcome: PodOutcome::interrupted("its shim was told to end") };
    let status = PodStatus { phase, ..PodStatus::beginning("before".into(), None) };
    let is_interrupted = |status: PodStatus| {
        matches!(status.phase, PodPhase::Ended { outcome: PodOutcome::Unknown { interrupted: true, .. } })
    };
    assert!(is_interrupted(status.clone().seen_in("before")), "the machine may be shutting down");
    assert!(!is_interrupted(status.seen_in("after")), "it has been started again");
}
