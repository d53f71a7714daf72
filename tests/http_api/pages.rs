use reqwest::StatusCode;

use crate::support::{shop, shop_under_way};

#[tokio::test]
async fn the_first_page_shows_what_runs_and_leads_to_it() {
    let server = shop().await;
    let page = server.page("/").await;
    for part in
        ["version 1", "2 of 2 ready", r#"href="/runs/shop&#x2f;dev&#x2f;web-2""#, "Failed", r#"href="/style.css""#]
    {
        assert!(page.contains(part), "`{part}` is missing in:\n{page}");
    }
    assert!(!page.contains("<script"));
}

#[tokio::test]
async fn a_runs_page_shows_the_hooks_end_and_what_changes() {
    let server = shop().await;
    let page = server.page("/runs/shop/dev/web-2").await;
    let changed = r#"<span class="added">+ b</span>"#;
    for part in ["web-2-hook-pre", "exit code 3", "failure", changed] {
        assert!(page.contains(part), "`{part}` is missing in:\n{page}");
    }
}

#[tokio::test]
async fn a_revisions_page_shows_the_difference() {
    let server = shop().await;
    let revisions = server.json("/api/v1/revisions").await;
    let last = &revisions["items"][0];
    let path = format!("/revisions/{}/{}", last["repository"].as_str().unwrap(), last["commit"].as_str().unwrap());
    let page = server.page(&path).await;
    for part in [
        "launchway&#x2f;dev&#x2f;web&#x2f;pre",
        r#"<span class="removed">- a</span>"#,
        r#"<span class="added">+ b</span>"#,
    ] {
        assert!(page.contains(part), "`{part}` is missing in:\n{page}");
    }
}

#[tokio::test]
async fn a_revision_shows_what_becomes_of_what_an_earlier_one_brings_in_its_place() {
    let server = shop_under_way().await;
    let revisions = server.json("/api/v1/revisions?limit=2").await;
    let (last, first) = (&revisions["items"][0], &revisions["items"][1]);
    assert_eq!(last["carriers"], serde_json::json!([first["commit"]]));
    let path = format!("/revisions/{}/{}", last["repository"].as_str().unwrap(), last["commit"].as_str().unwrap());
    let revision = server.json(&format!("/api/v1{path}")).await;
    let carried = revision["statuses"].as_array().unwrap().iter().filter(|status| !status["commit"].is_null());
    let carried: Vec<_> = carried.map(|it| (&it["context"], &it["state"], it["commit"] == first["commit"])).collect();
    assert_eq!(
        serde_json::json!(carried),
        serde_json::json!([["launchway/dev", "running", true], ["launchway/production", "pending", true],])
    );
    let page = server.page(&path).await;
    let link = format!("of <a href=\"/revisions/{}/", last["repository"].as_str().unwrap());
    assert!(page.contains(&link) && page.contains("nothing to deploy that"), "`{link}` is missing in:\n{page}");
}

#[tokio::test]
async fn pages_load_nothing_and_run_nothing() {
    let server = shop().await;
    let response = server.get("/").await;
    let policy = response.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'"), "{policy}");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(server.get("/style.css").await.headers()["content-type"], "text/css; charset=utf-8");
}

#[tokio::test]
async fn a_page_that_is_not_there_says_so() {
    let server = shop().await;
    let response = server.get("/runs/nope").await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(response.text().await.unwrap().contains("there is no run `nope`"));
}
