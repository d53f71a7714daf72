//! The cheap question to a remote: what its references say, without an object being read or anything being written.
//!
//! libgit2 speaks protocol v0 only, which sends every reference each time (1.5 MB for 20,000 of them). Version 2
//! lets the client name what it wants; a server that does not know it answers in v0 or v1, and then all are read.

use std::io::{self, Read};

use git2::Oid;

use super::Remote;
use super::git;
use super::pkt_line::{DELIMITER, FLUSH, push_line, read_packet};
use super::tags;
use super::transport::{Connection, Deadline, Protocol, Service};
use crate::error::{Failure, Result};
use crate::model::tag::{TAGS, Tags};

/// A list of more bytes is not read: about 800,000 references, of which a server that knows version 2 sends only ours.
pub(super) const MAX_LIST_BYTES: u64 = 64 << 20;

/// Which of a remote's references is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    /// The one of exactly this name.
    Reference(&'a str),
    /// What `HEAD` points at.
    Head,
    /// Whether there is a branch.
    AnyBranch,
    /// All tags.
    Tags,
}

impl Asked<'_> {
    /// What its name begins with. A server may send others that begin so, or all it has.
    fn prefix(&self) -> &str {
        match self {
            Asked::Reference(name) => name,
            Asked::Head => "HEAD",
            Asked::AnyBranch => "refs/heads/",
            Asked::Tags => TAGS,
        }
    }

    fn is_met_by(&self, name: &str) -> bool {
        match self {
            Asked::Reference(asked) => name == *asked,
            Asked::Head => name == "HEAD",
            Asked::AnyBranch => name.starts_with("refs/heads/"),
            Asked::Tags => name.starts_with(TAGS),
        }
    }
}

/// What was asked for, out of all that a remote sends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// The id of the first reference that was asked for.
    pub(super) found: Option<String>,
    /// What `HEAD` points at.
    pub(super) head: Option<String>,
    /// The tags, if those were asked for.
    pub(super) tags: Tags,
}

impl Listing {
    fn add(&mut self, name: &str, id: &str, asked: Asked<'_>) {
        if self.found.is_none() && asked.is_met_by(name) {
            self.found = Some(id.to_owned());
        }
        if matches!(asked, Asked::Tags) {
            tags::add(&mut self.tags, name, id);
        }
    }
}

/// An answer of which no more than so many bytes are read.
struct Bounded<'a, R> {
    answer: &'a mut R,
    left: u64,
}

impl<'a, R: Read> Bounded<'a, R> {
    fn new(answer: &'a mut R) -> Self {
        Self { answer, left: MAX_LIST_BYTES }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.answer.read(buffer)?;
        let left = self.left.checked_sub(u64::try_from(length).unwrap_or(u64::MAX));
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(length)
    }
}

/// Why an answer could not be read.
#[derive(Debug)]
enum Unreadable {
    Connection(io::Error),
    /// The server's own words.
    Refused(String),
    Sha256,
    /// Its list is larger than any that is read.
    Endless,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::FileTooLarge => Unreadable::Endless,
            _ => Unreadable::Connection(error),
        }
    }
}

/// Asks the remote, which is not on this machine.
///
/// Fails as [`super::remote_head`] does.
pub(super) fn list(remote: &Remote, asked: Asked<'_>) -> Result<Listing> {
    let deadline = Deadline::after(remote.time.list, remote.time.idle);
    let mut connection = Connection::open(remote, Service::UploadPack, Protocol::V2, deadline)?;
    let greeting = read_greeting(&mut Bounded::new(connection.stream()), asked);
    match greeting.map_err(|problem| explain(remote, &mut connection, problem))? {
        Greeting::References(listing) => Ok(listing),
        Greeting::Version2 { unborn } => {
            connection.send(ls_refs_request(asked, unborn))?;
            let listing = read_listing(&mut Bounded::new(connection.stream()), asked);
            listing.map_err(|problem| explain(remote, &mut connection, problem))
        }
    }
}

fn explain(remote: &Remote, connection: &mut Connection, problem: Unreadable) -> Failure {
    match problem {
        Unreadable::Connection(error) => connection.stream().explain(error),
        Unreadable::Sha256 => git::sha256(&remote.url.to_string()),
        Unreadable::Endless => too_many(remote),
        Unreadable::Refused(words) => {
            let words: String = words.chars().filter(|character| !character.is_control()).take(200).collect();
            let (what, who) = match connection.service() {
                Service::UploadPack => ("read", "read it"),
                Service::ReceivePack => ("written to", "write to it"),
            };
            Failure::stalled(format!("`{}` refuses to be {what}", remote.url))
                .hint(format!("check the repository's address and who may {who}"))
                .because(words)
        }
    }
}

/// The server's first words.
#[derive(Debug, PartialEq, Eq)]
enum Greeting {
    /// It speaks version 2 and waits for a command; of an empty repository it may tell what `HEAD` names all the same.
    Version2 { unborn: bool },
    /// It does not, and has told all its references.
    References(Listing),
}

fn read_greeting(input: &mut impl Read, asked: Asked<'_>) -> std::result::Result<Greeting, Unreadable> {
    let first = read_first(input)?;
    if first.as_deref() == Some("version 2") {
        return read_capabilities(input);
    }
    let mut listing = Listing::default();
    let head = read_advertisement(input, first, |name, id| listing.add(name, id, asked))?;
    Ok(Greeting::References(Listing { head, ..listing }))
}

/// The first line that is no preface.
fn read_first(input: &mut impl Read) -> std::result::Result<Option<String>, Unreadable> {
    let mut first = read_line(input)?;
    // HTTP servers name the service first, and end that with a flush; some leave it out in version 2.
    if first.as_deref().is_some_and(|line| line.starts_with("# service=")) {
        read_packet(input)?;
        first = read_line(input)?;
    }
    if first.as_deref() == Some("version 1") {
        first = read_line(input)?;
    }
    Ok(first)
}

/// The names and ids of all that a server has, as it says before it is pushed to.
///
/// Fails as [`super::remote_head`] does.
pub(super) fn advertised(remote: &Remote, connection: &mut Connection) -> Result<Vec<(String, Oid)>> {
    let mut all = Vec::new();
    let input = &mut Bounded::new(connection.stream());
    let read = read_first(input).and_then(|first| {
        let each = |name: &str, id: &str| all.extend(Oid::from_str(id).ok().map(|id| (name.to_owned(), id)));
        read_advertisement(input, first, each)
    });
    read.map_err(|problem| explain(remote, connection, problem))?;
    Ok(all)
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
    let mut unborn = false;
    while let Some(capability) = read_line(input)? {
        if capability == "object-format=sha256" {
            return Err(Unreadable::Sha256);
        }
        let features = capability.strip_prefix("ls-refs=").unwrap_or_default();
        unborn |= features.split(' ').any(|feature| feature == "unborn");
    }
    Ok(Greeting::Version2 { unborn })
}

/// Reads what v0 and v1 begin with: every reference, the first with the capabilities behind a NUL. Gives what `HEAD` points at.
fn read_advertisement(
    input: &mut impl Read,
    first: Option<String>,
    mut each: impl FnMut(&str, &str),
) -> std::result::Result<Option<String>, Unreadable> {
    let (mut head, mut line) = (None, first);
    while let Some(text) = line {
        let (reference, capabilities) = text.split_once('\0').unwrap_or((&text, ""));
        if capabilities.split(' ').any(|capability| capability == "object-format=sha256") {
            return Err(Unreadable::Sha256);
        }
        if let Some(target) = capabilities.split(' ').find_map(|word| word.strip_prefix("symref=HEAD:")) {
            head = Some(target.to_owned());
        }
        if reference.starts_with("shallow ") {
            line = read_line(input)?; // where its own history ends; fetching says what that means
            continue;
        }
        let (id, name) = id_and_name(reference)?;
        // An empty repository shows its capabilities beside this name and an id of zeros.
        if name != "capabilities^{}" {
            each(name, id);
        }
        line = read_line(input)?;
    }
    Ok(head)
}

fn ls_refs_request(asked: Asked<'_>, unborn: bool) -> Vec<u8> {
    let mut request = Vec::new();
    push_line(&mut request, b"command=ls-refs\n");
    request.extend_from_slice(DELIMITER);
    push_line(&mut request, b"symrefs\n");
    if unborn {
        push_line(&mut request, b"unborn\n");
    }
    if matches!(asked, Asked::Tags) {
        push_line(&mut request, b"peel\n");
    }
    push_line(&mut request, format!("ref-prefix {}\n", asked.prefix()).as_bytes());
    request.extend_from_slice(FLUSH);
    request
}

fn read_listing(input: &mut impl Read, asked: Asked<'_>) -> std::result::Result<Listing, Unreadable> {
    let mut listing = Listing::default();
    while let Some(line) = read_line(input)? {
        let (id, rest) = match line.strip_prefix("unborn ") {
            Some(rest) => (None, rest),
            None => id_and_name(&line).map(|(id, rest)| (Some(id), rest))?,
        };
        let (name, attributes) = rest.split_once(' ').unwrap_or((rest, ""));
        if name == "HEAD" {
            let mut words = attributes.split(' ');
            listing.head = words.find_map(|word| word.strip_prefix("symref-target:")).map(str::to_owned);
        }
        if let Some(id) = id {
            listing.add(name, id, asked);
        }
        if let Some(target) = attributes.split(' ').find_map(|word| word.strip_prefix("peeled:")) {
            tags::lead(&mut listing.tags, name, target);
        }
    }
    Ok(listing)
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

/// Of a list that is longer than is read.
pub(super) fn too_many(remote: &Remote) -> Failure {
    let mebibytes = MAX_LIST_BYTES >> 20;
    Failure::stalled(format!("the list of references of `{}` is longer than {mebibytes} MiB", remote.url))
        .hint("a server that speaks version 2 of Git's protocol sends only the one that is asked for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tag::Tag;

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
        read_greeting(&mut packets(lines).as_slice(), Asked::Reference("refs/heads/main"))
    }

    fn references(lines: &[&str]) -> Listing {
        match greeting(lines).expect("readable") {
            Greeting::References(listing) => listing,
            Greeting::Version2 { .. } => unreachable!("no version 2 here"),
        }
    }

    #[test]
    fn version_2_is_recognised_with_and_without_the_service_line() {
        let capabilities = ["version 2\n", "ls-refs=unborn\n", "object-format=sha1\n", "flush"];
        assert_eq!(greeting(&capabilities).expect("readable"), Greeting::Version2 { unborn: true });
        let with_service = [&["# service=git-upload-pack\n", "flush"], &capabilities[..]].concat();
        assert_eq!(greeting(&with_service).expect("readable"), Greeting::Version2 { unborn: true });
        let older = greeting(&["version 2\n", "ls-refs\n", "flush"]).expect("readable");
        assert_eq!(older, Greeting::Version2 { unborn: false });
    }

    #[test]
    fn older_servers_tell_all_and_we_keep_ours() {
        let head = format!("{ID} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=git/1\n");
        let other = "f".repeat(40);
        let (main, longer) = (format!("{ID} refs/heads/main\n"), format!("{other} refs/heads/main-2\n"));
        for version in [&[][..], &["version 1\n"]] {
            let listing = references(&[version, &[&head, &longer, &main, "flush"]].concat());
            assert_eq!(listing.found.as_deref(), Some(ID), "and not one that begins so");
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
        let listing = read_listing(&mut bytes.as_slice(), Asked::Head).expect("readable");
        assert_eq!(listing.head.as_deref(), Some("refs/heads/trunk"));
        assert_eq!(listing.found.as_deref(), Some(ID));
        let unborn = packets(&["unborn HEAD symref-target:refs/heads/trunk\n", "flush"]);
        let listing = read_listing(&mut unborn.as_slice(), Asked::Head).expect("readable");
        assert_eq!((listing.head.as_deref(), listing.found), (Some("refs/heads/trunk"), None));
    }

    #[test]
    fn tags_are_listed_with_what_they_lead_to_by_servers_of_every_age() {
        let object = "f".repeat(40);
        let expected = Tags::from([
            ("refs/tags/v1".to_owned(), Tag::of(ID)),
            ("refs/tags/v2".to_owned(), Tag { object: object.clone(), target: Some(ID.to_owned()) }),
        ]);
        let lines = [
            format!("{ID} refs/tags/v1\n"),
            format!("{object} refs/tags/v2 peeled:{ID}\n"),
            format!("{ID} refs/tagsandmore\n"),
            format!("{ID} refs/tags/not..one peeled:{ID}\n"),
            format!("{ID} refs/tags/{}\n", "x".repeat(1_000)),
            format!("{ID} refs/tags/latin\u{fffd}\n"),
            format!("{} refs/tags/v0\n", "0".repeat(40)),
            format!("{ID} refs/tags/v1 peeled:\u{1b}[31m\n"),
        ];
        let newer = packets(&[&lines[..].iter().map(String::as_str).collect::<Vec<_>>(), &["flush"][..]].concat());
        let listing = read_listing(&mut newer.as_slice(), Asked::Tags).expect("readable");
        assert_eq!(listing.tags, expected);
        let peeled = format!("{ID} refs/tags/v2^{{}}\n");
        let of_nothing = format!("{ID} refs/tags/v3^{{}}\n");
        let first = format!("{ID} HEAD\0symref=HEAD:refs/heads/main\n");
        let older = [&first, &lines[0], &format!("{object} refs/tags/v2\n"), &peeled, &of_nothing, "flush"];
        match read_greeting(&mut packets(&older).as_slice(), Asked::Tags).expect("readable") {
            Greeting::References(listing) => assert_eq!(listing.tags, expected),
            Greeting::Version2 { .. } => unreachable!("no version 2 here"),
        }
        let asked = ls_refs_request(Asked::Tags, false);
        assert!(asked.windows(5).any(|part| part == b"peel\n"), "{}", String::from_utf8_lossy(&asked));
    }

    #[test]
    fn a_list_without_end_is_given_up() {
        let line = packets(&[&format!("{ID} refs/heads/{}\n", "x".repeat(60_000))]);
        let mut endless = line.iter().copied().cycle();
        let read = read_listing(&mut Bounded::new(&mut Endless(&mut endless)), Asked::Head);
        assert!(matches!(read, Err(Unreadable::Endless)));
    }

    struct Endless<'a, I>(&'a mut I);

    impl<I: Iterator<Item = u8>> Read for Endless<'_, I> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for (place, byte) in buffer.iter_mut().zip(&mut *self.0) {
                *place = byte;
            }
            Ok(buffer.len())
        }
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(lines in proptest::collection::vec("\\PC{0,60}", 0..6)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            drop(greeting(&lines));
            drop(read_listing(&mut packets(&lines).as_slice(), Asked::AnyBranch));
            drop(read_listing(&mut packets(&lines).as_slice(), Asked::Tags));
        }
    }

    #[test]
    fn the_request_asks_for_nothing_more() {
        let request = ls_refs_request(Asked::Reference("refs/heads/main"), false);
        let mut input = request.as_slice();
        let texts: Vec<_> = std::iter::from_fn(|| read_packet(&mut input).ok()).map(|packet| packet.text()).collect();
        let expected = [Some("command=ls-refs"), None, Some("symrefs"), Some("ref-prefix refs/heads/main"), None];
        assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }
}
