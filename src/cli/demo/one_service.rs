//! A push that changes the code of one service.

use super::scene::{STAGES, Scene};
use super::story::{Story, check};
use super::visitors::Visitors;
use crate::cli::output::{Complaint, Outcome};
use crate::error::Failure;

pub(super) async fn tell(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(b) A change of one service's code, while customers are in the shop")?;
    let visitors = Visitors::arrive(&scene.addresses("web").await.map_err(unseen)?);
    scene.git.edit("services/web/web.py", "VERSION = \"1\"", "VERSION = \"2\"")?;
    scene.git.edit("services/web/page.html", "<h1>", "<h1>Welcome to ")?;
    let commit = scene.git.push("web: welcome our customers").await?;
    story.command("git push origin main", "")?;
    let settled = scene.settled(&commit).await;
    let visits = visitors.leave().await;
    story.claim("the push came to its end", settled.map(|_| commit.clone()))?;
    let expected: Vec<_> =
        STAGES.iter().flat_map(|stage| [(*stage, "cart", 1), (*stage, "catalog", 1), (*stage, "web", 2)]).collect();
    story.claim("only web got a version 2", scene.serves(&expected).await)?;
    story.claim("customers get the new version", scene.answers("web", "2").await)?;
    let pods = visits.pods.keys().cloned().collect::<Vec<_>>().join(", ");
    let both = visits.versions.iter().map(String::as_str).eq(["1", "2"]);
    story.claim("they were in the shop while pod after pod was exchanged", check(both, pods.clone(), pods))?;
    story.claim("not one request failed", visits.unbroken())
}

/// What has to be there before a chapter can begin, and is not.
pub(super) fn unseen(instead: String) -> Complaint {
    Complaint::failed(Failure::stalled(instead))
}
