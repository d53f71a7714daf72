//! The copy that an upgrade leaves: what the store was, for whoever goes back to the program before. It is another life of
//! the store, as every copy: what serves is taken over, and how a hook ended that ran then is unknown.

use super::fixture;
use super::rollout::{
    answers, answers_in_the_end, begin_with, ended, ended_as_told, let_go, of, start_of, until_the_middle,
};
use super::takeover::programs_of_before;
use crate::support::daemon::{World, answering, complaint};

#[test]
fn the_copy_is_a_backup_as_any_other() {
    let world = World::new(&[]);
    let [_, commit] = fixture::load(&world);
    until_the_middle(&world);
    let copy = world.state().join("store.db.schema-2").display().to_string();
    answering(
        || answers(&world),
        || {
            world.start();
            world.stop();
            world.tell(&["store", "restore", &copy]);
            world.start();
            let_go(&world);
            ended(&world, "web", "Complete");
            ended(&world, "worker", "Failed");
        },
    );
    let told = world.status(&commit, "launchway/default/worker/pre", "failure");
    assert!(told.contains("before the store was replaced"), "{told}");
}

#[test]
#[ignore = "`.ci/run upgrade` builds the program of before"]
fn the_program_before_goes_on_with_the_copy() {
    let (world, programs) = (World::new(&[]), programs_of_before());
    begin_with(&world, &programs);
    let copy = world.state().join("store.db.schema-2");
    answering(
        || answers_in_the_end(&world),
        || {
            world.start();
            let_go(&world);
            ended(&world, "web", "Complete");
            ended(&world, "worker", "Complete");
            world.stop();
            let refused = of(&world, &programs).arg("serve").arg("--config").arg(world.config()).output().unwrap();
            assert!(complaint(&refused).contains("this launchway knows versions 2 to 2"), "{}", complaint(&refused));
            let restored = of(&world, &programs).args(["store", "restore"]).arg(&copy).output().unwrap();
            assert!(restored.status.success(), "{}", complaint(&restored));
            start_of(&world, &programs);
            ended_as_told(|| of(&world, &programs), "web", "Complete");
            ended_as_told(|| of(&world, &programs), "worker", "Failed");
        },
    );
}
