//! The first push: three services, two stages, hooks, tests, and data that a hook migrated.

use serde::Deserialize;

use super::scene::{STAGES, Scene};
use super::story::{Observed, Story, check};
use super::visitors::About;
use crate::cli::output::Outcome;

#[derive(Deserialize)]
struct Catalog {
    schema: u32,
    #[serde(flatten)]
    about: About,
}

#[derive(Deserialize)]
struct Product {
    name: String,
    stock: u32,
}

pub(super) async fn tell(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(a) The first push deploys a shop: dev, then production")?;
    let commit = scene.git.push("The shop opens").await?;
    story.command("git push origin main", "")?;
    story.claim("the push was noticed and came to its end", scene.settled(&commit).await.map(|_| commit.clone()))?;
    let all = STAGES.iter().flat_map(|stage| ["cart", "catalog", "web"].map(|service| (*stage, service, 1)));
    story.claim("three services serve in both stages", scene.serves(&all.collect::<Vec<_>>()).await)?;
    story.claim("production took only what dev had passed", in_order(scene, &commit).await)?;
    let hooks =
        STAGES.iter().flat_map(|stage| [(*stage, "catalog-data", "pre mid post"), (*stage, "web-journal", "pre post")]);
    story.claim("every hook ran once, in its order", scene.hooks_ran(&commit, &hooks.collect::<Vec<_>>()))?;
    for stage in STAGES {
        let claim = format!("the catalog of {stage} reads what the migration in its mid hook wrote");
        story.claim(&claim, migrated(scene, stage).await)?;
    }
    let expected = [
        ("success launchway/dev ", "3 success"),
        ("success launchway/production ", "3 success"),
        ("success launchway/dev/catalog/mid ", "succeeded"),
        ("success launchway/dev/web/test ", "succeeded"),
    ];
    story.claim("the results stand on the commit, in the watched repository", scene.noted(&commit, &expected).await)
}

/// That each service's delivery in dev had ended when that in production was asked for.
async fn in_order(scene: &Scene, commit: &str) -> Observed {
    let runs = scene.sequences(commit).await?;
    let of = |stage: &'static str| runs.iter().filter(move |run| run.stage == stage);
    let mut seen = Vec::new();
    for later in of("production") {
        let before = of("dev").find(|run| run.service == later.service).and_then(|run| run.ended_at.as_deref());
        let before = before.ok_or_else(|| format!("{} went to production without dev", later.service))?;
        let told = format!("{} left dev at {before}, for production at {}", later.service, later.created_at);
        if moment(before)? > moment(&later.created_at)? {
            return Err(told);
        }
        seen.push(told);
    }
    check(seen.len() == 3, seen.join("; "), format!("{} deliveries to production", seen.len()))
}

fn moment(time: &str) -> Observed<jiff::Timestamp> {
    time.parse().map_err(|error| format!("{time}: {error}"))
}

/// The stock of every product is written by the catalog's second migration and by nothing else.
async fn migrated(scene: &Scene, stage: &str) -> Observed {
    let (_, catalog): (_, Catalog) = scene.ask(stage, "catalog", "/version").await?;
    let (url, products): (_, Vec<Product>) = scene.ask(stage, "catalog", "/products").await?;
    let stock: Vec<_> = products.iter().map(|product| format!("{} × {}", product.stock, product.name)).collect();
    let seen = format!("{url}: schema {}, {} from {}", catalog.schema, stock.join(", "), catalog.about.pod);
    check(
        catalog.schema == 2 && products.len() == 3 && products.iter().all(|product| product.stock > 0),
        seen.clone(),
        seen,
    )
}
