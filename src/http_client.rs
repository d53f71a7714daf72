//! What all clients of other programs' HTTP APIs have in common.

use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect};

/// A client that waits so long for a connection, and so long from the first byte of a request to the last of its answer.
///
/// It follows no redirects: followed blindly, one would carry what a request tells, a token among it, to wherever it leads, and
/// turn a POST into a GET.
pub(crate) fn bounded(connect: Duration, whole: Duration) -> ClientBuilder {
    Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(connect)
        .timeout(whole)
        .user_agent(concat!("launchway/", env!("CARGO_PKG_VERSION")))
}
