//! A store that dies with its daemon at a chosen commit, and hands out due rows in an order that a seed chooses.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use launchway::error::Failure;
use launchway::store::{CommitError, OutboxRow, Store, Transaction};
use launchway::testing::guarded_store::{Guard, GuardedStore};

/// At which commit, counted from 1, the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// The commit.
    pub(crate) at: usize,
    /// Whether the commit was on disk by then.
    pub(crate) durable: bool,
}

/// A store that dies.
pub(crate) type MortalStore = GuardedStore<Mortality>;

/// When it dies, and whether it has.
pub(crate) struct Mortality {
    death: Option<Death>,
    commits: AtomicUsize,
    dead: AtomicBool,
    random: Mutex<u64>,
}

impl Mortality {
    pub(crate) fn new(death: Option<Death>, seed: u64) -> Self {
        // Small seeds lie close together: spread their bits.
        let random = Mutex::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Self { death, commits: AtomicUsize::new(0), dead: AtomicBool::new(false), random }
    }

    /// How many commits were asked for.
    pub(crate) fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Whether it has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<(), Failure> {
        if self.is_dead() { Err(Failure::stalled("the daemon is dead")) } else { Ok(()) }
    }

    fn random(&self, below: usize) -> usize {
        let mut state = self.random.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 33).unwrap() % below
    }
}

impl Guard for Mortality {
    async fn pass(&self) -> Result<(), Failure> {
        self.alive()
    }

    async fn commit(&self, store: &dyn Store, transaction: Transaction) -> Result<(), CommitError> {
        self.alive().map_err(CommitError::Failed)?;
        if transaction.writes.is_empty() {
            return store.commit(transaction).await; // it changes nothing: who dies there dies before the next one
        }
        let number = 1 + self.commits.fetch_add(1, Ordering::SeqCst);
        let Some(death) = self.death.filter(|death| death.at == number) else {
            let committed = store.commit(transaction).await;
            if committed.is_err() {
                self.commits.fetch_sub(1, Ordering::SeqCst); // neither does what is refused
            }
            return committed;
        };
        if death.durable {
            store.commit(transaction).await?;
        }
        self.dead.store(true, Ordering::SeqCst);
        Err(CommitError::Failed(Failure::stalled("the daemon dies")))
    }

    /// Any order: claimed rows belong to different runs.
    fn arrange(&self, mut rows: Vec<OutboxRow>) -> Vec<OutboxRow> {
        let mut shuffled = Vec::new();
        while !rows.is_empty() {
            shuffled.push(rows.swap_remove(self.random(rows.len())));
        }
        shuffled
    }
}
