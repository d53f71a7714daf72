//! Keys of launchway's own kinds.

use super::core::{API_VERSION, KIND, METADATA};
use super::pod::ENV_VAR;
use super::{Field, Shape, Type, any, flag, list, object, small_count, text, texts, word};

/// `launchway.yaml`.
pub(crate) const PROJECT: Shape = Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &PROJECT_SPEC)] };

const PROJECT_SPEC: Shape = Shape {
    fields: &[
        Field::new("stages", Type::Map(&Type::Object(&PROJECT_STAGE)))
            .doc("Settings of the shipyard's stages, by name."),
        texts("include").doc("Globs: only these files are read."),
        texts("exclude").doc("Globs: these files are not read."),
        text("shipyard").doc("Where the shipyard file is; `shipyard.yaml` unless given."),
        word("statuses", &["auto", "hooks", "services", "stages"])
            .doc("How much is written on commits; `auto` unless given."),
        object("rollback", &ROLLBACK),
        object("previews", &PREVIEWS).kept().doc("An environment for each open pull request."),
        flag("strict").doc("Unknown keys are errors in the formats of OpenShift, Kubernetes and Keptn too."),
    ],
};

const PREVIEWS: Shape = Shape {
    fields: &[
        text("stage").doc("The stage that they are made after; `dev` unless given."),
        small_count("max").kept().doc("How many there are at most; 5 unless given."),
        text("ttl").doc("How long one stays after the last push to its pull request; `3d` unless given."),
    ],
};

const ROLLBACK: Shape =
    Shape { fields: &[word("onFailure", &["none", "automatic", "pull-request", "automatic-and-pull-request"])] };

const PROJECT_STAGE: Shape = Shape {
    fields: &[
        text("path").doc("The folder with the stage's files; the whole repository unless given."),
        word("runtime", &["local", "kubernetes"]).doc("Where its pods live; `local` unless given."),
        text("namespace").doc("Where its objects live; `<project>-<stage>` unless given."),
        text("delivery").doc("The sequence that a push starts."),
        flag("prune").kept().doc("Whether objects that vanish from the files are deleted; true unless given."),
        Field::new("parameters", Type::Map(&Type::Any)).doc("Values for the parameters of templates."),
        any("windows").doc("When changes may start."),
        any("approval").doc("Who must agree before changes start."),
        any("signers").doc("Whose signature a revision needs."),
    ],
};

/// A request to go back.
pub(crate) const ROLLBACK_REQUEST: Shape = Shape {
    fields: &[
        text("id").required().doc("The name of the deployment config."),
        word("kind", &["DeploymentConfig", "Deployment"]),
        object("rollback", &ROLLBACK_SETTINGS),
    ],
};

const ROLLBACK_SETTINGS: Shape = Shape {
    fields: &[
        text("release").doc("The version, as `<id>-<n>`; the last complete one unless given."),
        flag("config").kept().doc("Whether labels and strategy come back; true unless given."),
        flag("application").kept().doc("Whether template, replicas and selector come back; true unless given."),
        flag("strategy").kept().doc("Whether the strategy comes back; as `config` unless given."),
        text("notes").doc("Why."),
    ],
};

/// How a shipyard task runs.
pub(crate) const TASK: Shape = Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &TASK_SPEC).required()] };

const TASK_SPEC: Shape = Shape {
    fields: &[
        texts("command").doc("The command, not run by a shell; the launchable's `bin/launch` unless given."),
        text("image").required().doc("What it runs in: `git:<path>`, `file:///…`, `https://…@sha256:…` or `host`."),
        list("env", &Type::Object(&ENV_VAR)).doc("Its variables."),
        text("timeout")
            .doc("How long one attempt may take, such as `10m`; unless given as the daemon is configured, `1h`."),
        small_count("retries").doc("How often it runs again after a failure; 0 unless given."),
        texts("stages").doc("Only in these stages; in all unless given."),
        texts("services").doc("Only for these services; for all unless given."),
        Field::new("properties", Type::Map(&Type::Any))
            .doc("Only for tasks to which the shipyard gives these properties; for all of its name unless given."),
    ],
};
