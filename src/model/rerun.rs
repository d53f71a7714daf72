//! Checks on commits that people ask for again on their host.

use super::ids::CommitId;

/// That somebody asks for a check again, as its host tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// The repository, as `<owner>/<name>`.
    pub repository: String,
    /// Who asks, by which people know them.
    pub login: String,
    /// The commit that it is on.
    pub commit: CommitId,
    /// Its name, which is a context; nothing, if all of the commit are meant.
    pub context: Option<String>,
}
