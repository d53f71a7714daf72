//! What is there and no record names: the store that knew it was lost, or is older than it.

use std::sync::Arc;

use crate::model::ids::{ConfigKey, StageName};
use crate::model::object::{Kind, ObjectKey};
use crate::model::project::Project;
use crate::model::state::RepositoryState;
use crate::plan::prune::Prune;

/// Who has the name that something is found under, with all that says whether it may go.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The repository.
    pub repository: RepositoryState,
    /// The stage that the name stands for.
    pub stage: Option<StageName>,
    /// Whether nothing of its project is under way.
    pub is_idle: bool,
    /// What its applied revision declares, as far as that matters and is known.
    pub declared: Option<Arc<Project>>,
}

impl Holder {
    /// Whether what no record names may go: only once the repository's head was applied in this life of the store, nothing
    /// of it is under way, and that head does not declare it either. What a delivery that failed should have brought is
    /// declared all the same, and serves on.
    pub fn lets_go(&self, stage: &StageName, key: &ObjectKey) -> bool {
        let is_declared = self.declared.as_ref().is_none_or(|project| project.wants(stage, key));
        let is_settled = self.is_idle && self.repository.has_applied_its_head();
        self.repository.down || is_settled && !is_declared
    }

    /// Which of a project's deployment configs may go that no record names. `known` is how many are remembered;
    /// `declares_nothing` says whether the applied revision is without any object.
    ///
    /// # Errors
    /// If that is more than goes without a person; says why.
    pub fn orphans_to_end<'a>(
        &self,
        orphans: &[&'a ConfigKey],
        known: usize,
        declares_nothing: bool,
    ) -> Result<Vec<&'a ConfigKey>, String> {
        let key = |orphan: &ConfigKey| ObjectKey { kind: Kind::DeploymentConfig, name: orphan.name.clone() };
        let gone: Vec<&ConfigKey> =
            orphans.iter().copied().filter(|orphan| self.lets_go(&orphan.stage, &key(orphan))).collect();
        let owned = known + orphans.len();
        let prune = Prune {
            gone: gone.iter().map(|orphan| key(orphan)).collect(),
            owned,
            declares_nothing,
            ..Prune::default()
        };
        match prune.is_allowed() || self.is_prune_allowed() {
            true => Ok(gone),
            false => Err(prune.refusal("REV")),
        }
    }

    fn is_prune_allowed(&self) -> bool {
        let RepositoryState { down, applied, allowed_prune, .. } = &self.repository;
        *down || applied.as_ref().is_some_and(|applied| applied.is_named_by(allowed_prune.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::shipyard::Shipyard;
    use crate::testing::world::{deployment_config, project};

    /// A repository whose head declares `web` and that has seen it.
    fn holder() -> Holder {
        let head = Some("1a2b3c4d".into());
        let fresh = RepositoryState::new("shop".into(), "/shop.git", "main");
        let declared = project(Shipyard::implicit(), &[deployment_config("web", "a", 1, serde_json::json!({}))]);
        Holder {
            repository: RepositoryState { applied: head.clone(), seen: head, ..fresh },
            stage: Some("default".into()),
            is_idle: true,
            declared: Some(Arc::new(declared)),
        }
    }

    fn changed(change: impl FnOnce(&mut Holder)) -> Holder {
        let mut holder = holder();
        change(&mut holder);
        holder
    }

    #[test]
    fn only_what_the_applied_head_does_not_declare_goes_and_not_before_all_came_to_rest() {
        let key = |name: &str| ObjectKey { kind: Kind::DeploymentConfig, name: name.into() };
        for (case, holder, web, old) in [
            ("declared", holder(), false, true),
            ("not synced in this life", changed(|it| it.repository.seen = None), false, false),
            ("the head is broken or refused", changed(|it| it.repository.seen = Some("ffff".into())), false, false),
            ("something is under way", changed(|it| it.is_idle = false), false, false),
            ("what is declared is not known", changed(|it| it.declared = None), false, false),
            ("taken down", changed(|it| (it.repository.down, it.is_idle) = (true, false)), true, true),
        ] {
            let goes = |name| holder.lets_go(&"default".into(), &key(name));
            assert_eq!((goes("web"), goes("old")), (web, old), "{case}");
        }
    }

    #[test]
    fn more_than_a_few_orphans_wait_for_a_person() {
        let keys: Vec<ConfigKey> = (0..4)
            .map(|number| ConfigKey { project: "shop".into(), stage: "default".into(), name: format!("old-{number}") })
            .collect();
        let orphans: Vec<&ConfigKey> = keys.iter().collect();
        let ends = |holder: &Holder, orphans: &[&ConfigKey], known, nothing| {
            holder.orphans_to_end(orphans, known, nothing).map(|gone| gone.len())
        };
        assert_eq!(ends(&holder(), &orphans[..3], 0, false), Ok(3), "a few");
        assert_eq!(ends(&holder(), &orphans, 4, false), Ok(4), "not more than half");
        let refusal = ends(&holder(), &orphans, 3, false).unwrap_err();
        assert!(refusal.contains("4 of 7 objects") && refusal.contains("--allow-prune REV"), "{refusal}");
        assert!(ends(&holder(), &orphans[..1], 9, true).unwrap_err().contains("declares nothing"));
        let allowed = changed(|it| it.repository.allowed_prune = Some("1a2b".into()));
        assert_eq!(ends(&allowed, &orphans, 0, true), Ok(4), "allowed for this head");
        let other = changed(|it| it.repository.allowed_prune = Some("ffff".into()));
        assert!(ends(&other, &orphans, 0, true).is_err(), "allowed for another head");
        assert_eq!(ends(&changed(|it| it.is_idle = false), &orphans, 0, false), Ok(0), "none may go yet");
    }
}
