//! Keys of Keptn's shipyard 0.2.0 to 0.2.4, and launchway's own beside them.

use super::core::{API_VERSION, KIND};
use super::{Field, Shape, Type, flag, list, object, small_count, text, text_map, texts, word};
use crate::model::shipyard::{Condition, Operator, QueuePolicy};

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
        text("timeout").doc("launchway's own: how long all of it may take, such as `1h`."),
        word("queue", &QueuePolicy::WORDS)
            .doc("launchway's own: which of its runs have their turn that wait for the same service."),
    ],
};
const TRIGGER: Shape = Shape {
    fields: &[
        text("event").required().doc("`<stage>.<sequence>.finished`, or a domain event."),
        object("selector", &SELECTOR).doc("All of it must hold; without any, `result` must be `pass` or `warning`."),
    ],
};
const SELECTOR: Shape = Shape {
    fields: &[
        text_map("match").doc("`result: fail`, `<task>.result: fail`, and so on."),
        list("matchExpressions", &Type::Object(&EXPRESSION)).doc("launchway's own, as in Kubernetes."),
    ],
};
const EXPRESSION: Shape = Shape {
    fields: &[
        text("key")
            .required()
            .doc("`result`, `status`, `<task>.result`, `<task>.status` or `<task>.<path of its data>`."),
        word("operator", &Operator::WORDS).required(),
        texts("values").doc("For `In` and `NotIn`."),
    ],
};
const TASK: Shape = Shape {
    fields: &[
        text("name").required(),
        text("triggeredAfter").doc("A pause before it, such as `10m`."),
        Field::new("properties", Type::Any).doc("Handed to whoever runs it."),
        word("condition", &Condition::WORDS).doc("launchway's own: after which ends of the tasks before it, it runs."),
        text("timeout").doc("launchway's own: how long it may take, such as `30m`."),
        text("startTimeout").doc("launchway's own: how long it may take until somebody has started it."),
        text("heartbeat").doc("launchway's own: for how long who has started it may be silent, such as `2m`."),
        small_count("retries").doc("launchway's own: how often it is tried again."),
        texts("executors").doc("launchway's own: who all have to finish it."),
        flag("holdSlot").kept().doc("launchway's own: whether others of its service wait during `triggeredAfter`."),
    ],
};

/// Keys of 0.1.x, whose files must be migrated.
pub(crate) const STAGE_KEYS_0_1: [&str; 5] =
    ["deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy", "release_strategy"];
