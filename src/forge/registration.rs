//! Webhooks as their host has them: whether one leads here as it has to, and how it comes to. One whose address is another
//! daemon's, or anything else's, is left alone.

use std::collections::BTreeSet;

use async_trait::async_trait;
use http::Method;
use reqwest::Url;
use serde_json::{Value, json};

use super::answer::Words;
use super::ask::Ask;
use super::hosted::Hosted;
use super::paging::pages;
use crate::error::{Context, Failure, Result};
use crate::secret::Secret;

/// What a webhook tells of beside pushes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Pull requests.
    pub pulls: bool,
    /// Comments on them.
    pub comments: bool,
}

/// The webhook that a repository is to have.
#[derive(Clone, Debug)]
pub struct WantedWebhook {
    /// The daemon's public address.
    public: Url,
    /// The repository, by which the daemon's address of it ends.
    name: String,
    /// The other repositories of the daemon, whose webhooks are none of this one's business.
    others: Vec<String>,
    /// What signs its calls.
    pub(super) secret: Secret,
    /// The branch that is watched, if it is configured.
    branch: Option<String>,
    beside: Beside,
}

impl WantedWebhook {
    /// That of a repository of a daemon with this public address.
    ///
    /// # Errors
    /// `Stalled` if that is no address.
    pub fn new(
        public_url: &str,
        name: &str,
        others: Vec<String>,
        secret: Secret,
        branch: Option<String>,
        beside: Beside,
    ) -> Result<Self> {
        let public = Url::parse(public_url).or_stalled(|| format!("`publicUrl: {public_url}` is no address"))?;
        Ok(Self { public, name: name.to_owned(), others, secret, branch, beside })
    }

    /// Where it has to lead.
    pub fn url(&self) -> Url {
        let mut url = self.public.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["webhooks", &self.name]);
        }
        url
    }

    /// Where an address leads.
    fn leads(&self, url: &str) -> Leads {
        let (Ok(url), wanted) = (Url::parse(url.trim()), self.url()) else { return Leads::Elsewhere };
        if url == wanted {
            return Leads::Here;
        }
        let path = url.path().trim_end_matches('/');
        let Some((before, name)) = path.rsplit_once("/webhooks/") else { return Leads::Elsewhere };
        let is_default = |url: &Url| url.port().is_none();
        let is_same_port = url.port_or_known_default() == wanted.port_or_known_default();
        let is_ours = url.host() == wanted.host()
            && (is_same_port || (is_default(&url) && is_default(&wanted)))
            && before == self.public.path().trim_end_matches('/');
        match (is_ours, name == self.name) {
            (true, _) if !self.others.iter().any(|other| other == name) => Leads::Astray,
            (false, true) => Leads::ToAnotherDaemon,
            _ => Leads::Elsewhere,
        }
    }
}

/// Where a webhook leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// Where it has to.
    Here,
    /// To this daemon, which knows no repository there: it was meant for this one.
    Astray,
    /// To where another daemon would take it for a repository of this name.
    ToAnotherDaemon,
    /// To something else.
    Elsewhere,
}

/// What a host tells of a webhook's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretSeen {
    /// It is the right one.
    Right,
    /// There is none.
    Missing,
    /// It is another one.
    Other,
    /// There may be one, which the host keeps to itself.
    Hidden,
}

/// A webhook as its host has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub(super) id: String,
    pub(super) url: String,
    pub(super) is_active: bool,
    /// In the host's words.
    pub(super) events: BTreeSet<String>,
    pub(super) secret: SecretSeen,
    /// What keeps it from telling of every push to the branch, or from being read: for people.
    pub(super) obstacles: Vec<String>,
    /// All of it.
    pub(super) whole: Value,
}

/// How a repository's webhook stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    webhook: Option<Webhook>,
    /// More of the same address, of which one is enough.
    more: Vec<Webhook>,
    /// What is wrong with it, for people.
    pub wrong: Vec<String>,
    /// Addresses of webhooks that look as if they led to another daemon's repository of this name, without what may be secret.
    pub others: Vec<String>,
}

impl Standing {
    /// Whether there is one at all.
    pub fn is_there(&self) -> bool {
        self.webhook.is_some()
    }

    /// Whether nothing is known that would have to be changed.
    pub fn is_right(&self) -> bool {
        self.is_there() && self.wrong.is_empty()
    }

    /// Whether the host keeps to itself which secret it has.
    pub fn hides_secret(&self) -> bool {
        self.webhook.as_ref().is_some_and(|webhook| webhook.secret == SecretSeen::Hidden)
    }
}

/// What a host does when it is asked to try a webhook out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// It sends this event, as it sends every other.
    Sent(&'static str),
    /// It sends this event, and does not sign it.
    Unsigned(&'static str),
    /// It cannot.
    Never,
}

/// The webhooks of a repository on a host.
#[async_trait]
pub trait Webhooks: Send + Sync + std::fmt::Debug {
    /// How the host is called.
    fn host(&self) -> &'static str;

    /// Looks at those that there are.
    ///
    /// # Errors
    /// `Transient` if the host is busy or out of reach, `Stalled` if a person has to act: a token without rights.
    async fn look(&self, wanted: &WantedWebhook) -> Result<Standing>;

    /// Registers one, or has the one that there is be as it is wanted, its secret included.
    ///
    /// # Errors
    /// As [`Webhooks::look`].
    async fn register(&self, wanted: &WantedWebhook, standing: &Standing) -> Result<()>;

    /// Has the host call.
    ///
    /// # Errors
    /// As [`Webhooks::look`].
    async fn test(&self, wanted: &WantedWebhook, standing: &Standing) -> Result<Test>;
}

/// A host's API of webhooks.
#[async_trait]
pub(super) trait WebhookApi: Send + Sync + std::fmt::Debug {
    /// What is said of the host, and which rights webhooks need.
    fn words(&self) -> Words;

    /// The events about pushes, in the words in which the host lists them.
    fn pushes(&self) -> &'static [&'static str];

    /// The same about pull requests, as far as those are planned.
    fn pulls(&self) -> &'static [&'static str] {
        &[]
    }

    /// The same about comments on pull requests, as far as those are read.
    fn comments(&self) -> &'static [&'static str] {
        &[]
    }

    /// The events that are read.
    fn events(&self, wanted: &WantedWebhook) -> Vec<&'static str> {
        let pulls = if wanted.beside.pulls { self.pulls() } else { &[] };
        let comments = if wanted.beside.comments { self.comments() } else { &[] };
        self.pushes().iter().chain(pulls).chain(comments).copied().collect()
    }

    /// Events that are read as well where a person has chosen them: sequences may be triggered on what they tell.
    fn chosen(&self) -> &'static [&'static str] {
        &[]
    }

    /// The events that a webhook is to tell of, with those that a person has chosen for it.
    fn events_for(&self, wanted: &WantedWebhook, known: Option<&Webhook>) -> Vec<&'static str> {
        let told = known.and_then(|known| self.read(known.whole.clone(), wanted)).map(|known| known.events);
        let mut events = self.events(wanted);
        for chosen in self.chosen().iter().filter(|event| told.as_ref().is_some_and(|told| told.contains(**event))) {
            if !events.contains(chosen) {
                events.push(chosen);
            }
        }
        events
    }

    /// Whether the host does not change the secret of a webhook, so that another one has to take its place.
    fn keeps_secrets(&self) -> bool {
        false
    }

    /// Those of a repository as the host has them; nothing, if it does not show them.
    async fn list(&self, ask: Ask<'_>) -> Result<Option<Vec<Value>>>;

    /// One of them; nothing, if it is no webhook of the sort that calls the daemon.
    fn read(&self, whole: Value, wanted: &WantedWebhook) -> Option<Webhook>;

    /// Registers one, or has the one that there is be as it is wanted, or another one take its place; nothing, if the host says
    /// that there is such a one.
    async fn put(&self, ask: Ask<'_>, wanted: &WantedWebhook, known: Option<&Webhook>) -> Result<Option<()>>;

    /// Where one is.
    fn place(&self, id: &str) -> Url;

    /// Has the host call.
    async fn test(&self, ask: Ask<'_>, webhook: &Webhook, wanted: &WantedWebhook) -> Result<Test>;
}

/// Reads a list page by page, which are numbered from 1; nothing, if the host does not show it.
pub(super) async fn listed(
    ask: Ask<'_>,
    asked: usize,
    page: impl Fn(usize) -> Url + Send,
) -> Result<Option<Vec<Value>>> {
    pages(asked, |at| ask.page::<Value>(page(at + 1))).await
}

/// A text of an answer.
pub(super) fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The texts of a list of an answer.
pub(super) fn texts(value: &Value, pointer: &str) -> BTreeSet<String> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What is wrong with a filter of branches that leaves out what is watched, as far as that can be told.
pub(super) fn filtered(filter: Option<String>, wanted: &WantedWebhook) -> Option<String> {
    let filter = filter.filter(|filter| !matches!(filter.as_str(), "*" | "**"));
    let filter = filter.filter(|filter| Some(filter) != wanted.branch.as_ref())?;
    Some(format!("it tells of some branches only: `{filter}`"))
}

impl Hosted<dyn WebhookApi> {
    fn ask(&self) -> Ask<'_> {
        Ask {
            client: &self.client,
            words: self.api.words(),
            what: "read and register webhooks",
            busy: &[],
            absent: &[],
        }
    }

    async fn delete(&self, ask: Ask<'_>, webhook: &Webhook) -> Result<()> {
        ask.tell(Method::DELETE, self.api.place(&webhook.id), &json!({}), &[(404, "")]).await.map(drop)
    }
}

#[async_trait]
impl Webhooks for Hosted<dyn WebhookApi> {
    fn host(&self) -> &'static str {
        self.api.words().name
    }

    async fn look(&self, wanted: &WantedWebhook) -> Result<Standing> {
        self.client.ready()?;
        let Some(list) = self.api.list(self.ask()).await? else {
            let Words { name, rights, .. } = self.api.words();
            let hidden = format!("{name} does not show the repository's webhooks to the token's user");
            return Err(Failure::stalled(hidden).hint(rights));
        };
        let (events, chosen) = (self.api.events(wanted), self.api.chosen());
        let mut all: Vec<Webhook> = list.into_iter().filter_map(|whole| self.api.read(whole, wanted)).collect();
        for webhook in &mut all {
            webhook.events.retain(|told| events.contains(&&**told) || !chosen.contains(&&**told));
        }
        Ok(standing(all, wanted, &events))
    }

    /// A new one is there before an old one goes, so that no push is missed in between.
    async fn register(&self, wanted: &WantedWebhook, standing: &Standing) -> Result<()> {
        self.client.ready()?;
        let ask = self.ask();
        let known = standing.webhook.as_ref();
        self.api.put(ask, wanted, known).await?.ok_or_else(|| {
            let name = self.api.words().name;
            Failure::transient(format!("{name} has such a webhook and does not show it")).hint("try again")
        })?;
        let replaced = known.filter(|_| self.api.keeps_secrets());
        for webhook in replaced.into_iter().chain(&standing.more) {
            self.delete(ask, webhook).await?;
        }
        Ok(())
    }

    async fn test(&self, wanted: &WantedWebhook, standing: &Standing) -> Result<Test> {
        self.client.ready()?;
        match &standing.webhook {
            Some(webhook) => self.api.test(self.ask(), webhook, wanted).await,
            None => Ok(Test::Never),
        }
    }
}

/// How a repository's webhook stands, given all that its host has.
fn standing(all: Vec<Webhook>, wanted: &WantedWebhook, events: &[&str]) -> Standing {
    let (mut here, mut astray, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for webhook in all {
        match wanted.leads(&webhook.url) {
            Leads::Here => here.push(webhook),
            Leads::Astray => astray.push(webhook),
            Leads::ToAnotherDaemon => others.push(shown(&webhook.url)),
            Leads::Elsewhere => {}
        }
    }
    here.sort_by_key(|webhook| wrong(webhook, wanted, events).len());
    let mut candidates = here.into_iter();
    let chosen = candidates.next().or_else(|| (!astray.is_empty()).then(|| astray.remove(0)));
    let more: Vec<Webhook> = candidates.chain(astray).collect();
    let mut problems = chosen.as_ref().map(|webhook| wrong(webhook, wanted, events)).unwrap_or_default();
    if !more.is_empty() {
        problems.push(format!("{} more of it lead to this daemon", more.len()));
    }
    Standing { webhook: chosen, more, wrong: problems, others }
}

/// What is wrong with a webhook, for people.
fn wrong(webhook: &Webhook, wanted: &WantedWebhook, events: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    if wanted.leads(&webhook.url) != Leads::Here {
        wrong.push(format!("it leads to {}", shown(&webhook.url)));
    }
    if !webhook.is_active {
        wrong.push("it is switched off".to_owned());
    }
    if webhook.events.iter().map(String::as_str).ne(events.iter().copied().collect::<BTreeSet<&str>>()) {
        let told = webhook.events.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let told = if told.is_empty() { "nothing" } else { &told };
        wrong.push(format!("it tells of {told}, and not of {}", events.join(", ")));
    }
    match webhook.secret {
        SecretSeen::Right | SecretSeen::Hidden => {}
        SecretSeen::Missing => wrong.push("it has no secret".to_owned()),
        SecretSeen::Other => wrong.push("it has another secret than the daemon".to_owned()),
    }
    wrong.extend(webhook.obstacles.iter().cloned());
    wrong
}

/// An address without what may be a secret in it.
fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "something that is no address".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(public: &str) -> WantedWebhook {
        let branch = Some("main".to_owned());
        WantedWebhook::new(
            public,
            "shop",
            vec!["shop-next".to_owned()],
            Secret::new("secret"),
            branch,
            Beside::default(),
        )
        .unwrap()
    }

    fn webhook(id: &str, url: &str) -> Webhook {
        Webhook {
            id: id.to_owned(),
            url: url.to_owned(),
            is_active: true,
            events: ["push".to_owned()].into(),
            secret: SecretSeen::Hidden,
            obstacles: Vec::new(),
            whole: Value::Null,
        }
    }

    const HERE: &str = "https://deploy.example/webhooks/shop";

    #[test]
    fn only_what_leads_to_this_daemon_and_to_none_of_its_other_repositories_is_ours() {
        for (url, expected) in [
            (HERE, Leads::Here),
            ("HTTPS://Deploy.Example:443/webhooks/shop", Leads::Here),
            ("https://deploy.example/webhooks/shop/", Leads::Astray),
            ("https://deploy.example/webhooks/shop?x=1", Leads::Astray),
            ("http://deploy.example/webhooks/shop", Leads::Astray),
            ("https://deploy.example/webhooks/an-old-name", Leads::Astray),
            ("https://deploy.example/webhooks/shop-next", Leads::Elsewhere),
            ("https://deploy.example:8443/webhooks/shop", Leads::ToAnotherDaemon),
            ("https://staging.example/webhooks/shop", Leads::ToAnotherDaemon),
            ("https://deploy.example/stage/webhooks/shop", Leads::ToAnotherDaemon),
            ("https://deploy.example/", Leads::Elsewhere),
            ("https://deploy.example/webhook/shop", Leads::Elsewhere),
            ("https://chat.example/hooks/1", Leads::Elsewhere),
            ("no address", Leads::Elsewhere),
        ] {
            assert_eq!(wanted("https://deploy.example").leads(url), expected, "{url}");
        }
        let below = wanted("https://tools.example/deploy/");
        assert_eq!(below.url().as_str(), "https://tools.example/deploy/webhooks/shop");
        assert_eq!(below.leads("http://tools.example/deploy/webhooks/shop"), Leads::Astray);
        assert_eq!(below.leads("http://tools.example/webhooks/shop"), Leads::ToAnotherDaemon);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wanted = wanted("https://deploy.example");
        let right = webhook("1", HERE);
        let cases = [
            (right.clone(), ""),
            (Webhook { is_active: false, ..right.clone() }, "it is switched off"),
            (Webhook { events: BTreeSet::new(), ..right.clone() }, "it tells of nothing, and not of push"),
            (
                Webhook { events: ["push".to_owned(), "fork".to_owned()].into(), ..right.clone() },
                "it tells of fork, push, and not of push",
            ),
            (Webhook { secret: SecretSeen::Missing, ..right.clone() }, "it has no secret"),
            (Webhook { secret: SecretSeen::Other, ..right }, "it has another secret than the daemon"),
            (
                webhook("1", "http://ann:secret@deploy.example/webhooks/shop?token=secret"),
                "it leads to http://deploy.example/webhooks/shop",
            ),
        ];
        for (webhook, expected) in cases {
            let standing = standing(vec![webhook], &wanted, &["push"]);
            assert_eq!((standing.wrong.join("; "), standing.is_right()), (expected.to_owned(), expected.is_empty()));
        }
        assert!(!standing(Vec::new(), &wanted, &["push"]).is_there());
    }

    #[test]
    fn one_is_enough_and_those_of_others_are_left_alone() {
        let all = vec![
            webhook("1", "https://staging.example/webhooks/shop?key=secret"),
            Webhook { is_active: false, ..webhook("2", HERE) },
            webhook("3", HERE),
            webhook("4", "https://chat.example/"),
            webhook("5", "http://deploy.example/webhooks/shop"),
        ];
        let standing = standing(all, &wanted("https://deploy.example"), &["push"]);
        assert_eq!(standing.webhook.as_ref().map(|webhook| &*webhook.id), Some("3"));
        assert_eq!(standing.more.iter().map(|webhook| &*webhook.id).collect::<Vec<_>>(), ["2", "5"]);
        assert_eq!(standing.wrong, ["2 more of it lead to this daemon"]);
        assert_eq!(standing.others, ["https://staging.example/webhooks/shop"]);
    }

    #[test]
    fn a_filter_that_lets_the_branch_through_is_none() {
        let wanted = wanted("https://deploy.example");
        for (filter, passes) in [("*", true), ("main", true), ("release/*", false)] {
            assert_eq!(filtered(Some(filter.to_owned()), &wanted).is_none(), passes, "{filter}");
        }
        assert_eq!(filtered(None, &wanted), None);
    }
}
