//! The daemon is killed in the middle of a rolling deployment, and started again.

use std::collections::BTreeMap;

use super::one_service::unseen;
use super::scene::{DELIVERY, SOON, STAGES, Scene};
use super::story::{Observed, Story, check, eventually};
use super::visitors::{About, Visitors, Visits};
use crate::cli::output::Outcome;
use crate::server::view::PodView;

/// How many requests must be answered while there is no daemon.
const ALONE: u64 = 100;

pub(super) async fn tell(scene: &mut Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("(e) kill -9 in the middle of a rolling deployment")?;
    let visitors = Visitors::arrive(&scene.addresses("web").await.map_err(unseen)?);
    let others = processes(scene).await.map_err(unseen)?;
    let commit = repair(scene).await?;
    story.command("git push origin main", "")?;
    let middle = eventually(DELIVERY, async || middle(&scene.pods().await?)).await;
    let pid = scene.server.kill().await?;
    story.command(&format!("kill -9 {pid}"), "")?;
    story.claim("that was in the middle: a new pod serves beside old ones", middle)?;
    story.claim("without a daemon, customers are served", alone(scene, &visitors).await)?;
    scene.server.start().await?;
    story.command(&format!("launchway serve --config {}", scene.server.configuration().display()), "")?;
    let settled = scene.settled(&commit).await;
    let after = processes(scene).await;
    let visits = visitors.leave().await;
    story.claim("the deployment went on and came to its end", settled.map(|_| commit.clone()))?;
    story.claim("as if nothing had happened", scene.serves(&[("dev", "web", 4), ("production", "web", 3)]).await)?;
    story.claim("customers get the new version", scene.answers("web", "3").await)?;
    let once: Vec<_> = STAGES.iter().map(|stage| (*stage, "web-journal", "pre post")).collect();
    story.claim("no hook ran twice", scene.hooks_ran(&commit, &once))?;
    story.claim("every pod kept its process, from its start to its end", steady(&visits))?;
    story.claim("pods of other services did not notice", after.and_then(|after| same(&others, &after)))?;
    story.claim("not one request failed", visits.unbroken())
}

/// Repairs the page. A new pod now has to be ready for a second before an old one goes.
async fn repair(scene: &Scene) -> Outcome<String> {
    scene.git.edit("services/web/page.html", "$prodcts", "$products")?;
    scene.git.edit("deploy/web.yaml", "  replicas: 2\n", "  replicas: 2\n  minReadySeconds: 1\n")?;
    Ok(scene.git.push("web: repair the new page").await?)
}

/// That dev has a ready pod of the new version and a ready one of an old version.
fn middle(pods: &[PodView]) -> Observed {
    let web = pods.iter().filter(|pod| pod.namespace == "shop-dev" && pod.config.as_deref() == Some("web"));
    let ready: Vec<_> = web.filter(|pod| pod.status == "Ready").collect();
    let has = |new: bool| ready.iter().any(|pod| (pod.version == Some(4)) == new);
    let names = ready.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>().join(", ");
    check(has(true) && has(false), format!("ready in dev: {names}"), format!("ready in dev: {names}"))
}

async fn alone(scene: &Scene, visitors: &Visitors) -> Observed {
    if scene.deployments().await.is_ok() {
        return Err("a daemon answers".to_owned());
    }
    let before = visitors.answered();
    eventually(SOON, async || {
        let answered = visitors.answered() - before;
        check(answered >= ALONE, format!("{answered} requests answered"), format!("only {answered} requests answered"))
    })
    .await
}

/// The processes of the services that the push does not change.
async fn processes(scene: &Scene) -> Observed<BTreeMap<String, u32>> {
    let mut processes = BTreeMap::new();
    for stage in STAGES {
        for service in ["cart", "catalog"] {
            let (_, about): (_, About) = scene.ask(stage, service, "/version").await?;
            processes.insert(format!("{stage}/{}", about.pod), about.process);
        }
    }
    Ok(processes)
}

fn steady(visits: &Visits) -> Observed {
    let several = visits.pods.iter().find(|(_, processes)| processes.len() > 1);
    let told = |(pod, processes): (&String, &std::collections::BTreeSet<u32>)| {
        format!("{pod} {}", processes.iter().map(u32::to_string).collect::<Vec<_>>().join(" and "))
    };
    let all = visits.pods.iter().map(told).collect::<Vec<_>>().join(", ");
    check(several.is_none(), all, several.map(told).unwrap_or_default())
}

fn same(before: &BTreeMap<String, u32>, after: &BTreeMap<String, u32>) -> Observed {
    let told = |pods: &BTreeMap<String, u32>| {
        pods.iter().map(|(pod, process)| format!("{pod} {process}")).collect::<Vec<_>>().join(", ")
    };
    check(before == after, told(after), format!("before: {}; after: {}", told(before), told(after)))
}
