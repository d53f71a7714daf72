//! Calls by strangers: how many are refused, and in how much memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::caller::{Caller, SECRET, push, sign};
use super::place::Place;
use crate::support::kernel::{kernel_says, mib};
use crate::support::processor::processor_time;

pub(crate) fn measure(place: &Place, clients: u32, seconds: u64) {
    let body = push(&"1".repeat(40), &"2".repeat(40));
    println!("\n{clients} connections, {} bytes a call", body.len());
    let wrong = sign("a guess", &body);
    flood(place, "without a signature", clients, seconds, &body, None);
    flood(place, "with a wrong one", clients, seconds, &body, Some(&wrong));
    let mut caller = Caller::new(&place.daemon.address);
    let status = caller.call("after the flood", &body, Some(&sign(SECRET, &body)));
    assert_eq!(status, 200, "whoever has the secret is heard as before");
}

fn flood(place: &Place, name: &str, clients: u32, seconds: u64, body: &[u8], signature: Option<&str>) {
    let process = place.daemon.process.id();
    let memory = |field: &str| kernel_says(&process.to_string(), "status", field);
    let (before, worked, begun) = (memory("VmRSS"), processor_time(process), Instant::now());
    let end = begun + Duration::from_secs(seconds);
    let client = |_| {
        let mut caller = Caller::new(&place.daemon.address);
        let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
        while Instant::now() < end {
            *answers.entry(caller.call("1", body, signature)).or_default() += 1;
        }
        answers
    };
    let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        for (status, count) in clients.into_iter().flat_map(|client| client.join().unwrap()) {
            *answers.entry(status).or_default() += count;
        }
    });
    let (took, worked) = (begun.elapsed(), processor_time(process) - worked);
    let calls: u64 = answers.values().sum();
    println!(
        "{name}: {} calls a second, answers {answers:?}; {:.1} µs of the daemon's processor time each, {:.0} % of a core",
        calls * 1000 / u64::try_from(took.as_millis()).unwrap(),
        worked.as_micros() as f64 / calls as f64,
        worked.as_secs_f64() / took.as_secs_f64() * 100.0
    );
    println!(
        "  resident memory {} before, {} after, {} at the peak of all",
        mib(before),
        mib(memory("VmRSS")),
        mib(memory("VmHWM"))
    );
}
