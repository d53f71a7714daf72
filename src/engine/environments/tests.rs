use super::*;
use crate::engine::records::Records;
use crate::model::run::TaskLimits;
use crate::model::state::Versioned;

const DAY: i64 = 24 * 3600 * 1000;

fn settings(max: u32) -> EnvironmentSettings {
    EnvironmentSettings { stage: "dev".into(), max, ttl_seconds: 3 * 24 * 3600 }
}

fn pull(number: u64, head: &str) -> OpenPullRequest {
    let reference = Some(format!("refs/pull/{number}/head"));
    OpenPullRequest { number, head: head.into(), branch: "topic".to_owned(), is_fork: false, reference }
}

fn fork(number: u64, head: &str) -> OpenPullRequest {
    OpenPullRequest { is_fork: true, ..pull(number, head) }
}

fn approved(number: u64, head: &str) -> Approval {
    Approval { number, head: head.into(), by: "gitea:ann".to_owned(), at: Timestamp(DAY) }
}

/// A repository that is checked, one time after the other.
struct Look {
    settings: Option<EnvironmentSettings>,
    approvals: Vec<Approval>,
    now: i64,
    known: Vec<Environment>,
}

impl Look {
    fn new(max: u32) -> Self {
        Self { settings: Some(settings(max)), approvals: Vec::new(), now: DAY, known: Vec::new() }
    }

    /// What a look comes to, in a word for each: its number, what becomes of it, and what is there.
    fn at(&mut self, open: Option<&[OpenPullRequest]>, closed: &[u64]) -> String {
        let closed = closed.iter().copied().collect();
        let hosted = open.map(|open| Hosted { open, closed: &closed });
        let (settings, approvals, now) = (self.settings.as_ref(), &*self.approvals, Timestamp(self.now));
        self.known = environments(Asked { settings, hosted, approvals, now }, &self.known);
        let word = |one: &Environment| {
            let presence = match one.presence {
                Presence::Nothing => "",
                Presence::There => "+",
                Presence::Ending => "-",
            };
            format!("{}{presence} {:?}", one.number, one.standing)
        };
        self.known.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// What was ended is gone.
    fn end(&mut self) {
        self.known.iter_mut().filter(|one| one.presence == Presence::Ending).for_each(|one| {
            one.presence = Presence::Nothing;
        });
        self.known.retain(|one| one.standing != Standing::Over);
    }
}

#[test]
fn the_oldest_keep_theirs_and_others_get_one_when_one_is_free() {
    let mut look = Look::new(2);
    let open = [pull(7, "aaaa"), pull(9, "bbbb"), pull(8, "cccc")];
    assert_eq!(look.at(Some(&open), &[]), "7+ Wanted, 8+ Wanted, 9 Waiting");
    // An older one that comes later waits: nobody loses what they have.
    let older = [&open[..], &[pull(3, "dddd")]].concat();
    assert_eq!(look.at(Some(&older), &[]), "3 Waiting, 7+ Wanted, 8+ Wanted, 9 Waiting");
    // A place is free once what was there is gone.
    let left: Vec<_> = older.iter().filter(|pull| pull.number != 8).cloned().collect();
    assert_eq!(look.at(Some(&left), &[8]), "3 Waiting, 7+ Wanted, 8- Over, 9 Waiting");
    assert_eq!(look.at(Some(&left), &[]), "3 Waiting, 7+ Wanted, 8- Over, 9 Waiting");
    look.end();
    assert_eq!(look.at(Some(&left), &[]), "3+ Wanted, 7+ Wanted, 9 Waiting");
    // Fewer may be there: the newest goes. More: it comes back once it has gone.
    look.settings = Some(settings(1));
    assert_eq!(look.at(Some(&left), &[]), "3+ Wanted, 7- Waiting, 9 Waiting");
    look.settings = Some(settings(3));
    assert_eq!(look.at(Some(&left), &[]), "3+ Wanted, 7- Waiting, 9+ Wanted");
    look.end();
    assert_eq!(look.at(Some(&left), &[]), "3+ Wanted, 7+ Wanted, 9+ Wanted");
}

#[test]
fn one_that_has_nothing_there_is_known_as_long_as_it_is_listed() {
    let mut look = Look::new(1);
    let open = [pull(7, "aaaa"), pull(8, "bbbb"), fork(9, "cccc")];
    assert_eq!(look.at(Some(&open), &[]), "7+ Wanted, 8 Waiting, 9 Unapproved");
    assert_eq!(look.at(None, &[]), "7+ Wanted, 8 Waiting, 9 Unapproved");
    assert_eq!(look.at(Some(&open[2..]), &[]), "7+ Wanted, 9 Unapproved");
    assert_eq!(look.at(Some(&open), &[]), "7+ Wanted, 8 Waiting, 9 Unapproved");
}

#[test]
fn only_the_host_the_time_or_the_setting_end_one() {
    let mut look = Look::new(5);
    assert_eq!(look.at(Some(&[pull(7, "aaaa"), pull(8, "bbbb")]), &[]), "7+ Wanted, 8+ Wanted");
    // It does not answer, or lists only others, and does not say that it is closed.
    assert_eq!(look.at(None, &[]), "7+ Wanted, 8+ Wanted");
    assert_eq!(look.at(Some(&[pull(8, "bbbb")]), &[]), "7+ Wanted, 8+ Wanted");
    look.now += 2 * DAY;
    assert_eq!(look.at(Some(&[pull(7, "aaaa"), pull(8, "eeee")]), &[]), "7+ Wanted, 8+ Wanted");
    look.now += DAY;
    assert_eq!(look.at(None, &[]), "7- Expired, 8+ Wanted");
    look.end();
    assert_eq!(look.at(Some(&[pull(7, "aaaa"), pull(8, "eeee")]), &[]), "7 Expired, 8+ Wanted");
    // A push brings it back.
    assert_eq!(look.at(Some(&[pull(7, "ffff"), pull(8, "eeee")]), &[]), "7+ Wanted, 8+ Wanted");
    look.settings = None;
    assert_eq!(look.at(None, &[]), "7- Over, 8- Over");
    // It is said again meanwhile: what is being ended ends first.
    look.settings = Some(settings(5));
    assert_eq!(look.at(Some(&[pull(7, "ffff"), pull(8, "eeee")]), &[]), "7- Waiting, 8- Waiting");
    look.end();
    assert_eq!(look.at(Some(&[pull(7, "ffff")]), &[8]), "7+ Wanted");
    assert_eq!(look.at(Some(&[]), &[7]), "7- Over");
    look.end();
    assert_eq!(look.at(Some(&[]), &[]), "");
}

#[test]
fn a_fork_has_one_for_just_the_commit_that_was_approved() {
    let mut look = Look::new(5);
    assert_eq!(look.at(Some(&[fork(7, "aaaa")]), &[]), "7 Unapproved");
    for other in [approved(8, "aaaa"), approved(7, "bbbb"), approved(7, "aaaabbbb")] {
        look.approvals = vec![other];
        assert_eq!(look.at(Some(&[fork(7, "aaaa")]), &[]), "7 Unapproved");
    }
    look.approvals = vec![approved(7, "aaaa")];
    assert_eq!(look.at(Some(&[fork(7, "aaaa")]), &[]), "7+ Wanted");
    assert_eq!(look.at(None, &[]), "7+ Wanted");
    assert_eq!(look.at(Some(&[fork(7, "cccc")]), &[]), "7- Unapproved");
    look.end();
    // While it waited for that it got no older.
    look.approvals = vec![approved(7, "cccc")];
    look.now += 10 * DAY;
    assert_eq!(look.at(Some(&[fork(7, "cccc")]), &[]), "7 Expired");
    look.approvals = vec![Approval { at: Timestamp(look.now - DAY), ..approved(7, "cccc") }];
    assert_eq!(look.at(Some(&[fork(7, "cccc")]), &[]), "7+ Wanted");
    assert_eq!(next_end(&settings(5), &look.approvals, &look.known), Some(Timestamp(look.now + 2 * DAY)));
    look.now += 2 * DAY;
    assert_eq!(look.at(Some(&[fork(7, "cccc")]), &[]), "7- Expired");
    look.end();
    let elsewhere = OpenPullRequest { reference: None, ..fork(7, "aaaa") };
    assert_eq!(look.at(Some(&[elsewhere]), &[]), "7 Elsewhere");
}

#[test]
fn a_proposed_rollback_has_none() {
    let branch = format!("{BRANCHES}web-2");
    let own = OpenPullRequest { branch: branch.clone(), ..pull(7, "aaaa") };
    let foreign = OpenPullRequest { branch, ..fork(8, "aaaa") };
    assert_eq!(Look::new(5).at(Some(&[own, foreign]), &[]), "8 Unapproved");
}

/// A whole id that begins with some digits.
fn whole(first: &str) -> String {
    format!("{first:0<40}")
}

/// What somebody's word comes to for what pull request 7 brings: what is remembered, or why not.
fn word(head: Option<&str>, is_fork: bool) -> Result<Vec<Approval>, String> {
    let (mut look, brought) = (Look::new(5), whole("aaaabbbb"));
    look.at(Some(&[if is_fork { fork(7, &brought) } else { pull(7, &brought) }]), &[]);
    let (mut records, name) = (Records::default(), RepositoryName::new("shop"));
    let fresh = RepositoryState::new(name.clone(), "/shop.git", "main");
    let (environments, environments_wanted) = (look.known, look.settings);
    let approvals = vec![approved(7, "9999"), approved(8, "cccc")];
    let value = RepositoryState { environments, environments_wanted, approvals, ..fresh };
    records.repositories.read(name.clone(), Some(Versioned { version: 1, value }));
    let mut transition = Transition::new(&mut records, Timestamp(200), TaskLimits::default());
    let head = head.map(CommitId::from);
    match approve(&mut transition, &name, (7, head.as_ref()), "gitea:ann") {
        Ok(approved) => {
            assert_eq!(head, Some(approved), "they are told of the commit that they named");
            Ok(records.repositories.get(&name).unwrap().unwrap().approvals.clone())
        }
        Err(Undecided::Refused(failure)) => Err(failure.to_string()),
        Err(Undecided::Needs(needs)) => unreachable!("{needs:?}"),
    }
}

#[test]
fn a_word_is_for_the_commit_that_it_names_whole() {
    let (brought, other) = (whole("aaaabbbb"), whole("aaaabbbb1"));
    assert_eq!(
        word(Some(&brought), true),
        Ok(vec![approved(8, "cccc"), Approval { at: Timestamp(200), ..approved(7, &brought) }])
    );
    let unnamed = || Err("what is approved has to be named by its whole id".to_owned());
    for named in [None, Some("aaaa"), Some("aaaabbbb"), Some(&brought[..39])] {
        assert_eq!(word(named, true), unnamed(), "{named:?}");
    }
    assert_eq!(word(Some(&other), true), Err("it brings aaaabbb now".to_owned()), "with the same first digits");
    assert!(word(Some(&brought), false).is_err_and(|why| why.contains("needs no approval")));
}

#[test]
fn what_no_record_names_is_over_once_it_is_known_which_pull_requests_are_open() {
    let life = Incarnation::new("second");
    let head = Some(CommitId::from("1a2b3c4d"));
    let fresh = RepositoryState::new("shop".into(), "/shop.git", "main");
    let settled = RepositoryState {
        applied: head.clone(),
        seen: head,
        environments_wanted: Some(settings(2)),
        pulls_known: Some(life.clone()),
        ..fresh
    };
    let mut look = Look::new(2);
    look.at(Some(&[pull(7, "aaaa"), fork(8, "bbbb")]), &[]);
    let with = |change: fn(&mut RepositoryState)| {
        let mut state = RepositoryState { environments: look.known.clone(), ..settled.clone() };
        change(&mut state);
        state
    };
    for (case, state, expected) in [
        ("there, waiting for a word, and closed", with(|_| ()), [false, true, true]),
        ("only another life knew", with(|it| it.pulls_known = Some(Incarnation::new("first"))), [false; 3]),
        ("nobody has looked", with(|it| it.pulls_known = None), [false; 3]),
        ("the head is not applied", with(|it| it.applied = None), [false; 3]),
        ("not synced in this life", with(|it| (it.seen, it.applied) = (None, None)), [false; 3]),
        (
            "nobody asks for any",
            with(|it| (it.environments_wanted, it.pulls_known) = (None, None)),
            [false, true, true],
        ),
        ("taken down", with(|it| (it.down, it.seen) = (true, None)), [false, true, true]),
    ] {
        assert_eq!([7, 8, 9].map(|number| is_over(&state, number, &life)), expected, "{case}");
    }
}
