//! Parts of requests, whose errors are problems like all others.

use axum::extract::rejection::{FormRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use serde::de::DeserializeOwned;

use crate::server::problem::Problem;
use crate::server::state::ServerState;

/// Parameters after the `?`. Keptn's clients also name what they do not ask for: an empty one is none.
#[derive(Debug)]
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<ServerState> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &ServerState) -> Result<Self, Problem> {
        let is_given = |pair: &&str| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty());
        let given: Vec<&str> = parts.uri.query().unwrap_or_default().split('&').filter(is_given).collect();
        let given = Uri::try_from(format!("/?{}", given.join("&")));
        let given = given.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let Query(parameters) = Query::try_from_uri(&given)?;
        Ok(Self(parameters))
    }
}

/// Parts of the path.
#[derive(Debug, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub struct Segments<T>(pub T);

/// A JSON body, which has to be there in time.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ServerState> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, Problem> {
        let axum::Json(body) = in_time(request, state).await?;
        Ok(Self(body))
    }
}

/// A request without a type of its content has none.
impl<T: DeserializeOwned> OptionalFromRequest<ServerState> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Option<Self>, Problem> {
        if !request.headers().contains_key(CONTENT_TYPE) {
            return Ok(None);
        }
        <Self as FromRequest<ServerState>>::from_request(request, state).await.map(Some)
    }
}

/// What the form of a page says, which has to be there in time too.
#[derive(Debug)]
pub struct Submitted<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ServerState> for Submitted<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> Result<Self, Problem> {
        let axum::Form(form) = in_time(request, state).await?;
        Ok(Self(form))
    }
}

async fn in_time<T>(request: Request, state: &ServerState) -> Result<T, Problem>
where
    T: FromRequest<ServerState>,
    Problem: From<T::Rejection>,
{
    let slow = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    Ok(tokio::time::timeout(state.body_patience, T::from_request(request, state)).await.map_err(slow)??)
}

macro_rules! problem_from {
    ($($rejection:ty),*) => {
        $(impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                Problem::new(rejection.status(), rejection.body_text())
            }
        })*
    };
}

problem_from!(QueryRejection, PathRejection, JsonRejection, FormRejection);
