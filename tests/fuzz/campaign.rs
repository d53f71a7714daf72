//! A campaign against one reader: it reads every file of its corpus, then mutations of them.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher as _, DefaultHasher, Hash, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::mutation::Mutator;

/// Inputs that each campaign reads where nothing says how long it takes.
const INPUTS: u32 = 500;
/// Nothing may take longer to read.
const PATIENCE: Duration = Duration::from_secs(20);
/// Inputs that are mutated on because what they came to was new.
const POOL: usize = 4_096;

/// How long to go on, in seconds (`FUZZ_SECONDS`).
fn time() -> Option<Duration> {
    Some(Duration::from_secs(std::env::var("FUZZ_SECONDS").ok()?.parse().expect("FUZZ_SECONDS is a number")))
}

/// What the mutations are chosen by: told (`FUZZ_SEED`), or another one in each long campaign.
fn seed() -> u64 {
    let told = std::env::var("FUZZ_SEED").ok().map(|seed| seed.parse().expect("FUZZ_SEED is a number"));
    told.unwrap_or_else(|| if time().is_some() { RandomState::new().hash_one(()) } else { 0 })
}

/// Has `read` read every input; it says what one came to, and panics where that must not be. Inputs that come to what
/// none did before are mutated on, and stay in the corpus if asked (`FUZZ_KEEP=1`); so does one that fails.
pub(crate) fn campaign(name: &str, read: impl Fn(&[u8]) -> String) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let mut pool = corpus(&folder);
    let watched = Watched::start(folder.clone());
    let mut known: HashSet<String> = pool.iter().map(|input| shape(&watched.read(input, &read))).collect();
    let (seed, keeps) = (seed(), std::env::var_os("FUZZ_KEEP").is_some());
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut mutator = Mutator::new(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes), &pool);
    let (begun, time, mut inputs) = (Instant::now(), time(), 0);
    while time.map_or(inputs < INPUTS, |time| begun.elapsed() < time) {
        let input = mutator.mutate(&pool);
        inputs += 1;
        if known.insert(shape(&watched.read(&input, &read))) {
            if keeps {
                keep(&folder, "new", &input);
            }
            if pool.len() < POOL {
                pool.push(input);
            }
        }
    }
    println!("{name}: {inputs} inputs of seed {seed} came to {} different ends", known.len());
}

/// The inputs of a folder, by name.
fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// What something came to, without what is quoted and counted in it: those are another in each input.
fn shape(end: &str) -> String {
    let mut quoted = false;
    end.chars()
        .filter(|&char| {
            quoted ^= char == '`' || char == '"';
            !quoted && !char.is_ascii_digit()
        })
        .collect()
}

fn keep(folder: &Path, why: &str, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let file = folder.join(format!("{why}-{:016x}", hasher.finish()));
    fs::write(&file, input).unwrap();
    file
}

/// What is being read, and since when.
type Reading = Mutex<Option<(Instant, Vec<u8>)>>;

/// Reads inputs; a thread that sees one take too long ends the process.
struct Watched {
    folder: PathBuf,
    reading: Arc<Reading>,
}

impl Watched {
    fn start(folder: PathBuf) -> Self {
        let reading = Arc::<Reading>::default();
        let (seen, of) = (Arc::downgrade(&reading), folder.clone());
        thread::spawn(move || {
            while let Some(reading) = seen.upgrade() {
                if let Some((since, input)) = &*reading.lock().unwrap()
                    && since.elapsed() > PATIENCE
                {
                    eprintln!("not read after {PATIENCE:?}: {}", keep(&of, "slow", input).display());
                    std::process::abort();
                }
                drop(reading);
                thread::sleep(PATIENCE / 20);
            }
        });
        Self { folder, reading }
    }

    fn read(&self, input: &[u8], read: &impl Fn(&[u8]) -> String) -> String {
        *self.reading.lock().unwrap() = Some((Instant::now(), input.to_vec()));
        let end = catch_unwind(AssertUnwindSafe(|| read(input)));
        *self.reading.lock().unwrap() = None;
        end.unwrap_or_else(|_panic| {
            let smallest = shrunk(input, |input| catch_unwind(AssertUnwindSafe(|| read(input))).is_err());
            panic!("it fails on {}, which stays in the corpus", keep(&self.folder, "failed", &smallest).display())
        })
    }
}

/// A smaller input that fails too: parts are left out as long as it does, smaller ones each time.
fn shrunk(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let mut part = smallest.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < smallest.len() {
            let end = (at + part).min(smallest.len());
            let without = [&smallest[..at], &smallest[end..]].concat();
            if fails(&without) {
                smallest = without;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    smallest
}
