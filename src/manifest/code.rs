//! Which revision of code a deployment config says that it deploys.

use serde_json::Value;

use super::findings::Findings;
use super::pod_template::text_at;
use crate::model::ids::CommitId;
use crate::model::object::{CODE, CODE_POINTER};

/// Says of an annotation that names no revision what it is to be.
pub(crate) fn check(content: &Value, findings: &mut Findings<'_>) {
    let named = text_at(content, CODE_POINTER).trim();
    let commit = named.rsplit('@').next().unwrap_or_default();
    if content.pointer(CODE_POINTER).is_some() && CommitId::whole(commit).is_none() {
        findings.error(CODE_POINTER, "invalid", format!("`{named}` names no revision of code")).hint = Some(format!(
            "`{CODE}` takes `<repository>@<commit>`, or the commit alone where the daemon knows one repository of code: all 40 or 64 digits of it"
        ));
    }
}
