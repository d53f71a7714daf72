//! JSON Schemas for editors, from the same tables that files are checked against.

use serde_json::{Map, Value, json};

use super::{Shape, Type};

/// The schema of an object.
pub(crate) fn of(shape: &Shape, title: &str, api_versions: &[&str]) -> Value {
    let mut schema = object(shape);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema["properties"]["apiVersion"] = json!({"enum": api_versions});
    schema["properties"]["kind"] = json!({"const": title});
    schema["required"] = json!(["apiVersion", "kind"]);
    schema
}

fn object(shape: &Shape) -> Value {
    let mut properties = Map::new();
    for field in shape.fields.iter().filter(|field| !field.forgotten) {
        let mut schema = value(&field.kind);
        if !field.doc.is_empty() {
            schema["description"] = json!(field.doc);
        }
        properties.insert(field.name.to_owned(), schema);
    }
    let required: Vec<_> = shape.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn value(kind: &Type) -> Value {
    match kind {
        Type::Text | Type::Secret => json!({"type": "string"}),
        Type::Word(words) => json!({"enum": words}),
        Type::Integer(from, to) => {
            let mut schema = json!({"type": "integer"});
            if *from > i64::MIN {
                schema["minimum"] = json!(from);
            }
            if *to < i64::MAX {
                schema["maximum"] = json!(to);
            }
            schema
        }
        Type::Flag => json!({"type": "boolean"}),
        Type::IntegerOrText => json!({"type": ["integer", "string"]}),
        Type::Quantity => json!({"type": ["number", "string"]}),
        Type::Any => json!({}),
        Type::List(item) => json!({"type": "array", "items": value(item)}),
        Type::Map(item) => json!({"type": "object", "additionalProperties": value(item)}),
        Type::Object(shape) => object(shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::schema;

    #[test]
    fn users_kinds_have_schemas_that_say_what_the_reader_wants() {
        let config = schema("DeploymentConfig").expect("known");
        let spec = &config["properties"]["spec"];
        assert_eq!(spec["required"], json!(["template"]));
        assert_eq!(spec["properties"]["replicas"]["minimum"], 0);
        assert_eq!(
            spec["properties"]["strategy"]["properties"]["type"]["enum"],
            json!(["Rolling", "Recreate", "Custom", "Canary", "BlueGreen", "AB"])
        );
        assert_eq!(config["properties"]["metadata"]["required"], json!(["name"]));
        assert!(config["properties"].get("status").is_none());
        for kind in ["Project", "task", "SHIPYARD"] {
            let schema = schema(kind).expect(kind);
            assert_eq!(schema["additionalProperties"], false, "{kind}");
            assert!(schema["properties"]["kind"]["const"].is_string());
        }
        assert_eq!(schema("Pod"), None);
    }
}
