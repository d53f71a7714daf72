//! HTTP through a service.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use launchway::model::pod::Scalar;
use launchway::model::wanted::Backend;
use launchway::runtime::EarlierService;

use crate::support::{Answer, Client, Load, Pod, World, config, eventually, get, unused_port};

fn answer(status: u16, body: &str) -> Answer {
    Answer { status, body: body.to_owned() }
}

#[test]
fn requests_of_one_connection_go_round_the_ready_pods() {
    let world = World::new();
    let (_, address) = world.web();
    let pods = [world.pod("a"), world.pod("b"), world.pod("c")];
    pods[..2].iter().for_each(|pod| pod.make_ready());
    world.select(&pods.each_ref());
    assert_eq!(world.listed("web").ready, 2);
    let mut client = Client::connect(address).unwrap();
    let answers: BTreeSet<String> = (0..10).map(|_| client.get("/").unwrap().body).collect();
    assert_eq!(answers, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
}

#[test]
fn versions_get_their_shares_whatever_the_number_of_their_pods() {
    let world = World::new();
    let (mut spec, address) = world.web();
    let pods = [world.pod("web-1"), world.pod("web-2"), world.pod("web-3")];
    pods.iter().for_each(Pod::make_ready);
    world.select(&pods.each_ref());
    let backend = |version, weight| Backend { config: config("web"), version, weight };
    spec.backends = vec![backend(1, 1), backend(2, 3)];
    world.apply(&spec);
    let answers = |count| {
        let mut client = Client::connect(address).unwrap();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        (0..count).for_each(|_| *seen.entry(client.get("/").unwrap().body).or_default() += 1);
        seen
    };
    assert_eq!(answers(40), BTreeMap::from([("web-1".to_owned(), 10), ("web-2".to_owned(), 30)]));
    pods[1].make_unready();
    eventually("the other version stands in", || answers(1).contains_key("web-1"));
    assert_eq!(answers(8), BTreeMap::from([("web-1".to_owned(), 8)]));
    spec.backends = vec![];
    world.apply(&spec);
    eventually("every ready pod answers", || answers(8).len() == 2);
}

#[test]
fn pods_of_a_version_that_is_still_to_be_replaced_are_led_to_as_before() {
    let world = World::new();
    let (mut spec, address) = world.web();
    let pods = [world.pod("web-1"), world.pod("web-2")];
    pods.iter().for_each(Pod::make_ready);
    world.select(&pods.each_ref());
    let answers = |address: SocketAddr| {
        let mut client = Client::connect(address).unwrap();
        (0..8).filter_map(|_| Some(client.get("/").ok()?.body)).collect::<BTreeSet<String>>()
    };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(answers(address), named(&["web-1", "web-2"]));

    let (config, before) = (config("web"), spec.clone());
    spec.earlier = vec![EarlierService { config, version: 1, ports: before.ports, selector: before.selector }];
    spec.selector = BTreeMap::from([("new".to_owned(), "yes".to_owned())]);
    world.apply(&spec);
    eventually("it leads to none of another version", || answers(address) == named(&["web-1"]));
    assert_eq!(world.listed("web").ready, 1);
    world.comes(&pods[0]);
    assert_eq!(answers(address), named(&["web-1"]), "as each pod is told of");

    spec.selector = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
    spec.ports[0].target_port = Scalar::Text("nowhere".into());
    world.apply(&spec);
    eventually("each leads on to its port", || answers(address) == named(&["web-1"]));
    spec.earlier.clear();
    spec.ports[0].target_port = Scalar::Text("http".into());
    world.apply(&spec);
    eventually("it leads to all that it selects", || answers(address) == named(&["web-1", "web-2"]));
}

#[test]
fn a_port_that_a_service_had_stays_open_for_those_of_before() {
    let world = World::new();
    let (mut spec, address) = world.web();
    let pods = [world.pod("web-1"), world.pod("web-2")];
    pods.iter().for_each(Pod::make_ready);
    world.select(&pods.each_ref());
    let (config, before) = (config("web"), spec.clone());
    spec.earlier = vec![EarlierService { config, version: 1, ports: before.ports, selector: before.selector }];
    spec.ports[0].port = unused_port();
    let now = SocketAddr::new(address.ip(), spec.ports[0].port);
    world.apply(&spec);
    eventually("the new port leads to the new pods", || get(now, "/").is_ok_and(|answer| answer.body == "web-2"));
    assert_eq!(get(address, "/").unwrap().body, "web-1");
    spec.earlier.clear();
    world.apply(&spec);
    eventually("the old port is closed", || get(address, "/").is_err());
    assert!(get(now, "/").is_ok());
}

#[test]
fn no_request_is_lost_while_pods_are_swapped() {
    let world = World::new();
    let (_, address) = world.web();
    let mut serving = world.pod("pod-0");
    serving.make_ready();
    world.comes(&serving);
    let load = Load::start(address);
    for generation in 1..=8 {
        let next = world.pod(&format!("pod-{generation}"));
        world.comes(&next);
        next.make_ready();
        eventually("the new pod answers", || get(address, "/").unwrap().body == format!("pod-{generation}"));
        let old = std::mem::replace(&mut serving, next);
        let gone = old.id();
        old.retire();
        world.goes(&gone);
    }
    let seen = load.end();
    assert_eq!((seen.refused, &seen.broken), (0, &vec![]));
    let names: BTreeSet<&str> = seen.answers.keys().map(String::as_str).collect();
    assert!(names.iter().all(|answer| answer.starts_with("200 pod-")), "{names:?}");
    assert!(names.contains("200 pod-8"), "{names:?}");
}

#[test]
fn a_request_waits_for_a_pod_to_become_ready() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("late");
    world.select(&[&pod]);
    let mut client = Client::connect(address).unwrap();
    client.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    pod.make_ready();
    assert_eq!(client.answer().unwrap(), answer(200, "late"));
}

#[test]
fn without_a_ready_pod_the_answer_says_so_and_the_connection_stays() {
    let world = World::new();
    let (_, address) = world.web();
    let mut client = Client::connect(address).unwrap();
    assert_eq!(client.get("/").unwrap(), answer(503, "no pod of service `web` is ready\n"));
    let pod = world.pod("late");
    pod.make_ready();
    world.select(&[&pod]);
    assert_eq!(client.get("/").unwrap(), answer(200, "late"));
}

#[test]
fn a_request_to_a_service_that_goes_at_this_moment_does_not_wait_for_a_pod() {
    let world = World::new();
    let (_, address) = world.web();
    let mut client = Client::connect(address).unwrap();
    std::fs::remove_file(world.service_dir("web").join("service.json")).unwrap();
    let begun = Instant::now();
    assert_eq!(client.get("/").unwrap().status, 503);
    assert!(begun.elapsed() < Duration::from_secs(3), "after {:?}", begun.elapsed());
}

#[test]
fn bodies_pass_in_both_directions_whatever_their_framing() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let mut client = Client::connect(address).unwrap();
    let text = "0123456789abcdef".repeat(64 << 10);
    let sized = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    assert_eq!(client.send(&sized).unwrap(), answer(200, &text));
    let chunked = "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(client.send(chunked).unwrap(), answer(200, "abcde"));
    let empty = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(client.send(empty).unwrap(), answer(200, ""));
}

/// A pod that reads the head of one request, then says what it is told to say, and answers with the body that it gets.
fn reserved(world: &World, says: &'static [u8]) -> (Pod, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("reserved"), "reserved", listener.local_addr().unwrap().port());
    let ((heads, head), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    thread::spawn(move || {
        let mut pod = Client::of(listener.accept().unwrap().0);
        let lines: Vec<String> = std::iter::from_fn(|| pod.line().ok().filter(|line| !line.is_empty())).collect();
        heads.send(lines.join("\n").to_ascii_lowercase()).unwrap();
        goes_on.recv().unwrap();
        pod.write(says).unwrap();
        let body = pod.exactly(2).unwrap();
        pod.write(&[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", &*body].concat()).unwrap();
    });
    pod.make_ready();
    world.select(&[&pod]);
    (pod, head, go_on)
}

const EXPECTING: &[u8] = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";

#[test]
fn a_client_is_told_to_go_on_by_the_pod_alone() {
    let world = World::new();
    let (_, address) = world.web();
    let (_pod, head, go_on) = reserved(&world, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut client = Client::connect(address).unwrap();
    client.write(EXPECTING).unwrap();
    assert!(head.recv().unwrap().contains("\nexpect: 100-continue"));
    assert!(!client.hears_within(Duration::from_millis(300)), "the pod has not spoken");
    go_on.send(()).unwrap();
    assert_eq!([client.line().unwrap(), client.line().unwrap()], ["HTTP/1.1 100 Continue", ""]);
    client.write(b"hi").unwrap();
    assert_eq!(client.answer().unwrap(), answer(200, "hi"));
}

#[test]
fn a_pod_refuses_a_request_before_its_body_is_sent() {
    let world = World::new();
    let (_, address) = world.web();
    let (_pod, _head, go_on) = reserved(&world, b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
    let mut client = Client::connect(address).unwrap();
    client.write(EXPECTING).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(client.answer().unwrap(), answer(401, "no"));
}

#[test]
fn a_pod_that_does_not_say_that_it_wants_a_body_gets_it() {
    let world = World::new();
    let (_, address) = world.web();
    let (_pod, _head, go_on) = reserved(&world, b"");
    go_on.send(()).unwrap();
    let mut client = Client::connect(address).unwrap();
    client.write(&[EXPECTING, b"hi"].concat()).unwrap();
    assert_eq!([client.line().unwrap(), client.line().unwrap()], ["HTTP/1.1 100 Continue", ""]);
    assert_eq!(client.answer().unwrap(), answer(200, "hi"));
}

#[test]
fn a_pod_that_is_dead_but_not_noticed_yet_costs_no_request() {
    let world = World::new();
    let (_, address) = world.web();
    let (mut dead, alive) = (world.pod("dead"), world.pod("alive"));
    dead.make_ready();
    alive.make_ready();
    world.select(&[&dead, &alive]);
    let mut client = Client::connect(address).unwrap();
    (0..4).for_each(|_| assert_eq!(client.get("/").unwrap().status, 200));
    dead.die();
    for _ in 0..10 {
        assert_eq!(client.get("/").unwrap(), answer(200, "alive"));
        let post = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(client.send(post).unwrap(), answer(200, "hi"));
    }
}

#[test]
fn a_pod_is_drained_only_when_its_last_response_has_ended() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let mut client = Client::connect(address).unwrap();
    client.write(b"GET /slow/300 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    eventually("the request is on its way", || !pod.is_drained());
    pod.make_unready();
    assert!(!pod.is_drained());
    assert_eq!(client.answer().unwrap(), answer(200, "slow"));
    eventually("the pod is drained", || pod.is_drained());
}

#[test]
fn the_head_passes_as_it_is_except_what_concerns_one_connection() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let request = "GET /headers?q=1 HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 192.0.2.1\r\n\
                   Connection: x-secret, keep-alive\r\nX-Secret: 1\r\n\r\n";
    let body = Client::connect(address).unwrap().send(request).unwrap().body;
    assert_eq!(body, r#"/headers?q=1 {"host": "shop.example", "x-forwarded-for": "192.0.2.1"}"#);
}

#[test]
fn a_request_that_is_broken_is_the_clients_fault() {
    let world = World::new();
    let (_, address) = world.web();
    // It answers only what it has read to its end, which never comes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("patient"), "patient", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            std::io::copy(&mut stream.unwrap(), &mut std::io::sink()).ok();
        }
    });
    pod.make_ready();
    world.select(&[&pod]);
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "the request names more than one host\n"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "the request names more than one host\n"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n",
            "the body of the request is broken: Invalid chunk size line",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "the body of the request is broken: Invalid chunk body",
        ),
    ];
    for (request, expected) in cases {
        let answer = Client::connect(address).unwrap().send(request).unwrap();
        assert!(answer.status == 400 && answer.body.starts_with(expected), "{request:?}: {answer:?}");
    }
}

#[test]
fn a_head_beyond_the_limits_is_refused() {
    let world = World::new();
    let (_, address) = world.web();
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-Field: 1\r\n".repeat(300));
    let mut client = Client::connect(address).unwrap();
    client.write(head.as_bytes()).unwrap();
    assert_eq!(client.line().unwrap(), "HTTP/1.1 431 Request Header Fields Too Large");
}

#[test]
fn a_head_that_does_not_arrive_is_refused_and_a_connection_without_one_stays() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let mut resting = Client::connect(address).unwrap();
    assert_eq!(resting.get("/").unwrap(), answer(200, "a"));
    let [mut fresh, mut kept, mut pipelined] = [(); 3].map(|()| Client::connect(address).unwrap());
    fresh.write(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    assert_eq!(kept.get("/").unwrap(), answer(200, "a"));
    kept.write(b"G").unwrap();
    pipelined.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT").unwrap();
    assert_eq!(pipelined.answer().unwrap(), answer(200, "a"));
    for slow in [&mut fresh, &mut kept, &mut pipelined] {
        assert_eq!(slow.answer().unwrap(), answer(408, "the head of the request came too slowly"));
        assert!(slow.is_closed());
    }
    assert_eq!(resting.get("/").unwrap(), answer(200, "a"));
}

#[test]
fn requests_arrive_whole_however_they_are_cut() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let requests = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
                    GET / HTTP/1.1\r\nHost: x\r\n\r\n\
                    POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyou\r\n0\r\n\r\n";
    let mut client = Client::connect(address).unwrap();
    for cut in 1..requests.len() {
        let (first, second) = requests.split_at(cut);
        client.write(first.as_bytes()).unwrap();
        // The first part has an answer of its own if it holds a request, so that the proxy is between two.
        let is_answered = cut >= requests.find("GET").unwrap();
        if is_answered {
            assert_eq!(client.answer().unwrap(), answer(200, "hello"), "cut at {cut}");
        }
        client.write(second.as_bytes()).unwrap();
        let rest = [answer(200, "hello"), answer(200, "a"), answer(200, "you")];
        for expected in rest.into_iter().skip(usize::from(is_answered)) {
            assert_eq!(client.answer().unwrap(), expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_client_that_reads_slowly_gets_all_of_a_response() {
    const LENGTH: usize = 32 << 20;
    let world = World::new();
    let (_, address) = world.web();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("large"), "large", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").unwrap();
        stream.write_all(&vec![b'x'; LENGTH]).unwrap();
        // Closed with something unread, the connection would lose what was written.
        while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
    });
    pod.make_ready();
    world.select(&[&pod]);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nh").unwrap();
    eventually("the request is on its way", || !pod.is_drained());
    let (mut received, mut buffer) = (0, vec![0; 16 << 10]);
    // When the pod has done its part, the rest of the response is in the proxy's buffers, and in the kernel's. The
    // request ends only now, so that nothing is left to do but to write.
    while !pod.is_drained() {
        received += stream.read(&mut buffer).unwrap();
    }
    stream.write_all(b"i").unwrap();
    while received < LENGTH {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "after {received} bytes");
        received += read;
    }
}

/// A pod that answers as many requests on a connection as told, and closes it when one more has arrived.
fn closing(world: &World, answers: usize) -> (Pod, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("closing"), "closing", listener.local_addr().unwrap().port());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        for answered in 0.. {
            if stream.read(&mut [0; 4096])? == 0 {
                return Ok(());
            }
            counted.fetch_add(1, Ordering::SeqCst);
            if answered == answers {
                return Ok(());
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
        Ok(())
    };
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream?));
        }
    });
    pod.make_ready();
    world.select(&[&pod]);
    (pod, requests)
}

#[test]
fn a_kept_connection_that_a_pod_closes_costs_no_request() {
    let world = World::new();
    let (_, address) = world.web();
    let _pod = closing(&world, 1);
    let mut client = Client::connect(address).unwrap();
    (0..20).for_each(|_| assert_eq!(client.get("/").unwrap(), answer(200, "ok")));
}

#[test]
fn a_request_that_breaks_its_connection_does_not_go_round_for_ever() {
    let world = World::new();
    let (_, address) = world.web();
    let (_pod, requests) = closing(&world, 0);
    assert_eq!(get(address, "/").unwrap().status, 502);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
}

#[test]
fn a_request_that_may_have_been_carried_out_is_sent_once() {
    let world = World::new();
    let (_, address) = world.web();
    let (_pod, requests) = closing(&world, 0);
    for request in [
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        requests.store(0, Ordering::SeqCst);
        let answer = Client::connect(address).unwrap().send(request).unwrap();
        assert_eq!((answer.status, requests.load(Ordering::SeqCst)), (502, 1), "{answer:?}");
    }
}

#[test]
fn old_versions_are_spoken_on_either_side() {
    let world = World::new();
    let (_, address) = world.web();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pod = Pod::at(world.pod_dir("old"), "old", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nuntil the end").unwrap();
        }
    });
    pod.make_ready();
    world.select(&[&pod]);
    let mut kept = Client::connect(address).unwrap();
    (0..3).for_each(|_| assert_eq!(kept.get("/").unwrap(), answer(200, "until the end")));
    let mut old = TcpStream::connect(address).unwrap();
    old.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && text.ends_with("\r\n\r\nuntil the end"), "{text}");
}

#[test]
fn a_response_to_head_has_no_body() {
    let world = World::new();
    let (_, address) = world.web();
    let pod = world.pod("a");
    pod.make_ready();
    world.select(&[&pod]);
    let mut client = Client::connect(address).unwrap();
    client.write(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(client.line().unwrap(), "HTTP/1.1 200 OK");
    while !client.line().unwrap().is_empty() {}
    assert_eq!(client.get("/").unwrap(), answer(200, "a"));
    eventually("both have ended", || pod.is_drained());
}
