//! Names that others have, and what becomes of heads that were refused for them.

use super::*;
use crate::engine::fixtures::delivery;
use crate::engine::transition::Input;
use crate::model::project::Project;
use crate::plan::under_way::{Reached, UnderWay};

const FIRST: &str = "repo";
const SECOND: &str = "two";
const SHOP: [&str; 2] = ["shipyard dev", "declare web"];

/// What a project declares; its stages live in namespaces of their own, or all in one.
fn declares(lines: &[&str], namespace: Option<&str>) -> Project {
    let mut project = project(lines);
    for stage in &mut project.stages {
        let other = namespace.map(Into::into);
        stage.destination.namespace = other.unwrap_or_else(|| stage.destination.namespace.clone());
    }
    project
}

/// What comes of the head of a repository: why it is refused, if it is, and whose heads are to be judged anew.
fn syncs(memory: &mut Memory, repository: &str, project: Project) -> (String, Vec<RepositoryName>) {
    let watched = Watched { name: repository.into(), url: format!("file:///{repository}"), ..watched() };
    let (head, planning) = (Head { declared: Ok(Arc::new(project)), ..head("c9", &FILES) }, Stages::new());
    let planning = Planning::against(planning);
    let made = memory.commit(|it| decide(it, &watched, &head, &planning, None)).expect("a head is always judged");
    let reason = match &made.answer {
        RevisionResult::Refused { reason } => reason.clone(),
        RevisionResult::Planned(_) => String::new(),
        RevisionResult::Broken { problems } => unreachable!("{problems:?}"),
    };
    (reason, made.touched.unseen.into_iter().collect())
}

fn is_seen(memory: &Memory, repository: &str) -> bool {
    memory.get::<RepositoryState>(RepositoryName::new(repository)).seen.is_some()
}

fn is_planned() -> String {
    String::new()
}

/// The last pod of `web` in `dev`, which no file declares any more, is gone.
fn web_leaves(memory: &mut Memory) -> Vec<RepositoryName> {
    let is_gone = ConfigState { removed: true, ..serving(1, "a") };
    *memory = memory.clone().with(is_gone);
    let forgotten = memory.commit(|it| it.take(&Input::Forget(web()))).expect("nothing is wrong");
    forgotten.touched.unseen.into_iter().collect()
}

#[test]
fn a_project_is_asked_for_again_once_the_repository_that_has_it_is_called_otherwise() {
    let (shop, store) =
        (|| declares(&SHOP, None), || declares(&["project store", "shipyard dev", "declare web"], None));
    let mut memory = Memory::default();
    assert_eq!(syncs(&mut memory, FIRST, shop()), (is_planned(), vec![]));
    let (reason, again) = syncs(&mut memory, SECOND, shop());
    assert!(reason.contains("repository `repo` declares project `shop` already"), "{reason}");
    assert_eq!(again, [SECOND.into()], "the name may have become free while nobody knew who claims it");
    let (reason, again) = syncs(&mut memory, SECOND, shop());
    assert_eq!((reason.is_empty(), again, is_seen(&memory, SECOND)), (false, vec![], true), "that happens once");
    assert_eq!(web_leaves(&mut memory), vec![], "the name is what it waits for");
    assert_eq!(syncs(&mut memory, FIRST, store()), (is_planned(), vec![SECOND.into()]));
    assert!(!is_seen(&memory, SECOND), "its head is news again");
    assert_eq!(syncs(&mut memory, SECOND, shop()), (is_planned(), vec![]));
    let owner = memory.get::<NameOwner>(UniqueName::Project("shop".into()));
    assert_eq!((&owner.repository, &owner.claimants), (&SECOND.into(), &[].into()));
}

#[test]
fn a_namespace_is_asked_for_again_once_nothing_is_there_and_nobody_declares_it() {
    let bazaar = || declares(&["project bazaar", "shipyard dev", "declare api"], Some("shop-dev"));
    let (mut memory, none) = (Memory::default(), Vec::<RepositoryName>::new());
    assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, None)), (is_planned(), none.clone()));
    let (reason, again) = syncs(&mut memory, SECOND, bazaar());
    assert!(reason.contains("both live in namespace `shop-dev`"), "{reason}");
    assert_eq!(again, [SECOND.into()]);
    assert_eq!(syncs(&mut memory, SECOND, bazaar()).1, none);
    assert_eq!(web_leaves(&mut memory), none, "`dev` is declared");
    let (mut elsewhere, web_is_left) = (memory.clone(), memory.clone().with(serving(1, "a")));
    let lives_on = declares(&["shipyard production", "declare web"], None);
    assert_eq!(syncs(&mut elsewhere, FIRST, lives_on.clone()), (is_planned(), vec![SECOND.into()]));
    assert_eq!(syncs(&mut elsewhere, SECOND, bazaar()), (is_planned(), none.clone()));
    // Where something is left, its end is what counts.
    memory = web_is_left;
    assert_eq!(syncs(&mut memory, FIRST, lives_on).1, [SECOND.into()]);
    assert_ne!(syncs(&mut memory, SECOND, bazaar()).0, is_planned());
    assert_eq!(web_leaves(&mut memory), [SECOND.into()]);
    assert_eq!(syncs(&mut memory, SECOND, bazaar()), (is_planned(), none));
}

#[test]
fn a_stage_that_goes_before_anything_of_it_was_applied_goes_from_where_it_was_declared() {
    let files = declares(&["shipyard dev", "declare web image=b"], Some("live"));
    let (run, stage) = (delivery("s1", "b"), &files.stages[0]);
    let sequence = files.shipyard.stages[0].sequences[0].clone();
    let how = (stage.procedure(&sequence, &"web".into()).into(), &stage.destination);
    let content = build::content_of(stage, &"web".into());
    let under_way = UnderWay::new(&run.commit, (&content, run.changes()), how, Reached::Slot);
    let dev = Applied { under_way: [("web".into(), under_way)].into(), ..Applied::default() };
    let head = head("c2", &["shipyard production", "declare api stage=production"]);
    let planning = Planning::against([("dev".into(), dev)].into());
    let memory = Memory::default().with(repository());
    let made = memory.decide(|it| decide(it, &watched(), &head, &planning, None)).expect("it is judged");
    let RevisionResult::Planned(plan) = &made.answer else { unreachable!("{made:#?}") };
    let places = plan.stages.iter().map(|stage| (stage.stage.as_str(), stage.destination.namespace.as_str()));
    assert_eq!(places.collect::<Vec<_>>(), [("production", "shop-production"), ("dev", "live")]);
}

#[test]
fn a_project_that_moves_is_asked_for_again_once_nothing_is_left_where_it_was() {
    let renamed = ["project store", "shipyard dev", "declare web"];
    for (moved, reason) in [
        (declares(&SHOP, Some("live")), "lives in namespace `shop-dev` and cannot move to `live`"),
        (declares(&renamed, None), "would be left behind by project `store`"),
        (declares(&renamed, Some("shop-dev")), "would be left behind by project `store`"),
    ] {
        let mut memory = Memory::default();
        assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, None)).0, is_planned());
        memory = memory.with(serving(1, "a"));
        let (refused, again) = syncs(&mut memory, FIRST, moved.clone());
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(again, [FIRST.into()]);
        assert_eq!(syncs(&mut memory, FIRST, moved.clone()).1, []);
        assert_eq!(web_leaves(&mut memory), [FIRST.into()]);
        assert_eq!(syncs(&mut memory, FIRST, moved).0, is_planned());
    }
}

#[test]
fn a_project_that_is_called_otherwise_waits_for_stages_too_that_it_declares_no_longer() {
    let mut memory = Memory::default();
    assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, None)).0, is_planned());
    memory = memory.with(serving(1, "a"));
    assert_eq!(syncs(&mut memory, FIRST, declares(&["shipyard production"], None)).0, is_planned());
    for (lines, namespace, reason) in [
        (&["project store", "shipyard production"][..], None, "stage `dev` of project `shop` is deployed"),
        (&SHOP, Some("live"), "stage `dev` lives in namespace `shop-dev` and cannot move to `live`"),
    ] {
        let mut memory = memory.clone();
        let (refused, again) = syncs(&mut memory, FIRST, declares(lines, namespace));
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(again, [FIRST.into()]);
        assert_eq!(web_leaves(&mut memory), [FIRST.into()]);
        assert_eq!(syncs(&mut memory, FIRST, declares(lines, namespace)).0, is_planned());
    }
}

#[test]
fn who_was_refused_and_then_wants_something_else_is_not_judged_anew() {
    let mut memory = Memory::default();
    assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, None)).0, is_planned());
    memory = memory.with(serving(1, "a"));
    assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, Some("live"))).1, [FIRST.into()], "it cannot move");
    let bazaar = |namespace| declares(&["project bazaar", "shipyard dev", "declare api"], namespace);
    assert_eq!(syncs(&mut memory, SECOND, bazaar(Some("shop-dev"))).1, [SECOND.into()], "`shop` is there");
    // What is left of `dev` is removed, which a hold keeps; each plan supersedes what the one before has queued.
    assert_eq!(syncs(&mut memory, FIRST, declares(&["shipyard production"], None)).0, is_planned());
    let nothing = declares(&["project bazaar", "shipyard dev"], None);
    assert_eq!(syncs(&mut memory, SECOND, nothing), (is_planned(), vec![]));
    assert_eq!(web_leaves(&mut memory.clone()), []);
    assert_eq!(syncs(&mut memory, SECOND, bazaar(Some("shop-dev"))).1, [SECOND.into()], "it may have become free");
    assert_eq!(syncs(&mut memory, SECOND, bazaar(Some("shop-dev"))).1, []);
    assert_eq!(web_leaves(&mut memory), [SECOND.into()]);
}

#[test]
fn a_stage_moves_neither_where_another_was_nor_back_to_where_it_was_once() {
    let name = UniqueName::Namespace("elsewhere".into());
    let (project, stage) = ("shop".into(), Some("dev".into()));
    let once = NameOwner { name, repository: FIRST.into(), project, stage, claimants: [].into() };
    let mut memory = Memory::default().with(once);
    assert_eq!(syncs(&mut memory, FIRST, declares(&SHOP, None)).0, is_planned());
    memory = memory.with(serving(1, "a"));
    let in_live = |stage| declares(&[stage, "declare web"], Some("live"));
    assert_eq!(syncs(&mut memory, FIRST, in_live("shipyard production")).0, is_planned());
    for declared in [in_live("shipyard dev"), declares(&SHOP, Some("elsewhere"))] {
        let (refused, _) = syncs(&mut memory.clone(), FIRST, declared);
        assert!(refused.contains("lives in namespace `shop-dev` and cannot move to"), "{refused}");
    }
    let (free, _) =
        syncs(&mut memory, SECOND, declares(&["project bazaar", "shipyard dev", "declare api"], Some("elsewhere")));
    assert_eq!(free, is_planned());
}
