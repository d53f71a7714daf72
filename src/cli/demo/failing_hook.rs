//! A push that its own `pre` hook refuses.

use super::one_service::unseen;
use super::scene::Scene;
use super::story::{Observed, Story, check};
use super::visitors::Visitors;
use crate::cli::output::Outcome;

pub(super) async fn tell(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(d) A mistake, found by a hook before any customer")?;
    let visitors = Visitors::arrive(&scene.addresses("web").await.map_err(unseen)?);
    scene.git.edit("services/web/web.py", "VERSION = \"2\"", "VERSION = \"3\"")?;
    scene.git.edit("services/web/page.html", "$products", "$prodcts")?;
    let commit = scene.git.push("web: a new page").await?;
    story.command("git push origin main", "")?;
    let settled = scene.settled(&commit).await;
    let visits = visitors.leave().await;
    story.claim("the push came to its end", settled.map(|_| commit.clone()))?;
    story.claim("the deployment was aborted in dev", aborted(scene).await)?;
    let expected = [
        ("failure launchway/dev ", "version 2 serves"),
        ("failure launchway/dev/web/pre ", "there is no `$prodcts`"),
        ("skipped launchway/production/web ", "never reached"),
    ];
    story.claim("the commit carries the failure and the hook's last lines", scene.noted(&commit, &expected).await)?;
    story.claim("production was never touched", untouched(scene, &commit).await)?;
    story.claim("the old version keeps serving", scene.answers("web", "2").await)?;
    story.claim("not one request failed", visits.unbroken())
}

async fn aborted(scene: &Scene) -> Observed {
    let configs = scene.deployments().await?;
    let web = configs.iter().find(|config| config.stage == "dev" && config.name == "web").ok_or("there is no web")?;
    let serving = web.serving.as_ref().map(|serving| serving.version);
    let seen = format!("web version {} is {}; version {} serves", web.latest_version, web.status, serving.unwrap_or(0));
    check((web.latest_version, web.status.as_str(), serving) == (3, "Failed", Some(2)), seen.clone(), seen)
}

async fn untouched(scene: &Scene, commit: &str) -> Observed {
    let there: Vec<_> =
        scene.sequences(commit).await?.into_iter().filter(|run| run.stage == "production").map(|run| run.id).collect();
    let hooks = scene.hooks("production", "web-journal", commit)?;
    check(
        there.is_empty() && hooks.is_empty(),
        "no run and no hook of this commit in production",
        format!("runs in production: {}; hooks: {hooks}", there.join(", ")),
    )
}
