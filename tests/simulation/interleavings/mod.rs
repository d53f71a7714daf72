//! Stories in which tasks, people, pods and pushes take turns at every call of the store and the runtime, in an order
//! that a seed chooses.
//!
//! `SEEDS=100000` plays so many, the first of them `FROM=4000`, `SEED=17` that one alone, `STORY=FILE` a story from a file,
//! `FAMILY=services` those of one family alone.
//! A seed that fails prints the shortest story that shows the same; `TRACE=1` prints what happens in a story turn by turn.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what many seeds came to is for whoever asks for them")]

mod cured;
mod faults;
mod generator;
mod shrink;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cured::CURED;
use launchway::testing::interleaved::story::{End, Story};

/// How many seeds are played unless told; `.ci/run simulation` plays 10,000.
const SEEDS: u64 = if cfg!(debug_assertions) { 50 } else { 100 };
/// After how many seeds that do not hold no further one is played.
const ENOUGH: usize = 8;
/// In how many orders of turns the story of a failure that was put right is played: `.ci/run simulation` plays a
/// release build, which is ten times as fast.
const CURED_ORDERS: u64 = if cfg!(debug_assertions) { 1 } else { 40 };

/// A number from the environment.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap())
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
    let from = given("FROM").unwrap_or(0);
    let (end, next) = (from + given("SEEDS").unwrap_or(SEEDS), AtomicU64::new(from));
    let (begun, failed) = (std::time::Instant::now(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.load(Ordering::Relaxed) >= ENOUGH {
                        return;
                    }
                    if !holds(seed) {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("seeds {from} to {end} in {:?}", begun.elapsed());
    assert_eq!(failed.into_inner(), 0, "seeds whose stories are told above do not hold");
}

/// Whether the story of a seed holds; tells the shortest one that shows why it does not.
fn holds(seed: u64) -> bool {
    let story = generator::story(seed);
    match story.play() {
        End::Well(_) => return true,
        End::Violated(violation) => {
            eprintln!("seed {seed}: {violation}\nlooking for a shorter story");
            let (story, violation) = shrink::shortest(&story, violation);
            eprintln!("seed {seed}, in short\n\n{story}\n{violation}\nSTORY=FILE plays it again from a file");
        }
        End::Unplayable(failure) => eprintln!("seed {seed} cannot be played: {failure:#}\n{story}"),
    }
    false
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
    shipyard api-dev qa
    push
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
