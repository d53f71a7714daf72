//! What merging a pull request would come to, without a trace.

use launchway::model::ids::CommitId;
use launchway::source::{Limits, Merged, Mirror, Remote, RemoteUrl};

use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

fn remote(url: &str) -> Remote {
    Remote::new(RemoteUrl::parse(url, false).expect(url), "main")
}

fn id(commit: &str) -> CommitId {
    CommitId::from(commit)
}

/// A commit on a branch of its own, which the server has as the head of a pull request.
fn pull(fixture: &GitFixture, number: u64, from: &str, files: &[(&str, &str)]) -> String {
    fixture.git(&["checkout", "-q", "-B", "topic", from]);
    let head = fixture.commit_files(files);
    fixture.git(&["push", "-q", "-f", "origin", &format!("topic:refs/pull/{number}/head")]);
    fixture.git(&["checkout", "-q", "-B", "main", "origin/main"]);
    head
}

#[test]
fn the_head_of_a_pull_request_is_fetched_and_merged_and_nothing_is_written() {
    let fixture = GitFixture::new();
    let first = fixture.push_files(&[("web.yaml", "1\n"), ("api.yaml", "1\n")]);
    let server = GitHttp::start(fixture.root());
    let head = pull(&fixture, 7, &first, &[("web.yaml", "2\n")]);
    let other = pull(&fixture, 8, &first, &[("api.yaml", "3\n")]);
    let base = fixture.push_files(&[("api.yaml", "2\n")]);
    for (number, url) in [server.url("origin.git"), fixture.bare().display().to_string()].iter().enumerate() {
        let path = fixture.path(&format!("mirror-{number}"));
        let mirror = Mirror::open_or_create(&path, Limits::default()).expect("a mirror");
        let remote = remote(url);
        mirror.fetch(&remote, &id(&base)).expect("a fetch");
        let fetch = |number: u64, head: &str| {
            let reference = format!("refs/pull/{number}/head");
            mirror.fetch_pull(&remote, number, &reference, &id(head), None).expect("a fetch")
        };
        assert_eq!(fetch(7, &head), Some(id(&head)));
        assert_eq!(fetch(8, &first), Some(id(&other)), "what is there, not what was expected");
        assert_eq!(fetch(9, &head), None);
        let known = mirror.fetch_pull(&remote, 7, "refs/heads/none", &id(&head[..12]), None).expect("a look");
        assert_eq!(known, Some(id(&head)), "what is here by its first digits is not asked for");

        let merged = {
            let repository = mirror.open().expect("open");
            let merged = match repository.merged(&id(&base), &id(&head)).expect("merged") {
                Merged::Commit(merged) => Some(merged),
                Merged::Contained | Merged::Conflicts(_) => None,
            };
            let merged = merged.expect("a commit");
            let changed = repository.changed_paths(&id(&base), &merged).expect("compared");
            assert_eq!(changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["web.yaml"]);
            assert!(repository.is_descendant(&merged, &id(&base)).expect("compared"));
            merged
        };
        let repository = mirror.open().expect("open");
        assert!(!repository.contains(&merged).expect("looked up"), "it was in memory alone");
        let conflict = repository.merged(&id(&base), &id(&other)).expect("merged");
        assert_eq!(conflict, Merged::Conflicts(vec!["api.yaml".to_owned()]));
        assert_eq!(repository.merged(&id(&base), &id(&first)).expect("merged"), Merged::Contained);
        drop(repository);

        mirror.forget_pulls(&[8]).expect("forgotten");
        let kept = fixture.git_in(&path, &["for-each-ref", "--format=%(refname)", "refs/launchway/pulls"]);
        assert_eq!(kept, "refs/launchway/pulls/8");
    }
}

#[test]
fn a_name_that_is_no_reference_is_refused() {
    let fixture = GitFixture::new();
    let head = fixture.push_files(&[("web.yaml", "1\n")]);
    let mirror = Mirror::open_or_create(&fixture.path("mirror"), Limits::default()).expect("a mirror");
    let remote = remote(&fixture.bare().display().to_string());
    let refused = mirror.fetch_pull(&remote, 1, "refs/../head", &id(&head), None).expect_err("no name");
    assert!(refused.one_line().contains("no name of a reference"), "{refused:?}");
}
