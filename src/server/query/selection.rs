//! What a question names.

use super::MOST;
use crate::model::ids::{RepositoryName, StageName};
use crate::model::run::Run;
use crate::model::state::ConfigState;
use crate::model::unique_name::NameOwner;
use crate::server::view::HoldView;
use crate::store::RunFilter;

/// Which of several are meant; absent parts match everything.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selection {
    /// Of this repository.
    pub repository: Option<String>,
    /// Of this project.
    pub project: Option<String>,
    /// In this stage.
    pub stage: Option<String>,
    /// Of this service.
    pub service: Option<String>,
    /// Of this name.
    pub name: Option<String>,
    /// On this revision.
    pub commit: Option<String>,
    /// `sequence` or `deployment`.
    pub kind: Option<String>,
    /// Sequences that bring this deployment config.
    pub brings: Option<String>,
    /// Only open (true) or only ended (false) ones.
    pub open: Option<bool>,
    /// Of this run.
    pub run: Option<String>,
    /// Only what came after this number.
    pub after: Option<i64>,
    /// Only what was created before this run; for paging.
    pub before: Option<String>,
    /// At most so many.
    pub limit: Option<u32>,
}

impl Selection {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(100).clamp(1, MOST)
    }

    pub(super) fn takes(&self, wanted: Option<&String>, value: &str) -> bool {
        wanted.is_none_or(|wanted| wanted == value)
    }

    /// Whether something of a repository is meant: that of an environment is also its watched one's.
    pub(super) fn takes_of(&self, repository: &RepositoryName) -> bool {
        let wanted = self.repository.as_ref();
        self.takes(wanted, repository.as_str()) || self.takes(wanted, repository.watched().as_str())
    }

    /// Whether a repository is listed: an environment is one only to those who name it.
    pub(super) fn takes_repository(&self, name: &str) -> bool {
        let is_named = self.repository.is_some() || self.name.is_some();
        self.takes(self.repository.as_ref(), name)
            && self.takes(self.name.as_ref(), name)
            && (is_named || RepositoryName::new(name).pull().is_none())
    }

    pub(super) fn takes_config(&self, config: &ConfigState) -> bool {
        self.takes_of(&config.repository)
            && self.takes(self.service.as_ref(), config.service.as_str())
            && self.takes(self.name.as_ref(), &config.key.name)
    }

    pub(super) fn takes_owner(&self, owner: &NameOwner) -> bool {
        let stage = owner.stage.as_ref().map_or("", StageName::as_str);
        self.takes_of(&owner.repository)
            && self.takes(self.project.as_ref(), owner.project.as_str())
            && self.takes(self.stage.as_ref(), stage)
    }

    /// Whether what belongs to no repository that is known is meant too.
    pub(super) fn takes_nobodys(&self) -> bool {
        self.repository.is_none() && self.project.is_none() && self.stage.is_none()
    }

    /// Whether a hold is in the way of what is selected: one of a project is in that of each of its stages.
    pub(super) fn takes_hold(&self, hold: &HoldView) -> bool {
        let covers = |wanted, covered: Option<&String>| covered.is_none_or(|covered| self.takes(wanted, covered));
        self.takes(self.repository.as_ref(), hold.repository.as_deref().unwrap_or_default())
            && self.takes(self.project.as_ref(), &hold.project)
            && covers(self.stage.as_ref(), hold.stage.as_ref())
            && covers(self.service.as_ref(), hold.service.as_ref())
    }

    /// Whether a run is of the repository and in the stage that are meant.
    pub(super) fn takes_place(&self, run: &Run) -> bool {
        self.takes_of(run.revision().0) && self.takes(self.stage.as_ref(), run.service().stage.as_str())
    }

    pub(super) fn takes_run(&self, run: &Run) -> bool {
        self.brings.as_ref().is_none_or(|config| run.sequence().is_some_and(|run| run.brings(config)))
            && self.takes_place(run)
    }

    pub(super) fn runs(&self) -> RunFilter {
        // Those of an environment are the repository's as well: they are sorted out afterwards.
        let may_be_environment = self.stage.as_deref().is_some_and(|stage| StageName::from(stage).pull().is_some());
        RunFilter {
            repository: self.repository.as_deref().filter(|_| !may_be_environment).map(Into::into),
            project: self.project.as_deref().map(Into::into),
            stage: self.stage.as_deref().map(Into::into),
            service: self.service.clone(),
            config: self.name.clone(),
            commit: self.commit.as_deref().map(Into::into),
            context: None,
            sequences: self.kind.as_deref().map(|kind| kind == "sequence"),
            open: self.open,
            before: self.before.as_deref().map(Into::into),
            limit: self.limit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_of_a_project_is_in_the_way_of_each_of_its_stages() {
        let hold = |stage: Option<&str>| HoldView {
            id: "01AAAA".into(),
            kind: "hold".into(),
            scope: String::new(),
            repository: Some("shop".into()),
            project: "store".into(),
            stage: stage.map(str::to_owned),
            service: None,
            reason: String::new(),
            by: String::new(),
            since: None,
        };
        let selection = |repository: &str, stage: &str| Selection {
            repository: Some(repository.into()),
            stage: Some(stage.into()),
            ..Selection::default()
        };
        assert!(selection("shop", "dev").takes_hold(&hold(None)));
        assert!(selection("shop", "dev").takes_hold(&hold(Some("dev"))));
        assert!(!selection("shop", "dev").takes_hold(&hold(Some("live"))));
        assert!(!selection("bank", "dev").takes_hold(&hold(None)));
        assert!(!selection("store", "dev").takes_hold(&hold(None)), "that is the project");
    }
}
