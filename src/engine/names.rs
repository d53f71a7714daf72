//! Names that only one may have: a project belongs to one repository, a namespace to one stage of one project.

use std::collections::BTreeMap;

use crate::engine::records::{Records, Undecided};
use crate::engine::transition::Transition;
use crate::model::ids::{Namespace, ProjectName, RepositoryName, StageName};
use crate::model::project::Project;
use crate::model::state::RepositoryState;
use crate::model::unique_name::{NameOwner, UniqueName};

/// Why a project may not be deployed beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Taken {
    /// The name that is another's; nothing, if the project gives it to two of its own stages.
    pub(in crate::engine) name: Option<UniqueName>,
    /// For people.
    pub(in crate::engine) reason: String,
}

/// Why a project may not be deployed beside the others: its name or one of its namespaces is another's.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn taken(
    records: &Records,
    repository: &RepositoryName,
    project: &Project,
) -> Result<Option<Taken>, Undecided> {
    let name = UniqueName::Project(project.name.clone());
    let owner = records.names.get(&name)?;
    if let Some(other) = owner.filter(|owner| &owner.repository != repository) {
        let reason = format!(
            "repository `{0}` declares project `{1}` already; rename one in launchway.yaml, or, if `{0}` is what this one was \
             called before, call it so again in the configuration",
            other.repository, project.name
        );
        return Ok(Some(Taken { name: Some(name), reason }));
    }
    if let Some(before) = records.repositories.get(repository)?
        && let Some(left) = renamed(records, before, project)?.or(moved(records, before, project)?)
    {
        return Ok(Some(left));
    }
    let mut own: BTreeMap<&Namespace, String> = BTreeMap::new();
    for stage in &project.stages {
        let namespace = &stage.destination.namespace;
        let here = place(&stage.name, &project.name);
        let name = UniqueName::Namespace(namespace.clone());
        let other = match records.names.get(&name)? {
            Some(owner) if owner.is(&project.name, &stage.name) => None,
            Some(owner) => in_use(records, owner, namespace, (repository, project))?,
            None => None,
        };
        let other = match (other, own.insert(namespace, here.clone())) {
            (Some(other), _) => Some((Some(name), other)),
            (None, own) => own.map(|own| (None, own)),
        };
        if let Some((name, other)) = other {
            let reason = format!(
                "{here} and {other} both live in namespace `{namespace}`; give one of them another `namespace` in launchway.yaml"
            );
            return Ok(Some(Taken { name, reason }));
        }
    }
    Ok(None)
}

/// Why a project keeps its name: something of it is deployed under that, and would be left behind.
fn renamed(records: &Records, before: &RepositoryState, project: &Project) -> Result<Option<Taken>, Undecided> {
    let Some(was) = before.project.as_ref().filter(|was| **was != project.name) else { return Ok(None) };
    let name = UniqueName::Project(was.clone());
    if records.names.get(&name)?.is_none_or(|owner| owner.repository != before.name) {
        return Ok(None);
    }
    Ok(records.inhabited(was)?.first().map(|stage| {
        let reason = format!(
            "stage `{stage}` of project `{was}` is deployed, and would be left behind by project `{}`; give it the name \
             `{was}` again in launchway.yaml, or first push a revision of `{was}` that declares nothing",
            project.name
        );
        Taken { name: Some(name), reason }
    }))
}

/// Why a stage stays where it is: something of it lives there, and would be left behind. A hold may keep that, although the
/// stage was declared no longer meanwhile.
fn moved(records: &Records, before: &RepositoryState, project: &Project) -> Result<Option<Taken>, Undecided> {
    for stage in &project.stages {
        let to = &stage.destination.namespace;
        let was_declared_here = before.namespaces.contains(to)
            && records
                .names
                .get(&UniqueName::Namespace(to.clone()))?
                .is_some_and(|it| it.is(&project.name, &stage.name));
        if was_declared_here {
            continue; // where it lives, if anywhere
        }
        if let Some(from) = lives_in(records, &project.name, &stage.name)?.filter(|from| *from != to) {
            let reason = format!(
                "stage `{}` lives in namespace `{from}` and cannot move to `{to}`; give it that `namespace` again in \
                 launchway.yaml, or another name, under which everything is deployed anew",
                stage.name
            );
            return Ok(Some(Taken { name: Some(UniqueName::Project(project.name.clone())), reason }));
        }
    }
    Ok(None)
}

/// The namespace in which anything is left of a stage.
fn lives_in<'a>(
    records: &'a Records,
    project: &ProjectName,
    stage: &StageName,
) -> Result<Option<&'a Namespace>, Undecided> {
    match records.inhabited(project)?.contains(stage) {
        true => records.lives_in(project, stage),
        false => Ok(None),
    }
}

/// Who lives in a namespace that has an owner; nobody, if it is declared no longer and nothing of it is left there.
fn in_use(
    records: &Records,
    owner: &NameOwner,
    namespace: &Namespace,
    (repository, project): (&RepositoryName, &Project),
) -> Result<Option<String>, Undecided> {
    let Some(stage) = &owner.stage else { return Ok(None) };
    let declared = match owner.project == project.name {
        true => project.stage(stage).is_some_and(|declared| &declared.destination.namespace == namespace),
        // What the repository declared by another name it declares no longer.
        false => &owner.repository != repository && is_declared(records, owner, namespace)?,
    };
    let is_there = declared || lives_in(records, &owner.project, stage)? == Some(namespace);
    Ok(is_there.then(|| place(stage, &owner.project)))
}

/// Whether what is applied of a namespace's owner declares it.
fn is_declared(records: &Records, owner: &NameOwner, namespace: &Namespace) -> Result<bool, Undecided> {
    let state = records.repositories.get(&owner.repository)?.filter(|it| it.project.as_ref() == Some(&owner.project));
    Ok(state.is_some_and(|state| state.namespaces.contains(namespace)))
}

fn place(stage: &StageName, project: &ProjectName) -> String {
    format!("stage `{stage}` of project `{project}`")
}

/// A repository whose head was refused for a name is judged anew once that may be free; and at once the first time, because it may
/// have become so while nobody knew who claims it.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn claim(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    name: &UniqueName,
    waited_for: Option<&UniqueName>,
) -> Result<(), Undecided> {
    let Some(owner) = transition.records.names.get_mut(name)? else { return Ok(()) };
    owner.claimants.insert(repository.clone());
    if waited_for == Some(name) { Ok(()) } else { transition.plan_again(repository) }
}

/// A project and its namespaces become the repository's; what it declared itself to be before is free again.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn take(
    transition: &mut Transition<'_>,
    state: &RepositoryState,
    repository: &RepositoryName,
    project: &Project,
) -> Result<(), Undecided> {
    if let Some(before) = state.project.as_ref().filter(|before| **before != project.name) {
        give_up(transition, repository, &UniqueName::Project(before.clone()))?;
    }
    let names = &mut transition.records.names;
    let namespaces = project
        .stages
        .iter()
        .map(|stage| (UniqueName::Namespace(stage.destination.namespace.clone()), Some(stage.name.clone())));
    for (name, stage) in std::iter::once((UniqueName::Project(project.name.clone()), None)).chain(namespaces) {
        let mut claimants = names.get(&name)?.map(|owner| owner.claimants.clone()).unwrap_or_default();
        claimants.remove(repository);
        let (repository, project) = (repository.clone(), project.name.clone());
        names.put(&name, Some(NameOwner { name: name.clone(), repository, project, stage, claimants }))?;
    }
    Ok(())
}

/// A name is free, if it is the repository's: those that were refused it are judged anew.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn give_up(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    name: &UniqueName,
) -> Result<(), Undecided> {
    let owner = transition.records.names.get(name)?.filter(|owner| &owner.repository == repository);
    let Some(owner) = owner.cloned() else { return Ok(()) };
    transition.records.names.put(name, None)?;
    judge_again(transition, name, owner.claimants.iter())
}

/// Something has left a namespace: whoever has it may have waited for that to move, or to be called otherwise; and others, if nobody
/// declares it any more.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn left(transition: &mut Transition<'_>, namespace: &Namespace) -> Result<(), Undecided> {
    let name = UniqueName::Namespace(namespace.clone());
    let Some(owner) = transition.records.names.get(&name)?.cloned() else { return Ok(()) };
    let project = UniqueName::Project(owner.project.clone());
    let waits = transition.records.names.get(&project)?.is_some_and(|it| it.claimants.contains(&owner.repository));
    judge_again(transition, &project, waits.then_some(&owner.repository).into_iter())?;
    if owner.claimants.is_empty() || is_declared(transition.records, &owner, namespace)? {
        return Ok(());
    }
    judge_again(transition, &name, owner.claimants.iter())
}

/// Those of the claimants of a name are judged anew that still wait for it: their newest head was refused for it.
fn judge_again<'a>(
    transition: &mut Transition<'_>,
    name: &UniqueName,
    claimants: impl Iterator<Item = &'a RepositoryName>,
) -> Result<(), Undecided> {
    for claimant in claimants {
        let state = transition.records.repositories.get(claimant)?;
        if state.is_some_and(|state| state.refused_name.as_ref() == Some(name)) {
            transition.plan_again(claimant)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::records::{Found, Lookup};
    use crate::model::shipyard::{Shipyard, Stage};
    use crate::model::state::Versioned;
    use crate::plan::build::default_namespace;
    use crate::testing::world;

    fn project(name: &str, stages: &[&str]) -> Project {
        let stages = stages.iter().map(|stage| Stage { name: (*stage).into(), sequences: Vec::new() }).collect();
        let mut project = world::project(Shipyard { stages, ..Shipyard::default() }, &[]);
        project.name = name.into();
        for stage in &mut project.stages {
            stage.destination.namespace = default_namespace(&project.name, &stage.name);
        }
        project
    }

    /// What is remembered once repository `one` has declared stage `api-dev` of project `shop`, and what has become of
    /// that: what it declares now, and whether anything is left of the stage.
    fn remembered(now: &Project, inhabited: bool) -> Records {
        let mut records = Records::default();
        let value = |value| Some(Versioned { version: 1, value });
        let namespace = UniqueName::Namespace("shop-api-dev".into());
        let (repository, project, stage) = ("one".into(), "shop".into(), Some("api-dev".into()));
        let owner = NameOwner { name: namespace.clone(), repository, project, stage, claimants: [].into() };
        let name = UniqueName::Project("shop".into());
        records.names.read(name.clone(), value(NameOwner { name, stage: None, ..owner.clone() }));
        records.names.read(namespace, value(owner));
        let mut state = RepositoryState::new("one".into(), "/one", "main");
        state.project = Some(now.name.clone());
        state.namespaces = now.stages.iter().map(|stage| stage.destination.namespace.clone()).collect();
        records.repositories.read("one".into(), Some(Versioned { version: 1, value: state }));
        records.repositories.read("two".into(), None);
        for name in ["shop-api", "store"] {
            records.names.read(UniqueName::Project(name.into()), None);
        }
        for free in ["shop-api-qa", "shop-qa", "live"] {
            records.names.read(UniqueName::Namespace(free.into()), None);
        }
        let left = if inhabited { BTreeSet::from(["api-dev".into()]) } else { BTreeSet::new() };
        for (project, left) in [("shop", left), ("shop-api", BTreeSet::new()), ("store", BTreeSet::new())] {
            records.found(Lookup::Inhabited(project.into()), Found::Stages(left));
        }
        let place = Lookup::LivesIn("shop".into(), "api-dev".into());
        records.found(place, Found::Namespace(Some("shop-api-dev".into())));
        records
    }

    #[test]
    fn a_namespace_is_anothers_until_it_is_declared_no_longer_and_empty() {
        let asks = project("shop-api", &["dev"]);
        let asked = || Some(UniqueName::Namespace("shop-api-dev".into()));
        for (case, now, inhabited, refused) in [
            ("declared", project("shop", &["api-dev"]), true, true),
            ("declared, and nothing there yet", project("shop", &["api-dev"]), false, true),
            ("stage renamed, pods left", project("shop", &["qa"]), true, true),
            ("stage renamed, all gone", project("shop", &["qa"]), false, false),
            ("project renamed, pods left", project("store", &["api-dev"]), true, true),
            ("project renamed, all gone", project("store", &["api-dev"]), false, false),
        ] {
            let why = taken(&remembered(&now, inhabited), &"two".into(), &asks).expect("everything was read");
            assert_eq!(why.is_some(), refused, "{case}: {why:?}");
            let both = ["stage `dev` of project `shop-api`", "stage `api-dev` of project `shop`", "`shop-api-dev`"];
            let says = |why: Taken| both.iter().all(|name| why.reason.contains(name)) && why.name == asked();
            assert!(why.is_none_or(says), "{case}");
        }
    }

    #[test]
    fn a_stage_moves_to_another_namespace_only_while_nothing_of_it_is_anywhere() {
        let mut moves = project("shop", &["api-dev"]);
        moves.stages[0].destination.namespace = "live".into();
        // With `qa` its end is held, and it is declared no longer.
        for (now, inhabited) in [("api-dev", true), ("api-dev", false), ("qa", true), ("qa", false)] {
            let before = remembered(&project("shop", &[now]), inhabited);
            let why = taken(&before, &"one".into(), &moves).expect("everything was read");
            assert_eq!(why.is_some(), inhabited, "{why:?}");
            assert!(why.is_none_or(|why| why.reason.contains("`shop-api-dev`") && why.reason.contains("`live`")));
        }
    }

    #[test]
    fn a_project_gets_another_name_only_while_nothing_of_it_is_anywhere() {
        for (now, inhabited) in [("api-dev", true), ("api-dev", false), ("qa", true)] {
            let before = remembered(&project("shop", &[now]), inhabited);
            let mut renamed = project("store", &["api"]);
            renamed.stages[0].destination.namespace = "live".into();
            let why = taken(&before, &"one".into(), &renamed).expect("everything was read");
            assert_eq!(why.is_some(), inhabited, "{why:?}");
            assert!(why.is_none_or(|why| why.reason.contains("`shop`") && why.reason.contains("`store`")));
        }
    }

    #[test]
    fn two_stages_of_one_project_never_share_a_namespace() {
        let mut shop = project("shop-api", &["dev", "qa"]);
        shop.stages[1].destination.namespace = "shop-api-dev".into();
        let why =
            taken(&remembered(&project("shop", &["qa"]), false), &"two".into(), &shop).expect("everything was read");
        let both = |why: Taken| why.reason.contains("stage `dev`") && why.reason.contains("stage `qa`");
        assert!(why.is_some_and(|why| why.name.is_none() && both(why)), "there is nobody to wait for");
    }
}
