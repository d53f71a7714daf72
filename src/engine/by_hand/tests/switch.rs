//! A repository is taken down and brought up again.

use std::collections::BTreeSet;

use super::*;

fn configs(count: usize) -> BTreeSet<ConfigKey> {
    (0..count).map(|number| ConfigKey { name: format!("web{number}"), ..web() }).collect()
}

fn all_of(memory: Memory, configs: &BTreeSet<ConfigKey>, state: &ConfigState) -> Memory {
    configs.iter().map(|key| ConfigState { key: key.clone(), ..state.clone() }).fold(memory, Memory::with)
}

#[test]
fn what_is_taken_down_runs_nothing_and_is_planned_anew_once_it_is_up() {
    let configs = configs(2);
    let memory = all_of(serves(), &configs, &serving(1, "a"));
    let made = memory.decide(|it| take_down(it, &"repo".into(), &configs, "ann")).expect("it is known");
    let down = RepositoryState { down: true, down_by: "ann".into(), seen: None, generation: 1, ..repository() };
    assert_eq!(*made.only::<RepositoryState>(), down);
    let states = made.written::<ConfigState>();
    assert!(states.len() == 2 && states.iter().all(|state| state.wanted == serving(1, "a").wanted.nothing()));
    assert!(made.touched.services && made.touched.configs == configs, "{:?}", made.touched);
    let unknown = Memory::default().decide(|it| take_down(it, &"repo".into(), &configs, "ann"));
    assert_eq!(refused(unknown), "nothing is known of repository `repo`");
}

#[test]
fn what_is_brought_up_runs_what_served_and_asked_twice_it_is_done_once() {
    let configs = configs(2);
    let quiet = ConfigState { wanted: Wanted::default(), ..serving(1, "a") };
    let mut memory = all_of(Memory::default().with(down()), &configs, &quiet);
    let up = |it: &mut Transition<'_>| bring_up(it, &"repo".into(), &configs, "ann");
    let made = memory.commit(up).expect("it is known");
    assert!(made.answer && made.touched.services && made.touched.configs == configs, "{:?}", made.touched);
    let state = made.only::<RepositoryState>();
    assert_eq!((state.down, &*state.up_by, &*state.down_by, &state.seen), (false, "ann", "bob", &None));
    let targets = BTreeMap::from([(1, Target::ALL)]);
    assert!(made.written::<ConfigState>().iter().all(|state| state.wanted.targets == targets));
    for memory in [memory, Memory::default()] {
        let again = memory.decide(up).expect("it is known");
        assert!(!again.answer && again.changes_nothing() && !again.touched.services);
    }
}

#[test]
fn what_was_deployed_meanwhile_stops_only_while_the_repository_is_down() {
    let configs = configs(1);
    let stop = |state: RepositoryState| {
        let memory = all_of(Memory::default().with(state), &configs, &serving(1, "a"));
        memory.decide(|it| stop_missed(it, &"repo".into(), &configs)).expect("it is known")
    };
    let made = stop(down());
    assert!(made.touched.services && made.only::<ConfigState>().wanted.targets.is_empty());
    let made = stop(repository());
    assert!(!made.touched.services && made.changes_nothing());
}

#[test]
fn all_deployment_configs_of_a_repository_are_read_at_once() {
    type Switch = fn(&mut Transition<'_>, &BTreeSet<ConfigKey>) -> Result<(), Undecided>;
    let switches: [(RepositoryState, Switch); 3] = [
        (repository(), |it, configs| take_down(it, &"repo".into(), configs, "ann")),
        (down(), |it, configs| stop_missed(it, &"repo".into(), configs)),
        (down(), |it, configs| bring_up(it, &"repo".into(), configs, "ann").map(|_| ())),
    ];
    for (state, switch) in switches {
        let rounds = |count| {
            let configs = configs(count);
            let memory = all_of(Memory::default().with(state.clone()), &configs, &serving(1, "a"));
            memory.decide(|it| switch(it, &configs)).expect("it is known").rounds
        };
        assert_eq!(rounds(1), rounds(50));
    }
}
