//! A push that changes nothing that runs.

use super::scene::{STAGES, Scene};
use super::story::{Story, check};
use crate::cli::output::Outcome;

pub(super) async fn tell(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(c) A change of the README deploys nothing")?;
    scene.git.edit("README.md", "# A small shop", "# Our small shop")?;
    let commit = scene.git.push("Call the shop ours").await?;
    story.command("git push origin main", "")?;
    let expected = [("success launchway/plan ", "nothing to deploy")];
    story.claim("the commit says so", scene.noted(&commit, &expected).await)?;
    let none = scene.sequences(&commit).await.and_then(|runs| {
        check(runs.is_empty(), "no run on this commit", format!("{} runs on this commit", runs.len()))
    });
    story.claim("nothing was started", none)?;
    let same: Vec<_> =
        STAGES.iter().flat_map(|stage| [(*stage, "cart", 1), (*stage, "catalog", 1), (*stage, "web", 2)]).collect();
    story.claim("what served goes on serving", scene.serves(&same).await)
}
