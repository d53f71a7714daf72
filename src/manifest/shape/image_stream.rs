//! Keys of OpenShift's `ImageStream`.

use super::core::{API_VERSION, KIND, METADATA, STATUS};
use super::deployment_config::OBJECT_REFERENCE;
use super::{Field, Shape, Type, any, flag, list, object, text, text_map, word};

pub(crate) const IMAGE_STREAM: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &IMAGE_STREAM_SPEC), STATUS] };

const IMAGE_STREAM_SPEC: Shape = Shape {
    fields: &[
        text("dockerImageRepository"),
        object("lookupPolicy", &LOOKUP_POLICY),
        list("tags", &Type::Object(&TAG_REFERENCE)),
    ],
};

const LOOKUP_POLICY: Shape = Shape { fields: &[flag("local")] };

const TAG_REFERENCE: Shape = Shape {
    fields: &[
        text("name").required(),
        text_map("annotations"),
        object("from", &OBJECT_REFERENCE).kept(),
        flag("reference"),
        any("generation").forgotten(),
        object("importPolicy", &IMPORT_POLICY),
        object("referencePolicy", &REFERENCE_POLICY),
    ],
};

const IMPORT_POLICY: Shape =
    Shape { fields: &[flag("scheduled"), flag("insecure"), word("importMode", &["Legacy", "PreserveOriginal"])] };

const REFERENCE_POLICY: Shape = Shape { fields: &[Field::new("type", Type::Text)] };
