//! Names and identities. Each is a type of its own, so that no two can be confused, and cheap to clone, because it stands in
//! many records and keys.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a value that is known to be well formed.
            pub fn new(value: impl Into<Arc<str>>) -> Self {
                Self(value.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.into())
            }
        }
    };
}

name!(
    /// A watched repository, as the daemon's configuration names it.
    RepositoryName
);
name!(
    /// A place that statuses are written to, such as `notes` or `gitea`; what was written is remembered under it.
    WriterName
);
name!(
    /// A sink: who is told what happens.
    SinkName
);
name!(
    /// What a repository declares itself to be; the first part of every key.
    ProjectName
);
name!(
    /// A stage of the shipyard.
    StageName
);
name!(
    /// The unit of delivery inside a stage.
    ServiceName
);
name!(
    /// Where a stage's objects live on its runtime; `<project>-<stage>` unless the project says otherwise.
    Namespace
);
name!(
    /// Something on which pods run.
    RuntimeName
);
name!(
    /// A pod's name, unique in its namespace among the pods that a runtime still knows.
    PodName
);
name!(
    /// A full commit id in lower-case hex.
    CommitId
);
name!(
    /// `sha256:<hex>` of canonical content.
    Digest
);
name!(
    /// One execution that is driven. Deployments are named after their target, sequences by a ULID.
    RunId
);
name!(
    /// A stored plan.
    PlanId
);
name!(
    /// A stored hold.
    HoldId
);
name!(
    /// One life of the store: another when it is made anew, and another when a copy takes its place. What outlives the
    /// store carries it, so that nothing of one life is taken for something of the next.
    Incarnation
);

/// The fewest digits that name a commit.
const SHORTEST_WORD: usize = 4;

impl CommitId {
    /// The commit of which a text is the whole id: a part of one could be another's.
    pub fn whole(text: &str) -> Option<Self> {
        let is_whole = [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_whole.then(|| Self::new(text.to_ascii_lowercase()))
    }

    /// The first seven digits, as `git log --oneline` shows them.
    pub fn short(&self) -> &str {
        self.0.get(..7).unwrap_or(&self.0)
    }

    /// A person's word for a commit: at least four digits, the first ones of its id or all.
    pub fn word(text: &str) -> Option<Self> {
        let is_word = text.len() >= SHORTEST_WORD && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_word.then(|| Self(text.to_ascii_lowercase().into()))
    }

    /// Whether it is a whole id, of SHA-1 or SHA-256: the first digits of one may be those of another commit, too.
    pub fn is_whole(&self) -> bool {
        [40, 64].contains(&self.0.len()) && self.0.bytes().all(|digit| digit.is_ascii_hexdigit())
    }

    /// Whether a person's word for a commit means this one.
    pub fn is_named_by(&self, word: Option<&Self>) -> bool {
        word.is_some_and(|word| word.0.len() >= SHORTEST_WORD && self.0.starts_with(&*word.0))
    }
}

/// A service in a stage of a project: what a slot belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceKey {
    /// The project that declares the stage.
    pub project: ProjectName,
    /// The stage.
    pub stage: StageName,
    /// The service in it.
    pub service: ServiceName,
}

impl ServiceKey {
    /// The deployment config `name` in the service's stage.
    pub fn config(&self, name: &str) -> ConfigKey {
        ConfigKey { project: self.project.clone(), stage: self.stage.clone(), name: name.to_owned() }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.project, self.stage, self.service)
    }
}

/// The runtime of this machine.
const LOCAL: &str = "local";

/// Where the objects of a stage live: on a runtime, in a namespace of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// The runtime.
    pub runtime: RuntimeName,
    /// The namespace there.
    pub namespace: Namespace,
}

impl Destination {
    /// A namespace on this machine.
    pub fn local(namespace: Namespace) -> Self {
        Self { runtime: RuntimeName::new(LOCAL), namespace }
    }

    /// A namespace on a Kubernetes cluster.
    pub fn kubernetes(namespace: Namespace) -> Self {
        Self { runtime: RuntimeName::new("kubernetes"), namespace }
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        self.runtime.as_str() == LOCAL
    }
}

/// A deployment config in a stage of a project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConfigKey {
    /// The project that declares it.
    pub project: ProjectName,
    /// The stage it is deployed to.
    pub stage: StageName,
    /// `metadata.name`.
    pub name: String,
}

impl ConfigKey {
    /// The run that brings version `version` of this config up.
    pub fn deployment(&self, version: u32) -> RunId {
        RunId::new(format!("{}/{}/{}-{version}", self.project, self.stage, self.name))
    }

    /// Under what facts are remembered that concern this config and none of its versions' runs.
    pub fn events(&self) -> RunId {
        RunId::new(format!("dc/{self}"))
    }
}

/// What stands between a repository's name and the stage of an environment of it: no configured name has it.
const ENVIRONMENT: char = '@';
/// What the stage of a pull request's environment is called, before its number.
const PULL: &str = "pr-";

impl StageName {
    /// The stage of the environment of a pull request.
    pub fn of_pull(number: u64) -> Self {
        Self(format!("{PULL}{number}").into())
    }

    /// The pull request whose environment a stage of this name may be.
    pub fn pull(&self) -> Option<u64> {
        self.0.strip_prefix(PULL)?.parse().ok()
    }
}

impl RepositoryName {
    /// The repository of its own that the environment of a pull request is.
    pub fn environment(&self, number: u64) -> Self {
        Self(format!("{self}{ENVIRONMENT}{PULL}{number}").into())
    }

    /// The repository that is watched, of which this one is an environment; itself, if it is none.
    pub fn watched(&self) -> Self {
        self.0.split_once(ENVIRONMENT).map_or_else(|| self.clone(), |(watched, _)| Self(watched.into()))
    }

    /// The pull request whose environment it is, if it is one.
    pub fn pull(&self) -> Option<u64> {
        StageName::from(self.0.split_once(ENVIRONMENT)?.1).pull()
    }

    /// Under what facts are remembered that concern this repository and none of its runs.
    pub fn events(&self) -> RunId {
        RunId::new(format!("repository/{self}"))
    }
}

impl ServiceKey {
    /// Under what facts are remembered that concern this service and none of its runs.
    pub fn events(&self) -> RunId {
        RunId::new(format!("service/{self}"))
    }

    /// The service whose facts are remembered so, if it is a service.
    pub fn with_events(run: &RunId) -> Option<Self> {
        let mut names = run.as_str().strip_prefix("service/")?.splitn(3, '/');
        let (project, stage, service) = (names.next()?, names.next()?, names.next()?);
        Some(Self { project: project.into(), stage: stage.into(), service: service.into() })
    }
}

impl fmt::Display for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.project, self.stage, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_a_repository_of_its_own_that_names_the_watched_one() {
        let shop = RepositoryName::new("shop");
        let environment = shop.environment(12);
        assert_eq!((environment.as_str(), StageName::of_pull(12).as_str()), ("shop@pr-12", "pr-12"));
        assert_eq!((environment.watched(), environment.pull()), (shop.clone(), Some(12)));
        assert_eq!((shop.watched(), shop.pull()), (shop, None));
        assert_eq!(["pr-12", "pr-x", "dev"].map(|stage| StageName::from(stage).pull()), [Some(12), None, None]);
    }
}
