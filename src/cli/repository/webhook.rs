//! Whether a repository's host calls the daemon when something is pushed: what `repository check` says of the webhook, and has done
//! about it where that is asked for. A GitHub App has a webhook of its own, which people set.

use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;

use crate::cli::client::Client;
use crate::cli::output::{Outcome, progress};
use crate::clock::SystemClock;
use crate::config::{RepositorySettings, Settings};
use crate::control::repository;
use crate::error::{Failure, Result};
use crate::forge::github::app::Granted;
use crate::forge::registration::{Standing, Test, WantedWebhook, Webhooks};
use crate::forge::webhook::BadSignature;
use crate::model::webhook_call::CallResult;
use crate::server::view::{List, WebhookCallView};

/// The pause between two looks at what has come; the daemon remembers calls once a second.
const PAUSE: Duration = Duration::from_millis(250);
/// How often to poll: hosts take some seconds where they have much to deliver.
const LOOKS: u32 = 80;
/// So often again after a call that was refused, which may have been anybody's.
const GRACE: u32 = 8;

/// What is found of a repository's webhook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    state: State,
    /// How the host is called.
    host: Option<&'static str>,
    /// Where it has to lead.
    url: Option<String>,
    /// What was, or is, wrong with it.
    wrong: Vec<String>,
    /// Webhooks that look as if they led to another daemon's repository of this name.
    others: Vec<String>,
    /// What came of the test delivery.
    delivery: Option<WebhookCallView>,
    /// What is worth knowing besides.
    note: Option<String>,
    problem: Option<String>,
    hint: Option<String>,
}

/// How a webhook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It is as it has to be, as far as the host tells.
    Right,
    /// It was registered now.
    Registered,
    /// It was put right now.
    Repaired,
    /// There is none.
    Missing,
    /// There is one that is not as it has to be.
    Wrong,
    /// The App calls by a webhook of its own.
    App,
    /// The configuration has not what it needs.
    Unconfigured,
    /// It could not be read.
    Unknown,
}

/// What is to be done, and with what.
pub(super) struct Task<'a> {
    pub(super) settings: &'a Settings,
    pub(super) repository: &'a RepositorySettings,
    /// Whether it is registered, or repaired, and tried out.
    pub(super) registers: bool,
    /// Who knows which calls came.
    pub(super) client: &'a Outcome<Client>,
}

/// Looks at a repository's webhook; nothing, if its host has none that could be read and none is asked for.
pub(super) async fn check(task: &Task<'_>) -> Option<Found> {
    match repository::app_granted(task.repository, std::sync::Arc::new(SystemClock)).await {
        Ok(Some(granted)) if !granted.may_write("repository_hooks") => return Some(of_app(task, &granted)),
        Ok(_) => {}
        Err(failure) => return Some(Found::failed(State::Unknown, &failure)),
    }
    let hooks = repository::webhooks(task.settings, task.repository, std::sync::Arc::new(SystemClock)).await;
    let hooks = match hooks {
        Ok(Some(hooks)) => hooks,
        Ok(None) if !task.registers => return None,
        Ok(None) => {
            let none = format!("`{}` has no host whose API is spoken here with a token", task.repository.name);
            let hint = "name it: `forge: {kind: …}` and `credentials: {tokenFile: …}`, or use `install-hook`";
            return Some(Found::failed(State::Unconfigured, &Failure::stalled(none).hint(hint)));
        }
        Err(failure) => return Some(Found::failed(State::Unconfigured, &failure)),
    };
    let wanted = match repository::wanted_webhook(task.settings, task.repository) {
        Ok(wanted) => wanted,
        Err(failure) => return Some(Found::failed(State::Unconfigured, &failure)),
    };
    let mut found =
        Found { host: Some(hooks.host()), url: Some(wanted.url().to_string()), ..Found::new(State::Unknown) };
    if let Err(failure) = work(task, &*hooks, &wanted, &mut found).await {
        found.complain(&failure);
    }
    Some(found)
}

/// What is said of an App that does not register webhooks of repositories.
fn of_app(task: &Task<'_>, granted: &Granted) -> Found {
    let mut found = Found { host: Some("GitHub"), wrong: lacking(granted, task.repository), ..Found::new(State::App) };
    match repository::wanted_webhook(task.settings, task.repository) {
        Ok(wanted) => found.url = Some(wanted.url().to_string()),
        Err(failure) => return Found { wrong: found.wrong, ..Found::failed(State::Unconfigured, &failure) },
    }
    if task.registers {
        let none = "the App may not register webhooks: it has one of its own";
        let hint = "set its address and secret in the App's settings → Webhook";
        found.complain(&Failure::stalled(none).hint(hint));
    }
    found
}

/// What whoever installed an App has not given it, or what it does not hear of, of what a repository's settings need.
fn lacking(granted: &Granted, repository: &RepositorySettings) -> Vec<String> {
    let pulls = repository.previews || repository.commands;
    let writes = [("checks", true), ("pull_requests", pulls), ("deployments", repository.deployments)];
    let writes = writes.iter().filter(|(permission, is_needed)| *is_needed && !granted.may_write(permission));
    let mut lacking: Vec<String> = writes.map(|(permission, _)| format!("it may not write `{permission}`")).collect();
    if !granted.permissions.contains_key("contents") {
        lacking.push("it may not read `contents`".to_owned());
    }
    let events = [("push", true), ("pull_request", repository.previews), ("issue_comment", repository.commands)];
    let is_told = |event: &str| granted.events.iter().any(|told| told == event);
    let untold = events.iter().filter(|(event, is_needed)| *is_needed && !is_told(event));
    lacking.extend(untold.map(|(event, _)| format!("it is not told of `{event}`")));
    lacking
}

async fn work(task: &Task<'_>, hooks: &dyn Webhooks, wanted: &WantedWebhook, found: &mut Found) -> Result<()> {
    let standing = hooks.look(wanted).await?;
    found.state = match (standing.is_there(), standing.is_right()) {
        (false, _) => State::Missing,
        (true, false) => State::Wrong,
        (true, true) => State::Right,
    };
    found.wrong.clone_from(&standing.wrong);
    found.others.clone_from(&standing.others);
    if !task.registers {
        found.note = standing.is_right().then(|| "`--register-webhook` has the host try it out".to_owned());
        return Ok(());
    }
    let standing = if standing.is_right() { standing } else { put_right(hooks, wanted, &standing, found).await? };
    let Ok(client @ Client::Daemon(_)) = task.client else {
        let nobody = Failure::stalled("no daemon answers, so that no test delivery was asked for");
        return Err(nobody.hint("start it with `launchway serve`, and check again"));
    };
    let standing =
        tried_out(&Daemon { client, name: task.repository.name.as_str() }, hooks, wanted, standing, found).await?;
    if !standing.is_right() {
        let left = format!(
            "{} has taken what was sent, and left the webhook as it was: {}",
            hooks.host(),
            standing.wrong.join("; ")
        );
        return Err(Failure::stalled(left));
    }
    Ok(())
}

/// Registers or repairs it, and looks again.
async fn put_right(
    hooks: &dyn Webhooks,
    wanted: &WantedWebhook,
    standing: &Standing,
    found: &mut Found,
) -> Result<Standing> {
    progress(&format!("registering {} on {}…", wanted.url(), hooks.host()));
    hooks.register(wanted, standing).await?;
    found.state = if standing.is_there() { State::Repaired } else { State::Registered };
    hooks.look(wanted).await
}

/// Has the host call, and the secret put in once more if the call is refused.
async fn tried_out(
    daemon: &Daemon<'_>,
    hooks: &dyn Webhooks,
    wanted: &WantedWebhook,
    mut standing: Standing,
    found: &mut Found,
) -> Result<Standing> {
    let is_new = |found: &Found| matches!(found.state, State::Registered | State::Repaired);
    let again = |found: &mut Found| found.wrong.push("it has another secret than the daemon".to_owned());
    let mut before = daemon.calls().await?;
    // Where no test shows it, the host's last call does.
    let was_refused = before.first().is_some_and(does_not_fit);
    let mut test = hooks.test(wanted, &standing).await?;
    if !matches!(test, Test::Sent(_)) && was_refused && standing.hides_secret() && !is_new(found) {
        again(found);
        standing = put_right(hooks, wanted, &standing, found).await?;
    }
    let mut heard = daemon.heard(test, &before, is_new(found)).await?;
    if matches!(&heard, Heard::Refused(call) if call.status == 401 && !is_new(found)) && matches!(test, Test::Sent(_)) {
        again(found);
        standing = put_right(hooks, wanted, &standing, found).await?;
        before = daemon.calls().await?;
        test = hooks.test(wanted, &standing).await?;
        heard = daemon.heard(test, &before, true).await?;
    }
    conclude(heard, test, hooks, wanted, daemon.name, found)?;
    hooks.look(wanted).await
}

/// What the test delivery shows.
fn conclude(
    heard: Heard,
    test: Test,
    hooks: &dyn Webhooks,
    wanted: &WantedWebhook,
    name: &str,
    found: &mut Found,
) -> Result<()> {
    let host = hooks.host();
    match heard {
        Heard::Nothing if test == Test::Never => {
            let next = format!("push a commit, and see `launchway repository deliveries {name}`");
            found.note = Some(format!("{host} sends no test when it is asked to: {next}"));
        }
        Heard::Nothing => {
            let seconds = (PAUSE * LOOKS).as_secs();
            let silent = format!("{host} was asked for a test delivery, and none came within {seconds} s");
            return Err(Failure::stalled(silent).hint(format!(
                "does it reach {}, and may it call there? What it tried is in the webhook's own list of deliveries",
                wanted.url()
            )));
        }
        Heard::Taken(call) => found.delivery = Some(call),
        Heard::Refused(call) => {
            let why = call.reason.clone().unwrap_or_default();
            found.delivery = Some(call);
            if !matches!(test, Test::Unsigned(_)) {
                let refused = format!("the daemon refuses the test delivery: {why}");
                return Err(Failure::stalled(refused).hint("does it run with this configuration?"));
            }
            let next = "the next push shows whether the secret is right";
            found.note = Some(format!("{host} does not sign what it tries out, so that it was refused: {next}"));
        }
    }
    Ok(())
}

fn does_not_fit(call: &WebhookCallView) -> bool {
    call.reason.as_deref() == Some(&*BadSignature::Wrong.to_string())
}

/// What is heard of a test delivery.
enum Heard {
    /// It was authentic.
    Taken(WebhookCallView),
    /// It, or what may have been it, was refused.
    Refused(WebhookCallView),
    /// It has not come.
    Nothing,
}

/// The daemon that a repository's host calls.
struct Daemon<'a> {
    client: &'a Client,
    name: &'a str,
}

impl Daemon<'_> {
    /// The calls that came, newest first.
    async fn calls(&self) -> Result<Vec<WebhookCallView>> {
        let list = self.client.get(&format!("repositories/{}/deliveries", self.name), &[]).await;
        list.map(|list: List<WebhookCallView>| list.items).map_err(|complaint| complaint.failure)
    }

    /// Waits for a test delivery. Anybody can make a call that is refused: where `is_last`, one may still follow that is not,
    /// as long as the host signs.
    async fn heard(&self, test: Test, before: &[WebhookCallView], is_last: bool) -> Result<Heard> {
        let (Test::Sent(event) | Test::Unsigned(event)) = test else { return Ok(Heard::Nothing) };
        progress(&format!("waiting for the test delivery, {} s at most…", (PAUSE * LOOKS).as_secs()));
        let (mut refused, mut left) = (None, LOOKS);
        while left > 0 {
            let calls = self.calls().await?.into_iter().filter(|call| !before.contains(call));
            let is_refused = |call: &WebhookCallView| call.result == CallResult::Refused.as_str();
            let (bad, good): (Vec<WebhookCallView>, Vec<WebhookCallView>) = calls.partition(is_refused);
            if let Some(call) = good.into_iter().find(|call| call.event.as_deref() == Some(event)) {
                return Ok(Heard::Taken(call));
            }
            if let Some(call) = bad.into_iter().next() {
                if refused.is_none() && !(is_last && matches!(test, Test::Sent(_))) {
                    left = left.min(GRACE);
                }
                refused = Some(call);
            }
            left -= 1;
            sleep(PAUSE).await;
        }
        Ok(refused.map_or(Heard::Nothing, Heard::Refused))
    }
}

impl Found {
    fn new(state: State) -> Self {
        Self {
            state,
            host: None,
            url: None,
            wrong: Vec::new(),
            others: Vec::new(),
            delivery: None,
            note: None,
            problem: None,
            hint: None,
        }
    }

    fn failed(state: State, failure: &Failure) -> Self {
        let mut found = Self::new(state);
        found.complain(failure);
        found
    }

    fn complain(&mut self, failure: &Failure) {
        self.problem = Some(failure.one_line());
        self.hint = failure.hint_text().map(str::to_owned);
    }

    /// Whether something that was asked for could not be done.
    pub(super) fn has_failed(&self) -> bool {
        self.problem.is_some()
    }

    /// For people. `command` does what is missing.
    pub(super) fn human(&self, command: &str) -> String {
        let (host, url) = (self.host.unwrap_or_default(), self.url.as_deref().unwrap_or_default());
        let wrong = self.wrong.join("; ");
        let mut lines = match self.state {
            State::Right => vec![format!("{host} calls {url}")],
            State::Registered => vec![format!("registered: {host} calls {url}")],
            State::Repaired => vec![format!("repaired: {host} calls {url} ({wrong})")],
            State::Missing => {
                vec![format!("{host} has none that calls {url}"), format!("hint: `{command}` registers it")]
            }
            State::Wrong => vec![format!("{url}: {wrong}"), format!("hint: `{command}` repairs it")],
            State::App => {
                let own = format!("{host} calls by the App's own: its settings → Webhook have to lead to {url}");
                vec![format!("{own}, or to that of another repository with the same App and secret")]
            }
            State::Unconfigured | State::Unknown => Vec::new(),
        };
        if matches!(self.state, State::App | State::Unconfigured) {
            lines.extend(self.wrong.iter().map(|wrong| format!("of the App: {wrong}")));
        }
        if let Some(call) = &self.delivery {
            let what = call.event.as_deref().unwrap_or("its call");
            let why = call.reason.iter().map(|why| format!(": {why}")).collect::<String>();
            lines.push(format!("test delivery: {what} was {}{why}", call.result));
        }
        lines.extend(self.note.clone());
        lines.extend(self.problem.clone());
        lines.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        lines.extend(self.others.iter().map(|other| format!("another one calls {other}, and was left alone")));
        lines.iter().map(|line| format!("  webhook: {line}\n").replace("webhook: hint:", "hint:")).collect()
    }
}
