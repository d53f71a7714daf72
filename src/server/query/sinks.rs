//! Who is told what happens.

use axum::http::StatusCode;

use super::{Query, Selection};
use crate::server::problem::{Answer, Problem};
use crate::server::view::{List, SinkView};

impl Query {
    /// The sinks of this process, in the order of its configuration.
    pub async fn sinks(&self, selection: &Selection) -> Answer<List<SinkView>> {
        let Some(subscribers) = &self.subscribers else {
            let nobody = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no daemon runs here that would tell sinks");
            return Err(nobody.hint("start `launchway serve`"));
        };
        let mut items = Vec::new();
        for sink in subscribers.iter().filter(|sink| selection.takes(selection.name.as_ref(), sink.name.as_str())) {
            items.push(SinkView::new(sink, self.store.backlog(&sink.lane()).await?));
        }
        Ok(items.into_iter().collect())
    }
}
