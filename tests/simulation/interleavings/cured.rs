//! What did not hold once. A test asserts that each holds in many orders of turns.

use launchway::testing::interleaved::checks::Invariant;

/// A failure that was put right.
pub(crate) struct Cured {
    /// What did not hold.
    pub(crate) invariant: Invariant,
    /// Why.
    pub(crate) because: &'static str,
    /// A story that showed it, with the order of turns in which it did.
    pub(crate) story: &'static str,
}

/// What did not hold once, each in the order of turns in which that was seen.
pub(crate) const CURED: &[Cured] = &[
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what runs on a commit to which a branch is put back by force, which is refused, stays under way there",
        story: "
            order 0
            shipyard dev
            declare web image=a pre=Abort
            hang shop-dev/web-
            push
            turns 120
            declare web image=b
            push
            turns 10
            push back",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a task of a sequence that delivers nothing stays under way if a newer run of it ends before its first task",
        story: "
            order 0
            shipyard dev:deployment,approval,test
            sequence dev fix:verify,approval,verify
            triggered dev.fix on problem.open
            push
            tell domain problem.open dev stray
            pass 1s
            tell sequence dev fix stray
            down",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what is said of a service that is declared nowhere counts the attempts of each of its sequences apart",
        story: "
            order 2
            shipyard dev:approval,deployment,test production:verify,deployment
            sequence dev fix:verify,approval,verify
            triggered dev.fix on dev.problem.open
            push
            pass 1s
            tell domain problem.open dev stray
            tell sequence dev delivery stray
            tell domain problem.open dev stray",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a hook that a run triggered by hand did not reach keeps what an earlier attempt made of it",
        story: "
            order 2
            shipyard dev
            declare web pre=Abort
            push
            unknown shop-dev/web-
            turns 15
            push
            pass 1s
            cancel dev/web
            trigger dev web
            retry dev/web",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "what was pushed while its repository was down stays pending if no later commit runs anything there",
        story: "
            order 0
            shipyard dev
            declare web image=a
            push
            settle
            down
            declare api image=b
            push
            settle
            remove api
            push",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "after the store was lost a hook waits for a pod of the same name that ended in another life",
        story: "
            order 0
            shipyard dev
            declare web image=a post=Abort
            push
            settle
            lose-store",
    },
    Cured {
        invariant: Invariant::OwnPods,
        because: "a run of the restored store counts a hook that another life of the store has run",
        story: "
            order 0
            shipyard dev
            declare web image=a
            declare other image=a
            push
            settle
            backup 1
            declare web image=b pre=Abort
            push
            settle
            pass 1m
            declare web image=c
            declare other image=b pre=Abort
            push
            restore 1",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "a restored store takes pods of another content for those of its version",
        story: "
            order 1
            shipyard dev
            declare web image=a
            push
            settle
            backup 1
            declare web image=b
            push
            settle
            declare web image=c
            push
            restore 1",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "after the store was lost what serves is ended before it is replaced",
        story: "
            order 0
            shipyard dev
            declare web image=a
            push
            settle
            lose-store",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a plan made again for a stage that is started by hand rewrites what `launchway/plan` told",
        story: "
            order 0
            shipyard dev
            declare web image=a
            push
            settle
            trigger dev web",
    },
    Cured {
        invariant: Invariant::CreditIsDue,
        because: "what a person deploys of a later stage is credited to a head that declares something else",
        story: "
            order 4
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=b
            push
            turns 19
            turns 186
            hold dev web x
            turns 12
            declare web image=d
            push
            latest production/web",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "a push reads the slot while the run in it ends: it waits for ever for one that has ended",
        story: "
            order 18
            shipyard dev:deployment,test
            task test retries=1
            declare web image=a
            push
            turns 73
            declare web image=b
            push",
    },
    Cured {
        invariant: Invariant::OneRunPerSlot,
        because: "two commands read an empty slot, and each takes it",
        story: "
            order 2
            shipyard dev
            declare web image=a
            push
            settle
            latest dev/web
            latest dev/web",
    },
    Cured {
        invariant: Invariant::HoldsHold,
        because: "a run is admitted on holds that were read before one was placed",
        story: "
            order 0
            shipyard dev
            declare web image=a
            push
            turns 16
            hold dev web x",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a sync plans before `dev` has passed and commits after: nobody starts production",
        story: "
            order 17
            shipyard dev production
            declare web image=a
            push
            settle
            declare web image=b
            push
            turns 60
            declare web image=c stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "`latest` is decided before a push and takes its place in the slot after it",
        story: "
            order 1
            shipyard dev
            declare web image=a
            push
            settle
            declare web image=b
            push
            latest dev/web",
    },
    Cured {
        invariant: Invariant::OneOwner,
        because: "two repositories are first synced at once, and neither sees that the other has the project",
        story: "
            order 0
            shipyard dev
            @two shipyard dev
            declare web image=a
            @two declare web image=b
            push
            @two push",
    },
    Cured {
        invariant: Invariant::OneOwner,
        because: "after a joint first look both repositories are refused",
        story: "
            order 0
            shipyard dev
            @two shipyard dev
            declare web image=a
            @two declare web image=b
            push
            @two push
            settle
            push
            @two push",
    },
    Cured {
        invariant: Invariant::DownIsDown,
        because: "a trigger that was decided before `down` starts after it",
        story: "
            order 1
            shipyard dev production
            triggered production on dev.delivery.finished result=fail
            declare web image=a
            push
            settle
            trigger production web
            turns 16
            down",
    },
    Cured {
        invariant: Invariant::OneRunPerSlot,
        because: "two repositories that both have a project start in the same slots",
        story: "
            order 0
            shipyard dev
            @two shipyard dev
            declare web image=a
            @two declare other image=a service=web
            push
            @two push",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "a run that lost its config restores into it",
        story: "
            order 2
            shipyard dev
            declare web image=a
            push
            settle
            hang shop-dev/web-2
            latest dev/web
            latest dev/web
            pass 11m",
    },
    Cured {
        invariant: Invariant::CreditIsDue,
        because: "after `undo` the commit that was rolled back from is credited with what serves",
        story: "
            order 0
            shipyard dev
            declare web image=a
            push
            settle
            declare web image=b
            push
            settle
            undo dev/web",
    },
    Cured {
        invariant: Invariant::CreditIsDue,
        because: "`latest` deploys what a stage had last, and credits it to a newer commit that the stage waits for",
        story: "
            order 2
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=b
            push
            settle
            hold dev web x
            settle
            declare web image=a
            push
            settle
            latest production/web",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "by-hand runs are always attempt 1, and hide what hooks and tasks became",
        story: "
            order 0
            shipyard dev:deployment,test
            task test retries=1
            declare web image=a
            push
            settle
            latest dev/web",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a retry of one of two configs renames the contexts of its hooks",
        story: "
            order 0
            shipyard dev
            declare web image=a
            declare back image=a service=web pre=Abort
            fail shop-dev/back-1-hook
            push
            settle
            heal shop-dev
            retry dev/back",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "beyond 20 contexts a failure stays red after its retry succeeded",
        story: "
            order 0
            statuses auto
            shipyard dev:deployment,test
            task test
            declare web image=a pre=Abort
            declare a image=a
            declare b image=a
            declare c image=a
            declare d image=a
            declare e image=a
            declare f image=a
            declare g image=a
            declare h image=a
            declare i image=a
            fail shop-dev/web-1-hook
            push
            settle
            heal shop-dev
            retry dev/web",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "a commit whose stage waits stays pending after a newer one went through",
        story: "
            order 1
            shipyard dev production
            declare web image=a
            push
            settle
            down
            declare web image=b
            push
            settle
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a revision is thought to be brought by an older delivery whose end starts what a revision between them wants",
        story: "
            order 1236
            shipyard dev production
            declare web pre=Retry
            fail shop-dev/web-
            declare web image=d
            push
            pass 1s
            lose-store
            settle
            declare web image=b stage=production
            push
            turns 6
            declare web image=d
            push",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "after the store was replaced, what serves is adopted by a first deployment and then ended while that has one pod",
        story: "
            order 0
            shipyard dev production
            declare web image=a replicas=2
            declare web mid=Abort
            push
            turns 71
            backup 2
            declare web image=b
            push
            pass 1s
            restore 2",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "after the store was lost, a pod is ended that serves what is declared and was never delivered in this life",
        story: "
            order 2
            shipyard dev:deployment,test production
            task test retries=1
            declare web pre=Abort
            push
            turns 169
            declare back service=web image=d
            declare web trigger=none
            push
            settle
            lose-store
            turns 19
            push",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "a deployment that was taken down and up again in one moment ends well, and nothing is wanted",
        story: "
            order 7
            shipyard dev production
            declare web post=Abort
            push
            turns 171
            down
            push
            up",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "after the store was restored, a commit goes on showing what the life in between wrote",
        story: "
            order 2
            shipyard dev production
            declare back service=web image=a
            push
            turns 165
            backup 2
            lose-store
            turns 56
            restore 2
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what a head shows is forgotten when it is old, and then nobody says that a newer one took its place",
        story: "
            order 1
            shipyard dev production
            declare web trigger=none
            push
            settle
            push
            pass 1s
            prune 2
            push",
    },
    Cured {
        invariant: Invariant::HeadRuns,
        because: "a delivery that waited while somebody rolled back is thought to bring back everything",
        story: "
            order 6262
            @two shipyard dev:deployment,test
            @two declare web image=a replicas=1
            @two push
            turns 4
            @two declare web image=b
            @two push
            pass 1s
            hold dev web x
            @two declare back service=web image=e
            @two push
            @three declare web image=e stage=dev
            pass 1s
            undo dev/web",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "the pod of a hook is pruned before its run has heard of the end",
        story: "
            order 13514
            shipyard dev production
            declare web pre=Abort
            push
            hang shop-dev/web-
            pass 1s
            prune 0",
    },
    Cured {
        invariant: Invariant::DownIsDown,
        because: "up between the two steps of down leaves what it brought up running",
        story: "
            order 1
            shipyard dev production
            declare web image=a replicas=2
            declare web pre=Abort
            push
            pass 1s
            up
            latest production/web
            turns 1
            push
            turns 188
            declare web image=c
            push
            pass 1s
            undo production/web
            turns 4
            trigger dev web
            declare api image=b stage=production
            push
            down
            up",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a revision goes back to what serves while two deliveries of other content are open, of which one is superseded",
        story: "
            order 11106
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a replicas=3
            @two shipyard dev:deployment,test production
            @two declare web image=a replicas=2
            @three shipyard dev:deployment,test production
            @three declare web image=a replicas=1
            declare web strategy=Recreate
            push
            @two push
            @three push
            pass 1s
            release
            undo dev/web
            turns 110
            declare web image=b
            push
            @two push
            pass 1s
            declare web image=c
            push
            turns 19
            declare web image=b
            push
            turns 106
            declare web image=a stage=dev
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a rendering is taken for up to date because one run was pruned while another changed as much",
        story: "
            order 13819
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a replicas=3
            declare web post=Abort
            push
            settle
            prepared b
            settle
            prepared b
            pass 1s
            prune 2
            pass 1s
            prune 2
            turns 4
            prune 2
            trigger dev web
            push
            turns 24",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a person asks for one deployment config ends what is being deployed of another, and brings it not",
        story: "
            order 45141
            shipyard dev:deployment,test
            @two shipyard dev:deployment,test
            @two declare web image=a replicas=1
            @three shipyard dev:deployment,test
            declare many4 image=a
            declare many5 image=a
            declare many6 image=a
            declare many7 image=a
            declare many8 image=a
            declare many9 image=a
            declare many10 image=a
            declare many11 image=a
            declare web 
            push
            @three push
            @two declare back service=web image=c
            turns 6
            @two push
            turns 41
            latest dev/web
            hang shop-dev/back-
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a revision ends what a person asked for, and brings it not",
        story: "
            order 4
            shipyard dev
            declare web post=Abort
            push
            release
            pass 1s
            declare back service=web image=e
            push
            latest dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "content that failed a stage counts as passed, because it did once",
        story: "
            order 55454
            shipyard dev:deployment,test production
            task test retries=1
            declare web post=Abort
            push
            settle
            declare web image=b
            push
            pass 1s
            fail shop-dev/web-
            declare web image=a
            push
            pass 1s",
    },
    Cured {
        invariant: Invariant::HeadRuns,
        because: "a head is planned while an attempt at it is being ended, and takes that for one that is under way",
        story: "
            order 0
            shipyard dev
            declare web image=a replicas=2
            declare back image=a service=web pre=Abort
            declare web pre=Retry
            push
            @two push
            @three push
            pass 1m
            @two push
            declare web image=d
            push
            turns 68
            undo dev/web
            release
            release
            turns 1
            cancel dev/web",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "a config that comes back after all of it was forgotten takes its earlier hook for its own",
        story: "
            order 18
            shipyard dev production
            declare many11 image=a
            declare web pre=Retry
            push
            pass 1s
            remove web
            push
            settle
            prune 0
            declare web pre=Abort
            push",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "the hook of a config that comes back goes for the earlier one of its name, which had ended",
        story: "
            order 32
            shipyard dev production
            declare many11 image=a
            declare web pre=Retry
            push
            pass 1s
            remove web
            push
            settle
            prune 0
            declare web pre=Abort
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a head is planned while what was rolled back to before its hold was lifted is still on its way",
        story: "
            order 16
            shipyard dev
            declare web image=a replicas=2
            declare back image=a service=web pre=Abort
            declare web pre=Retry
            push
            @two push
            @three push
            pass 1m
            @two push
            declare web image=d
            push
            turns 68
            undo dev/web
            release
            release
            turns 1
            cancel dev/web",
    },
    Cured {
        invariant: Invariant::HeadRuns,
        because: "what was declared before is deployed by hand while a newer revision has not got to its deployment yet",
        story: "
            order 0
            shipyard dev:deployment+5m
            declare web image=a
            push
            pass 10m
            declare web image=b
            push
            pass 1s
            latest dev/web
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "it is forgotten that what is declared again has passed",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test retries=1
            declare web 
            push
            settle
            declare web trigger=none
            push
            turns 16
            declare web image=c
            push
            turns 280
            declare web image=a
            push
            prune 0",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a head is planned while it is deployed by hand, and is never tested",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=d
            push
            turns 55
            declare web image=e
            push
            pass 1s
            declare back service=web image=e
            push
            hang shop-dev/web-
            latest dev/web
            turns 198
            undo dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "the plan of a head that is read again takes the place of what a person triggered since",
        story: "
            order 4
            shipyard dev:deployment,test production
            task test retries=1
            @three declare web image=a replicas=2
            declare web pre=Abort
            push
            pass 1s
            declare web image=b
            push
            pass 1s
            declare back service=web image=a
            push
            undo production/web
            settle
            release
            trigger dev web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what an older revision is still removing in the first stage, it removes in the next one after a newer \
                  one declared it there",
        story: "
            order 1
            shipyard dev:deployment,test production
            declare web image=a replicas=3
            push
            pass 1s
            declare web image=d
            push
            turns 184
            remove web
            hang shop-dev/web-
            declare api trigger=none
            push
            pass 1s
            declare web image=a stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what was declared without being deployed, and taken back, is what a person deploys by hand",
        story: "
            order 0
            shipyard dev:deployment,test
            declare web image=d
            push
            declare web trigger=none
            pass 1s
            declare web image=a
            push
            turns 299
            declare web image=d stage=dev
            push
            latest dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "another sequence delivers what is being delivered already, and never runs",
        story: "
            order 3809
            shipyard dev:deployment,test+1s production
            declare web replicas=4
            push
            settle
            shipyard dev:deployment,test production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what an older revision delivers goes on to a stage that is no longer there",
        story: "
            order 3884
            shipyard dev:deployment,test+1s production
            task test retries=1
            declare web pre=Abort
            push
            turns 19
            shipyard dev
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a task before the deployment has stopped is tried again by every push",
        story: "
            order 72
            shipyard dev:check,deployment,test production
            declare web image=a
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "nobody knows any more that a task before the deployment has stopped what was never deployed",
        story: "
            order 3181
            shipyard dev:deployment+2s production:check,deployment+1s,test
            pass 1s
            declare web image=d
            push
            turns 4
            push
            pass 11m
            prune 0",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "what is brought up leaves out what was deployed and taken down since it was asked for",
        story: "
            order 39063
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a replicas=3
            @two shipyard dev:deployment,test production
            @two declare web image=a replicas=1
            @three shipyard dev:deployment,test production
            @three declare web image=a replicas=3
            push
            @two push
            @three declare api image=d
            @three push
            turns 78
            @two declare back service=web image=c
            @two push
            settle
            hold production web x
            turns 76
            latest dev/web
            settle
            @three declare back service=web image=e
            @three push
            pass 1s
            @three declare web image=c
            @three push
            pass 1s
            @three push
            @two declare api image=b
            @two push
            pass 1s
            declare web image=c
            push
            pass 1s
            trigger dev web
            turns 54
            up
            turns 3
            declare api image=d
            push
            down
            hold production web x
            turns 46
            @three push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a person deploys by hand takes the place of a delivery that still has to pass its tasks",
        story: "
            order 2
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=d
            push
            shipyard dev:deployment+2s production:check,deployment+1s,test
            settle
            push
            latest production/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what an older revision is going to bring to a stage hides that its sequence has changed there",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test retries=1
            declare web mid=Abort
            push
            settle
            declare web image=b
            push
            turns 20
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web image=a
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a retry of what never got to its deployment leaves out what it was to bring for the first time",
        story: "
            order 2
            shipyard dev:check,deployment,test production
            task check
            declare web image=c
            push
            turns 134
            unknown shop-dev/web-
            declare back service=web image=b
            push
            settle
            retry dev/web",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "what another life of the store has left ends before a pod of this one that is as old",
        story: "
            order 126618
            shipyard dev
            declare web image=a replicas=3
            declare web pre=Retry
            declare back service=web image=c
            push
            turns 173
            backup 1
            settle
            push
            pass 11m
            restore 1
            settle
            declare web replicas=2
            remove back
            push
            settle
            declare web post=Abort
            push
            turns 52
            restore 1
            turns 180
            lose-store
            turns 3
            restore 1",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what is in an earlier stage hides behind what is newer, and has the last word in the later one",
        story: "
            order 4
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=a replicas=2
            declare web mid=Abort
            settle
            declare web image=d
            push
            turns 46
            trigger dev web
            turns 3
            turns 202
            declare web image=a
            push
            turns 67
            declare web image=d stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a stage loses its test while that runs",
        story: "
            order 4
            shipyard dev:deployment,test production
            declare web image=c stage=dev
            push
            turns 20
            shipyard dev production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what waits under a hold is still to come to a stage that is there no longer",
        story: "
            order 1
            shipyard dev production
            declare web image=c
            hold dev web x
            turns 152
            push
            turns 4
            shipyard dev
            push",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "what serves is scaled up in the middle of a rollout, and gets no more pods than it had",
        story: "
            order 3
            shipyard dev
            declare web mid=Abort
            push
            hang shop-dev/web-2
            settle
            declare web image=e
            push
            pass 1s
            scale dev/web 4
            pass 1s
            declare back service=web image=b
            push
            turns 13
            push
            turns 17",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "what the lost store named goes on for ever, because nothing that is declared got to its deployment",
        story: "
            order 322998
            shipyard dev:check,deployment,test production
            task check
            fail shop-dev/web-
            declare api trigger=
            push
            settle
            lose-store
            declare web post=
            remove api
            push
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a stage loses its test while that runs again, of other content than the one that failed it",
        story: "
            order 26663
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a stage=dev
            push
            fail shop-dev/web-
            pass 1s
            declare web image=d
            push
            settle
            shipyard dev:deployment+2s production:check,deployment+1s,test
            push
            pass 1s",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what waits for a stage is not started by an undo that brings it back to what is declared",
        story: "
            order 7
            @three shipyard dev:deployment+2s production:check,deployment+1s,test
            @three declare web image=a replicas=1
            @three push
            pass 1m
            @three declare web image=e
            @three push
            hang shop-dev/web-2
            pass 1s
            pass 1s
            @three declare web image=a stage=dev
            @three push
            undo dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a retry goes back to the delivery before the one under way, which brings more",
        story: "
            order 5
            shipyard dev:check,deployment,test production
            task check
            declare web pre=Retry
            push
            hang shop-dev/web-2-hook
            pass 1s
            latest dev/web
            declare back service=web image=d
            push
            pass 1s
            reboot
            retry dev/web
            cancel dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a revision has removed is deployed by hand while its pods are ending",
        story: "
            order 0
            shipyard dev production
            declare web image=a replicas=2
            push
            settle
            shipyard dev
            push
            latest production/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a retry brings back what failed before a newer delivery that was cancelled and never got to its deployment",
        story: "
            order 4014246
            shipyard dev:deployment+2s production:check,deployment+1s,test
            hang shop-dev/web-
            declare web image=e
            push
            pass 1s
            pass 1s
            declare web image=a
            push
            pass 1s
            cancel dev/web
            retry dev/web",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "what had its turn in a later stage waits again once a person deploys the stage before by hand",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test retries=1
            settle
            declare web image=b
            push
            turns 2
            declare web image=e stage=dev
            push
            pass 1s
            latest dev/web",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "a delivery deletes what the next one, which takes its place at once, brings back",
        story: "
            order 0
            shipyard dev:check,deployment,test production
            task check
            declare web post=Abort
            push
            remove web
            pass 1s
            declare back service=web image=c
            push
            turns 55
            declare web replicas=1
            shipyard dev:deployment,test production
            push",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "what a check has stopped in a later stage is declared again after something else was, which never got there",
        story: "
            order 4
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web image=c stage=production
            push
            turns 104
            declare web image=c
            push
            turns 6
            declare web image=e stage=production
            push
            turns 60
            declare web image=c stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a test is added while what failed is about to be attempted again without it",
        story: "
            order 4357446
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web mid=Abort
            push
            unknown shop-dev/web-
            pass 1s
            pass 1s
            shipyard dev:deployment,test production
            push
            retry dev/web",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "after a lost store a later stage keeps a pod too many while the stage before has not passed the next push",
        story: "
            order 4381776
            shipyard dev:deployment+2s production:check,deployment+1s,test
            task check
            declare web image=a replicas=3
            push
            pass 1s
            pass 1s
            declare web replicas=2
            push
            pass 1s
            lose-store
            pass 1s
            pass 1s
            declare web image=d
            declare web pre=Abort
            push
            pass 1s
            fail shop-dev/web-2-hook
            pass 1s",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a person starts a delivery while a head is being planned that declares what was there before it",
        story: "
            order 4551599
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web strategy=Recreate
            declare web replicas=2
            push
            pass 1s
            declare web image=b
            push
            settle
            latest dev/web
            turns 68
            retry dev/web
            turns 135
            down
            turns 78
            up
            turns 27
            declare web image=a
            push
            turns 12
            trigger dev web
            release
            turns 15
            cancel dev/web
            turns 6
            declare web image=b
            push
            scale production/web 1
            up
            pass 1s",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "what a later stage waits for passes with an earlier revision, when nothing is left to be done there",
        story: "
            order 2
            shipyard dev:deployment+2s production:check,deployment+1s,test
            task check
            declare web image=c
            push
            pass 1s
            pass 1s
            declare web image=b stage=dev
            push
            turns 10
            declare web image=b
            push
            turns 50
            declare web image=c stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an earlier revision brings a later stage what it declares, without the tests that the newest has added",
        story: "
            order 3
            shipyard dev:deployment,test production
            task test retries=1
            declare web pre=Retry
            declare web image=c stage=dev
            push
            turns 17
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web image=a
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a retried delivery leads on to what its own revision declared in later stages, although the newest changed that",
        story: "
            order 5
            shipyard dev:deployment+2s production:check,deployment+1s,test
            task check
            declare web pre=Abort
            push
            pass 1s
            unknown shop-dev/web-2-hook
            pass 1s
            declare web image=c
            push
            pass 1m
            retry dev/web
            declare web image=a stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a sequence that only deploys has changed since a delivery failed, and a person deploys the same by hand",
        story: "
            order 1
            shipyard dev
            declare web mid=Abort
            fail shop-dev/web-2-hook
            push
            settle
            declare web image=d
            push
            pass 1s
            shipyard dev:deployment+2s production:check,deployment+1s,test
            push
            latest dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a retried delivery leads on to a later stage that a newer revision has changed",
        story: "
            order 1
            shipyard dev production
            @two shipyard dev production
            @two declare web image=a replicas=1
            declare web 
            push
            @two push
            retry dev/web
            pass 1s
            scale dev/web 4
            up
            release
            cancel dev/web
            latest dev/web
            turns 295
            retry dev/web
            @two declare web image=b stage=production
            @two push
            turns 28
            @two push",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "a deployment gives way while what the lost store left, and was adopted, is judged on what it wanted before",
        story: "
            order 4
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a replicas=2
            declare many3 image=a
            declare many4 image=a
            declare many5 image=a
            declare many6 image=a
            declare many7 image=a
            declare many8 image=a
            declare many9 image=a
            declare many10 image=a
            declare many11 image=a
            declare web mid=Abort
            push
            pass 1s
            hang shop-dev/web-
            lose-store
            turns 217
            declare back service=web image=e
            push
            settle
            declare web image=d
            push
            pass 1s
            declare web image=a
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an older delivery of a service takes back a deployment config that a newer revision has moved to another",
        story: "
            order 0
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare back image=b service=front
            push
            turns 38
            declare back service=web image=e
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "stages change places in the millisecond of the push before, whose delivery then leads on to what is the first now",
        story: "
            order 0
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web pre=Abort
            push
            turns 71
            shipyard production dev
            declare web image=b
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a deployment config moves to another service while the older one deploys the same of it",
        story: "
            order 7
            shipyard dev:check,deployment,test production
            task check
            declare back image=b service=web
            push
            turns 27
            declare back image=b service=front
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "a deployment config moves to another service and back to what serves while the older one deploys something else",
        story: "
            order 0
            shipyard dev test:check,deployment production
            declare web image=b
            push
            turns 228
            declare web image=d
            push
            turns 5
            declare web service=front
            declare web image=b
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what has passed is tried again in a way that the head no longer declares, and fails",
        story: "
            order 0
            shipyard dev:deployment,test
            task test retries=1
            pass 1s
            declare web pre=Retry
            push
            turns 79
            turns 17
            unknown shop-dev/web-test
            trigger dev web
            shipyard dev production
            push
            pass 1s",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a deployment config changes its service without changing, and what had it before is delivered with something else",
        story: "
            order 1
            shipyard dev:check,deployment,test production
            task check
            declare back image=b service=web
            push
            pass 1s
            declare back image=b service=front
            push
            turns 69
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a check goes on for a service whose deployment config a newer revision has taken back, and deploys it then",
        story: "
            order 6886
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=a replicas=2
            declare web strategy=Recreate
            push
            release dev/web
            settle
            scale dev/web 3
            release
            turns 255
            declare back service=web image=e
            push
            pass 1s
            declare web image=c stage=production
            declare web service=front
            push
            turns 214
            declare web image=c
            declare web service=
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an earlier delivery of another service goes on to bring what the head declares for a service that has it already",
        story: "
            order 27516
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare back image=b service=front
            push
            declare back service=web image=d
            pass 1s
            push
            turns 239
            declare back image=b service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "stages change places, and a delivery leads on to one that comes before it now and is as declared",
        story: "
            order 1
            shipyard production dev
            declare web image=c
            push
            settle
            declare web image=b
            push
            turns 3
            shipyard dev test:check,deployment production
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a person goes back to an earlier version while a deployment config moves to another service",
        story: "
            order 3
            shipyard dev
            declare web post=Abort
            push
            pass 1s
            declare web image=c
            push
            settle
            declare web service=front
            push
            undo dev/web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a stage is gone that an earlier delivery passes, which then leads on to what the head has as its first",
        story: "
            order 1
            task test retries=1
            shipyard test:deployment,test production
            declare web image=a
            push
            pass 1s
            declare web image=c
            push
            turns 12
            shipyard production dev
            declare web image=a
            push
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a rollback takes the place of what a person triggered, and brings back what a later stage of a newer head waits for",
        story: "
            order 0
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web pre=Abort
            push
            pass 1s
            pass 1s
            latest dev/web
            turns 66
            turns 32
            undo dev/web
            turns 13
            trigger dev web urgent
            declare web image=d stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "the daemon dies after a release is on record, and nobody plans the head without what it released",
        story: "
            project shop
            shipyard dev
            declare web image=a paused=true
            push
            settle
            release dev/web
            turns 7
            crash",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a repository is taken down while something of its head is still to start",
        story: "
            order 6
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web
            push
            trigger production web urgent
            cancel dev/web
            pass 1s
            push
            settle
            down",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a person deploys a config once more, and before that has its turn a push has given the config to another service",
        story: "
            order 4
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web pre=
            push
            pass 1s
            pass 1s
            declare back image=b service=web
            declare web service=front
            push
            latest dev/web",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "the delivery whose test failed is deleted before what was deployed by hand since, which makes its status green",
        story: "
            order 6
            shipyard dev:deployment,test production
            declare web
            push
            down
            latest dev/web
            pass 1s
            prune 0",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a stage is left to a delivery that only the newest plan leads there, and the next plan is the newest of the service",
        story: "
            order 5
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            hang shop-dev/web-test
            pass 1s
            declare web paused=
            push
            turns 2
            shipyard production dev
            declare web image=c
            push
            pass 1s
            shipyard dev test:check,deployment production
            declare web image=c
            push
            pass 1s
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery brings all of a service, and ends because it also deletes what the head declares for another one",
        story: "
            order 61286
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web pre=Abort
            declare back service=web image=c
            push
            pass 1s
            remove back
            push
            turns 3
            declare back image=b service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what is triggered in a stage overlooks what is under way there, because more comes from the stage before",
        story: "
            order 2
            shipyard dev:deployment+2s production:check,deployment+1s,test
            task check
            declare web image=e stage=production
            push
            pass 1s
            object ConfigMap colors red=1 service=web
            declare web image=c stage=production
            push
            trigger production web urgent
            turns 163
            declare web image=e
            trigger production web urgent
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a revision that declares nothing is planned while what it deletes is only being made, and refused once that is there",
        story: "
            order 69156
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web pre=Abort
            push
            turns 16
            hold dev web x
            remove web
            push",
    },
    Cured {
        invariant: Invariant::OneHookAtOnce,
        because: "the hook of a config goes on while its next version is deployed with the service that it has moved to",
        story: "
            order 2
            shipyard dev production
            declare web pre=Abort
            hang shop-production/web-
            push
            settle
            declare web service=front
            push
            pass 1s",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "the one report that tries whether statuses are taken again is deleted before it does",
        story: "
            order 3
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare many9 image=a
            declare many10 image=a
            declare many11 image=a
            turns 164
            push
            settle
            push
            allow-prune
            refuse-statuses rights
            pass 11m
            prune 0",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an earlier delivery reaches a later stage with a config that the head declares there for another service, where it is already",
        story: "
            order 256615
            task test retries=1
            shipyard test:deployment,test production
            declare back service=web image=e
            push
            pass 1s
            declare back image=b service=front
            push
            turns 26
            declare back service=web image=e stage=production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery leads on to a stage whose predecessor is gone, which it would have to pass",
        story: "
            order 328115
            shipyard dev test:check,deployment production
            declare web image=a
            push
            turns 118
            shipyard dev production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an older delivery of the old service of a config has the head confirm it, which shuts out the delivery that the head counts on",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test
            declare api image=a service=shop
            declare web image=a service=shop
            declare back image=a service=front
            push
            settle
            hang shop-dev/shop-test
            declare api image=b service=shop
            declare web image=b service=shop stage=production
            push
            pass 1s
            declare web image=b service=front stage=production
            push
            pass 1s
            hang shop-dev/front-test
            declare back image=b service=front
            declare web image=c service=front stage=production
            push
            pass 1s
            object ConfigMap colors red=1 service=other
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a stage waits for a plan that is the newest of its service no longer, because another stage vanished",
        story: "
            order 11
            shipyard dev:deployment,test production qa
            task test
            declare web image=a
            push
            settle
            hang shop-dev/web-test
            declare web image=b
            declare web image=c stage=production
            declare web image=a stage=qa
            push
            pass 1s
            declare web image=e stage=production
            push
            pass 1s
            shipyard dev:deployment,test production
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery ends in the middle of a version, because the head brings back for another service what it has deleted",
        story: "
            order 1
            shipyard dev
            declare web image=a
            declare back image=a service=web
            push
            settle
            declare web image=b pre=Abort
            remove back
            hang shop-dev/web-2-hook
            push
            pass 1s
            declare back image=a service=front
            push",
    },
    Cured {
        invariant: Invariant::OneHookAtOnce,
        because: "a copy of the store has kept the request for a hook that has run, and it runs beside the next one",
        story: "
            order 121974
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=a replicas=2
            declare back image=a service=web pre=Abort
            push
            settle
            lose-store
            turns 293
            backup 1
            turns 80
            object ConfigMap colors red=1 service=web
            push
            restore 1
            hang shop-dev/back-
            settle",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "the daemon dies after it has written a status, and before it could remember that",
        story: "
            order 200550
            shipyard dev:deployment,test
            task test retries=1
            declare web mid=Abort
            declare api image=a
            push
            turns 3
            down
            turns 39
            turns 4
            takeover
            pass 1s
            trigger dev web
            turns 56
            crash",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "the run that delivered a service last is deleted, and nobody knows any more that nothing had to pass",
        story: "
            order 5
            shipyard dev production
            declare api trigger=none
            push
            turns 198
            shipyard dev:deployment+2s production:check,deployment+1s,test
            push
            prune 2
            turns 25",
    },
    Cured {
        invariant: Invariant::StatusesEnd,
        because: "what has only tests to be run again is said to be unchanged while it waits for its repository",
        story: "
            order 12
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=a replicas=1
            declare many0 image=a
            declare many1 image=a
            declare many2 image=a
            declare many7 image=a
            declare many8 image=a
            declare many9 image=a
            declare many10 image=a
            declare many11 image=a
            push
            settle
            declare api image=d
            push
            down
            turns 261
            push
            settle
            push broken",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a config without triggers that was never deployed is written anew beside an earlier delivery",
        story: "
            order 2
            shipyard dev:deployment,test production
            hold dev web x
            turns 239
            declare web trigger=none
            push
            turns 2
            shipyard production dev
            declare back service=web image=d
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery that ends between the reading of its slot and of itself is left to bring what is declared",
        story: "
            order 275873
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare back image=a service=web pre=Abort
            declare web
            push
            settle
            declare web image=c
            push
            turns 4
            release
            trigger dev web
            down
            undo dev/web
            declare api image=b
            push
            turns 5
            scale dev/web 2
            turns 29
            up",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a config is left to an older delivery that leaves alone what a newer one had moved meanwhile",
        story: "
            order 5
            shipyard dev production
            crash
            declare back image=b service=front
            push
            turns 74
            declare back service=web image=c stage=production
            push
            turns 233
            declare back image=b service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "an earlier delivery comes to a stage while the revision is planned that leaves this out",
        story: "
            order 6
            shipyard dev:deployment,test production
            task test retries=1
            declare many0 image=a
            declare many1 image=a
            pass 1s
            declare web trigger=
            push
            turns 4
            declare api replicas=1
            shipyard dev:deployment,test
            push
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a stage was held for is brought by an earlier delivery, without the tests that the stage has now",
        story: "
            order 2
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web image=d
            push
            pass 1s
            latest dev/web
            hold production web x
            declare web image=b stage=production
            push
            settle
            undo dev/web
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare web image=b
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what deletes is held because of what another service has, which it is to leave alone",
        story: "
            order 619704
            shipyard dev:deployment,test
            declare web mid=Abort
            pass 1s
            hold dev web x
            declare back image=b service=front
            push
            settle
            declare web service=front
            push
            settle
            shipyard production
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::HeadRuns,
        because: "a config that is new waits with one that moves from a service that a rollback holds",
        story: "
            order 2
            shipyard dev:deployment,test production
            declare web
            push
            settle
            declare web image=e
            push
            undo dev/web
            turns 55
            declare web service=front
            declare back image=b service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a service asks for nothing in the stage that comes first now, and the stage behind it waits for that",
        story: "
            order 3
            shipyard dev:deployment,test production
            declare web trigger=none
            hang shop-dev/back-
            declare back service=web image=b
            push
            settle
            shipyard production dev
            push
            turns 16
            declare web service=front
            push
            pass 1s",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what stays of a service whose other config moves while that is being delivered never passes for the next stage",
        story: "
            order 3
            shipyard dev production
            declare back image=b service=web
            shipyard production
            declare web image=d stage=production
            push
            pass 1s
            shipyard production dev
            declare web image=b
            push
            turns 3
            declare web service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery that waits before its deployment keeps from passing what stays of its service when a config moves",
        story: "
            order 84020
            shipyard dev:deployment+2s production:check,deployment+1s,test
            declare back image=a service=web pre=Abort
            declare web mid=Abort
            push
            pass 1s
            pass 1s
            declare back service=web image=b
            push
            pass 1s
            declare back image=b service=front
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what failed is attempted again although a newer revision has paused it meanwhile",
        story: "
            order 2
            shipyard dev production
            declare web image=a replicas=2
            push
            turns 70
            declare web paused=true
            push
            turns 72
            retry dev/web",
    },
    Cured {
        invariant: Invariant::DownIsDown,
        because: "the daemon dies while a repository is taken down, before it stops what has begun meanwhile",
        story: "
            order 48761
            shipyard dev production
            declare web pre=Abort
            push
            up
            turns 24
            scale dev/web 2
            turns 83
            turns 7
            crash
            turns 8
            declare back service=web image=b stage=dev
            push
            turns 7
            crash
            turns 44
            down
            turns 238
            crash",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a config has been deployed for another service while the head was planned that declares it for a third",
        story: "
            order 36
            task test retries=1
            shipyard test:deployment,test production
            declare back service=web image=e
            push
            pass 1s
            declare back image=b service=front
            push
            turns 26
            declare back service=web image=e stage=production
            push",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "what a deployment has brought up is left to nobody: the one for another service that took it over is replaced before it changes anything",
        story: "
            order 2
            shipyard dev
            declare web post=Abort
            push
            turns 124
            declare web service=front
            push
            turns 33
            declare web paused=true
            push",
    },
    Cured {
        invariant: Invariant::RecordedServes,
        because: "a deployment that took another one over half-way is replaced by what serves, and nothing goes back",
        story: "
            order 669458
            shipyard dev
            declare web mid=Abort
            declare api image=d
            push
            pass 1s
            declare web image=b
            push
            turns 4
            declare web service=front
            push
            turns 41
            declare web image=a
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "how a delivery ended is taken for the last word on its sequence while another sequence tries the same",
        story: "
            order 4
            shipyard dev:check,deployment,test production
            task test retries=1
            declare many11 image=a
            push
            settle
            shipyard dev:deployment,test production
            push
            turns 2
            shipyard dev:check,deployment,test production
            push",
    },
    Cured {
        invariant: Invariant::PodsAsPromised,
        because: "a daemon that was taken over from brings a version that has grown since to the one pod that it was to begin with",
        story: "
            order 773024
            shipyard dev
            declare web image=a replicas=2
            declare web pre=Retry
            declare api image=b stage=dev
            push
            turns 2
            takeover
            turns 15
            declare web image=d
            push
            settle
            declare web image=c stage=dev
            push
            turns 66
            crash
            turns 28
            takeover",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what a person releases is what serves, and a delivery under way brings it as the file pauses it",
        story: "
            order 13
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web kind=Deployment
            pass 1s
            push
            pass 1s
            release production/web
            declare web paused=true
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a rollout that waits is resumed while the delivery that pauses it has not come to its stage",
        story: "
            order 0
            shipyard dev:deployment,test production
            task test retries=1
            declare web strategy=Canary steps=10+1s?Abort,50+resume
            push
            pass 1s
            declare web image=d stage=production
            push
            pass 1s
            declare web paused=true
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery that a pause lets wait has its turn once a person has lifted that, and writes down that it is paused",
        story: "
            order 21
            shipyard dev:deployment,test production
            task test retries=1
            declare web strategy=Canary steps=10+1s?Abort,50+resume
            push
            pass 1s
            declare web image=d stage=production
            push
            pass 1s
            declare web paused=true
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what runs for a service that is declared nowhere is no attempt of its stage, of which nothing more is said",
        story: "
            order 0
            shipyard dev:deployment,approval production:deployment,verify
            sequence dev fix:verify,approval,verify
            triggered dev.fix on dev.problem.open
            push
            turns 109
            pause-delivery dev web
            tell domain problem.open dev web",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what ran for a service before it was declared is no attempt any more once it is, and nothing is taken back",
        story: "
            order 0
            shipyard dev:deployment,verify+1s production
            sequence dev look:verify,verify+1s
            declare back service=web image=a
            push
            turns 59
            push
            pass 1s
            tell sequence dev look web
            tell sequence dev look web
            executor two starts dev web
            executor two finishes dev web",
    },
    Cured {
        invariant: Invariant::ServicesLead,
        because: "a service that may lead to what a lost store has left stays, and nobody asks again once that is replaced",
        story: "
            order 0
            shipyard dev
            declare web image=a replicas=1
            declare back image=a service=web pre=Abort
            object Service front app=api service=web
            declare web strategy=AB weight=20
            push
            settle
            lose-store
            turns 5
            declare web image=b
            remove front
            push",
    },
    Cured {
        invariant: Invariant::ServicesLead,
        because: "a service that a restored store leaves as it is shares its traffic among versions that the canary has left",
        story: "
            order 10146
            shipyard dev production
            object Service shared app=web service=web
            declare web strategy=Canary steps=50+1m post=Abort
            push
            pass 1s
            backup 1
            declare web image=c
            push
            settle
            restore 1
            pass 1s
            declare web image=e
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what an earlier delivery is still to delete in a later stage is declared alike for another service",
        story: "
            order 9703
            shipyard dev:deployment,test production
            task test retries=1
            object Service front app=api service=web
            declare web pre=Abort
            push
            pass 1s
            remove front
            push
            turns 3
            object Service front app=api service=front
            push",
    },
    Cured {
        invariant: Invariant::EveryRunEnds,
        because: "a task waits for an executor that has told its end and never that it began, without a word",
        story: "
            order 1
            shipyard dev:verify,deployment,verify production:approval,deployment
            declare web image=d
            push
            executor one starts dev web
            executor two finishes dev web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what comes back from an approval takes the place of a newer revision that waits for the same sequence to end",
        story: "
            order 1
            shipyard dev:approval,deployment,test production:verify,deployment
            sequence dev look:verify
            triggered dev.look on dev.delivery.finished
            declare web replicas=2
            push
            turns 164
            approve dev web
            pass 1s
            declare web image=b
            push
            executor one starts dev web
            executor one finishes dev web
            settle
            declare web image=d
            push",
    },
    Cured {
        invariant: Invariant::ServicesLead,
        because: "a service that may not go yet is forgotten when something else goes",
        story: "
            order 8676
            shipyard dev:deployment,test production
            task test retries=1
            declare web image=a replicas=2
            object Service shared app=api service=api stage=production
            object Service front app=api service=api
            push
            turns 204
            declare web strategy=Canary steps=25+resume?Abort
            push
            turns 172
            declare back service=web image=a
            push
            turns 11
            hang shop-dev/web-
            turns 208
            push
            turns 2
            declare web image=e
            push
            settle
            declare web strategy=
            declare api mid=
            push
            cancel production/web
            pass 1s
            lose-store
            turns 9
            turns 1
            remove front
            push
            turns 4
            turns 1",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a push that was aborted while it waited begins by itself once what ran before it has ended",
        story: "
            order 2
            shipyard dev:verify,deployment,verify production:approval,deployment
            pass 1s
            declare web image=a
            push
            turns 4
            abort dev web
            executor one starts dev web
            declare web image=c
            push
            settle
            abort dev web",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a revision that was planned again meanwhile goes on as the newer plan says it, once",
        story: "
            order 0
            shipyard dev:check,deployment,test production
            declare web kind=Deployment
            declare web image=d stage=production
            push
            pass 1s
            hang shop-dev/web-
            declare web image=a
            push
            turns 3
            declare web paused=true
            push
            settle",
    },
    Cured {
        invariant: Invariant::OneVersionARevision,
        because: "what a person lets go on while it waits for its turn is deployed once, although its revision is planned anew",
        story: "
            order 21
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            declare web kind=Deployment
            push
            turns 18
            turns 167
            declare web paused=true
            push
            turns 194
            turns 6
            declare web image=b stage=production
            declare web replicas=4
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a remediation that a person runs again on an older commit lets no stage wait that nothing will bring",
        story: "
            order 2
            shipyard dev:deployment,verify+1s production
            sequence dev fix:verify,approval,verify
            triggered dev.fix on problem.open
            declare web kind=Deployment
            push
            turns 20
            declare web image=b stage=production
            push
            pass 1s
            tell domain problem.open dev web
            declare back service=web image=c
            push
            pass 1s
            rerun dev web
            pause-delivery dev web all",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "a delivery that is paused on its way is not resumed over what a newer one has deployed meanwhile",
        story: "
            order 4181
            shipyard dev:deployment,approval,test
            queue dev all
            declare web kind=Deployment
            push
            pause-delivery dev web
            turns 144
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "nor does one begin later that was paused before it had its turn",
        story: "
            order 1
            shipyard dev:check,deployment,approval,test production
            queue dev all
            declare web kind=Deployment
            push
            settle
            hang shop-dev/web-
            declare web image=b
            push
            turns 60
            declare web image=d
            push
            turns 60
            pause-delivery dev web
            turns 40
            declare web image=c
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a head that comes back is newer again than what took its place, which is told where it had taken another's",
        story: "
            order 0
            shipyard dev:deployment,test production
            declare web paused=true
            push
            settle
            push
            turns 26
            push
            pass 1s
            push back",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "what has passed a new stage already comes to those after it again, over what an older revision brought there since",
        story: "
            order 6816
            shipyard dev:check,deployment,test production
            queue dev all
            declare web image=b
            push
            turns 189
            declare web image=a
            push
            turns 164
            shipyard dev test:check,deployment production
            declare web image=b
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "what a person runs again of an earlier revision is waited for again by the stages after it, of which it was \
                  said that they are never reached",
        story: "
            order 4821
            shipyard dev:deployment,approval production:deployment,verify
            declare web kind=Deployment
            push
            reject dev web
            settle
            push
            settle
            rerun dev web
            settle",
    },
    Cured {
        invariant: Invariant::SaysWhatItWaitsFor,
        because: "over a restored store, what fails before it has exchanged anything waits for what serves to give way, which \
                  nothing makes it do",
        story: "
            order 0
            shipyard dev
            declare web image=a replicas=2 strategy=AB weight=40 mid=Abort
            push
            settle
            backup 1
            declare web image=b
            push
            settle
            restore 1
            hang shop-dev/web-2-hook
            declare web image=c
            push
            settle
            declare web image=d
            push
            settle",
    },
    Cured {
        invariant: Invariant::SaysWhatItWaitsFor,
        because: "a deployment that is open in a restored store waits for pods that have been replaced since, which serve on until \
                  it is decided what takes their place",
        story: "
            order 2316
            shipyard dev
            declare web image=a replicas=3
            declare web strategy=Canary steps=50+1m post=Abort
            push
            pass 1s
            declare web image=e stage=dev
            push
            turns 18
            backup 1
            pass 1m
            restore 1
            settle",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "that deployment gives way while the head is being planned, which finds its version under way",
        story: "
            order 0
            shipyard dev:deployment,test production
            declare web pre=Retry
            declare web image=c stage=dev
            push
            pass 1s
            hang shop-dev/web-
            lose-store
            declare web image=a stage=dev
            push
            settle
            finish
            settle
            backup 4
            restore 4",
    },
    Cured {
        invariant: Invariant::PlanIsEmpty,
        because: "the other config of its service goes on, and the head is planned while that is under way",
        story: "
            order 2
            shipyard dev production
            declare back image=a service=web pre=Abort
            declare web strategy=Recreate
            push
            settle
            declare back service=web image=b stage=dev
            push
            lose-store
            turns 140
            backup 2
            restore 2",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "`rollout latest` brings what a newer commit's stage waits for, of which it was said that it is never reached",
        story: "
            order 0
            shipyard dev production
            declare web mid=Abort
            push
            turns 29
            cancel dev/web
            turns 148
            push
            turns 100
            latest dev/web
            hang shop-dev/web-2-hook
            settle",
    },
    Cured {
        invariant: Invariant::SaysWhatItWaitsFor,
        because: "the first pod of a version is alone, because nothing serves yet, and the pod of one that gave way is not spared",
        story: "
            order 39537
            shipyard dev:deployment,test
            declare web image=a replicas=3
            declare many11 image=a
            declare web mid=Abort
            push
            turns 3
            declare web service=front
            push",
    },
    Cured {
        invariant: Invariant::StatusesAreFresh,
        because: "a stage ended well without a service that was never reached, which waits again for an earlier commit's",
        story: "
            order 5
            shipyard dev:check,deployment,test production
            task test retries=1
            task check
            object Service web app=web port=81 service=front
            declare web strategy=BlueGreen keep=10m analysis=Abort
            stop-listening web
            declare api image=e
            push
            pass 11m
            remove api
            push
            latest dev/web
            settle",
    },
];
