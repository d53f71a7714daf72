//! What records refer to by digest: declared objects, and what runs. Each content is stored once.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Context, Result};
use crate::model::by_digest::ByDigest;
use crate::model::ids::Digest;
use crate::model::json::Json;
use crate::model::object::Object;
use crate::model::plan::{Change, Plan};
use crate::model::run::Run;
use crate::model::state::{ConfigState, ObjectState, spec_of};
use crate::store::record::{PlanPart, Record};

/// A value that is stored once, by its digest.
pub(super) trait Content {
    /// Its identity.
    fn digest(&self) -> &Digest;
    /// Its text.
    ///
    /// # Errors
    /// If it has no JSON form, which is a mistake in the program.
    fn text(&self) -> Result<String>;
    /// Takes over what was stored.
    ///
    /// # Errors
    /// If it is damaged.
    fn fill(&mut self, stored: &Stored) -> Result<()>;
}

/// A content as it was stored, and as it was read by the first who refers to it: the others share it.
pub(super) struct Stored {
    json: Json,
    read: OnceCell<Arc<dyn Any + Send + Sync>>,
}

impl Stored {
    /// Takes a text that was stored.
    ///
    /// # Errors
    /// If it is no JSON at a glance.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Ok(Self { json: Json::parse(text)?, read: OnceCell::new() })
    }

    fn read<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, serde_json::Error> {
        if let Some(read) = self.read.get().and_then(|read| Arc::clone(read).downcast().ok()) {
            return Ok(read);
        }
        let read: Arc<T> = Arc::new(self.json.read()?);
        drop(self.read.set(read.clone())); // one content has one shape
        Ok(read)
    }
}

impl Content for Arc<Object> {
    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn text(&self) -> Result<String> {
        Ok(self.content.text().to_owned())
    }

    fn fill(&mut self, stored: &Stored) -> Result<()> {
        Arc::make_mut(self).content = stored.json.clone();
        Ok(())
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Content for ByDigest<T> {
    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn text(&self) -> Result<String> {
        serde_json::to_string(&*self.value).or_stalled(|| format!("cannot write the content `{}`", self.digest))
    }

    fn fill(&mut self, stored: &Stored) -> Result<()> {
        self.value = stored.read().or_stalled(|| format!("the stored content `{}` is damaged", self.digest))?;
        Ok(())
    }
}

/// A record that refers to contents.
pub(super) trait Refers: Record {
    /// They.
    fn contents(&self) -> Vec<&dyn Content>;
    /// They, to be filled in.
    fn contents_mut(&mut self) -> Vec<&mut dyn Content>;
    /// Makes what follows from them, once they are filled in.
    ///
    /// # Errors
    /// If a content does not fit the record.
    fn complete(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Refers for Run {
    fn contents(&self) -> Vec<&dyn Content> {
        match self {
            Run::Sequence(run) => {
                let mut contents: Vec<&dyn Content> = vec![&run.procedure];
                contents.extend(objects_of(run.changes()));
                let before = run.group.iter().flat_map(|group| &group.before);
                contents.extend(before.map(|version| &version.object as &dyn Content));
                contents
            }
            Run::Deployment(run) => vec![&run.object],
        }
    }

    fn contents_mut(&mut self) -> Vec<&mut dyn Content> {
        match self {
            Run::Sequence(run) => {
                let mut contents: Vec<&mut dyn Content> = vec![&mut run.procedure];
                contents.extend(run.delivery.iter_mut().flat_map(|delivery| objects_of_mut(&mut delivery.changes)));
                let before = run.group.iter_mut().flat_map(|group| &mut group.before);
                contents.extend(before.map(|version| &mut version.object as &mut dyn Content));
                contents
            }
            Run::Deployment(run) => vec![&mut run.object],
        }
    }

    fn complete(&mut self) -> Result<()> {
        if let Run::Deployment(run) = self {
            run.spec = spec_of(&run.object).or_stalled(|| format!("the stored content of `{}` is damaged", run.id))?;
        }
        Ok(())
    }
}

impl Refers for ConfigState {
    fn contents(&self) -> Vec<&dyn Content> {
        let attempted = self.attempted.as_ref().map(|attempt| &attempt.version);
        let beside = self.beside.as_ref().map(|beside| &beside.version);
        let versions = self.serving.iter().chain(beside).chain(attempted).map(|version| &version.object);
        [&self.object].into_iter().chain(versions).map(|object| object as &dyn Content).collect()
    }

    fn contents_mut(&mut self) -> Vec<&mut dyn Content> {
        let attempted = self.attempted.as_mut().map(|attempt| &mut attempt.version);
        let beside = self.beside.as_mut().map(|beside| &mut beside.version);
        let versions = self.serving.iter_mut().chain(beside).chain(attempted).map(|version| &mut version.object);
        [&mut self.object].into_iter().chain(versions).map(|object| object as &mut dyn Content).collect()
    }
}

impl Refers for ObjectState {
    fn contents(&self) -> Vec<&dyn Content> {
        let earlier = self.earlier.iter().map(|earlier| &earlier.object);
        [&self.object].into_iter().chain(earlier).map(|object| object as &dyn Content).collect()
    }

    fn contents_mut(&mut self) -> Vec<&mut dyn Content> {
        let earlier = self.earlier.iter_mut().map(|earlier| &mut earlier.object);
        [&mut self.object].into_iter().chain(earlier).map(|object| object as &mut dyn Content).collect()
    }
}

impl Refers for Plan {
    fn contents(&self) -> Vec<&dyn Content> {
        vec![&self.procedures]
    }

    fn contents_mut(&mut self) -> Vec<&mut dyn Content> {
        vec![&mut self.procedures]
    }
}

impl Refers for PlanPart {
    fn contents(&self) -> Vec<&dyn Content> {
        self.stages.iter().flat_map(|(_, service)| objects_of(&service.changes)).collect()
    }

    fn contents_mut(&mut self) -> Vec<&mut dyn Content> {
        self.stages.iter_mut().flat_map(|(_, service)| objects_of_mut(&mut service.changes)).collect()
    }
}

fn objects_of(changes: &[Change]) -> impl Iterator<Item = &dyn Content> {
    changes.iter().filter_map(|change| change.object.as_ref()).map(|object| object as &dyn Content)
}

fn objects_of_mut(changes: &mut [Change]) -> impl Iterator<Item = &mut dyn Content> {
    changes.iter_mut().filter_map(|change| change.object.as_mut()).map(|object| object as &mut dyn Content)
}
