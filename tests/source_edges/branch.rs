//! Commits without a work tree, and branches of our own.

use launchway::error::Class;
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::source::{BranchPush, Edit, Limits, Mirror, Remote, RemoteUrl, Signature};

use crate::support::git::GitFixture;
use crate::support::git_http::GitHttp;

const BRANCH: &str = "launchway/rollback-web-1";

fn remote(url: &str, branch: &str) -> Remote {
    Remote::new(RemoteUrl::parse(url, false).expect(url), branch)
}

fn author() -> Signature {
    let (name, email) = ("launchway".to_owned(), "launchway@localhost".to_owned());
    Signature { name, email, at: Timestamp(1_767_323_045_000) }
}

fn file(path: &str, content: &str) -> Edit {
    Edit::File { path: path.to_owned(), content: content.as_bytes().to_vec() }
}

/// The commit on top of another one that has these changes.
fn commit(mirror: &Mirror, base: &str, edits: &[Edit]) -> CommitId {
    let (repository, base) = (mirror.open().expect("open"), CommitId::from(base));
    let tree = repository.edited(&base, edits).expect("a tree");
    repository.commit_tree(tree, &base, "go back\n", &author()).expect("a commit")
}

#[test]
fn files_and_folders_change_and_nothing_else() {
    let fixture = GitFixture::new();
    fixture.write_program(&fixture.work().join("app/bin/run"), "old");
    let first = fixture.push_files(&[("app/a", "old"), ("web.yaml", "old"), ("docs/read.me", "kept")]);
    let second = fixture.push_files(&[("app/a", "new"), ("app/b", "new"), ("web.yaml", "new")]);
    let mirror = Mirror::open_or_create(&fixture.path("mirror"), Limits::default()).expect("a mirror");
    let main = remote(&fixture.bare().display().to_string(), "main");
    mirror.fetch(&main, &CommitId::from(&*second)).expect("a fetch");
    let id = {
        let repository = mirror.open().expect("open");
        let tree = repository.tree(&CommitId::from(&*first)).expect("a tree");
        tree.folder("app").expect("read").expect("it is there").id()
    };
    let folder = Edit::Folder { path: "app".to_owned(), id };
    let made = commit(&mirror, &second, &[folder.clone(), file("web.yaml", "old"), file("deep/er/new", "1")]);
    assert_eq!(made, commit(&mirror, &second, &[folder, file("web.yaml", "old"), file("deep/er/new", "1")]));
    let to = remote(&fixture.bare().display().to_string(), BRANCH);
    assert_eq!(mirror.push_branch(&to, &made, None, &author()).expect("pushed"), BranchPush::Done);
    let changed = fixture.git_in(&fixture.bare(), &["diff", "--name-status", "main", BRANCH]);
    assert_eq!(changed, "M\tapp/a\nD\tapp/b\nA\tdeep/er/new\nM\tweb.yaml");
    let listed = fixture.git_in(&fixture.bare(), &["ls-tree", BRANCH, "app/bin/run"]);
    assert!(listed.starts_with("100755 blob"), "{listed}");
}

#[test]
fn a_branch_of_our_own_is_moved_and_nobody_elses() {
    let fixture = GitFixture::new();
    let head = fixture.push_files(&[("web.yaml", "1")]);
    let server = GitHttp::start(fixture.root());
    for (number, url) in [server.url("origin.git"), fixture.bare().display().to_string()].iter().enumerate() {
        let mirror =
            Mirror::open_or_create(&fixture.path(&format!("mirror-{number}")), Limits::default()).expect("one");
        mirror.fetch(&remote(url, "main"), &CommitId::from(&*head)).expect("a fetch");
        let branch = format!("{BRANCH}{number}");
        let to = remote(url, &branch);
        let push = |commit: &CommitId, known: Option<&CommitId>| mirror.push_branch(&to, commit, known, &author());
        let at = || fixture.git_in(&fixture.bare(), &["rev-parse", &branch]);
        let (one, two) = (commit(&mirror, &head, &[file("a", "1")]), commit(&mirror, &head, &[file("a", "2")]));
        for (pushed, known) in [(&one, None), (&one, None), (&two, Some(&one)), (&one, None)] {
            assert_eq!(push(pushed, known).expect("it is ours"), BranchPush::Done);
            assert_eq!(at(), pushed.as_str());
        }
        // Somebody goes on with what we have pushed.
        fixture.git(&["fetch", "-q", "origin", &branch]);
        fixture.git(&["checkout", "-q", "-B", "own", "FETCH_HEAD"]);
        let theirs = fixture.commit_files(&[("a", "3")]);
        fixture.git(&["push", "-q", "origin", &format!("own:{branch}")]);
        fixture.git(&["checkout", "-q", "main"]);
        assert_eq!(push(&two, Some(&one)).expect("it is left alone"), BranchPush::Taken);
        assert_eq!(at(), theirs);
    }
    let nowhere = remote("http://127.0.0.1:9/origin.git", BRANCH);
    let mirror = Mirror::open_or_create(&fixture.path("mirror-0"), Limits::default()).expect("a mirror");
    let made = commit(&mirror, &head, &[file("a", "1")]);
    let failure = mirror.push_branch(&nowhere, &made, None, &author()).expect_err("nobody is there");
    assert_eq!(failure.class(), Class::Transient);
}

#[test]
fn a_repository_that_keeps_history_is_no_race_that_is_run_again() {
    let fixture = GitFixture::new();
    let head = fixture.push_files(&[("web.yaml", "1")]);
    fixture.git_in(&fixture.bare(), &["config", "receive.denyNonFastForwards", "true"]);
    let url = fixture.bare().display().to_string();
    let mirror = Mirror::open_or_create(&fixture.path("mirror"), Limits::default()).expect("one");
    mirror.fetch(&remote(&url, "main"), &CommitId::from(&*head)).expect("a fetch");
    let (one, two) = (commit(&mirror, &head, &[file("a", "1")]), commit(&mirror, &head, &[file("a", "2")]));
    let push = |commit: &CommitId, known| mirror.push_branch(&remote(&url, BRANCH), commit, known, &author());
    assert_eq!(push(&one, None).expect("new"), BranchPush::Done);
    let refused = push(&two, Some(&one)).expect_err("it replaces what is there");
    assert_eq!(refused.class(), Class::Stalled, "{refused:#}");
    assert!(refused.hint_text().is_some_and(|hint| hint.contains("to be replaced")), "{refused:#}");
}

#[test]
fn a_branch_of_our_own_is_deleted_where_it_is_as_we_left_it() {
    let fixture = GitFixture::new();
    let head = fixture.push_files(&[("web.yaml", "1")]);
    let server = GitHttp::start(fixture.root());
    for (number, url) in [server.url("origin.git"), fixture.bare().display().to_string()].iter().enumerate() {
        let mirror =
            Mirror::open_or_create(&fixture.path(&format!("mirror-{number}")), Limits::default()).expect("one");
        mirror.fetch(&remote(url, "main"), &CommitId::from(&*head)).expect("a fetch");
        let branch = format!("{BRANCH}{number}");
        let to = remote(url, &branch);
        let there = || fixture.git_in(&fixture.bare(), &["branch", "--list", &branch]);
        let (one, two) = (commit(&mirror, &head, &[file("a", "1")]), commit(&mirror, &head, &[file("a", "2")]));
        mirror.push_branch(&to, &one, None, &author()).expect("pushed");
        assert_eq!(mirror.delete_branch(&to, &two).expect("it is another's"), BranchPush::Taken);
        assert!(!there().is_empty());
        for _ in 0..2 {
            assert_eq!(mirror.delete_branch(&to, &one).expect("it is ours"), BranchPush::Done);
            assert_eq!(there(), "");
        }
        mirror.push_branch(&to, &one, None, &author()).expect("pushed");
        fixture.git_in(&fixture.bare(), &["config", "receive.denyDeletes", "true"]);
        let refused = mirror.delete_branch(&to, &one).expect_err("nothing is deleted there");
        assert_eq!(refused.class(), Class::Stalled, "{refused:#}");
        assert!(!there().is_empty() && refused.to_string().contains("be deleted"), "{refused:#}");
        fixture.git_in(&fixture.bare(), &["config", "--unset", "receive.denyDeletes"]);
    }
}
