//! How large things may get: a file tells one thing, a function fits on a screen.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::sources::{ALL, only_in_tests};

/// Lines of production code in a file.
const FILE: usize = 500;
/// Lines of a function, from its signature to its end.
const FUNCTION: usize = 60;

/// Files that are longer, with the reason.
const LONG_FILES: [(&str, &str); 2] = [
    ("src/executor/transition.rs", "all that one transaction may consist of stands together"),
    ("src/model/pod.rs", "the fields of a pod template are many and plain"),
];

/// Functions that are longer, with the reason.
const LONG_FUNCTIONS: [(&str, &str, &str); 0] = [];

/// A function and its length in lines, from its signature to its end.
pub(crate) struct Function {
    name: String,
    lines: usize,
}

#[test]
fn files_tell_one_thing() {
    let long: BTreeSet<(&str, usize)> =
        ALL.iter().filter(|source| source.lines > FILE).map(|source| (source.file.as_str(), source.lines)).collect();
    let named = |file: &str| LONG_FILES.iter().any(|(named, _)| *named == file);
    let complaints: Vec<_> = long.iter().filter(|(file, _)| !named(file)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    for (file, reason) in LONG_FILES {
        assert!(long.iter().any(|(long, _)| *long == file), "{file} is short by now; it was long because {reason}");
    }
}

#[test]
fn functions_fit_on_a_screen() {
    let functions = ALL.iter().flat_map(|source| source.functions.iter().map(|function| (&*source.file, function)));
    let long = functions.filter(|(_, function)| function.lines > FUNCTION);
    let long: BTreeSet<_> = long.map(|(file, function)| (file, &*function.name, function.lines)).collect();
    let named = |file: &str, name: &str| LONG_FUNCTIONS.iter().any(|(f, n, _)| *f == file && *n == name);
    let complaints: Vec<_> = long.iter().filter(|(file, name, _)| !named(file, name)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    for (file, name, reason) in LONG_FUNCTIONS {
        let still = long.iter().any(|(long, function, _)| *long == file && *function == name);
        assert!(still, "{name} in {file} is short by now; it was long because {reason}");
    }
}

/// How many lines of a file belong to its test modules.
pub(crate) fn test_lines(syntax: &syn::File) -> usize {
    let tests = syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if only_in_tests(&module.attrs) => Some(module.span()),
        _ => None,
    });
    tests.map(|span| 1 + span.end().line - span.start().line).sum()
}

/// The functions of a file that are no tests.
pub(crate) fn functions(syntax: &syn::File) -> Vec<Function> {
    let mut measure = Measure { found: Vec::new() };
    measure.visit_file(syntax);
    measure.found
}

struct Measure {
    found: Vec<Function>,
}

impl Measure {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = 1 + block.span().end().line - signature.span().start().line;
        self.found.push(Function { name: signature.ident.to_string(), lines });
    }
}

impl<'a> Visit<'a> for Measure {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !only_in_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}
