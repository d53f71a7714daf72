use launchway::control::commands::{Command, SequenceCommand};
use reqwest::{Method, Response, StatusCode, Url};

use crate::support::{OPERATOR, READER, Server, shop, shop_that_asks, shop_under_way};

#[tokio::test]
async fn the_first_page_shows_what_runs_and_leads_to_it() {
    let server = shop().await;
    let page = server.page("/").await;
    for part in [
        "version 1",
        "2 of 2 ready",
        r#"href="/runs/shop&#x2f;dev&#x2f;web-2""#,
        "Failed",
        "not as in Git: version 2 of web failed, version 1 serves",
        r#"href="/style.css""#,
    ] {
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

/// Sends the form of a run as a browser does that has it from `origin`.
async fn submit(server: &Server, password: Option<&str>, origin: Option<&str>, form: &[(&str, &str)]) -> Response {
    let encoded = Url::parse_with_params(&server.url, form).unwrap().query().unwrap().to_owned();
    let request = server.request(Method::POST, "/approvals").header("accept", "text/html").body(encoded);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
    let request = password.into_iter().fold(request, |request, password| request.basic_auth("any", Some(password)));
    request.send().await.unwrap()
}

#[tokio::test]
async fn what_waits_for_approval_is_decided_on_its_page() {
    let server = shop_that_asks().await;
    let first = server.page("/").await;
    assert!(first.contains("Waiting for approval"), "{first}");
    let runs = server.json("/api/v1/runs?kind=sequence&open=true").await;
    let run = &runs["items"][0];
    let asked = run["awaitsApproval"].as_str().unwrap();
    let id = run["id"].as_str().unwrap();
    let page = server.page(&format!("/runs/{id}")).await;
    let escaped = id.replace('/', "&#x2f;");
    for part in [r#"method="post" action="/approvals""#, &format!(r#"name="run" value="{escaped}""#)] {
        assert!(page.contains(part), "`{part}` is missing in:\n{page}");
    }
    let form = [("run", id), ("asked", asked), ("verdict", "approve"), ("reason", " seen by ann ")];
    let shown = submit(&server, Some(OPERATOR), Some(&server.url), &form).await;
    // The recorder decides nothing, so that the page is as before.
    assert_eq!((shown.status(), shown.url().path()), (StatusCode::OK, format!("/runs/{id}").as_str()));
    let [(Command::Sequence(SequenceCommand::Decide { service, approve: true, reason, run, asked: about, .. }), by)] =
        &server.asked.all()[..]
    else {
        unreachable!("{:?}", server.asked.all())
    };
    let told = (service.to_string(), reason.as_str(), run.as_ref().map(|run| run.as_str()), by.as_str());
    assert_eq!(told, ("shop/dev/web".to_owned(), "seen by ann", Some(id), "ann"));
    assert_eq!(about.as_deref(), Some(asked));
}

#[tokio::test]
async fn a_form_of_somebody_else_decides_nothing() {
    let server = shop_that_asks().await;
    let runs = server.json("/api/v1/runs?kind=sequence&open=true").await;
    let id = runs["items"][0]["id"].as_str().unwrap();
    let (own, asked, approve) = (server.url.as_str(), ("asked", "x.0.0"), ("verdict", "approve"));
    for (password, origin, form, expected) in [
        (None, Some(own), &[("run", id), asked, approve][..], StatusCode::UNAUTHORIZED),
        (Some("guess"), Some(own), &[("run", id), asked, approve], StatusCode::UNAUTHORIZED),
        (Some(READER), Some(own), &[("run", id), asked, approve], StatusCode::FORBIDDEN),
        (Some(OPERATOR), None, &[("run", id), asked, approve], StatusCode::FORBIDDEN),
        (Some(OPERATOR), Some("null"), &[("run", id), asked, approve], StatusCode::FORBIDDEN),
        (Some(OPERATOR), Some("https://evil.example"), &[("run", id), asked, approve], StatusCode::FORBIDDEN),
        (Some(OPERATOR), Some(own), &[("run", "run/nope"), asked, approve], StatusCode::NOT_FOUND),
        (Some(OPERATOR), Some(own), &[("run", id), asked, ("verdict", "maybe")], StatusCode::UNPROCESSABLE_ENTITY),
        (Some(OPERATOR), Some(own), &[("run", id), approve], StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let answer = submit(&server, password, origin, form).await;
        assert_eq!(answer.status(), expected, "{password:?} {origin:?} {form:?}");
        let challenges = answer.headers().contains_key("www-authenticate");
        assert_eq!(challenges, expected == StatusCode::UNAUTHORIZED, "{password:?} {origin:?} {form:?}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8", "{password:?} {origin:?} {form:?}");
    }
    assert!(server.asked.all().is_empty());
}
