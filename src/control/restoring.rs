//! The commit that has Git say again what ran before, made from the mirror of a watched repository, without a work tree.

use std::sync::Arc;

use crate::control::watched::Watched;
use crate::engine::rollback::companions::{DeclaredBy, Step, companions};
use crate::engine::rollback::files::{self, Edits, Restored};
use crate::error::{Context, Failure, Result};
use crate::model::ids::{CommitId, StageName};
use crate::model::object::{Object, ObjectKey};
use crate::model::project::Project;
use crate::model::proposal::{Proposal, Proposed};
use crate::model::run::DeploymentRun;
use crate::model::state::Version;
use crate::model::time::Timestamp;
use crate::report::pull_request;
use crate::source::{self, Edit, EntryKind, ObjectId, Signature};

/// Who writes notes and commits; the address need not exist.
const AUTHOR: (&str, &str) = ("launchway", "launchway@localhost");
/// The most bytes of a difference that people are shown.
const MOST_OF_A_PATCH: usize = 64 << 10;

/// Whoever commits for launchway, at a time.
pub(super) fn author(at: Timestamp) -> Signature {
    Signature { name: AUTHOR.0.to_owned(), email: AUTHOR.1.to_owned(), at }
}

/// A commit that was made and is in the mirror; no branch leads to it yet.
#[derive(Clone, Debug)]
pub(super) struct Composed {
    /// It.
    pub(super) commit: CommitId,
    /// What it declares.
    pub(super) project: Arc<Project>,
    /// What it changes, by path.
    pub(super) paths: Vec<String>,
    /// The same line by line, of the files that declare something.
    pub(super) patch: String,
}

/// An object that comes back, as one of the revisions declares it.
#[derive(Clone, Debug)]
struct Returning {
    stage: StageName,
    object: Arc<Object>,
    commit: CommitId,
}

/// How Git came to say what is gone back from.
struct Came {
    /// The revision before.
    commit: CommitId,
    /// What it declares.
    before: Arc<Project>,
    /// What the first one declares that says it.
    after: Arc<Project>,
}

impl Watched {
    /// Makes the commit on top of `head` that restores what `earlier` versions were, each of a member of the proposal, with what they
    /// run with. `seen` are the revisions that were read, newest first.
    ///
    /// # Errors
    /// If more would change than what goes back, or the mirror cannot be read.
    pub(super) fn compose(
        &self,
        head: &CommitId,
        proposal: &Proposal,
        earlier: &[DeploymentRun],
        seen: &[CommitId],
    ) -> Result<Composed> {
        self.try_to_compose(head, proposal, earlier, seen).map_err(|failure| self.mirror.explained(failure))
    }

    fn try_to_compose(
        &self,
        head: &CommitId,
        proposal: &Proposal,
        earlier: &[DeploymentRun],
        seen: &[CommitId],
    ) -> Result<Composed> {
        let repository = self.mirror.open()?;
        let declared = self.readable(&repository, head)?;
        let mut returning = Vec::new();
        for (run, member) in earlier.iter().zip(&proposal.members) {
            let (stage, object, commit) = (run.config.stage.clone(), Arc::clone(&run.object), run.commit.clone());
            returning.push(Returning { stage, object, commit });
            returning.extend(self.companions(&repository, run, member, &declared, seen)?);
        }
        let restored: Vec<Restored<'_>> = returning.iter().map(|returning| restored(returning, &declared)).collect();
        let edits = self.edits(&repository, head, &returning, &restored)?;
        if edits.is_empty() {
            return Err(Failure::stalled(format!("{} says already what is to come back", head.short())));
        }
        let tree = repository.edited(head, &as_edits(&edits)?)?;
        let commits: Vec<CommitId> = earlier.iter().map(|run| run.commit.clone()).collect();
        let message = pull_request::commit_message(proposal, &commits);
        // As old as the head: asked for again, it is the same commit, and nothing has to be pushed or checked again.
        let author = author(repository.commit_info(head)?.time);
        let commit = repository.commit_tree(tree, head, &message, &author)?;
        let project = self.readable(&repository, &commit)?;
        files::check(&restored, &declared, &project)?;
        let files: Vec<&str> = edits.files.keys().map(String::as_str).collect();
        let patch = repository.patch(head, &commit, &files, MOST_OF_A_PATCH)?;
        Ok(Composed { commit, project, paths: edits.paths().collect(), patch })
    }

    /// What comes back with a member.
    fn companions(
        &self,
        repository: &source::Repository,
        run: &DeploymentRun,
        member: &Proposed,
        declared: &Project,
        seen: &[CommitId],
    ) -> Result<Vec<Returning>> {
        let stage = &run.config.stage;
        let Some(was) = self.declared_at(repository, &run.commit)? else { return Ok(Vec::new()) };
        let came = self.came(repository, member, &run.object.key, seen)?;
        let (Some(was), Some(head)) = (was.stage(stage), declared.stage(stage)) else { return Ok(Vec::new()) };
        let step = came
            .as_ref()
            .and_then(|came| Some(Step { before: came.before.stage(stage)?, after: came.after.stage(stage)? }));
        let version = Version { number: run.version, commit: run.commit.clone(), object: Arc::clone(&run.object) };
        let returning = |(object, declared_by)| {
            let commit = match (declared_by, &came) {
                (DeclaredBy::Before, Some(came)) => came.commit.clone(),
                _ => run.commit.clone(),
            };
            Returning { stage: stage.clone(), object, commit }
        };
        Ok(companions(&version, was, step, head).into_iter().map(returning).collect())
    }

    /// How Git came to say what a member goes back from, if that is among the revisions that were seen.
    fn came(
        &self,
        repository: &source::Repository,
        member: &Proposed,
        key: &ObjectKey,
        seen: &[CommitId],
    ) -> Result<Option<Came>> {
        let is_bad = |project: &Project| {
            let declared = project.stage(&member.config.stage).and_then(|stage| stage.objects.get(key));
            declared.is_some_and(|object| object.digest == member.bad)
        };
        let mut after = None;
        for commit in seen {
            let Some(project) = self.declared_at(repository, commit)? else { continue };
            match after {
                _ if is_bad(&project) => after = Some(project),
                Some(after) => return Ok(Some(Came { commit: commit.clone(), before: project, after })),
                None => {}
            }
        }
        Ok(None)
    }

    /// What a revision declares, if it is there and can be read.
    fn declared_at(&self, repository: &source::Repository, commit: &CommitId) -> Result<Option<Arc<Project>>> {
        if !repository.contains(commit)? {
            return Ok(None);
        }
        Ok(self.snapshot_at(repository, commit)?.project().project.clone())
    }

    fn edits(
        &self,
        repository: &source::Repository,
        head: &CommitId,
        returning: &[Returning],
        restored: &[Restored<'_>],
    ) -> Result<Edits> {
        let there = AtCommit { tree: repository.tree(head)?, limit: self.limits.manifest };
        let mut edits = Edits::default();
        restored.iter().try_for_each(|member| edits.add_folders(member, &there))?;
        for (Returning { commit, .. }, member) in returning.iter().zip(restored) {
            let gone =
                || Failure::stalled(format!("the revision {} is not in the repository any more", commit.short()));
            if !repository.contains(commit)? {
                return Err(gone().hint("its history was rewritten: restore the files by hand"));
            }
            let before = AtCommit { tree: repository.tree(commit)?, limit: self.limits.manifest };
            edits.add_file(member, &before, &there)?;
        }
        Ok(edits)
    }

    fn readable(&self, repository: &source::Repository, commit: &CommitId) -> Result<Arc<Project>> {
        let outcome = self.snapshot_at(repository, commit)?.project().clone();
        let first = outcome.problems.iter().find(|problem| problem.is_error()).map(ToString::to_string);
        let unreadable = || {
            let problem = first.unwrap_or_default();
            Failure::stalled(format!("{} cannot be read: {problem}", commit.short())).hint("push a fix first")
        };
        outcome.project.ok_or_else(unreadable)
    }
}

fn restored<'a>(Returning { stage, object, .. }: &'a Returning, declared: &'a Project) -> Restored<'a> {
    let now = declared.stage(stage).and_then(|stage| stage.objects.get(&object.key)).map(|object| &**object);
    Restored { stage, earlier: object, now }
}

fn as_edits(edits: &Edits) -> Result<Vec<Edit>> {
    let folder = |(path, id): (&String, &String)| Ok(Edit::Folder { path: path.clone(), id: ObjectId::parse(id)? });
    let file = |(path, content): (&String, &String)| {
        Ok(Edit::File { path: path.clone(), content: content.clone().into_bytes() })
    };
    edits.folders.iter().map(folder).chain(edits.files.iter().map(file)).collect()
}

/// A commit's tree.
struct AtCommit<'a> {
    tree: source::Tree<'a>,
    limit: u64,
}

impl files::Tree for AtCommit<'_> {
    fn file(&self, path: &str) -> Result<Option<String>> {
        let Some(entry) = self.tree.entry(path)? else { return Ok(None) };
        if !matches!(entry.kind, EntryKind::File | EntryKind::Executable) {
            return Err(Failure::stalled(format!("`{path}` is no file any more")).hint("restore it by hand"));
        }
        let content = self.tree.read(&entry, self.limit)?;
        String::from_utf8(content).or_stalled(|| format!("`{path}` is not text in UTF-8")).map(Some)
    }

    fn folder(&self, path: &str) -> Result<Option<String>> {
        Ok(self.tree.folder(path)?.map(|folder| folder.id().to_string()))
    }
}
