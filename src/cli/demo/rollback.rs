//! A push that every check lets pass, and that customers notice: production goes back by a command, and Git by a branch.

use std::time::Instant;

use super::one_service::unseen;
use super::scene::{SOON, STAGES, Scene};
use super::story::{Observed, Story, check, eventually};
use super::visitors::{self, Visitors};
use crate::cli::output::Outcome;

/// What the customers have noticed.
const NOTES: &str = "ten times the price";

pub(super) async fn tell(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(f) A mistake that only customers notice, undone by one command")?;
    let visitors = Visitors::arrive(&scene.addresses("web").await.map_err(unseen)?);
    let right = price(scene, "production").await.map_err(unseen)?;
    scene.git.edit("services/web/web.py", "VERSION = \"3\"", "VERSION = \"4\"")?;
    scene.git.edit("services/web/web.py", "cents / 100", "cents / 10")?;
    let commit = scene.git.push("web: other prices").await?;
    story.command("git push origin main", "")?;
    let passed = scene.settled(&commit).await;
    story.claim("every hook and test passes", passed.map(|_| commit.clone()))?;
    story.claim("production serves it", scene.serves(&[("dev", "web", 5), ("production", "web", 4)]).await)?;
    story.claim("customers see ten times the price", is_wrong(scene, &right).await)?;
    let begun = Instant::now();
    let told = scene.launchway(&["rollback", "dc/web", "-s", "production", "--notes", NOTES]).await?;
    story.command(&format!("launchway rollback dc/web -s production --notes '{NOTES}'"), &told)?;
    story.claim("they pay the old price again", is_right(scene, &right, begun).await)?;
    story
        .claim("that is a version of its own", arrived(scene, &[("dev", "web", 5), ("production", "web", 5)]).await)?;
    merge(scene, story, &right).await?;
    story.claim("not one request failed", visitors.leave().await.unbroken())
}

/// Git still says what was pushed, until the branch is merged that says what runs.
async fn merge(scene: &Scene, story: &mut Story<'_>, right: &str) -> Outcome<()> {
    let told = scene.launchway(&["rollback", "dc/web", "-s", "production", "--pull-request"]).await?;
    story.command("launchway rollback dc/web -s production --pull-request", told.lines().next().unwrap_or_default())?;
    let branch = told.split('`').nth(1).unwrap_or_default();
    let merged = eventually(SOON, async || scene.git.merge(branch).await.map_err(|failure| failure.one_line())).await;
    story.command(&format!("git fetch origin && git merge origin/{branch} && git push origin main"), "")?;
    let commit = merged.map_err(unseen)?;
    story.claim("the merge came to its end", scene.settled(&commit).await.map(|_| commit.clone()))?;
    let skipped = [("skipped launchway/production ", "nothing changed")];
    story.claim("production runs that already, and is left alone", scene.noted(&commit, &skipped).await)?;
    story.claim("dev follows", scene.serves(&[("dev", "web", 6), ("production", "web", 5)]).await)?;
    story.claim("the price is right everywhere", everywhere(scene, right).await)
}

/// What the first product costs.
async fn price(scene: &Scene, stage: &str) -> Observed {
    let url = format!("http://{}/", scene.address(stage, "web").await?);
    let body = visitors::get(&url).await?;
    let page = String::from_utf8_lossy(&body);
    let (before, _) = page.split_once("&nbsp;").ok_or_else(|| format!("{url} shows no price"))?;
    Ok(before.rsplit('>').next().unwrap_or_default().to_owned())
}

async fn is_wrong(scene: &Scene, right: &str) -> Observed {
    let seen = price(scene, "production").await?;
    check(seen != right, format!("{seen} instead of {right}"), format!("{seen} as before"))
}

/// That customers in production pay what is right, with how long that took.
async fn is_right(scene: &Scene, right: &str, since: Instant) -> Observed {
    eventually(SOON, async || {
        let seen = price(scene, "production").await?;
        let told = format!("{seen} after {:.1} s", since.elapsed().as_secs_f64());
        check(seen == right, told, seen)
    })
    .await
}

async fn arrived(scene: &Scene, expected: &[(&str, &str, u32)]) -> Observed {
    eventually(SOON, async || scene.serves(expected).await).await
}

async fn everywhere(scene: &Scene, right: &str) -> Observed {
    let mut seen = Vec::new();
    for stage in STAGES {
        seen.push(format!("{} in {stage}", price(scene, stage).await?));
    }
    check(seen.iter().all(|seen| seen.starts_with(&format!("{right} "))), seen.join("; "), seen.join("; "))
}
