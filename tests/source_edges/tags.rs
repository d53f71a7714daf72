//! The tags of real repositories, over every way to them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use launchway::error::Class;
use launchway::model::tag::{Tag, Tags};
use launchway::source::{Remote, RemoteUrl, remote_tags};

use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

/// The repository on this machine, and behind servers of both generations.
fn remotes(fixture: &GitFixture, server: &GitHttp) -> Vec<Remote> {
    let urls = [fixture.bare().display().to_string(), server.url("origin.git"), server.url("v0/origin.git")];
    urls.iter().map(|url| Remote::new(RemoteUrl::parse(url, false).expect(url), "main")).collect()
}

#[test]
fn tags_are_told_with_what_they_lead_to() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let first = fixture.push_files(&[("a", "1")]);
    for remote in remotes(&fixture, &server) {
        assert_eq!(remote_tags(&remote).expect("a look"), Tags::new(), "{}", remote.url);
    }
    fixture.git(&["tag", "v1"]);
    fixture.git(&["tag", "--annotate", "--message", "two", "cart/v2"]);
    fixture.git(&["tag", "--annotate", "--message", "of a tag", "v3", "cart/v2"]);
    fixture.git(&["push", "--quiet", "origin", "--tags"]);
    let object = |name: &str| fixture.git(&["rev-parse", name]).trim().to_owned();
    let annotated = |name: &str| Tag { object: object(name), target: Some(first.clone()) };
    let expected = Tags::from([
        ("refs/tags/cart/v2".to_owned(), annotated("cart/v2")),
        ("refs/tags/v1".to_owned(), Tag::of(&first)),
        ("refs/tags/v3".to_owned(), annotated("v3")),
    ]);
    for remote in remotes(&fixture, &server) {
        assert_eq!(remote_tags(&remote).expect("a look"), expected, "{}", remote.url);
    }
    fixture.git_in(&fixture.bare(), &["pack-refs", "--all"]);
    assert_eq!(remote_tags(&remotes(&fixture, &server)[0]).expect("a look"), expected, "they are packed");
}

#[test]
fn too_many_tags_are_refused_with_what_to_do() {
    let fixture = GitFixture::new();
    let server = GitHttp::start(fixture.root());
    let head = fixture.push_files(&[("a", "1")]);
    fixture.git_in(&fixture.bare(), &["pack-refs", "--all"]);
    let packed = fixture.bare().join("packed-refs");
    let mut lines: String = fs::read_to_string(&packed).expect("packed");
    lines.extend((0..20_000).map(|number| format!("{head} refs/tags/v{number:05}\n")));
    fs::write(&packed, &lines).expect("written");
    for remote in remotes(&fixture, &server) {
        assert_eq!(remote_tags(&remote).expect("a look").len(), 20_000, "{}", remote.url);
    }
    let mut file = OpenOptions::new().append(true).open(&packed).expect("there");
    writeln!(file, "{head} refs/tags/v20000").expect("written");
    for remote in remotes(&fixture, &server) {
        let failure = remote_tags(&remote).expect_err("refused");
        assert_eq!(failure.class(), Class::Stalled);
        assert!(failure.one_line().contains("has more than 20000 tags"), "{}", failure.one_line());
    }
}
