//! Keys of Keptn's shipyard 0.2.0 to 0.2.4.

use super::core::{API_VERSION, KIND};
use super::{Field, Shape, Type, list, object, text, text_map};

pub(crate) const SHIPYARD: Shape = Shape {
    fields: &[
        API_VERSION,
        text("version").forgotten().doc("The first draft's word for `apiVersion`."),
        KIND,
        object("metadata", &METADATA),
        object("spec", &SPEC).required(),
    ],
};

const METADATA: Shape = Shape { fields: &[text("name"), text_map("labels"), text_map("annotations")] };
const SPEC: Shape = Shape { fields: &[list("stages", &Type::Object(&STAGE))] };
const STAGE: Shape = Shape {
    fields: &[
        text("name").required().doc("Lower-case letters, digits and hyphens, beginning with a letter."),
        list("sequences", &Type::Object(&SEQUENCE)).doc("What can run in the stage."),
    ],
};
const SEQUENCE: Shape = Shape {
    fields: &[
        text("name").required(),
        list("triggeredOn", &Type::Object(&TRIGGER)).doc("Which events start it."),
        list("tasks", &Type::Object(&TASK)).doc("Run one after another."),
    ],
};
const TRIGGER: Shape = Shape {
    fields: &[
        text("event").required().doc("`<stage>.<sequence>.finished`, or a domain event."),
        object("selector", &SELECTOR),
    ],
};
const SELECTOR: Shape =
    Shape { fields: &[text_map("match").doc("Without any: `result` must be `pass` or `warning`.")] };
const TASK: Shape = Shape {
    fields: &[
        text("name").required(),
        text("triggeredAfter").doc("A pause before it, such as `10m`."),
        Field::new("properties", Type::Any).doc("Handed to whoever runs it."),
    ],
};

/// Keys of 0.1.x, whose files must be migrated.
pub(crate) const STAGE_KEYS_0_1: [&str; 5] =
    ["deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy", "release_strategy"];
