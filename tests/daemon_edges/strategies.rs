//! Canary, blue/green and A/B on real pods, while visitors ask over kept and over new connections: none is turned away, and each
//! version gets its part.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::daemon_edges::survival::{SERVICE, careful_server, says, service_address};
use crate::support::daemon::{World, eventually};

/// Between two requests of a visitor: four of them ask about 200 times a second.
const PAUSE: Duration = Duration::from_millis(15);
/// How many answers tell of shares.
const ENOUGH: usize = 400;

/// What visitors got since it was asked last.
#[derive(Default)]
struct Visits {
    answers: Mutex<BTreeMap<String, usize>>,
    failed: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Visits {
    /// Asks until it is over, over one connection as long as that is kept, or over a new one each time.
    fn ask(&self, address: &str, keeps: bool) {
        let mut kept = None;
        while !self.over.load(Ordering::SeqCst) {
            match ask(kept.take(), address, keeps) {
                Ok((answer, connection)) => {
                    *self.answers.lock().unwrap().entry(answer).or_default() += 1;
                    kept = connection;
                }
                Err(error) => self.failed.lock().unwrap().push(error.to_string()),
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The part of the next visitors that meets a version, in percent.
    fn part(&self, version: &str) -> usize {
        self.answers.lock().unwrap().clear();
        eventually("enough visitors", || self.answers.lock().unwrap().values().sum::<usize>() >= ENOUGH);
        let answers = self.answers.lock().unwrap();
        100 * answers.get(version).copied().unwrap_or_default() / answers.values().sum::<usize>()
    }

    /// Waits until a version has its part, give or take five percent. What a commit says of it is what is wanted: the
    /// service follows a moment later.
    fn meet(&self, version: &str, weight: usize) {
        let near = || self.part(version).abs_diff(weight) <= 5;
        eventually(&format!("{weight} % of the visitors meet version {version}"), near);
    }

    /// Waits until nobody meets another version.
    fn all_meet(&self, version: &str) {
        eventually(&format!("all visitors meet version {version}"), || self.part(version) == 100);
    }
}

fn ask(
    kept: Option<BufReader<TcpStream>>,
    address: &str,
    keeps: bool,
) -> std::io::Result<(String, Option<BufReader<TcpStream>>)> {
    let mut stream = match kept {
        Some(kept) => kept,
        None => BufReader::new(TcpStream::connect(address)?),
    };
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(10)))?;
    let connection = if keeps { "keep-alive" } else { "close" };
    let request = format!("GET /version HTTP/1.1\r\nhost: web\r\nconnection: {connection}\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes())?;
    let (mut line, mut status, mut length) = (String::new(), String::new(), 0);
    while stream.read_line(&mut line)? > 2 {
        if status.is_empty() {
            status = line.trim().to_owned();
        }
        let lower = line.to_ascii_lowercase();
        if let Some(said) = lower.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    match status.contains(" 200") {
        true => Ok((String::from_utf8_lossy(&body).trim().to_owned(), keeps.then_some(stream))),
        false => Err(std::io::Error::other(status)),
    }
}

/// Version one serves with two pods under a strategy; visitors come while `told` happens, and none is turned away.
fn while_visitors_come(strategy: &str, told: impl FnOnce(&World, &Visits)) {
    let world = World::new(&[]);
    std::fs::write(world.git.path("go"), "").unwrap();
    world.start();
    world.deploy(&[("web.yaml", &server(&world, strategy, "one")), ("service.yaml", SERVICE)], "success");
    let address = service_address(&world);
    eventually("version one answers", || says(&address, "one"));
    let visits = Visits::default();
    let (visitors, at) = (&visits, &address);
    std::thread::scope(|scope| {
        for keeps in [true, true, false, false] {
            scope.spawn(move || visitors.ask(at, keeps));
        }
        let _over = Over(&visitors.over);
        told(&world, visitors);
    });
    let failed = visits.failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} were turned away: {:?}", failed.len(), &failed[..failed.len().min(5)]);
}

/// Also where what is told fails: the scope waits for the visitors.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn server(world: &World, strategy: &str, version: &str) -> String {
    careful_server(world, strategy, version).replace("replicas: 1", "replicas: 2")
}

fn push(world: &World, strategy: &str, version: &str) -> String {
    world.git.push_files(&[("web.yaml", &server(world, strategy, version))])
}

fn told(world: &World, commit: &str, words: &str) {
    eventually(words, || {
        world.notes(commit).get("launchway/default/web").is_some_and(|(_, told)| told.contains(words))
    });
}

fn analysis(script: &str) -> String {
    format!("analysis: {{execNewPod: {{command: [sh, -c, '{script}']}}}}")
}

#[test]
fn a_canary_gets_its_part_and_then_everything() {
    let strategy = "type: Canary, canaryParams: {timeoutSeconds: 60, steps: [{weight: 20, pause: {}}]}";
    while_visitors_come(strategy, |world, visits| {
        let commit = push(world, strategy, "two");
        told(world, &commit, "at step 1 of 1 with 20 % of the traffic");
        visits.meet("two", 20);
        let listed = world.tell(&["get", "dc"]);
        assert!(listed.contains("1 (80 %), 2 (20 %)"), "{listed}");
        let why = world.run(&["why", "dc/web"]);
        assert!(String::from_utf8_lossy(&why.stdout).contains("launchway rollout resume dc/web"), "{why:?}");
        world.kill();
        world.start();
        let part = visits.part("two");
        assert!((15..=25).contains(&part), "{part} % after the daemon was killed");
        assert!(world.tell(&["rollout", "resume", "dc/web"]).contains("resumed"));
        world.status(&commit, "launchway/default", "success");
        assert_eq!(visits.part("two"), 100);
    });
}

/// The stage that there is without a shipyard, and by what it deploys.
fn shipyard(strategy: &str) -> String {
    format!(
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shop}}\nspec:\n  stages:\n  - name: default\n    \
         sequences: [{{name: delivery, tasks: [{{name: deployment, properties: {{deploymentstrategy: {strategy}}}}}]}}]\n"
    )
}

#[test]
fn the_shipyard_makes_a_canary_of_what_says_nothing_of_one() {
    let own = "type: Rolling, rollingParams: {timeoutSeconds: 60}";
    while_visitors_come(own, |world, visits| {
        let files = [("shipyard.yaml", &*shipyard("canary")), ("web.yaml", &*server(world, own, "two"))];
        let commit = world.git.push_files(&files);
        told(world, &commit, "at step 1 of 2 with 10 % of the traffic");
        visits.meet("two", 10);
        let described = world.tell(&["describe", "dc/web"]);
        assert!(
            described.contains("Canary, which the stage's deploymentstrategy asks for; its own: Rolling"),
            "{described}"
        );
        world.kill();
        world.start();
        let part = visits.part("two");
        assert!((5..=15).contains(&part), "{part} % after the daemon was killed");
        for step in ["at step 1 of 2", "at step 2 of 2"] {
            told(world, &commit, step);
            assert!(world.tell(&["rollout", "resume", "dc/web"]).contains("resumed"));
        }
        world.status(&commit, "launchway/default", "success");
        assert_eq!(visits.part("two"), 100);
        world.tell(&["rollback", "dc/web"]);
        visits.all_meet("one");
    });
}

#[test]
fn a_canary_that_is_judged_as_bad_meets_nobody_any_more() {
    let step = format!("{{weight: 50, {}}}", analysis("sleep 1; echo too slow; exit 3"));
    let strategy = format!("type: Canary, canaryParams: {{timeoutSeconds: 60, steps: [{step}]}}");
    while_visitors_come(&strategy, |world, visits| {
        let commit = push(world, &strategy, "two");
        world.status(&commit, "launchway/default", "failure");
        let told = &world.notes(&commit)["launchway/default/web/analysis-1"];
        assert!(told.1.contains("exit code 3") && told.1.contains("too slow"), "{told:?}");
        visits.all_meet("one");
    });
}

#[test]
fn blue_green_switches_at_once_and_back_at_once() {
    let judge = analysis("while ! test -f judged; do sleep 0.1; done");
    while_visitors_come("type: BlueGreen", |world, visits| {
        let judge = judge.replace("judged", &world.git.path("judged").display().to_string());
        let strategy = format!("type: BlueGreen, blueGreenParams: {{{judge}}}");
        let commit = push(world, &strategy, "two");
        eventually("it is judged", || {
            let notes = world.notes(&commit);
            notes.get("launchway/default/web/analysis").is_some_and(|(state, _)| state == "running")
        });
        assert_eq!(visits.part("one"), 100, "nobody meets what is not judged yet");
        std::fs::write(world.git.path("judged"), "").unwrap();
        world.status(&commit, "launchway/default", "success");
        visits.all_meet("two");
        let since = Instant::now();
        world.tell(&["rollout", "undo", "dc/web"]);
        visits.answers.lock().unwrap().clear();
        eventually("version one is back", || visits.answers.lock().unwrap().contains_key("one"));
        let took = since.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        visits.all_meet("one");
    });
}

#[test]
fn both_sides_of_a_b_stay_until_a_person_promotes_one() {
    let strategy = "type: AB, abParams: {weight: 30, timeoutSeconds: 60}";
    while_visitors_come(strategy, |world, visits| {
        let commit = push(world, strategy, "two");
        world.status(&commit, "launchway/default", "success");
        visits.meet("two", 30);
        world.kill();
        world.start();
        let part = visits.part("two");
        assert!((25..=35).contains(&part), "{part} % after the daemon was killed");
        world.tell(&["rollout", "promote", "dc/web"]);
        visits.all_meet("two");
    });
}
