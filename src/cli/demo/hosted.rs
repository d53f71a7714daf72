//! A repository on a Git host: its webhook brings the pushes, it shows the results, and a version that fails its smoke test
//! comes back as a pull request.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use ulid::Ulid;

use super::example;
use super::git::{Git, Program};
use super::git_host::{GitHost, client};
use super::one_service::unseen;
use super::scene::{DELIVERY, SOON, Scene};
use super::story::{Observed, Story, check, eventually};
use crate::cli::output::Outcome;
use crate::error::{Context, Result};
use crate::secret::Secret;

/// The name under which it is watched.
const NAME: &str = "carts";
/// What a failed deployment leads to is for the project to say.
const PROJECT: &str = "apiVersion: launchway.dev/v1
kind: Project
metadata: {name: carts}
spec:
  stages: {default: {path: deploy}}
  rollback: {onFailure: pull-request}
";
/// Where the strategy of the example's cart ends, and what follows here: its test, against the version that serves.
const STRATEGY: (&str, &str) = (
    "      maxSurge: 1\n",
    "      maxSurge: 1\n      post: {failurePolicy: Abort, execNewPod: {containerName: cart, command: [bin/test]}}\n",
);
/// Where the results of its smoke test stand.
const SMOKE_TEST: &str = "launchway/default/cart/post";

/// The host, and a person's work tree.
struct Hosted {
    host: GitHost,
    token: Secret,
    client: reqwest::Client,
    git: Git,
}

pub(super) async fn tell(scene: &mut Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(g) On a Git host: a bad push, a pull request, a merge")?;
    let hosted = begin(scene, story).await?;
    let commit = hosted.git.push("Carts of their own").await?;
    story.command("git push origin main", "")?;
    story.claim("the host's signed call was taken", hosted.called().await)?;
    let good = [("success", "launchway/default"), ("success", SMOKE_TEST)];
    story.claim("the host shows that it is deployed, and passes its smoke test", hosted.shows(&commit, &good).await)?;
    hosted.git.edit("services/cart/cart.py", "quantity = quantity + 1", "quantity = quantity + 2")?;
    let commit = hosted.git.push("cart: count faster").await?;
    story.command("git push origin main", "")?;
    let bad = [("failure", "launchway/default"), ("failure", SMOKE_TEST)];
    story.claim("the host shows that it fails", hosted.shows(&commit, &bad).await)?;
    let number = go_back(&hosted, story).await?;
    let merged = hosted.head().await.map_err(unseen)?;
    story.claim("the merge is deployed, and passes the smoke test", hosted.shows(&merged, &good).await)?;
    story.claim("as a version of its own", scene.serves(&[("default", "cart", 3)]).await)?;
    story.claim("there was one pull request, which is merged", hosted.is_merged(number).await)?;
    leave(scene, story).await
}

/// Starts the host, and has the daemon watch what is on it.
async fn begin(scene: &mut Scene, story: &mut Story<'_>) -> Outcome<Hosted> {
    let folder = scene.git.folder().to_owned();
    let (token, signing) = (secret(&folder, "token")?, secret(&folder, "signing-secret")?);
    let host = GitHost::start(&folder.join("host"), token.clone()).await?;
    let git = Program::at_home(&folder)?.begin(&host.url_with_password(), NAME).await?;
    example::write_to(git.work(), &["services/cart/", "deploy/cart.yaml"])?;
    let project = git.work().join("launchway.yaml");
    fs::write(&project, PROJECT).or_stalled(|| format!("cannot write `{}`", project.display()))?;
    git.edit("deploy/cart.yaml", STRATEGY.0, STRATEGY.1)?;
    story.say(format!("  A Git host with Gitea's API, for this story alone: {}", host.url()))?;
    let file = |name: &str| folder.join(name).display().to_string();
    let settings = [
        // Only the webhook tells of pushes.
        "poll: 0s".to_owned(),
        "forge: {kind: gitea}".to_owned(),
        format!("credentials: {{tokenFile: \"{}\"}}", file("token")),
        format!("webhook: {{secretFiles: [\"{}\"]}}", file("signing-secret")),
    ];
    scene.server.watch(NAME, &host.url(), &settings.each_ref().map(String::as_str))?;
    scene.server.stop().await?;
    scene.server.start().await?;
    story.command(&format!("launchway serve --config {}", scene.server.configuration().display()), "")?;
    let webhook = format!("{}/webhooks/{NAME}", scene.server.url().map_err(unseen)?);
    story.say(format!("  Its webhook: {webhook}"))?;
    host.call_at(webhook, signing);
    Ok(Hosted { host, token, client: client()?, git })
}

/// A secret that nobody has seen, in a file for its owner's eyes.
fn secret(folder: &Path, name: &str) -> Result<Secret> {
    let (path, text) = (folder.join(name), Ulid::generate().to_string());
    let unwritable = || format!("cannot write `{}`", path.display());
    fs::write(&path, &text).or_stalled(unwritable)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).or_stalled(unwritable)?;
    Ok(Secret::new(text))
}

/// The pull request that launchway opens, which a person merges on the host.
async fn go_back(hosted: &Hosted, story: &mut Story<'_>) -> Outcome<u64> {
    let opened = eventually(SOON, async || hosted.opened().await).await;
    let shown = opened.as_ref().map(|pull| format!("{}: {}", text(pull, "/html_url"), text(pull, "/title")));
    story.claim("a pull request goes back, opened by launchway", shown.map_err(Clone::clone))?;
    let pull = opened.map_err(unseen)?;
    let body = text(&pull, "/body");
    let why = body.lines().find(|line| line.contains("two of product 1 were put into the cart"));
    story.claim("it says why", why.map(str::to_owned).ok_or_else(|| body.clone()))?;
    let number = pull["number"].as_u64().unwrap_or_default();
    story.say(format!("  Somebody merges it: POST {}", hosted.host.api(&format!("pulls/{number}/merge"))))?;
    hosted.ask(reqwest::Method::POST, &format!("pulls/{number}/merge")).await.map_err(unseen)?;
    Ok(number)
}

/// Takes it down, since its host ends with the story.
async fn leave(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    let told = scene.launchway(&["down", NAME]).await?;
    story.command(&format!("launchway down {NAME}"), &told)?;
    let left = eventually(SOON, async || {
        let pods = scene.pods().await?.into_iter().filter(|pod| pod.namespace.starts_with(NAME) && !pod.has_ended());
        let names: Vec<String> = pods.map(|pod| pod.name).collect();
        check(names.is_empty(), "no pod of it runs", names.join(", "))
    });
    story.claim("taken down, it is gone", left.await)
}

impl Hosted {
    async fn ask(&self, method: reqwest::Method, rest: &str) -> Observed<Value> {
        let request = self.client.request(method, self.host.api(rest));
        let request = request.header("authorization", format!("token {}", self.token.reveal()));
        let answer = request.send().await.and_then(reqwest::Response::error_for_status);
        let body = answer.map_err(|error| error.to_string())?.text().await.map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&body).unwrap_or_default())
    }

    /// That the daemon has taken the host's first call.
    async fn called(&self) -> Observed {
        eventually(SOON, async || {
            let answers = self.host.answers();
            let taken = answers.iter().find(|answer| answer.contains("\"accepted\""));
            taken.cloned().ok_or_else(|| answers.join("; "))
        })
        .await
    }

    /// That the host comes to show these states in these contexts of a commit.
    async fn shows(&self, commit: &str, expected: &[(&str, &str)]) -> Observed {
        eventually(DELIVERY, async || {
            let answer = self.ask(reqwest::Method::GET, &format!("commits/{commit}/status")).await?;
            let all: Vec<(String, String, String)> = answer["statuses"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|status| (text(status, "/status"), text(status, "/context"), text(status, "/description")))
                .collect();
            let find = |(state, context): &(&str, &str)| {
                let found = all.iter().find(|status| (&*status.0, &*status.1) == (*state, *context));
                let told = found.map(|(state, context, description)| format!("{state} {context} {description}"));
                told.ok_or_else(|| format!("not {state} {context}: {all:?}"))
            };
            Ok(expected.iter().map(find).collect::<Observed<Vec<_>>>()?.join("\n    "))
        })
        .await
    }

    /// The one open pull request.
    async fn opened(&self) -> Observed<Value> {
        let open = self.ask(reqwest::Method::GET, "pulls?state=open").await?;
        match open.as_array().map(Vec::as_slice) {
            Some([pull]) => Ok(pull.clone()),
            _ => Err(format!("not one open pull request: {open}")),
        }
    }

    /// Where the host's branch is.
    async fn head(&self) -> Observed {
        self.git.remote_head().await.map_err(|failure| failure.one_line())
    }

    /// That there was this one alone, and what became of it.
    async fn is_merged(&self, number: u64) -> Observed {
        let all = self.ask(reqwest::Method::GET, "pulls").await?;
        let merged = all.as_array().is_some_and(|all| all.len() == 1) && all[0]["merged"] == true;
        check(merged, format!("number {number} is merged"), all.to_string())
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
