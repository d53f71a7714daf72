//! Finding by labels what a pod and a service have to do with each other.

use std::collections::{BTreeMap, BTreeSet};

/// Names by the labels that they are found by.
#[derive(Debug)]
pub(super) struct ByLabel<N>(BTreeMap<(String, String), BTreeSet<N>>);

impl<N> Default for ByLabel<N> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<N: Ord + Clone> ByLabel<N> {
    /// From now on a name is found by these labels as well.
    pub(super) fn add<'a>(&mut self, labels: impl IntoIterator<Item = (&'a String, &'a String)>, name: &N) {
        for label in labels {
            self.0.entry(owned(label)).or_default().insert(name.clone());
        }
    }

    /// A name is found by these labels no longer.
    pub(super) fn remove<'a>(&mut self, labels: impl IntoIterator<Item = (&'a String, &'a String)>, name: &N) {
        for label in labels.into_iter().map(owned) {
            if let Some(names) = self.0.get_mut(&label) {
                names.remove(name);
                if names.is_empty() {
                    self.0.remove(&label);
                }
            }
        }
    }

    /// The names that are found by any of these labels.
    pub(super) fn with_any<'a>(&self, labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> BTreeSet<&N> {
        labels.into_iter().filter_map(|label| self.0.get(&owned(label))).flatten().collect()
    }
}

fn owned((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}
