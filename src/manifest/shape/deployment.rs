//! Keys of Kubernetes' `Deployment`, and of what launchway reads in its annotations.

use super::core::{API_VERSION, KIND, METADATA, STATUS};
use super::deployment_config::HOOK;
use super::pod::POD_TEMPLATE;
use super::{Field, Shape, Type, flag, list, object, small_count, text, text_map, texts, word};
use crate::model::deployment_config::MOST_REPLICAS;

pub(crate) const DEPLOYMENT: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &SPEC).required(), STATUS] };

const SPEC: Shape = Shape {
    fields: &[
        Field::new("replicas", Type::Integer(0, MOST_REPLICAS as i64))
            .kept()
            .doc("How many pods serve; without it one at first, and then as many as there are."),
        object("selector", &SELECTOR).required().doc("Which pods belong to it; it cannot be changed."),
        object("strategy", &STRATEGY).doc("How a new version replaces the old one; RollingUpdate unless given."),
        small_count("minReadySeconds").doc("Seconds a pod must be ready before it counts as available."),
        small_count("revisionHistoryLimit").kept().doc("How many old versions are kept; 10 unless given."),
        flag("paused").doc("Nothing is rolled out while this is set."),
        small_count("progressDeadlineSeconds")
            .kept()
            .doc("Seconds without progress after which a rollout fails and goes back; 600 unless given."),
        object("template", &POD_TEMPLATE).required().doc("What every pod looks like."),
    ],
};

const SELECTOR: Shape =
    Shape { fields: &[text_map("matchLabels"), list("matchExpressions", &Type::Object(&REQUIREMENT))] };

const REQUIREMENT: Shape = Shape {
    fields: &[
        text("key").required(),
        word("operator", &["In", "NotIn", "Exists", "DoesNotExist"]).required(),
        texts("values"),
    ],
};

const STRATEGY: Shape =
    Shape { fields: &[word("type", &["RollingUpdate", "Recreate"]), object("rollingUpdate", &ROLLING_UPDATE).kept()] };

const ROLLING_UPDATE: Shape = Shape {
    fields: &[
        Field::new("maxUnavailable", Type::IntegerOrText).kept(),
        Field::new("maxSurge", Type::IntegerOrText).kept(),
    ],
};

/// What `launchway.dev/hooks` says.
pub(crate) const HOOKS: Shape =
    Shape { fields: &[object("pre", &HOOK).kept(), object("mid", &HOOK).kept(), object("post", &HOOK).kept()] };
