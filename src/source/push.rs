//! One push of one reference, over what is known to be there.
//!
//! What is sent is what each new commit has that its parent has not. libgit2 would read every folder of the head of every
//! branch of the remote first, to leave out what may be there already: with each note, the whole repository.

use std::collections::HashSet;
use std::io::{self, Read};

use git2::Oid;

use super::Remote;
use super::git::failed;
use super::history::commits_beyond;
use super::ls_refs::advertised;
use super::packs;
use super::pkt_line::{FLUSH, Packet, push_line, read_packet};
use super::transport::{Connection, Deadline, Protocol, Service};
use super::tree::each_new_object;
use crate::error::{Failure, Result};

/// Notes are kilobytes, and restored files rarely more than megabytes. More than this is not sent from memory.
const MAX_PACK_BYTES: usize = 64 << 20;
/// What a server answers about one reference, with room to spare.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// What a reference of a remote is to become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update<'a> {
    /// Its full name.
    pub(super) reference: &'a str,
    /// What it is; nothing, if it is not there.
    pub(super) old: Option<Oid>,
    /// The commit that it leads to then; nothing, if it is deleted.
    pub(super) new: Option<Oid>,
}

/// What became of a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The remote has it.
    Taken,
    /// The reference is not what it was said to be.
    Moved,
    /// The remote did not take it, in these words.
    Refused(String),
}

/// Pushes an update: whatever else the remote has stays.
///
/// # Errors
/// If the remote cannot be reached, or takes nothing.
pub(super) fn push(mirror: &git2::Repository, remote: &Remote, update: Update<'_>) -> Result<Pushed> {
    let deadline = Deadline::after(remote.time.transfer, remote.time.idle);
    let mut connection = Connection::open(remote, Service::ReceivePack, Protocol::V0, deadline)?;
    let there = advertised(remote, &mut connection)?;
    let is_at = there.iter().find(|(name, _)| name == update.reference).map(|(_, id)| *id);
    if is_at != update.old {
        return Ok(Pushed::Moved);
    }
    let known = there.into_iter().map(|(_, id)| id).collect();
    let pack = update.new.map(|new| pack(mirror, new, &known)).transpose();
    let pack = pack.map_err(failed(|| format!("cannot prepare what `{}` lacks", remote.url)))?.unwrap_or_default();
    if pack.len() > MAX_PACK_BYTES {
        let most = MAX_PACK_BYTES >> 20;
        return Err(Failure::stalled(format!("more than {most} MiB would have to be pushed to `{}`", remote.url)));
    }
    connection.send(request(update, &pack))?;
    let answer = read_answer(&mut connection.stream().take(MAX_ANSWER_BYTES), update.reference);
    answer.map_err(|error| connection.stream().explain(error))
}

/// Whether a server's words may mean that the reference was not where we thought it was.
pub(super) fn means_moved(reason: &str) -> bool {
    let moved =
        ["failed to update ref", "fetch first", "non-fast-forward", "lock", "stale", "already exists", "but expected"];
    moved.iter().any(|words| reason.contains(words))
}

/// What a remote that has what is `known` lacks of a commit.
fn pack(mirror: &git2::Repository, new: Oid, known: &HashSet<Oid>) -> Result<Vec<u8>, git2::Error> {
    let (mut objects, mut seen) = (Vec::new(), HashSet::new());
    for commit in new_commits(mirror, new, known)? {
        objects.push(commit);
        let commit = mirror.find_commit(commit)?;
        let before = commit.parent(0).ok().map(|parent| parent.tree_id());
        each_new_object(mirror, before, commit.tree_id(), |id| {
            let is_first = seen.insert(id);
            if is_first {
                objects.push(id);
            }
            is_first
        })?;
    }
    let mut bytes = git2::Buf::new();
    packs::builder(mirror, &objects)?.write_buf(&mut bytes)?;
    Ok(bytes.to_vec())
}

/// The commits that nothing known leads to. Nearly always it is the one on top of a known one.
fn new_commits(mirror: &git2::Repository, new: Oid, known: &HashSet<Oid>) -> Result<Vec<Oid>, git2::Error> {
    if mirror.find_commit(new)?.parent_ids().all(|parent| known.contains(&parent)) {
        return Ok(vec![new]);
    }
    commits_beyond(mirror, new, known.iter().copied())
}

fn request(update: Update<'_>, pack: &[u8]) -> Vec<u8> {
    let [old, new] = [update.old, update.new].map(|id| id.unwrap_or(Oid::ZERO_SHA1));
    let mut request = Vec::new();
    push_line(&mut request, format!("{old} {new} {}\0 report-status agent=launchway\n", update.reference).as_bytes());
    request.extend_from_slice(FLUSH);
    request.extend_from_slice(pack);
    request
}

/// What the server says of the one reference, and before that of the pack.
fn read_answer(input: &mut impl Read, reference: &str) -> io::Result<Pushed> {
    let mut unpacked = None;
    loop {
        let packet = read_packet(input)?;
        let text = packet.text().unwrap_or_default();
        if let Some(words) = text.strip_prefix("ERR ") {
            return Ok(Pushed::Refused(words.to_owned()));
        }
        if let Some(words) = text.strip_prefix("unpack ").filter(|words| *words != "ok") {
            unpacked = Some(words.to_owned());
        }
        let (verdict, rest) = text.split_once(' ').unwrap_or_default();
        let (name, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        match (verdict, name == reference) {
            ("ok", true) => return Ok(Pushed::Taken),
            ("ng", true) => return Ok(Pushed::Refused(unpacked.unwrap_or_else(|| reason.to_owned()))),
            _ if packet == Packet::Flush => {
                return unpacked.map(Pushed::Refused).ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: &str = "refs/notes/launchway";

    fn answer(lines: &[&str]) -> io::Result<Pushed> {
        let mut bytes = Vec::new();
        lines.iter().for_each(|line| push_line(&mut bytes, line.as_bytes()));
        bytes.extend_from_slice(FLUSH);
        read_answer(&mut bytes.as_slice(), NOTES)
    }

    #[test]
    fn the_answer_about_our_reference_counts() {
        let refused = |words: &str| Some(Pushed::Refused(words.to_owned()));
        let cases: [(&[&str], Option<Pushed>); 7] = [
            (&["unpack ok\n", "ok refs/notes/launchway\n"], Some(Pushed::Taken)),
            (&["unpack ok\n", "ok refs/notes/launchway-2\n"], None),
            (&["unpack ok\n", "ng refs/notes/launchway hook declined\n"], refused("hook declined")),
            (&["unpack disk full\n", "ng refs/notes/launchway unpacker error\n"], refused("disk full")),
            (&["unpack disk full\n"], refused("disk full")),
            (&["ERR not allowed"], refused("not allowed")),
            (&[], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(answer(lines).ok(), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_request_names_what_was_there_and_what_is_to_be() {
        let (old, new) = (Oid::from_bytes(&[1; 20]).expect("an id"), Oid::from_bytes(&[2; 20]).expect("an id"));
        let words = |update| String::from_utf8(request(update, b"PACK")).expect("text");
        let zero = "0".repeat(40);
        let update = Update { reference: NOTES, old: Some(old), new: Some(new) };
        assert!(words(update).contains(&format!("{old} {new} {NOTES}\0 report-status")), "{}", words(update));
        assert!(words(update).ends_with("0000PACK"));
        assert!(words(Update { old: None, ..update }).contains(&format!("{zero} {new} ")));
        assert!(words(Update { new: None, ..update }).contains(&format!("{old} {zero} ")));
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(lines in proptest::collection::vec("\\PC{0,60}", 0..6)) {
            drop(answer(&lines.iter().map(String::as_str).collect::<Vec<_>>()));
        }
    }
}
