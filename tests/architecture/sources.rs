//! The crate's own sources, parsed; what is compiled for tests alone is left out.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syn::visit::{self, Visit};

use crate::size::{self, Function};

/// What is known of one file.
pub(crate) struct Source {
    /// Path from the crate's root, for messages.
    pub(crate) file: String,
    /// The module that the file is, without `crate`.
    pub(crate) module: Vec<String>,
    /// Everything that it names.
    pub(crate) names: Vec<Named>,
    /// Lines of production code.
    pub(crate) lines: usize,
    /// Its functions.
    pub(crate) functions: Vec<Function>,
}

/// A path that code names, resolved as far as its text tells.
#[derive(Debug)]
pub(crate) enum Named {
    /// Something of this crate, without `crate`.
    Own(Vec<String>),
    /// Something of another one: the crate's name first.
    Foreign(Vec<String>),
    /// `async fn` or an `async` block.
    Async,
}

/// All files below `src`, sorted; parsed once for all tests.
pub(crate) static ALL: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    files.sort();
    files.iter().map(|file| read(root, file)).filter(|source| !is_test(&source.module)).collect()
});

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read(root: &Path, file: &Path) -> Source {
    let text = std::fs::read_to_string(file).expect("a readable file");
    let inside = file.strip_prefix(root).expect("a file of this crate");
    let mut module: Vec<String> =
        inside.with_extension("").iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    parse(inside.display().to_string(), module, &text)
}

/// What a file says.
pub(crate) fn parse(file: String, module: Vec<String>, text: &str) -> Source {
    let syntax = syn::parse_file(text).expect("a file that compiles");
    let mut finder = Finder { module: module.clone(), found: Vec::new() };
    finder.visit_file(&syntax);
    let lines = size::production(text);
    Source { file, module, names: finder.found, lines: lines.len(), functions: size::functions(&lines) }
}

/// A folder's tests that stand in a file of their own.
fn is_test(module: &[String]) -> bool {
    module.iter().any(|part| part == "tests")
}

/// Whether an item exists in tests only.
pub(crate) fn only_in_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

struct Finder {
    module: Vec<String>,
    found: Vec<Named>,
}

impl Finder {
    fn name(&mut self, segments: &[String]) {
        let mut own = self.module.clone();
        let mut rest = segments;
        match rest.first().map(String::as_str) {
            Some("crate") => {
                own.clear();
                rest = &rest[1..];
            }
            Some("self") => rest = &rest[1..],
            Some("super") => {
                while rest.first().is_some_and(|first| first == "super") {
                    own.pop();
                    rest = &rest[1..];
                }
            }
            Some(_) if rest.len() > 1 => return self.found.push(Named::Foreign(segments.to_vec())),
            _ => return,
        }
        own.extend(rest.iter().cloned());
        self.found.push(Named::Own(own));
    }

    fn use_tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.use_tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(before, tree)),
            syn::UseTree::Name(name) => self.used(before, &name.ident.to_string()),
            syn::UseTree::Rename(rename) => self.used(before, &rename.ident.to_string()),
            syn::UseTree::Glob(_) => self.name(&before.clone()),
        }
    }

    fn used(&mut self, before: &[String], name: &str) {
        let mut segments = before.to_vec();
        if name != "self" {
            segments.push(name.to_owned());
        }
        self.name(&segments);
    }
}

impl<'a> Visit<'a> for Finder {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.content.is_some() && !only_in_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if !only_in_tests(&item.attrs) {
            self.use_tree(&mut Vec::new(), &item.tree);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !only_in_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(&segments);
        visit::visit_path(self, path);
    }

    /// A macro's arguments are no syntax yet: paths in them are found as text of tokens.
    fn visit_macro(&mut self, called: &'a syn::Macro) {
        let tokens = called.tokens.to_string();
        for rest in tokens.split("crate :: ").skip(1) {
            let is_part = |part: &&str| part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            let parts = rest.split(" :: ").map(|part| part.split(' ').next().unwrap_or(part)).take_while(is_part);
            let segments: Vec<String> = std::iter::once("crate").chain(parts).map(str::to_owned).collect();
            self.name(&segments);
        }
        visit::visit_macro(self, called);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        if signature.asyncness.is_some() {
            self.found.push(Named::Async);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'a syn::ExprAsync) {
        self.found.push(Named::Async);
        visit::visit_expr_async(self, block);
    }
}
