//! The plan of a revision, built stage by stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use itertools::{EitherOrBoth, Itertools as _};

use crate::manifest::digest::{self, hex};
use crate::model::hold::Hold;
use crate::model::ids::{
    CommitId, Destination, Digest, PlanId, ProjectName, RepositoryName, RunId, ServiceName, StageName,
};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Carried, Change, Decision, PassedContent, Plan, ServicePlan, StagePlan, StageStart};
use crate::model::project::{Procedures, Project, StageContent, StageObjects};
use crate::model::shipyard::{Sequence, Stage};
use crate::model::state::{AppliedDigest, ConfigState, ObjectState};
use crate::model::time::Timestamp;
use crate::plan::change::{applied_service, change_of, deleted, unchanged};
use crate::plan::order::{self as stage_order, Gate};
use crate::plan::prune::Prune;
use crate::plan::under_way::UnderWay;
use crate::plan::{config_change, controllers, gate, kept, same_procedure, sequence_for};

/// Which revision is planned, and when.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The repository.
    pub repository: RepositoryName,
    /// The revision.
    pub commit: CommitId,
    /// The first line of its message.
    pub subject: String,
    /// When it is planned.
    pub at: Timestamp,
    /// Whether a person allowed it to delete more than the rule does.
    pub prune_allowed: bool,
}

/// What is applied in one stage.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The digests of everything, in the order of the keys.
    pub digests: Vec<AppliedDigest>,
    /// The deployment configs among what [`differing`] named.
    pub configs: BTreeMap<ObjectKey, ConfigState>,
    /// The other objects among what [`differing`] named.
    pub objects: BTreeMap<ObjectKey, ObjectState>,
    /// What open deliveries bring here, by service: the one that has the last word.
    pub under_way: BTreeMap<ServiceName, UnderWay>,
    /// The open deliveries that are no part of that, by service, because a hold keeps them from beginning.
    pub held: BTreeMap<ServiceName, Vec<RunId>>,
    /// The holds that cover services here.
    pub holds: Vec<Hold>,
    /// Services that have neither passed here with what they declare nor ended otherwise, and why: only asked for where
    /// a sequence does more than deploy.
    pub not_passed: BTreeMap<ServiceName, String>,
    /// Services whose last delivery was of what they declare and ended before its deployment, and what helps.
    pub never_deployed: BTreeMap<ServiceName, String>,
    /// Services whose last delivery ended before its deployment, and brought what is declared no longer.
    pub withdrawn: BTreeSet<ServiceName>,
    /// Deployment configs that would be again what they were, because images came round by hooks; what is to be said of it.
    pub came_round: BTreeMap<ObjectKey, String>,
    /// Services whose content passed here earlier than what was delivered last.
    pub passed_before: BTreeMap<ServiceName, Digest>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What breaks which rule, and what to do.
    pub reason: String,
}

/// The objects of a stage whose records must be read, because their digests differ or nothing is settled. `applied` is
/// in the order of its keys.
pub fn differing(stage: Option<&StageContent>, applied: &[AppliedDigest]) -> BTreeSet<ObjectKey> {
    let declared = stage.into_iter().flat_map(|stage| stage.objects.iter());
    let both = declared.merge_join_by(applied, |object, row| object.key.cmp(&row.key));
    let key = |pair: EitherOrBoth<&Arc<Object>, &AppliedDigest>| match pair {
        EitherOrBoth::Both(object, row) if row.settled && row.digest == object.digest => None,
        EitherOrBoth::Both(object, _) | EitherOrBoth::Left(object) => Some(object.key.clone()),
        EitherOrBoth::Right(row) => Some(row.key.clone()),
    };
    let mut found: BTreeSet<ObjectKey> = both.filter_map(key).collect();
    // What deploys a replication controller is planned with it, and the other way round: they move together.
    let declared = found.iter().filter_map(|key| stage?.objects.get(key));
    let related = |object: &Arc<Object>| controllers::leader_of(object).into_iter().chain(controllers::of(object));
    let related: Vec<ObjectKey> = declared.flat_map(related).collect();
    found.extend(related);
    found
}

/// What a revision would do, compared with what is applied in its stages.
///
/// # Errors
/// If a rule refuses it.
pub fn build(project: &Project, revision: &Revision, applied: &BTreeMap<StageName, Applied>) -> Result<Plan, Refusal> {
    let delivery = delivery_sequences(project);
    let seen = Seen { applied, differing: differing_by_stage(project, applied) };
    check_prune(project, revision, &seen)?;
    check_selectors(project, applied)?;
    let declared = |name: &StageName| project.stage(name);
    let anything = |seen: &Applied| !seen.digests.is_empty() || !seen.under_way.is_empty();
    let vanished = applied.iter().filter(|(name, seen)| declared(name).is_none() && anything(seen));
    let vanished: Vec<StagePlan> = vanished.map(|(name, _)| vanished_stage(project, name, &seen)).collect();
    let mut stages = plan_stages(project, &delivery, &seen, |_, _| true);
    let parts = stages.iter().chain(&vanished).flat_map(|stage| &stage.services);
    let named: BTreeSet<ServiceName> = parts.map(|part| part.service.clone()).collect();
    // What the newest plan waits for is not led on to once this one is the newest of the service: it says so itself.
    let leads_on = |service: &ServiceName, under_way: &UnderWay| !under_way.of_newest || !named.contains(service);
    let stays = |stage: &StagePlan| {
        let seen = applied.get(&stage.stage).map(|applied| &applied.under_way);
        let under_way = |service: &ServiceName| seen.and_then(|seen| seen.get(service));
        stage.carried.keys().all(|service| under_way(service).is_none_or(|under_way| leads_on(service, under_way)))
    };
    if !stages.iter().all(stays) {
        stages = plan_stages(project, &delivery, &seen, leads_on);
    }
    stages.extend(vanished);
    let unnamed = Plan {
        id: PlanId::new(""),
        repository: revision.repository.clone(),
        project: project.name.clone(),
        commit: revision.commit.clone(),
        subject: revision.subject.clone(),
        at: Timestamp::default(),
        stages,
        statuses: project.statuses,
        procedures: digest::stored(procedures(project)),
    };
    Ok(Plan { id: identity(&unnamed), at: revision.at, ..unnamed })
}

/// What is applied, and which objects that leaves to be planned: compared once, because that goes through all of them.
struct Seen<'a> {
    applied: &'a BTreeMap<StageName, Applied>,
    differing: BTreeMap<&'a StageName, BTreeSet<ObjectKey>>,
}

fn differing_by_stage<'a>(
    project: &'a Project,
    applied: &'a BTreeMap<StageName, Applied>,
) -> BTreeMap<&'a StageName, BTreeSet<ObjectKey>> {
    let names: BTreeSet<&StageName> = project.stages.iter().map(|stage| &stage.name).chain(applied.keys()).collect();
    let digests = |name| applied.get(name).map(|seen| seen.digests.as_slice()).unwrap_or_default();
    names.into_iter().map(|name| (name, differing(project.stage(name), digests(name)))).collect()
}

impl Seen<'_> {
    fn differing(&self, stage: &StageName) -> impl Iterator<Item = &ObjectKey> {
        self.differing.get(stage).into_iter().flatten()
    }
}

/// The plans of all declared stages. What open deliveries do is left to them where `leads_on` says that they come there.
fn plan_stages(
    project: &Project,
    delivery: &BTreeMap<StageName, &Sequence>,
    seen: &Seen<'_>,
    leads_on: impl Fn(&ServiceName, &UnderWay) -> bool,
) -> Vec<StagePlan> {
    let starts = stage_order::starts(&project.shipyard, delivery);
    let nothing = Applied::default();
    let declared = |name: &StageName| project.stage(name);
    let mut stages: Vec<StagePlan> = Vec::new();
    for stage in &project.stages {
        let start = starts.get(&stage.name).cloned().unwrap_or(StageStart::ByHand);
        let gates = stage_order::gates(&project.shipyard, delivery, &starts, &stage.name);
        let before: Vec<Before<'_>> = gates.iter().map_while(|gate| Some((declared(&gate.stage)?, gate))).collect();
        let applied = seen.applied.get(&stage.name).unwrap_or(&nothing);
        let differing: Vec<&ObjectKey> = seen.differing(&stage.name).collect();
        let sequence = delivery.get(&stage.name).map(|sequence| (*sequence).clone());
        let nearest = |service: &ServiceName| nearest(&before, &stages, service);
        let comes = |service: &ServiceName, under_way: &UnderWay| {
            let passes = |(before, gate): Before<'_>| gate.sequence.is_none() && carries(&stages, before, service);
            under_way.is_here()
                || !start.is_from_outside() && leads_on(service, under_way) && nearest(service).is_some_and(passes)
        };
        let carried = carried_out(stage, sequence.as_ref(), (applied, &differing), comes);
        let planned = plan_stage(stage, start, sequence, nearest, (applied, &differing), carried);
        stages.push(planned);
    }
    stages
}

fn procedures(project: &Project) -> Procedures {
    let tasks = project.stages.iter().map(|stage| (stage.name.clone(), stage.tasks.clone()));
    Procedures { shipyard: project.shipyard.clone(), tasks: tasks.collect() }
}

/// The sequence that each stage is delivered by.
pub fn delivery_sequences(project: &Project) -> BTreeMap<StageName, &Sequence> {
    let sequence = |stage: &StageContent| -> Option<&Sequence> {
        let declared: &Stage = project.shipyard.stage(&stage.name)?;
        declared.delivery_sequence(stage.delivery.as_deref())
    };
    project.stages.iter().filter_map(|stage| Some((stage.name.clone(), sequence(stage)?))).collect()
}

fn check_prune(project: &Project, revision: &Revision, all: &Seen<'_>) -> Result<(), Refusal> {
    let declared: BTreeMap<&StageName, &StageContent> =
        project.stages.iter().map(|stage| (&stage.name, stage)).collect();
    let mut prune = Prune { declares_nothing: project.declares_nothing(), ..Prune::default() };
    let mut made = prune.clone();
    for (name, seen) in all.applied {
        let leaves = |key: &&ObjectKey| {
            seen.configs.get(*key).is_some_and(|config| config.removed)
                || seen.objects.get(*key).is_some_and(ObjectState::is_kept)
        };
        let stays = |key: &&ObjectKey| {
            declared.get(name).is_some_and(|stage| !stage.prune || stage.objects.contains(key)) || leaves(key)
        };
        prune.owned += seen.digests.len() - seen.configs.keys().chain(seen.objects.keys()).filter(leaves).count();
        let before = prune.gone.len();
        prune.gone.extend(all.differing(name).filter(|key| !stays(key)).cloned());
        let there = prune.gone.get(before..).unwrap_or_default();
        if !declared.contains_key(name) && !there.is_empty() {
            prune.stages.push((name.clone(), there.to_vec()));
        }
        let is_owned = |key: &&ObjectKey| seen.digests.binary_search_by(|owned| owned.key.cmp(key)).is_ok();
        let makes: BTreeSet<&ObjectKey> = seen.under_way.values().flat_map(UnderWay::makes).collect();
        let makes: Vec<&ObjectKey> = makes.into_iter().filter(|key| !is_owned(key)).collect();
        made.owned += makes.len();
        made.gone.extend(makes.into_iter().filter(|key| !stays(key)).cloned());
    }
    if revision.prune_allowed {
        return Ok(());
    }
    let is_new = |name: &&StageName| all.applied.get(*name).is_none_or(|seen| seen.digests.is_empty());
    prune.has_new_stage = declared.keys().any(is_new);
    // What is only being made counts beside what is there, and takes nothing from its weight.
    made.owned += prune.owned;
    made.gone.splice(..0, prune.gone.iter().cloned());
    let Some(prune) = [prune, made].into_iter().find(|prune| !prune.is_allowed()) else { return Ok(()) };
    Err(Refusal { reason: prune.refusal(revision.commit.short()) })
}

fn check_selectors(project: &Project, applied: &BTreeMap<StageName, Applied>) -> Result<(), Refusal> {
    let stages = project.stages.iter().filter_map(|stage| Some((stage, applied.get(&stage.name)?)));
    let refused = |(stage, seen): (&StageContent, &Applied)| {
        let mut configs = seen.configs.iter().filter_map(|(key, state)| Some((stage.objects.get(key)?, state)));
        configs.find_map(|(declared, state)| config_change::refusal(declared, state))
    };
    stages.filter_map(refused).next().map_or(Ok(()), |reason| Err(Refusal { reason }))
}

/// A stage that comes before another one, and what has to pass there.
type Before<'a> = (&'a StageContent, &'a Gate);

/// The nearest stage before that has a service, or had it until now: those without it let everything pass. One that an
/// open delivery rids of the service still has it, because its end has a say in the stages after it.
fn nearest<'a>(before: &[Before<'a>], planned: &[StagePlan], service: &ServiceName) -> Option<Before<'a>> {
    let declares = |stage: &StageContent| stage.objects.of_service(service).next().is_some();
    let changes = |stage: &StageContent| {
        planned.iter().any(|planned| planned.stage == stage.name && planned.service(service).is_some())
    };
    before.iter().copied().find(|(stage, _)| declares(stage) || changes(stage) || carries(planned, stage, service))
}

/// Whether an open delivery brings a stage all that it declares of a service.
fn carries(planned: &[StagePlan], stage: &StageContent, service: &ServiceName) -> bool {
    planned.iter().any(|planned| planned.stage == stage.name && planned.carried.contains_key(service))
}

/// The services of a stage for which open deliveries do everything that is declared: those that are here, and those
/// that will come because the stage before is being brought to what it declares too. What somebody has changed since
/// they were planned, such as by a rollback or a newer revision, they do not bring back, and what another sequence delivers
/// has passed only that; nor do they bring it to a namespace that was declared since.
fn carried_out(
    stage: &StageContent,
    sequence: Option<&Sequence>,
    (seen, differing): (&Applied, &[&ObjectKey]),
    comes: impl Fn(&ServiceName, &UnderWay) -> bool,
) -> Carried {
    if seen.under_way.is_empty() {
        return Carried::new();
    }
    let left_out = |(service, change): (ServiceName, Change)| {
        let under_way = seen.under_way.get(&service)?;
        let is_brought = under_way.keys.contains_key(&change.key) && !is_overtaken(&change.key, under_way, seen);
        (change.decision.does_something() && !is_brought).then_some(service)
    };
    let left_out: BTreeSet<ServiceName> =
        differing.iter().filter_map(|key| left_out(change_of(stage, key, seen)?)).collect();
    let alike = |service: &ServiceName, under_way: &UnderWay| {
        let sequence = sequence.map(|sequence| sequence_for(&under_way.content, sequence));
        let declared = sequence.map(|sequence| stage.procedure(&sequence, service));
        under_way.destination == stage.destination
            && declared.is_none_or(|declared| same_procedure(&declared, &under_way.procedure))
    };
    // It ends before it changes what is declared for another service.
    let ends = |service: &ServiceName, under_way: &UnderWay| {
        let moves = |key: &ObjectKey| stage.objects.get(key).is_some_and(|declared| declared.service != *service);
        under_way.changes().any(moves)
    };
    let whole = |(service, under_way): &(&ServiceName, &UnderWay)| {
        let brings_all = under_way.content == content_of(stage, service) && !left_out.contains(*service);
        brings_all && !ends(service, under_way) && alike(service, under_way) && comes(service, under_way)
    };
    let whole = seen.under_way.iter().filter(whole);
    whole.map(|(service, under_way)| (service.clone(), under_way.commit.clone())).collect()
}

/// Whether a newer revision has changed an object since a delivery was planned, which leaves it alone then.
fn is_overtaken(key: &ObjectKey, under_way: &UnderWay, seen: &Applied) -> bool {
    let config = seen.configs.get(key).and_then(|config| config.planned_at);
    let changed_at = config.or_else(|| seen.objects.get(key).and_then(|object| object.planned_at));
    changed_at.zip(under_way.planned_at).is_some_and(|(changed_at, planned_at)| changed_at > planned_at)
}

fn plan_stage<'a>(
    stage: &StageContent,
    start: StageStart,
    sequence: Option<Sequence>,
    before: impl Fn(&ServiceName) -> Option<Before<'a>>,
    (applied, differing): (&Applied, &[&ObjectKey]),
    carried: Carried,
) -> StagePlan {
    let mut changes: BTreeMap<ServiceName, Vec<Change>> = BTreeMap::new();
    for key in differing {
        if let Some((service, change)) = change_of(stage, key, applied) {
            changes.entry(service).or_default().push(change);
        }
    }
    for (service, under_way) in &applied.under_way {
        let found = changes.entry(service.clone()).or_default();
        found.extend(overtaken(stage, service, under_way, found, applied));
    }
    controllers::decide(stage, (applied, differing), &mut changes);
    kept::note_needs(stage, applied, &mut changes);
    for (service, why) in applied.never_deployed.iter().filter(|(service, _)| !applied.under_way.contains_key(*service))
    {
        changes.get_mut(service).into_iter().flatten().for_each(|change| leave(change, why));
    }
    let mut runs_again: BTreeMap<ServiceName, String> = BTreeMap::new();
    for (service, why) in &applied.not_passed {
        let found = changes.entry(service.clone()).or_default();
        if found.iter().all(|change| asks_for_nothing(change, applied)) {
            *found = stage.objects.of_service(service).map(unchanged).collect();
            runs_again.insert(service.clone(), why.clone());
        }
    }
    let mut services = Vec::new();
    for (service, mut changes) in changes {
        changes.sort_by_key(|change| (order(&change.key.kind), change.key.clone()));
        let content = content_of(stage, &service);
        if changes.is_empty() || carried.contains_key(&service) {
            continue;
        }
        let previous_stage = before(&service).map(|(before, gate)| {
            let (stage, content) = (before.name.clone(), content_of(before, &service));
            PassedContent { stage, content, sequence: gate.sequence.clone(), alone: gate.alone }
        });
        let has = |held: &ServiceName, change: &Change| applied_service(&change.key, applied).as_ref() == Some(held);
        let takes_from = |held: &ServiceName| changes.iter().any(|change| change.object.is_some() && has(held, change));
        let covers = |hold: &&Hold| hold.scope.service.as_ref().is_none_or(|held| held == &service || takes_from(held));
        if let Some(hold) = applied.holds.iter().find(covers) {
            changes = changes.into_iter().map(|change| gate::held(change, hold)).collect();
        }
        let runs_again = runs_again.remove(&service);
        let configs = stage.objects.of_service(&service).filter(|object| object.key.kind == Kind::DeploymentConfig);
        let configs = configs.filter(|object| !object.is_led());
        let configs = u32::try_from(configs.count()).unwrap_or(u32::MAX);
        services.push(ServicePlan { configs, service, content, previous_stage, changes, runs_again });
    }
    let (stage, destination, carried) = (stage.name.clone(), stage.destination.clone(), Arc::new(carried));
    StagePlan { stage, destination, start, sequence, services, carried }
}

/// Nothing is done about a change now.
fn leave(change: &mut Change, why: &str) {
    if change.decision.does_something() {
        (change.decision, change.cause) = (Decision::None, why.to_owned());
    }
}

/// Whether nothing differs, or what does is being made, so that nothing but the rest of the sequence is left to be done.
fn asks_for_nothing(change: &Change, applied: &Applied) -> bool {
    let attempt = applied.configs.get(&change.key).and_then(ConfigState::open_attempt);
    change.decision == Decision::None && (change.cause.is_empty() || attempt.is_some())
}

/// What open deliveries of other content are going to change, although nothing differs yet: once they have, what is
/// declared has to be brought back, so it belongs into the plan.
fn overtaken(
    stage: &StageContent,
    service: &ServiceName,
    under_way: &UnderWay,
    found: &[Change],
    applied: &Applied,
) -> Vec<Change> {
    let differs = under_way.content != content_of(stage, service);
    let keys: BTreeSet<&ObjectKey> =
        under_way.keys.keys().filter(|_| differs).chain(under_way.changed_before()).collect();
    let missing = |key: &&ObjectKey| !found.iter().any(|change| &change.key == *key);
    let restored = |key: &ObjectKey| match stage.objects.get(key) {
        Some(declared) if &declared.service == service => Some(unchanged(declared)),
        Some(_) => None,
        None => stage.prune.then(|| deleted(key, applied)),
    };
    keys.into_iter().filter(missing).filter_map(restored).collect()
}

/// Everything applied in a stage that no longer exists goes, without the ceremony of a sequence.
fn vanished_stage(project: &Project, name: &StageName, seen: &Seen<'_>) -> StagePlan {
    let (nothing, differing) = (Applied::default(), seen.differing(name).collect::<Vec<_>>());
    let applied = seen.applied.get(name).unwrap_or(&nothing);
    let implicit = crate::model::shipyard::Shipyard::implicit();
    let sequence = implicit.stages.first().and_then(|stage| stage.sequences.first()).cloned();
    let configs = applied.configs.values().map(|state| &state.destination);
    let objects = applied.objects.values().map(|state| &state.destination);
    let destination =
        configs.chain(objects).chain(applied.under_way.values().map(|it| &it.destination)).next().cloned();
    let empty = StageContent {
        name: name.clone(),
        destination: destination.unwrap_or_else(|| Destination::local(default_namespace(&project.name, name))),
        delivery: None,
        objects: StageObjects::default(),
        tasks: BTreeMap::new(),
        prune: true,
    };
    plan_stage(&empty, StageStart::Push, sequence, |_| None, (applied, &differing), Carried::new())
}

/// Where a stage's objects live unless the project says otherwise.
pub fn default_namespace(project: &ProjectName, stage: &StageName) -> crate::model::ids::Namespace {
    crate::model::ids::Namespace::new(format!("{project}-{stage}"))
}

/// What pods refer to comes before the pods, and what leads to them after.
fn order(kind: &Kind) -> u8 {
    match kind {
        Kind::ConfigMap | Kind::Secret | Kind::PersistentVolumeClaim | Kind::ImageStream => 0,
        Kind::Service | Kind::Endpoints => 1,
        Kind::Task | Kind::Other(_) => 2,
        Kind::DeploymentConfig | Kind::Deployment | Kind::ReplicationController => 3,
    }
}

/// The digest of everything that a service declares in a stage; that of nothing, if it declares nothing.
pub fn content_of(stage: &StageContent, service: &ServiceName) -> Digest {
    let mut context = Context::new(&SHA256);
    for object in stage.objects.of_service(service) {
        context.update(format!("{} {}\n", object.key, object.digest).as_bytes());
    }
    digest::named(&context.finish())
}

/// Whether content is that of a service which declares nothing any more.
pub fn is_nothing(content: &Digest) -> bool {
    *content == digest::named(&Context::new(&SHA256).finish())
}

/// A plan is named after what it says, whenever that is, so that the same plan is the same row.
fn identity(unnamed: &Plan) -> PlanId {
    let mut context = Context::new(&SHA256);
    context.update(&serde_json::to_vec(unnamed).unwrap_or_default());
    PlanId::new(hex(&context.finish().as_ref()[..16]))
}

/// The identity of what a plan does, whatever its revision is called: the merge result of a pull request has that of the
/// revision which merging it makes.
pub fn effect(plan: &Plan) -> Digest {
    let (id, commit, subject, at) = (PlanId::new(""), CommitId::new(""), String::new(), Timestamp::default());
    let mut context = Context::new(&SHA256);
    context.update(&serde_json::to_vec(&Plan { id, commit, subject, at, ..plan.clone() }).unwrap_or_default());
    digest::named(&context.finish())
}
