//! Keys of OpenShift's `Template`.

use super::core::{API_VERSION, KIND, STATUS};
use super::{Field, Shape, Type, any, flag, list, text, text_map};

pub(crate) const TEMPLATE: Shape = Shape {
    fields: &[
        API_VERSION,
        KIND,
        any("metadata"),
        text("message").doc("For whoever uses it; launchway shows it to nobody."),
        list("parameters", &Type::Object(&PARAMETER)).doc("What may have a value of its own in each stage."),
        list("objects", &Type::Any)
            .doc("What it declares, with `${NAME}` in texts and keys, and `${{NAME}}` as a whole text."),
        text_map("labels").doc("Put on the metadata of each object."),
        STATUS,
    ],
};

const PARAMETER: Shape = Shape {
    fields: &[
        text("name").required().doc("Letters, digits and `_`."),
        text("displayName"),
        text("description"),
        Field::new("value", Type::Secret).doc("The value where a stage has none of its own."),
        text("generate").doc("`expression`: without a value, one is made up once a stage."),
        text("from").doc("What it is made up from, such as `[a-zA-Z0-9]{16}`."),
        flag("required").doc("Whether it must have a value."),
    ],
};
