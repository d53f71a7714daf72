//! Finding by labels what a pod and a service have to do with each other.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Names by the labels that they are found by, each label as its hash: there are a handful for each of ten thousand pods, and
/// whoever finds a name compares its labels anyway.
#[derive(Debug)]
pub(super) struct ByLabel<N>(BTreeSet<(u64, Option<N>)>);

impl<N: Ord> Default for ByLabel<N> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<N: Ord + Clone> ByLabel<N> {
    /// From now on a name is found by these labels as well.
    pub(super) fn add<'a>(&mut self, labels: impl IntoIterator<Item = (&'a String, &'a String)>, name: &N) {
        self.0.extend(labels.into_iter().map(|label| (hash(label), Some(name.clone()))));
    }

    /// A name is found by these labels no longer.
    pub(super) fn remove<'a>(&mut self, labels: impl IntoIterator<Item = (&'a String, &'a String)>, name: &N) {
        for label in labels {
            self.0.remove(&(hash(label), Some(name.clone())));
        }
    }

    /// The names that are found by any of these labels, and seldom one that is not.
    pub(super) fn with_any<'a>(&self, labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> BTreeSet<&N> {
        labels.into_iter().flat_map(|label| self.with(hash(label))).collect()
    }

    fn with(&self, hash: u64) -> impl Iterator<Item = &N> {
        let found = self.0.range((hash, None)..).take_while(move |(of, _)| *of == hash); // no name comes before `None`
        found.filter_map(|(_, name)| name.as_ref())
    }
}

fn hash(label: (&String, &String)) -> u64 {
    let mut hasher = DefaultHasher::new();
    label.hash(&mut hasher);
    hasher.finish()
}
