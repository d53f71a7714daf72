//! One file: what it declares, and the same with its images resolved.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Class, Result};
use crate::manifest::content_trigger::{self, FollowedFiles};
use crate::manifest::digest;
use crate::manifest::files::{Absence, Content, FileEntry, FileKind, Files, too_large};
use crate::manifest::object::{Declarations, ImageUse, Source};
use crate::manifest::problem::Problem;
use crate::manifest::program::ProgramUse;
use crate::manifest::project::PROJECT_FILE;
use crate::manifest::service::SHARED;
use crate::manifest::stage_context::{StageContext, Terms};
use crate::manifest::{globs, template, yaml};
use crate::model::ids::{ServiceName, StageName};
use crate::model::object::{Location, Object};
use crate::model::project::TaskDefinition;

/// What a file declares, whatever else is in the tree.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) id: String,
    pub(super) declarations: Declarations,
    lens: Lens,
}

/// What of the stages that have it a file was read by.
#[derive(Debug)]
enum Lens {
    /// What they share.
    Terms(Terms),
    /// Everything: it means something else in each.
    Stages(Vec<Arc<StageContext>>),
}

/// A file that cannot be read is worth a warning only up to this size, unless it may be one of ours.
const WORTH_A_WARNING: usize = 1 << 20;
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

impl Parsed {
    /// Reads and parses; hands back beside it what is in each object.
    pub(super) fn read(
        entry: &FileEntry,
        contexts: Vec<Arc<StageContext>>,
        files: &dyn Files,
    ) -> Result<(Arc<Self>, Vec<Value>)> {
        let mut declarations = Declarations::default();
        let has_template = match content(entry, files)? {
            Ok(bytes) => declare(&entry.path, &bytes, &contexts, &mut declarations),
            Err(problem) => {
                declarations.problems.push(problem.unread());
                false
            }
        };
        let contents = std::mem::take(&mut declarations.contents);
        declarations.objects.shrink_to_fit();
        let lens = match same_terms(&contexts) {
            Some(terms) if !has_template => Lens::Terms(terms),
            _ => Lens::Stages(contexts),
        };
        Ok((Arc::new(Self { id: entry.id.clone(), declarations, lens }), contents))
    }

    /// Whether it would be read in the same way for these stages.
    pub(super) fn is_for(&self, contexts: &[Arc<StageContext>]) -> bool {
        match &self.lens {
            Lens::Terms(terms) => same_terms(contexts) == Some(*terms),
            Lens::Stages(known) => known == contexts,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.declarations.is_empty()
    }

    /// The folders that its images name, and what its deployment configs follow, some perhaps twice.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        let of_objects = self.declarations.objects.iter().flat_map(|object| &object.images);
        let of_tasks = self.declarations.tasks.iter().filter_map(|task| task.image.as_ref());
        let followed = self.declarations.objects.iter().flat_map(|object| &object.follows_content.files);
        let followed = followed.map(|files| files.pattern.as_str());
        of_objects.chain(of_tasks).map(|image| image.folder.as_str()).chain(followed)
    }

    /// What those folders have to bring along.
    pub(super) fn programs(&self) -> impl Iterator<Item = &ProgramUse> {
        let of_objects = self.declarations.objects.iter().flat_map(|object| &object.programs);
        of_objects.chain(self.declarations.tasks.iter().filter_map(|task| task.program.as_ref()))
    }
}

/// A file's bytes, or why it is refused.
pub(super) fn content(entry: &FileEntry, files: &dyn Files) -> Result<Result<Vec<u8>, Problem>> {
    let refuse = |code, message: &str, hint: &str| Problem::in_file(&entry.path, code, message).hint(hint);
    if let FileKind::Refused(why) = entry.kind {
        return Ok(Err(refuse("path", &format!("the path {why}"), "rename it")));
    }
    if !matches!(entry.kind, FileKind::File { .. }) {
        let hint = "commit the file itself; nothing is read through symlinks and submodules";
        return Ok(Err(refuse("symlink", "this is no regular file", hint)));
    }
    let content = match files.read(entry) {
        Ok(content) => content,
        Err(failure) if failure.class() == Class::Stalled => {
            let problem = Problem::in_file(&entry.path, "unreadable", failure.to_string());
            return Ok(Err(match failure.hint_text() {
                Some(hint) => problem.hint(hint),
                None => problem,
            }));
        }
        Err(failure) => return Err(failure),
    };
    let (size, may_be_ours) = match content {
        Content::Whole(bytes) if bytes.starts_with(LFS_POINTER) => {
            let hint = "keep manifests out of Git LFS: `git lfs untrack`, then commit the file again";
            return Ok(Err(refuse("lfs", "this is a Git LFS pointer, not the file", hint)));
        }
        Content::Whole(bytes) if bytes.len() as u64 <= files.limit() => return Ok(Ok(bytes)),
        Content::Whole(bytes) => (bytes.len() as u64, mentions_a_type(&String::from_utf8_lossy(&bytes))),
        Content::TooLarge(size) => (size, false),
    };
    let problem = too_large(&entry.path, size, files.limit());
    Ok(Err(if may_be_ours || entry.path == PROJECT_FILE { problem } else { problem.warning() }))
}

/// The terms of all stages, if they have the same; where a file is for none, those of most stages.
fn same_terms(contexts: &[Arc<StageContext>]) -> Option<Terms> {
    let mut terms = contexts.iter().map(|context| context.terms);
    let first = terms.next().unwrap_or_default();
    terms.all(|other| other == first).then_some(first)
}

/// Adds what a file declares; whether a template is in it.
fn declare(path: &str, bytes: &[u8], contexts: &[Arc<StageContext>], declarations: &mut Declarations) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_ours = path == PROJECT_FILE || mentions_a_type(&text);
    if !is_ours && text.len() > WORTH_A_WARNING && !text.contains("metadata") {
        return false;
    }
    let has_template = Cell::new(false);
    let reading = yaml::read_each(bytes, &|document| {
        let is_project = path == PROJECT_FILE && document.value.get("kind").is_some_and(|kind| kind == "Project");
        let mut declared = Declarations::default();
        if !is_project {
            has_template.set(has_template.get() || template::may_be_in(&document.value));
            add(path, &document, contexts, &mut declared);
        }
        (!declared.is_empty()).then_some(declared)
    });
    if !reading.errors.is_empty() {
        let told = reading.errors.iter().map(|error| problem(path, error));
        match is_ours {
            true => declarations.problems.extend(told),
            false => declarations.problems.extend(told.take(1).map(|problem| problem.warning().unread())),
        }
        return false;
    }
    reading.documents.into_iter().for_each(|declared| declarations.append(declared));
    has_template.get()
}

/// Adds what a document declares, once for all stages for which that is the same.
fn add(path: &str, document: &yaml::Document, contexts: &[Arc<StageContext>], declarations: &mut Declarations) {
    let is_template = template::may_be_in(&document.value);
    let mut groups: Vec<(&StageContext, BTreeSet<StageName>)> = Vec::new();
    for context in contexts {
        let same = groups.iter_mut().find(|(other, _)| !is_template && other.terms == context.terms);
        match same {
            Some((_, stages)) => drop(stages.insert(context.stage.clone())),
            None => groups.push((context, BTreeSet::from([context.stage.clone()]))),
        }
    }
    match groups.as_slice() {
        [] => declarations.add(&Source::new(path, document, &StageContext::nowhere(), None)),
        [(context, _)] => declarations.add(&Source::new(path, document, context, None)),
        several => {
            let read = several.iter().map(|(context, stages)| {
                let mut declared = Declarations::default();
                declared.add(&Source::new(path, document, context, Some(Arc::new(stages.clone()))));
                declared
            });
            let mut read: Vec<Declarations> = read.collect();
            // What one stage's strategy has no use for may be another's.
            let unused: Vec<Vec<Problem>> = read.iter_mut().map(Declarations::take_leftover_blocks).collect();
            let is_in =
                |others: &Vec<Problem>, problem: &Problem| others.iter().any(|it| it.pointer == problem.pointer);
            let everywhere = |problem: &&Problem| unused.iter().all(|others| is_in(others, problem));
            declarations.problems.extend(unused.iter().flatten().filter(everywhere).cloned());
            read.into_iter().for_each(|declared| declarations.append(declared));
        }
    }
}

/// A document is ours only with `apiVersion` and `kind`; others are searched for slips.
fn mentions_a_type(text: &str) -> bool {
    text.contains("kind") && text.contains("apiVersion")
}

pub(in crate::manifest) fn problem(path: &str, error: &yaml::ReadError) -> Problem {
    let place = Location { file: path.to_owned(), line: error.position.line, column: error.position.column };
    let mut problem = Problem::error(&place, error.code, error.message.clone());
    problem.pointer.clone_from(&error.pointer);
    match &error.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem,
    }
}

/// A parsed file whose images carry the ids of their folders.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) parsed: Arc<Parsed>,
    /// In the order of the declarations; their service is only known in a stage.
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) tasks: Vec<Arc<TaskDefinition>>,
    missing: Vec<Problem>,
}

impl Resolved {
    /// `contents` are those of the objects, with any ids or none; `missing` is what their folders lack.
    pub(super) fn new<'a>(
        parsed: Arc<Parsed>,
        contents: Vec<Value>,
        ids: &impl Fn(&str) -> Result<&'a str, Absence>,
        mut missing: Vec<Problem>,
    ) -> Self {
        let mut resolve = |image: &ImageUse| {
            let id = ids(&image.folder).map_err(|absence| missing.push(no_folder(image, &absence))).ok()?;
            Some(Value::String(format!("git:{}@{id}", if image.folder.is_empty() { "." } else { &image.folder })))
        };
        let mut unfollowed = Vec::new();
        let mut objects = Vec::with_capacity(parsed.declarations.objects.len());
        for (declared, mut content) in parsed.declarations.objects.iter().zip(contents) {
            for image in &declared.images {
                if let (Some(name), Some(place)) = (resolve(image), content.pointer_mut(&image.pointer)) {
                    *place = name;
                }
            }
            let followed = declared.follows_content.files.iter().map(|files| match ids(&files.pattern) {
                Ok(id) => (files.pattern.as_str(), id),
                Err(absence) => {
                    unfollowed.push(nothing_at(files, &absence));
                    (files.pattern.as_str(), "")
                }
            });
            let followed: Vec<(&str, &str)> = followed.collect();
            if !followed.is_empty() {
                content_trigger::put_files(&mut content, followed.into_iter());
            }
            objects.push(Arc::new(Object {
                key: declared.key.clone(),
                service: declared.links.service.clone().unwrap_or_else(|| ServiceName::new(SHARED)),
                location: declared.location.clone(),
                digest: digest::of(&content),
                content: content.into(),
                autoscaled_at: None,
            }));
        }
        let mut tasks = Vec::with_capacity(parsed.declarations.tasks.len());
        for declared in &parsed.declarations.tasks {
            let mut definition = declared.definition.clone();
            if let Some(Value::String(name)) = declared.image.as_ref().and_then(&mut resolve) {
                definition.image = name;
            }
            tasks.push(Arc::new(definition));
        }
        missing.append(&mut unfollowed);
        Self { parsed, objects, tasks, missing }
    }

    /// What is in each object.
    pub(super) fn contents(&self) -> Vec<Value> {
        self.objects.iter().map(|object| object.content.value()).collect()
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.parsed.declarations.problems.iter().chain(&self.missing)
    }
}

/// A path that is not there may be misspelt; a glob may match something one day.
fn nothing_at(files: &FollowedFiles, absence: &Absence) -> Problem {
    let path = files.pattern.trim_start_matches('/');
    let (message, hint) = match absence {
        Absence::Nothing if globs::is_glob(path) => {
            let problem = Problem::error(&files.location, "no-match", format!("no file matches `git:{path}`"));
            return problem.warning().hint("`*` stops at a slash, `**` is any folders");
        }
        Absence::Nothing => {
            (format!("the repository has no file and no folder `{path}`"), "write its path from the root")
        }
        through => through.explain(path),
    };
    Problem::error(&files.location, "not-found", message).hint(hint)
}

fn no_folder(image: &ImageUse, absence: &Absence) -> Problem {
    let (message, hint) = absence.explain(&image.folder);
    let hint = match absence {
        Absence::Nothing => "commit the folder; a `git:` image is read from the deployed revision",
        Absence::Submodule(_) | Absence::Symlink(_) => hint,
    };
    let mut problem = Problem::error(&image.location, "image", message).hint(hint);
    problem.field = crate::manifest::problem::field_path(&image.pointer);
    problem.pointer.clone_from(&image.pointer);
    problem
}
