//! Facts as they happen: server-sent events at `/api/v1/watch`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream::unfold;

use super::api::extract::Parameters;
use super::problem::Answer;
use super::query::{MOST, Selection};
use super::state::ServerState;
use super::view::EventView;

/// How often the store is asked for news, while somebody watches.
const PERIOD: Duration = Duration::from_millis(300);

/// A watcher's place in the stream of facts.
struct Watcher {
    state: ServerState,
    selection: Selection,
    news: VecDeque<EventView>,
}

/// Facts after `Last-Event-ID` or `after`, of one run or all, until the client or the server ends it. Each comes with
/// its number as its id, so that a client which connects again misses nothing.
pub(super) async fn watch(
    State(state): State<ServerState>,
    headers: HeaderMap,
    Parameters(selection): Parameters<Selection>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let after = last.or(selection.after);
    // Of all repositories and stages: whoever watches goes on after the last fact, also if it is of another.
    let selection = Selection { after, limit: Some(MOST), repository: None, stage: None, ..selection };
    let watcher = Watcher { state, selection, news: VecDeque::new() };
    let events = unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

impl Watcher {
    /// The next fact; `None` when the server ends or the store cannot be read, upon which clients connect again.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.news.pop_front() {
                self.selection.after = Some(event.number);
                return Event::default().id(event.number.to_string()).event(&event.event).json_data(&event).ok();
            }
            self.news.extend(self.state.query.events(&self.selection).await.ok()?.items);
            if self.news.is_empty() {
                self.state.stop.run_until_cancelled(tokio::time::sleep(PERIOD)).await?;
            }
        }
    }
}
