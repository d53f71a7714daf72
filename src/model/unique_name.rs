//! Names that only one may have: a project belongs to one repository, a namespace to one stage of one project.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{Namespace, ProjectName, RepositoryName, StageName};

/// A name that only one may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UniqueName {
    /// A project's name.
    Project(ProjectName),
    /// Where objects live.
    Namespace(Namespace),
}

/// Who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOwner {
    /// The name.
    pub name: UniqueName,
    /// The repository that declares it.
    pub repository: RepositoryName,
    /// The project that it belongs to.
    pub project: ProjectName,
    /// For a namespace: the stage.
    pub stage: Option<StageName>,
    /// The repositories whose heads were refused for it. They are judged anew once it may be free.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub claimants: BTreeSet<RepositoryName>,
}

impl NameOwner {
    /// Whether it is that stage of that project.
    pub fn is(&self, project: &ProjectName, stage: &StageName) -> bool {
        &self.project == project && self.stage.as_ref() == Some(stage)
    }
}

impl fmt::Display for UniqueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UniqueName::Project(name) => write!(f, "project `{name}`"),
            UniqueName::Namespace(name) => write!(f, "namespace `{name}`"),
        }
    }
}
