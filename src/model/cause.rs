//! Why a version of a deployment config is made, as data: plans and histories say it in words that are made of it.

use serde::{Deserialize, Serialize};

use super::deployment_config::ImageReference;

/// One of the causes of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// The template is another; also of the first version, as upstream.
    ConfigChange,
    /// What its pods read is another.
    ContentChange,
    /// An image is another.
    ImageChange {
        /// The tag that leads to it; absent where the file says it.
        from: Option<ImageReference>,
    },
    /// A person asked for it.
    Manual {
        /// Who.
        by: String,
    },
    /// A person asked to go back, several went back together and are brought back, or what served has come back by itself.
    Rollback {
        /// Who.
        by: String,
    },
}

impl Cause {
    /// Its type: OpenShift's word, where it has one.
    pub fn as_str(&self) -> &'static str {
        match self {
            Cause::ConfigChange => "ConfigChange",
            Cause::ContentChange => "ContentChange",
            Cause::ImageChange { .. } => "ImageChange",
            Cause::Manual { .. } => "Manual",
            Cause::Rollback { .. } => "Rollback",
        }
    }

    /// The tag that brought an image.
    pub fn tag(&self) -> Option<&ImageReference> {
        match self {
            Cause::ImageChange { from } => from.as_ref(),
            _ => None,
        }
    }

    /// Who asked for it.
    pub fn by(&self) -> Option<&str> {
        match self {
            Cause::Manual { by } | Cause::Rollback { by } => Some(by),
            _ => None,
        }
    }
}

/// What changes set a version off, in words: `config change, image change (app:t)`.
pub fn in_words(causes: &[Cause]) -> String {
    let tags: Vec<&str> = causes.iter().filter_map(Cause::tag).map(|tag| &*tag.name).collect();
    let mut words = Vec::new();
    for cause in causes {
        let word = match cause {
            Cause::ConfigChange => "config change".to_owned(),
            Cause::ContentChange => "content change".to_owned(),
            Cause::ImageChange { .. } if tags.is_empty() => "image change".to_owned(),
            Cause::ImageChange { .. } => format!("image change ({})", tags.join(", ")),
            Cause::Manual { by } => format!("manual change by {by}"),
            Cause::Rollback { by } => format!("rollback by {by}"),
        };
        if !words.contains(&word) {
            words.push(word); // several tags are one image change
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_causes_of_a_version_are_told_once() {
        let tag = |name: &str| {
            let from = ImageReference { kind: "ImageStreamTag".into(), name: name.into(), namespace: None };
            Cause::ImageChange { from: Some(from) }
        };
        let manual = || Cause::Manual { by: "ann".into() };
        for (causes, expected) in [
            (vec![], ""),
            (vec![Cause::ConfigChange], "config change"),
            (vec![Cause::ImageChange { from: None }], "image change"),
            (vec![tag("a:t"), tag("b:t")], "image change (a:t, b:t)"),
            (
                vec![Cause::ConfigChange, Cause::ContentChange, tag("a:t"), manual()],
                "config change, content change, image change (a:t), manual change by ann",
            ),
        ] {
            assert_eq!(in_words(&causes), expected);
        }
    }
}
