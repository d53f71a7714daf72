//! Tags of image streams.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::manifest::image_trigger::{Streams, still_tagged};
use crate::model::state::{ObjectState, Tagged};

/// A tag of an image stream, and what it leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagView {
    /// The project that declares the stream.
    pub project: String,
    /// The stage where it is.
    pub stage: String,
    /// The repository that declares it.
    pub repository: String,
    /// The stream.
    pub stream: String,
    /// The tag.
    pub tag: String,
    /// What the file says of it; empty, if nothing.
    pub from: String,
    /// The image that it leads to, also by way of other tags; empty, if to none.
    pub image: String,
    /// Who gave it that image, if it is not the file.
    pub tagged_by: Option<String>,
    /// When.
    pub tagged_at: Option<String>,
}

impl ImageTagView {
    /// The tags of all streams.
    pub fn all(states: &[ObjectState]) -> Vec<Self> {
        let mut stages: BTreeMap<(&str, &str), Streams> = BTreeMap::new();
        for state in states {
            let streams = stages.entry((state.project.as_str(), state.stage.as_str())).or_default();
            streams.add(&state.object, &state.destination);
            streams.tag(&state.object.key.name, &state.tagged);
        }
        let of = |state: &ObjectState| -> Vec<Self> {
            let streams = &stages[&(state.project.as_str(), state.stage.as_str())];
            let tagged = still_tagged(&state.tagged, &state.object);
            let tags = streams.tags(&state.object.key.name);
            tags.map(|tag| Self::new(state, tag, streams, tagged.get(tag))).collect()
        };
        states.iter().flat_map(of).collect()
    }

    fn new(state: &ObjectState, tag: &str, streams: &Streams, tagged: Option<&Tagged>) -> Self {
        let stream = &state.object.key.name;
        Self {
            project: state.project.to_string(),
            stage: state.stage.to_string(),
            repository: state.repository.to_string(),
            stream: stream.clone(),
            tag: tag.to_owned(),
            from: streams.from(stream, tag).map(|from| from.name.clone()).unwrap_or_default(),
            image: streams.image(stream, tag).unwrap_or_default().to_owned(),
            tagged_by: tagged.map(|tagged| tagged.by.clone()),
            tagged_at: tagged.map(|tagged| time(tagged.at)),
        }
    }
}
