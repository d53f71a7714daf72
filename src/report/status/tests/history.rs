//! Whatever happens to a revision's runs, and however late and seldom it is reported: in the end its commit says what a
//! reader would be told who asks for the first time.

use proptest::prelude::*;

use super::*;
use crate::model::commit_status::Posted;
use crate::report::ledger::{self, Rendering};

/// What happens next.
#[derive(Clone, Debug)]
enum Happens {
    /// A service's run in a stage goes one step further, as the last number says; if there is none or it has ended, there
    /// is a new attempt.
    Goes(usize, usize, u8),
    /// A newer revision is planned.
    IsOvertaken,
    /// The writer is asked.
    IsReported,
    /// The writer is asked, and gets to see what was the case some steps ago.
    IsReportedLate(usize),
}

const STAGES: [&str; 2] = ["dev", "production"];

fn happens(services: usize) -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..STAGES.len(), 0..services, any::<u8>()).prop_map(|(stage, service, how)| Happens::Goes(stage, service, how)),
        1 => Just(Happens::IsOvertaken),
        3 => Just(Happens::IsReported),
        1 => (0..6_usize).prop_map(Happens::IsReportedLate),
    ]
}

/// What is remembered of a revision.
#[derive(Clone)]
struct Memory {
    revision: RevisionState,
    runs: Vec<Run>,
    newer: Option<CommitId>,
}

impl Memory {
    fn new(services: usize, detail: StatusDetail) -> Self {
        let parts = |after: Option<&str>| {
            (0..services).map(|number| part(&format!("s{number}"), 1, Decision::Deploy, after)).collect::<Vec<_>>()
        };
        let stages = vec![
            stage(STAGES[0], StageStart::Push, parts(None)),
            stage(STAGES[1], after(STAGES[0]), parts(Some(STAGES[0]))),
        ];
        Self { revision: revision(stages, detail), runs: Vec::new(), newer: None }
    }

    fn goes(&mut self, stage: usize, service: usize, how: u8) {
        let (stage, service) = (STAGES[stage], format!("s{service}"));
        let mine = |run: &&mut Run| matches!(run, Run::Sequence(run) if run.service.stage.as_str() == stage && run.service.service.as_str() == service);
        let attempts = self.runs.iter_mut().filter(mine).count();
        let newest = self.runs.iter_mut().rev().find(mine);
        match newest {
            Some(Run::Sequence(run)) if run.ended_at.is_none() => {
                let (run, next) = step(run, how);
                self.runs
                    .retain(|known| known.id() != &run.id && Some(known.id()) != next.as_ref().map(|next| &next.id));
                self.runs.push(Run::Sequence(Box::new(run)));
                self.runs.extend(next.map(|next| Run::Deployment(Box::new(next))));
            }
            _ => {
                let attempt = u32::try_from(attempts).unwrap() + 1;
                let id = format!("{stage}{service}{attempt:04}");
                let queued = SequenceRun {
                    state: SequenceState::Queued,
                    tasks: Vec::new(),
                    ..sequence(&id, stage, &service, attempt, &[])
                };
                self.runs.push(Run::Sequence(Box::new(queued)));
            }
        }
    }

    fn end(&mut self) {
        for (stage, _) in STAGES.iter().enumerate() {
            for service in 0..64 {
                let name = format!("s{service}");
                for _ in 0..4 {
                    let open = self.runs.iter().any(|run| matches!(run, Run::Sequence(run) if run.ended_at.is_none() && run.service.stage.as_str() == STAGES[stage] && run.service.service.as_str() == name));
                    if open {
                        self.goes(stage, service, 1);
                    }
                }
            }
        }
    }

    fn rendered(&self, known: &BTreeSet<String>) -> Vec<CommitStatus> {
        rendered(&self.revision, &self.runs, self.newer.as_ref(), known)
    }
}

/// Queued, then a hook, then the end.
fn step(run: &SequenceRun, how: u8) -> (SequenceRun, Option<DeploymentRun>) {
    let service = run.service.service.as_str();
    let outcomes = [Outcome::PASS, Outcome::FAIL, Outcome::SUPERSEDED, Outcome::ABORTED];
    let outcome = outcomes[usize::from(how) % outcomes.len()];
    let running = sequence(run.id.as_str(), run.service.stage.as_str(), service, run.attempt, &[service]);
    if run.state == SequenceState::Queued {
        return match how % 4 {
            0 => (ended(run.clone(), Outcome::SUPERSEDED, SUPERSEDED), None),
            _ => (running.clone(), Some(deployment(&running, service, "Abort", None))),
        };
    }
    let ended_so = match outcome {
        Outcome::PASS => PodOutcome::Succeeded,
        Outcome::FAIL => PodOutcome::Failed { code: 1, reason: FailureReason::Error, message: String::new() },
        _ => PodOutcome::Failed { code: 143, reason: FailureReason::Cancelled, message: String::new() },
    };
    let hook = deployment(&running, service, "Abort", Some(ended_so));
    let hook = if outcome == Outcome::PASS { hook } else { failed(hook, DeploymentStep::Pre, outcome, "it ended") };
    (ended(running, outcome, "it ended"), Some(hook))
}

/// What a writer has written, and its ledger.
#[derive(Default)]
struct Writer {
    ledger: BTreeMap<String, Posted>,
    /// Outcomes, by context and attempt.
    outcomes: BTreeMap<(String, u32), StatusState>,
}

impl Writer {
    fn known(&self) -> BTreeSet<String> {
        self.ledger.keys().cloned().collect()
    }

    fn report(&mut self, memory: &Memory, number: usize) {
        let posted: Vec<Posted> = self.ledger.values().cloned().collect();
        let number = number as u64;
        let rendering = Rendering { number, statuses: memory.rendered(&self.known()) };
        for status in ledger::news(&posted, rendering) {
            let key = (status.context.clone(), status.attempt);
            assert!(
                status.state.is_final() || !self.outcomes.contains_key(&key),
                "an outcome was taken back within its attempt: {status:?}"
            );
            if status.is_outcome() {
                self.outcomes.insert(key, status.state);
            }
            self.ledger.insert(status.context.clone(), Posted { status, rendering: number });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_commit_says_in_the_end_what_it_says_to_whoever_asks_first(
        (services, story) in (1..24_usize).prop_flat_map(|services| {
            (Just(services), prop::collection::vec(happens(services), 0..80))
        }),
        detail in prop::sample::select(vec![StatusDetail::Auto, StatusDetail::Hooks, StatusDetail::Services]),
    ) {
        let mut past = vec![Memory::new(services, detail)];
        let mut writer = Writer::default();
        for happens in story {
            let mut memory = past.last().unwrap().clone();
            match happens {
                Happens::Goes(stage, service, how) => memory.goes(stage, service, how),
                Happens::IsOvertaken => memory.newer = Some("0000002".into()),
                Happens::IsReported => writer.report(&memory, past.len()),
                Happens::IsReportedLate(steps) => {
                    let number = past.len().saturating_sub(1 + steps);
                    writer.report(&past[number], number + 1);
                }
            }
            past.push(memory);
        }
        let mut last = past.last().unwrap().clone();
        last.end();
        writer.report(&last, past.len() + 1);
        let written = |context: &String| writer.ledger.get(context).map(|posted| &posted.status);
        for status in last.rendered(&BTreeSet::new()) {
            let found = written(&status.context);
            prop_assert!(found.is_some_and(|found| found.reads_like(&status)), "{:?} instead of {:?}", found, status);
        }
        // Beyond what a new reader learns, nothing is out of date, and nothing that was put right is red.
        let all = last.rendered(&writer.known());
        for posted in writer.ledger.values() {
            let now = all.iter().find(|status| status.context == posted.status.context);
            prop_assert!(now.is_some_and(|now| now.reads_like(&posted.status)), "{posted:?} instead of {now:?}");
        }
    }
}
