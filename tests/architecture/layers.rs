//! Who may use whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{ALL, Named, Source, parse};

/// What a room is for; a room uses only rooms of layers before its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Nouns, and the two things that everybody needs.
    Nouns,
    /// Values in, values out.
    Pure,
    /// What is asked of the world, as traits.
    Ports,
    /// What answers them, and the other edges; none knows another.
    Adapters,
    /// What people configured and what is measured.
    Settings,
    /// Performs what the engine asks for, through the ports.
    Executor,
    /// Puts decisions, store and edges together.
    Control,
    /// What people and machines talk to.
    Faces,
    /// The composition root: the only place that names adapters to build them.
    Root,
    /// Tests may use everything.
    Testing,
}

use Layer::{Adapters, Control, Executor, Faces, Nouns, Ports, Pure, Root, Settings, Testing};

/// Every room with its layer; of several that fit a module, the longest name counts.
const ROOMS: [(&str, Layer); 43] = [
    ("clock", Nouns),
    ("error", Nouns),
    ("folder_id", Ports),
    ("http_client", Ports),
    ("model", Nouns),
    ("secret", Ports),
    ("shares", Ports),
    ("manifest", Pure),
    ("plan", Pure),
    ("engine", Pure),
    ("report", Pure),
    ("store", Ports),
    ("runtime", Ports),
    ("forge", Ports),
    ("registry", Ports),
    ("registry::http", Adapters),
    ("indicators", Ports),
    ("indicators::prometheus", Adapters),
    ("sinks", Ports),
    ("sinks::http", Adapters),
    ("store::sqlite", Adapters),
    ("runtime::local", Adapters),
    ("forge::azure", Adapters),
    ("forge::bitbucket", Adapters),
    ("forge::gitea", Adapters),
    ("forge::github", Adapters),
    ("forge::gitlab", Adapters),
    ("forge::plain", Adapters),
    ("source", Adapters),
    ("trigger", Adapters),
    ("config", Settings),
    ("telemetry", Settings),
    ("executor", Executor),
    ("control", Control),
    ("server", Faces),
    ("simulation", Faces),
    ("cli", Root),
    ("main", Root),
    ("bin", Root),
    ("control::app", Root),
    ("control::repository", Root),
    ("control::wiring", Root),
    ("testing", Testing),
];

/// What is allowed beyond that, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 6] = [
    ("forge::webhook", "forge::gitea", "headers tell whose call it is, so the receiver lists all dialects"),
    ("forge::webhook", "forge::azure", "the same"),
    ("forge::webhook", "forge::bitbucket", "the same"),
    ("forge::webhook", "forge::gitlab", "the same"),
    ("forge::webhook", "forge::github", "the same"),
    ("forge::webhook", "forge::plain", "the same"),
];

/// The folder that alone uses a library; its types stay inside.
const OWNERS: [(&str, &[&str]); 12] = [
    ("aho_corasick", &["runtime::local::pod::mask"]),
    ("git2", &["source"]),
    ("rusqlite", &["store::sqlite"]),
    ("notify", &["trigger", "runtime::local"]),
    ("landlock", &["runtime::local::host::rights"]),
    ("cron", &["trigger"]),
    ("granit_parser", &["manifest::yaml"]),
    ("similar", &["plan::line_diff"]),
    // The visitors of the demo must not be helped by a client that tries again.
    ("hyper", &["runtime::local::service", "server", "cli::demo::visitors"]),
    (
        "reqwest",
        &[
            "http_client",
            "source",
            "forge",
            "registry",
            "indicators::prometheus",
            "sinks::http",
            "runtime::local::launchable",
            "cli",
        ],
    ),
    ("axum", &["server", "cli::client", "cli::demo::git_host"]),
    ("clap", &["cli"]),
];

/// What nothing pure may name: the world, and the time.
const IMPURE: [&str; 9] = [
    "tokio",
    "std::fs",
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::process",
    "std::env",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

fn room(module: &[String]) -> Option<(&'static str, Layer)> {
    let path = module.join("::");
    let fits = |(room, _): &&(&str, Layer)| path == *room || path.starts_with(&format!("{room}::"));
    ROOMS.iter().filter(fits).max_by_key(|(room, _)| room.len()).copied()
}

fn is_within(path: &[String], prefix: &str) -> bool {
    let path = path.join("::");
    path == prefix || path.starts_with(&format!("{prefix}::"))
}

/// Complaints about every file for which `judge` has one.
fn complaints(judge: impl Fn(&Source, &Named) -> Option<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in ALL.iter() {
        let complaints = source.names.iter().filter_map(|named| judge(source, named));
        found.extend(complaints.map(|complaint| format!("{}: {complaint}", source.file)));
    }
    found
}

fn assert_none(complaints: &BTreeSet<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.iter().cloned().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_module_has_a_room() {
    let homeless: BTreeSet<String> = ALL
        .iter()
        .filter(|source| !source.module.is_empty() && room(&source.module).is_none())
        .map(|source| source.file.clone())
        .collect();
    assert_none(&homeless);
}

#[test]
fn rooms_use_only_rooms_of_layers_before_their_own() {
    assert_none(&complaints(|source, named| {
        let Named::Own(path) = named else { return None };
        let ((from, layer), (to, below)) = (room(&source.module)?, room(path)?);
        let allowed = from == to || below < layer || (below == layer && layer != Adapters);
        let excepted = EXCEPTIONS.iter().any(|(room, other, _)| is_within(&source.module, room) && to == *other);
        (!allowed && !excepted).then(|| format!("{from} ({layer:?}) uses {} ({below:?})", path.join("::")))
    }));
}

#[test]
fn the_executor_knows_ports_and_no_adapter() {
    assert_none(&complaints(|source, named| {
        let Named::Own(path) = named else { return None };
        let adapter = room(path).is_some_and(|(_, layer)| layer == Adapters);
        (is_within(&source.module, "executor") && adapter).then(|| format!("names {}", path.join("::")))
    }));
}

#[test]
fn rooms_of_one_layer_do_not_use_each_other_in_circles() {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in ALL.iter() {
        let Some((from, layer)) = room(&source.module) else { continue };
        for named in &source.names {
            let Named::Own(path) = named else { continue };
            let beside = room(path).filter(|(to, other)| *to != from && *other == layer && layer != Root);
            uses.entry(from).or_default().extend(beside.map(|(to, _)| to));
        }
    }
    let mut circles = BTreeSet::new();
    for start in uses.keys() {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut next: Vec<&str> = uses[start].iter().copied().collect();
        while let Some(room) = next.pop() {
            if reached.insert(room) {
                next.extend(uses.get(room).into_iter().flatten().copied());
            }
        }
        if reached.contains(start) {
            circles.insert(format!("{start} uses itself through {reached:?}"));
        }
    }
    assert_none(&circles);
}

#[test]
fn nothing_pure_waits_or_touches_the_world() {
    assert_none(&complaints(|source, named| {
        let (room, layer) = room(&source.module)?;
        if layer > Pure {
            return None;
        }
        match named {
            Named::Async => Some(format!("{room} is async")),
            Named::Foreign(path) => {
                IMPURE.iter().find(|impure| is_within(path, impure)).map(|it| format!("names {it}"))
            }
            Named::Own(_) => None,
        }
    }));
}

#[test]
fn each_heavy_library_has_one_owner() {
    assert_none(&complaints(|source, named| {
        let Named::Foreign(path) = named else { return None };
        let (library, owners) = OWNERS.iter().find(|(library, _)| path[0] == *library)?;
        let owned = owners.iter().any(|owner| is_within(&source.module, owner));
        (!owned).then(|| format!("names {library}, which belongs to {}", owners.join(" and ")))
    }));
}

/// The checks themselves see what they should.
#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "use crate::{model::{self, ids::RunId}, store::*}; use super::wake;\n\
                fn f() -> git2::Oid { crate::engine::step(); info!(\"{}\", crate::plan::build::content_of(x)) }\n\
                #[cfg(test)] mod tests { use crate::cli::run; }";
    let source = parse(String::new(), vec!["trigger".into(), "poll".into()], text);
    let named = source.names.iter().map(|named| match named {
        Named::Own(path) => path.join("::"),
        Named::Foreign(path) => format!("extern {}", path.join("::")),
        Named::Async => "async".into(),
    });
    let expected = [
        "model",
        "model::ids::RunId",
        "store",
        "trigger::wake",
        "extern git2::Oid",
        "engine::step",
        "plan::build::content_of",
    ];
    assert_eq!(named.collect::<Vec<_>>(), expected);
}
