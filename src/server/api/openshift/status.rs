//! Errors as OpenShift's clients read them: a `Status` in place of a problem.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::server::problem::Problem;

/// Where things of OpenShift's deployments belong.
pub(super) const GROUP: &str = "apps.openshift.io";

/// Makes a `Status` of an answer that is a problem.
pub(in crate::server) async fn as_status(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let mut answer = (response.status(), Json(of(&problem))).into_response();
    for (name, value) in response.headers().iter().filter(|(name, _)| !name.as_str().starts_with("content-")) {
        answer.headers_mut().insert(name.clone(), value.clone());
    }
    answer.extensions_mut().insert(problem);
    answer
}

fn of(problem: &Problem) -> Value {
    let message = match &problem.hint {
        Some(hint) => format!("{} ({hint})", problem.detail),
        None => problem.detail.clone(),
    };
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason(problem.status),
        "code": problem.status,
    })
}

/// Upstream's word for a kind of error.
fn reason(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 | 504 => "Timeout",
        409 => "Conflict",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    }
}

/// What is asked of an object that makes no sense, in upstream's words: the object, the field and why.
pub(super) fn invalid(kind: &str, name: &str, field: &str, why: &str) -> Problem {
    let message = format!("{kind}.{GROUP} \"{name}\" is invalid: {field}: {why}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message)
}

/// The same of a value that stands in the field.
pub(super) fn invalid_value(kind: &str, name: &str, field: &str, value: &Value, why: &str) -> Problem {
    invalid(kind, name, field, &format!("Invalid value: {value}: {why}"))
}
