//! The cheap question to a remote: what its references say, without an object being read or anything being written.
//!
//! libgit2 speaks protocol v0 only, which sends every reference each time (1.5 MB for 20,000 of them). Version 2
//! lets the client name what it wants; a server that does not know it answers in v0 or v1, and then all are read.

use std::io::{self, Read};

use super::Remote;
use super::git::{self, commit_id, existing, failed};
use super::pkt_line::{DELIMITER, FLUSH, push_line, read_packet};
use super::transport::{Connection, Deadline, Protocol, Service};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;

/// A server with more references than this is refused rather than read (or, with v2, is never asked for them all).
const MAX_REFS: usize = 1_000_000;

/// What the remote's branch points at; `None` if it has no such branch.
///
/// Fails as `Transient` if it cannot be reached, and as `Stalled` if it refuses the credentials, does not exist or is of
/// a kind that is not supported.
pub fn remote_head(remote: &Remote) -> Result<Option<CommitId>> {
    let branch = remote.branch_ref()?;
    match remote.url.local_path() {
        Some(path) => local_ref(path, &branch),
        None => Ok(list(remote, &[&branch])?.find(&branch)),
    }
}

/// Why the remote's branch has no head: it was deleted if it `was_there`; else it waits for the first push, to the branch
/// or to the whole repository.
pub fn without_branch(remote: &Remote, was_there: bool) -> Failure {
    let Remote { url, branch, .. } = remote;
    if was_there {
        return Failure::stalled(format!("branch `{branch}` of `{url}` was deleted"))
            .hint("push it again, or watch another branch; what runs keeps running");
    }
    match is_empty(remote) {
        Ok(true) => Failure::waiting(format!("`{url}` has no commits yet")).hint("push one"),
        Ok(false) => Failure::stalled(format!("branch `{branch}` of `{url}` does not exist"))
            .hint("push it, or watch another branch"),
        Err(failure) => failure,
    }
}

/// The branch that the remote's `HEAD` names. `remote.branch` plays no part.
pub fn default_branch(remote: &Remote) -> Result<String> {
    let target = match remote.url.local_path() {
        Some(path) => local_head(path)?,
        None => list(remote, &["HEAD"])?.head,
    };
    let branch = target.as_deref().and_then(|target| target.strip_prefix("refs/heads/"));
    branch.map(str::to_owned).ok_or_else(|| {
        Failure::stalled(format!("`{}` does not say which branch is its main one", remote.url)).hint("name the branch")
    })
}

fn is_empty(remote: &Remote) -> Result<bool> {
    match remote.url.local_path() {
        Some(path) => {
            let repository = git::open_local(path)?;
            let mut branches = repository.references_glob("refs/heads/*").map_err(failed(|| unreadable(path)))?;
            Ok(branches.next().is_none())
        }
        None => Ok(list(remote, &["refs/heads/"])?.references.is_empty()),
    }
}

fn unreadable(path: &std::path::Path) -> String {
    format!("cannot read the references of `{}`", path.display())
}

/// Reads one reference of a repository on this machine.
fn local_ref(path: &std::path::Path, name: &str) -> Result<Option<CommitId>> {
    let repository = git::open_local(path)?;
    let id = existing(repository.refname_to_id(name)).map_err(failed(|| unreadable(path)))?;
    Ok(id.map(commit_id))
}

fn local_head(path: &std::path::Path) -> Result<Option<String>> {
    let repository = git::open_local(path)?;
    let head = repository.find_reference("HEAD").map_err(failed(|| unreadable(path)))?;
    let target = head.symbolic_target().map_err(failed(|| unreadable(path)))?;
    Ok(target.map(str::to_owned))
}

/// References of a remote.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    /// Names and ids.
    references: Vec<(String, String)>,
    /// What `HEAD` points at.
    head: Option<String>,
}

impl Listing {
    fn find(&self, name: &str) -> Option<CommitId> {
        self.references.iter().find(|(found, _)| found == name).map(|(_, id)| CommitId::new(id.as_str()))
    }

    fn add(&mut self, name: &str, id: &str, prefixes: &[&str]) {
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            self.references.push((name.to_owned(), id.to_owned()));
        }
    }
}

/// Why an answer could not be read.
#[derive(Debug)]
enum Unreadable {
    Connection(io::Error),
    /// The server's own words.
    Refused(String),
    Sha256,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Unreadable::Connection(error)
    }
}

fn list(remote: &Remote, prefixes: &[&str]) -> Result<Listing> {
    let deadline = Deadline::after(remote.time.list, remote.time.idle);
    let mut connection = Connection::open(remote, Service::UploadPack, Protocol::V2, deadline)?;
    let greeting = read_greeting(connection.stream(), prefixes);
    match greeting.map_err(|problem| explain(remote, &mut connection, problem))? {
        Greeting::References(listing) => Ok(listing),
        Greeting::Version2 => {
            connection.send(ls_refs_request(prefixes))?;
            read_listing(connection.stream(), prefixes).map_err(|problem| explain(remote, &mut connection, problem))
        }
    }
}

fn explain(remote: &Remote, connection: &mut Connection, problem: Unreadable) -> Failure {
    match problem {
        Unreadable::Connection(error) => connection.stream().explain(error),
        Unreadable::Sha256 => git::sha256(&remote.url.to_string()),
        Unreadable::Refused(words) => {
            let words: String = words.chars().filter(|character| !character.is_control()).take(200).collect();
            Failure::stalled(format!("`{}` refuses to be read", remote.url))
                .hint("check the repository's address and who may read it")
                .because(words)
        }
    }
}

/// The server's first words.
#[derive(Debug, PartialEq, Eq)]
enum Greeting {
    /// It speaks version 2 and waits for a command.
    Version2,
    /// It does not, and has told all its references.
    References(Listing),
}

fn read_greeting(input: &mut impl Read, prefixes: &[&str]) -> std::result::Result<Greeting, Unreadable> {
    let mut first = read_line(input)?;
    // HTTP servers name the service first, and end that with a flush; some leave it out in version 2.
    if first.as_deref().is_some_and(|line| line.starts_with("# service=")) {
        read_packet(input)?;
        first = read_line(input)?;
    }
    match first.as_deref() {
        Some("version 2") => read_capabilities(input),
        Some("version 1") => {
            let first = read_line(input)?;
            read_advertisement(input, first, prefixes)
        }
        _ => read_advertisement(input, first, prefixes),
    }
}

/// A packet's text, `None` at the end of a section; the server's refusal is an error.
fn read_line(input: &mut impl Read) -> std::result::Result<Option<String>, Unreadable> {
    let text = read_packet(input)?.text();
    match text.as_deref().and_then(|text| text.strip_prefix("ERR ")) {
        Some(words) => Err(Unreadable::Refused(words.to_owned())),
        None => Ok(text),
    }
}

fn read_capabilities(input: &mut impl Read) -> std::result::Result<Greeting, Unreadable> {
    while let Some(capability) = read_line(input)? {
        if capability == "object-format=sha256" {
            return Err(Unreadable::Sha256);
        }
    }
    Ok(Greeting::Version2)
}

/// Reads what v0 and v1 begin with: every reference, the first with the capabilities behind a NUL.
fn read_advertisement(
    input: &mut impl Read,
    first: Option<String>,
    prefixes: &[&str],
) -> std::result::Result<Greeting, Unreadable> {
    let mut listing = Listing::default();
    let mut line = first;
    for _reference in 0..MAX_REFS {
        let Some(text) = line else { return Ok(Greeting::References(listing)) };
        let (reference, capabilities) = text.split_once('\0').unwrap_or((&text, ""));
        if capabilities.split(' ').any(|capability| capability == "object-format=sha256") {
            return Err(Unreadable::Sha256);
        }
        if let Some(target) = capabilities.split(' ').find_map(|word| word.strip_prefix("symref=HEAD:")) {
            listing.head = Some(target.to_owned());
        }
        let (id, name) = id_and_name(reference)?;
        // An empty repository shows its capabilities beside this name and an id of zeros.
        if name != "capabilities^{}" {
            listing.add(name, id, prefixes);
        }
        line = read_line(input)?;
    }
    Err(too_many())
}

fn ls_refs_request(prefixes: &[&str]) -> Vec<u8> {
    let mut request = Vec::new();
    push_line(&mut request, b"command=ls-refs\n");
    request.extend_from_slice(DELIMITER);
    push_line(&mut request, b"symrefs\n");
    for prefix in prefixes {
        push_line(&mut request, format!("ref-prefix {prefix}\n").as_bytes());
    }
    request.extend_from_slice(FLUSH);
    request
}

fn read_listing(input: &mut impl Read, prefixes: &[&str]) -> std::result::Result<Listing, Unreadable> {
    let mut listing = Listing::default();
    for _reference in 0..MAX_REFS {
        let Some(line) = read_line(input)? else { return Ok(listing) };
        let (id, rest) = id_and_name(&line)?;
        let (name, attributes) = rest.split_once(' ').unwrap_or((rest, ""));
        if name == "HEAD" {
            listing.head =
                attributes.split(' ').find_map(|word| word.strip_prefix("symref-target:")).map(str::to_owned);
        }
        listing.add(name, id, prefixes);
    }
    Err(too_many())
}

fn id_and_name(line: &str) -> std::result::Result<(&str, &str), Unreadable> {
    let parts = line.split_once(' ');
    let (id, name) = parts.filter(|(id, _)| id.bytes().all(|digit| digit.is_ascii_hexdigit())).ok_or_else(not_git)?;
    match id.len() {
        40 => Ok((id, name)),
        64 => Err(Unreadable::Sha256),
        _ => Err(not_git()),
    }
}

fn not_git() -> Unreadable {
    Unreadable::Connection(io::Error::new(io::ErrorKind::InvalidData, "the answer is not in Git's protocol"))
}

fn too_many() -> Unreadable {
    Unreadable::Refused(format!("it has more than {MAX_REFS} references"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn packets(lines: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            match *line {
                "flush" => bytes.extend_from_slice(FLUSH),
                line => push_line(&mut bytes, line.as_bytes()),
            }
        }
        bytes
    }

    fn greeting(lines: &[&str]) -> std::result::Result<Greeting, Unreadable> {
        read_greeting(&mut packets(lines).as_slice(), &["refs/heads/main"])
    }

    fn references(lines: &[&str]) -> Listing {
        match greeting(lines).expect("readable") {
            Greeting::References(listing) => listing,
            Greeting::Version2 => unreachable!("no version 2 here"),
        }
    }

    #[test]
    fn version_2_is_recognised_with_and_without_the_service_line() {
        let capabilities = ["version 2\n", "ls-refs=unborn\n", "object-format=sha1\n", "flush"];
        assert_eq!(greeting(&capabilities).expect("readable"), Greeting::Version2);
        let with_service = [&["# service=git-upload-pack\n", "flush"], &capabilities[..]].concat();
        assert_eq!(greeting(&with_service).expect("readable"), Greeting::Version2);
    }

    #[test]
    fn older_servers_tell_all_and_we_keep_ours() {
        let head = format!("{ID} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=git/1\n");
        let (main, other) = (format!("{ID} refs/heads/main\n"), format!("{ID} refs/heads/other\n"));
        for version in [&[][..], &["version 1\n"]] {
            let listing = references(&[version, &[&head, &main, &other, "flush"]].concat());
            assert_eq!(listing.find("refs/heads/main"), Some(ID.into()));
            assert_eq!(listing.references.len(), 1);
            assert_eq!(listing.head.as_deref(), Some("refs/heads/main"));
        }
    }

    #[test]
    fn an_empty_repository_has_no_references() {
        let line = format!("{} capabilities^{{}}\0agent=git/1\n", "0".repeat(40));
        assert_eq!(references(&[&line, "flush"]), Listing::default());
        assert_eq!(references(&["flush"]), Listing::default());
    }

    #[test]
    fn sha256_is_recognised_in_every_version() {
        let long = format!("{ID}{} HEAD\0agent=git/1\n", "0".repeat(24));
        let named = format!("{ID} HEAD\0object-format=sha256\n");
        for lines in [&["version 2\n", "object-format=sha256\n", "flush"][..], &[&long, "flush"], &[&named, "flush"]] {
            assert!(matches!(greeting(lines), Err(Unreadable::Sha256)), "{lines:?}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let refused = greeting(&["ERR access denied or repository not exported: /x"]);
        assert!(matches!(refused, Err(Unreadable::Refused(words)) if words.starts_with("access denied")));
    }

    #[test]
    fn a_listing_names_the_head() {
        let lines = [format!("{ID} HEAD symref-target:refs/heads/trunk\n"), format!("{ID} refs/heads/trunk\n")];
        let bytes = packets(&[&lines[0], &lines[1], "flush"]);
        let listing = read_listing(&mut bytes.as_slice(), &["HEAD"]).expect("readable");
        assert_eq!(listing.head.as_deref(), Some("refs/heads/trunk"));
        assert_eq!(listing.references.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(lines in proptest::collection::vec("\\PC{0,60}", 0..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            drop(greeting(&lines));
            drop(read_listing(&mut packets(&lines).as_slice(), &[]));
        }
    }

    #[test]
    fn the_request_asks_for_nothing_more() {
        let request = ls_refs_request(&["refs/heads/main"]);
        let mut input = request.as_slice();
        let texts: Vec<_> = std::iter::from_fn(|| read_packet(&mut input).ok()).map(|packet| packet.text()).collect();
        let expected = [Some("command=ls-refs"), None, Some("symrefs"), Some("ref-prefix refs/heads/main"), None];
        assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }
}
