//! Objects of kinds that launchway only hands on: what is in them is their controllers' business.

use serde_json::Value;

use super::findings::Findings;
use super::shape::{Strictness, check, core::HEAD};

/// Checks an object's metadata, and leaves what is compared.
pub(crate) fn normalise(value: &mut Value, findings: &mut Findings<'_>) {
    let Some(object) = value.as_object_mut() else { return };
    let mut head = Value::Object(object.remove_entry("metadata").into_iter().collect());
    check(&mut head, &HEAD, Strictness::Users, findings);
    // Each kind has rules of its own for names.
    super::metadata::normalise(&mut head, |_name| Ok(()), findings);
    for of_the_server in ["apiVersion", "kind", "status"] {
        object.remove(of_the_server);
    }
    if let Value::Object(head) = head {
        object.extend(head);
    }
}
