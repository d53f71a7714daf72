//! Keys of Kubernetes' `ReplicationController`.

use super::core::{API_VERSION, KIND, METADATA, STATUS};
use super::pod::POD_TEMPLATE;
use super::{Field, Shape, Type, object, small_count, text_map};
use crate::model::deployment_config::MOST_REPLICAS;

pub(crate) const REPLICATION_CONTROLLER: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &SPEC).required(), STATUS] };

const SPEC: Shape = Shape {
    fields: &[
        Field::new("replicas", Type::Integer(0, MOST_REPLICAS as i64))
            .kept()
            .doc("How many pods serve; 1 unless given."),
        text_map("selector").doc("Which pods belong to it; the template's labels unless given."),
        small_count("minReadySeconds").doc("Seconds a pod must be ready before it counts as available."),
        object("template", &POD_TEMPLATE).required().doc("What every pod looks like."),
    ],
};
