//! Stories in which tasks, people, pods and pushes take turns at every call of the store and the runtime, in an order
//! that a seed chooses.
//!
//! `SEEDS=100000` plays so many, `SEED=17` that one alone, `STORY=FILE` a story from a file. A seed that fails prints the
//! shortest story that shows the same.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what many seeds came to is for whoever asks for them")]

mod generator;
mod known;
mod shrink;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use known::{CURED, KNOWN};
use launchway::testing::interleaved::checks::Invariant;
use launchway::testing::interleaved::story::{End, Story};

/// How many seeds are played unless told; `.ci/run interleavings` plays as many as five minutes hold.
const SEEDS: u64 = 100;
/// In how many orders of turns a known failure is looked for before it counts as put right.
const ORDERS: u64 = 400;
/// In how many orders of turns the story of a failure that was put right is played.
const CURED_ORDERS: u64 = 40;

/// A number from the environment.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap())
}

/// Which seeds showed what.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<Invariant, Vec<(u64, String)>>>);

impl Seen {
    fn note(&self, invariant: Invariant, seed: u64, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(invariant).or_default().push((seed, what));
    }
}

#[test]
fn every_seed_holds() {
    if let Ok(file) = std::env::var("STORY") {
        return play(&Story::read(&std::fs::read_to_string(file).unwrap()));
    }
    if let Some(seed) = given("SEED") {
        let story = generator::story(seed);
        println!("{story}");
        return play(&story);
    }
    let (seeds, next, seen) = (given("SEEDS").unwrap_or(SEEDS), AtomicU64::new(0), Seen::default());
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    play_seed(seed, &seen);
                }
            });
        }
    });
    println!("{seeds} seeds in {:?}", begun.elapsed());
    let seen = seen.0.into_inner().unwrap();
    for (invariant, mut shown) in seen {
        shown.sort();
        let (seed, what) = &shown[0];
        println!("{} show what is known of {invariant:?}, such as {seed}: {what}", shown.len());
    }
}

fn play_seed(seed: u64, seen: &Seen) {
    let story = generator::story(seed);
    match story.play() {
        End::Violated(violation) if is_known(violation.invariant) => {
            seen.note(violation.invariant, seed, violation.what);
        }
        End::Well(_) => {}
        End::Violated(violation) => {
            eprintln!("seed {seed}: {violation}\nlooking for a shorter story");
            let (story, violation) = shrink::shortest(&story, violation);
            panic!("seed {seed}, in short\n\n{story}\n{violation}\nSTORY=FILE plays it again from a file");
        }
        End::Unplayable(failure) => panic!("seed {seed} cannot be played: {failure:#}\n{story}"),
    }
}

fn is_known(invariant: Invariant) -> bool {
    KNOWN.iter().any(|known| known.invariant == invariant)
}

/// Plays a story that must hold.
fn play(story: &Story) {
    match story.play() {
        End::Well(turns) => println!("everything holds, {turns} turns"),
        End::Violated(violation) => panic!("{violation}"),
        End::Unplayable(failure) => panic!("this cannot be played: {failure:#}\n{story}"),
    }
}

#[test]
fn what_is_known_to_fail_still_does() {
    for known in KNOWN {
        let story = Story::read(known.story);
        let shown = shrink::violating(&story, known.invariant, ORDERS);
        assert!(
            shown.is_some(),
            "{:?} holds in {ORDERS} orders of turns of the story of item {}: {}\n{}\ntake it out of known.rs",
            known.invariant,
            known.item,
            known.because,
            known.story
        );
    }
}

#[test]
fn what_was_put_right_stays_so() {
    for cured in CURED {
        let story = Story::read(cured.story);
        if let Some(story) = shrink::violating(&story, cured.invariant, CURED_ORDERS) {
            panic!("{:?} does not hold again: {}\n{story}", cured.invariant, cured.because);
        }
    }
}

/// Two stages whose names make the same namespace, in two repositories; one of them leaves it while the other asks again.
const ONE_NAMESPACE: &str = "
    project shop
    shipyard api-dev
    declare web image=a
    push
    @two project shop-api
    @two shipyard dev
    @two declare web image=b replicas=2
    @two push
    settle
    shipyard qa
    push
    turns 40
    @two declare web image=c
    @two push
    settle
    @two declare web image=d
    @two push";

#[test]
fn stages_of_two_projects_never_meet_in_one_namespace() {
    for order in 0..CURED_ORDERS {
        play(&Story { order, ..Story::read(ONE_NAMESPACE) });
    }
}

/// Where each known failure shows itself: what to write into the table.
#[test]
#[ignore = "prints, and asserts nothing"]
fn orders_of_what_is_known() {
    for known in KNOWN {
        let story = Story::read(known.story);
        let mut ends: BTreeMap<String, (u32, u64, String)> = BTreeMap::new();
        for order in 0..given("ORDERS").unwrap_or(ORDERS) {
            let (key, what) = match (Story { order, ..story.clone() }).play_for(Some(known.invariant)) {
                End::Well(_) => ("well".to_owned(), String::new()),
                End::Violated(violation) => (format!("{:?}", violation.invariant), violation.what),
                End::Unplayable(failure) => ("unplayable".to_owned(), format!("{failure:#}")),
            };
            ends.entry(key).or_insert((0, order, what)).0 += 1;
        }
        println!("{} {:?}: {}\n    {ends:?}", known.item, known.invariant, known.because);
    }
}
