//! Lists, shown once or for as long as somebody watches.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, Parameters};
use super::daemon;
use super::output::{Format, Outcome, Output, remark};
use crate::server::view::List;

/// How often it is asked what has changed.
const PERIOD: Duration = Duration::from_millis(500);

/// What is listed, and of whom it is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing<'a> {
    pub(super) client: &'a Client,
    pub(super) parameters: Parameters<'a>,
    /// Goes on with what changes, until Ctrl-C.
    pub(super) watch: bool,
}

impl Listing<'_> {
    /// The items of a resource; what cannot be read is told.
    pub(super) async fn read<T: DeserializeOwned>(self, path: &str) -> Outcome<List<T>> {
        let list: List<T> = self.client.get(path, self.parameters).await?;
        list.damaged.iter().for_each(|damaged| remark(&damaged.problem));
        Ok(list)
    }

    /// Shows the items of a resource; also what cannot be read is shown. At first only those that are meant: what changes
    /// while somebody watches is shown whatever becomes of it.
    pub(super) async fn show<T: Serialize + DeserializeOwned>(
        self,
        path: &str,
        is_meant: impl Fn(&T) -> bool,
        table: fn(&List<T>) -> String,
        output: &mut Output,
    ) -> Outcome<()> {
        self.show_read(self.read(path).await?, path, is_meant, table, output).await
    }

    /// Shows the items of a resource that were read already.
    pub(super) async fn show_read<T: Serialize + DeserializeOwned>(
        self,
        mut list: List<T>,
        path: &str,
        is_meant: impl Fn(&T) -> bool,
        table: fn(&List<T>) -> String,
        output: &mut Output,
    ) -> Outcome<()> {
        if !self.watch {
            list.items.retain(is_meant);
            return output.show(&list, table);
        }
        let stop = daemon::stop_signal()?;
        tokio::pin!(stop);
        let mut changes = Changes::default();
        changes.show(&list, is_meant, table, output)?;
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = tokio::time::sleep(PERIOD) => {}
            }
            changes.show(&self.client.get(path, self.parameters).await?, |_| true, table, output)?;
        }
    }
}

/// What is known so far.
#[derive(Debug, Default)]
struct Changes {
    known: BTreeSet<String>,
    /// Whether the columns were named; nothing where nothing was shown yet.
    is_headed: Option<bool>,
}

impl Changes {
    /// Shows the items that are not as they were: lines of one table for people, a document each for programs.
    fn show<T: Serialize>(
        &mut self,
        list: &List<T>,
        is_meant: impl Fn(&T) -> bool,
        table: fn(&List<T>) -> String,
        output: &mut Output,
    ) -> Outcome<()> {
        let texts = list.items.iter().map(essence);
        let now: Vec<(String, &T)> = texts.zip(&list.items).collect();
        let is_news = |(text, item): &&(String, &T)| !self.known.contains(text) && is_meant(item);
        if output.format() == Format::Human {
            let (text, is_head_due) = (table(list), self.is_headed.is_none_or(|headed| !headed && !now.is_empty()));
            let mut lines = text.lines();
            let head = lines.next().filter(|_| is_head_due);
            let news = lines.zip(&now).filter(|(_, item)| is_news(item)).map(|(line, _)| line);
            head.into_iter().chain(news).try_for_each(|line| output.line(line))?;
            self.is_headed = Some(self.is_headed == Some(true) || !now.is_empty());
        } else {
            now.iter().filter(is_news).try_for_each(|(_, item)| output.show(item, |_| String::new()))?;
        }
        self.known = now.into_iter().map(|(text, _)| text).collect();
        Ok(())
    }
}

/// An item as far as it shows a change: that it was synced once more is none.
fn essence(item: &impl Serialize) -> String {
    let mut value = serde_json::to_value(item).unwrap_or_default();
    value.as_object_mut().map(|fields| fields.remove("polledAt"));
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(changes: &mut Changes, items: &[&'static str], meant: &str) -> String {
        let list = List { items: items.to_vec(), damaged: Vec::new() };
        let table = |list: &List<&str>| match list.items.is_empty() {
            true => "None.\n".to_owned(),
            false => format!("NAME\n{}\n", list.items.join("\n")),
        };
        let page = crate::cli::output::Page::default();
        let mut output = Output::plain(Format::Human, page.clone());
        changes.show(&list, |item| item.contains(meant), table, &mut output).expect("written");
        page.text()
    }

    #[test]
    fn what_is_not_as_it_was_is_shown_below_one_head() {
        let mut changes = Changes::default();
        assert_eq!(shown(&mut changes, &[], ""), "None.\n");
        assert_eq!(shown(&mut changes, &[], ""), "");
        assert_eq!(shown(&mut changes, &["web new"], ""), "NAME\nweb new\n");
        assert_eq!(shown(&mut changes, &["web ready", "cart new"], ""), "web ready\ncart new\n");
        assert_eq!(shown(&mut changes, &["web ready"], ""), "");
    }

    #[test]
    fn a_poll_that_found_nothing_is_no_change() {
        let item =
            |at: u32, state: &str| essence(&serde_json::json!({"name": "shop", "polledAt": at, "status": state}));
        assert_eq!(item(1, "Ready"), item(2, "Ready"));
        assert_ne!(item(1, "Ready"), item(1, "Failed"));
    }

    #[test]
    fn what_is_not_meant_stays_unseen_until_it_changes() {
        let mut changes = Changes::default();
        assert_eq!(shown(&mut changes, &["web ended", "cart ready"], "ready"), "NAME\ncart ready\n");
        assert_eq!(shown(&mut changes, &["web ended", "cart ended"], ""), "cart ended\n");
    }
}
