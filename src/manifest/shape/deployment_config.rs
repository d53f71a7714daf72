//! Keys of OpenShift's `DeploymentConfig`.

use super::core::{API_VERSION, KIND, METADATA, STATUS};
use super::pod::{ENV_FROM, ENV_VAR, POD_TEMPLATE, RESOURCES};
use super::{Field, Shape, Type, any, flag, list, object, positive, small_count, text, text_map, texts, word};
use crate::model::deployment_config::MOST_REPLICAS;

pub(crate) const DEPLOYMENT_CONFIG: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &SPEC).required(), STATUS] };

const SPEC: Shape = Shape {
    fields: &[
        Field::new("replicas", Type::Integer(0, MOST_REPLICAS as i64)).doc("How many pods serve; 0 unless given."),
        text_map("selector").doc("Which pods belong to it; the template's labels unless given."),
        object("strategy", &STRATEGY).doc("How a new version replaces the old one; Rolling unless given."),
        list("triggers", &Type::Object(&TRIGGER))
            .kept()
            .doc("What starts a deployment; a ConfigChange trigger unless given, nothing if the list is empty."),
        small_count("minReadySeconds").doc("Seconds a pod must be ready before it counts as available."),
        small_count("revisionHistoryLimit").kept().doc("How many old versions are kept."),
        flag("test").doc("Scaled to zero whenever no deployment runs."),
        flag("paused").doc("Nothing starts while this is set."),
        object("template", &POD_TEMPLATE).required().doc("What every pod looks like."),
    ],
};

pub(crate) const STRATEGY: Shape = Shape {
    fields: &[
        word("type", &["Rolling", "Recreate", "Custom", "Canary", "BlueGreen", "AB"]),
        object("rollingParams", &ROLLING),
        object("recreateParams", &RECREATE),
        object("customParams", &CUSTOM).kept(),
        object("canaryParams", &CANARY).doc("A new version gets more and more of the traffic; launchway's own."),
        object("blueGreenParams", &BLUE_GREEN)
            .doc("A new version comes up whole, and gets the traffic at once; launchway's own."),
        object("abParams", &AB).doc("Both versions stay, each with its part; launchway's own."),
        object("resources", &RESOURCES),
        text_map("labels"),
        text_map("annotations"),
        positive("activeDeadlineSeconds").doc("Seconds that hooks and rollout may take together; 21600 unless given."),
    ],
};

/// Checked against its rules only if it applies, so that a leftover block does no harm: see the checks of the strategy.
const ROLLING: Shape = Shape {
    fields: &[
        Field::new("updatePeriodSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        Field::new("intervalSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        Field::new("timeoutSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        Field::new("maxUnavailable", Type::IntegerOrText).kept(),
        Field::new("maxSurge", Type::IntegerOrText).kept(),
        object("pre", &HOOK).kept(),
        object("mid", &HOOK).kept(),
        object("post", &HOOK).kept(),
        any("updatePercent").forgotten(),
    ],
};

const RECREATE: Shape = Shape {
    fields: &[
        Field::new("timeoutSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        object("pre", &HOOK).kept(),
        object("mid", &HOOK).kept(),
        object("post", &HOOK).kept(),
    ],
};

const CANARY: Shape = Shape {
    fields: &[
        list("steps", &Type::Object(&CANARY_STEP))
            .kept()
            .doc("What a new version has to pass before it gets everything."),
        Field::new("timeoutSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        Field::new("maxUnavailable", Type::IntegerOrText).kept(),
        Field::new("maxSurge", Type::IntegerOrText).kept(),
        object("pre", &HOOK).kept(),
        object("mid", &HOOK).kept().doc("Runs after the last step, before the rest is exchanged."),
        object("post", &HOOK).kept(),
    ],
};

const CANARY_STEP: Shape = Shape {
    fields: &[
        Field::new("weight", Type::Integer(1, 99))
            .kept()
            .required()
            .doc("How much of the traffic and the replicas it gets, in percent."),
        any("pause").kept().doc("How long that stays so, such as 5m; until `rollout resume`, if it is {}."),
        object("analysis", &HOOK).kept().doc("A command that judges it then."),
    ],
};

const BLUE_GREEN: Shape = Shape {
    fields: &[
        text("keep").doc("How long the old version is kept after the switch; 10m unless given."),
        object("analysis", &HOOK).kept().doc("A command that judges the new version before it gets any traffic."),
        Field::new("timeoutSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        object("pre", &HOOK).kept(),
        object("mid", &HOOK).kept().doc("Runs before the switch."),
        object("post", &HOOK).kept(),
    ],
};

const AB: Shape = Shape {
    fields: &[
        Field::new("weight", Type::Integer(1, 99))
            .kept()
            .required()
            .doc("How much of the traffic and the replicas the new version gets, in percent."),
        Field::new("timeoutSeconds", Type::Integer(i64::MIN, i64::MAX)).kept(),
        Field::new("maxUnavailable", Type::IntegerOrText).kept(),
        Field::new("maxSurge", Type::IntegerOrText).kept(),
        object("pre", &HOOK).kept(),
        object("mid", &HOOK).kept(),
        object("post", &HOOK).kept(),
    ],
};

const CUSTOM: Shape =
    Shape { fields: &[text("image"), list("environment", &Type::Object(&ENV_VAR)), texts("command")] };

pub(super) const HOOK: Shape = Shape {
    fields: &[
        text("failurePolicy"),
        object("execNewPod", &EXEC_NEW_POD).kept(),
        list("tagImages", &Type::Object(&TAG_IMAGE)),
        positive("timeoutSeconds").doc("Seconds one attempt may take; launchway's own."),
        small_count("retries")
            .kept()
            .doc("How often Retry runs it again; launchway's own. Until the deadline unless given."),
        text("image").doc("What it runs instead of the container's image; launchway's own."),
        object("resources", &RESOURCES).doc("Its limits and requests instead of the container's; launchway's own."),
        list("envFrom", &Type::Object(&ENV_FROM)).doc("Sets of variables beside the container's; launchway's own."),
    ],
};

const EXEC_NEW_POD: Shape = Shape {
    fields: &[texts("command"), list("env", &Type::Object(&ENV_VAR)), text("containerName"), texts("volumes")],
};

const TAG_IMAGE: Shape = Shape { fields: &[text("containerName"), object("to", &OBJECT_REFERENCE)] };

pub(crate) const TRIGGER: Shape =
    Shape { fields: &[text("type").required(), object("imageChangeParams", &IMAGE_CHANGE).kept()] };

const IMAGE_CHANGE: Shape = Shape {
    fields: &[
        flag("automatic"),
        texts("containerNames"),
        object("from", &OBJECT_REFERENCE),
        text("lastTriggeredImage").forgotten(),
    ],
};

pub(super) const OBJECT_REFERENCE: Shape = Shape {
    fields: &[
        text("kind"),
        text("name"),
        text("namespace"),
        text("apiVersion"),
        text("uid"),
        text("resourceVersion"),
        text("fieldPath"),
    ],
};
