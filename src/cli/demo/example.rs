//! The repository of the story: `examples-repo`, built into the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Context, Result};

/// A file of the example.
struct ExampleFile {
    path: &'static str,
    content: &'static [u8],
}

macro_rules! example {
    ($($path:literal),* $(,)?) => {
        &[$(ExampleFile {
            path: $path,
            content: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples-repo/", $path)),
        }),*]
    };
}

/// All of its files; a test holds the list against the folder.
const FILES: &[ExampleFile] = example![
    "README.md",
    "deploy/cart.yaml",
    "deploy/catalog.yaml",
    "deploy/web.yaml",
    "deployer/bin/launch",
    "launchway.yaml",
    "services/cart/bin/launch",
    "services/cart/bin/test",
    "services/cart/cart.py",
    "services/cart/serving.py",
    "services/cart/test.py",
    "services/catalog/backup.py",
    "services/catalog/bin/backup",
    "services/catalog/bin/launch",
    "services/catalog/bin/migrate",
    "services/catalog/bin/test",
    "services/catalog/bin/verify",
    "services/catalog/catalog.py",
    "services/catalog/database.py",
    "services/catalog/migrate.py",
    "services/catalog/migrations/001-products.sql",
    "services/catalog/migrations/002-stock.sql",
    "services/catalog/serving.py",
    "services/catalog/verify.py",
    "services/web/bin/announce",
    "services/web/bin/check",
    "services/web/bin/judge",
    "services/web/bin/launch",
    "services/web/bin/test",
    "services/web/check.py",
    "services/web/judge.py",
    "services/web/page.html",
    "services/web/page.py",
    "services/web/serving.py",
    "services/web/test.py",
    "services/web/web.py",
    "shipyard.yaml",
    "strategies/ab.yaml",
    "strategies/blue-green.yaml",
    "strategies/canary.yaml",
    "strategies/custom.yaml",
];

/// Writes the example into a folder, or what of it lies below `parts`. What lies in a `bin` is a program.
///
/// # Errors
/// If the folder cannot be written.
pub(super) fn write_to(folder: &Path, parts: &[&str]) -> Result<()> {
    for file in FILES.iter().filter(|file| parts.iter().any(|part| file.path.starts_with(part))) {
        let path = folder.join(file.path);
        let unwritable = || format!("cannot write `{}`", path.display());
        fs::create_dir_all(path.parent().unwrap_or(folder)).or_stalled(unwritable)?;
        fs::write(&path, file.content).or_stalled(unwritable)?;
        let mode = if is_program(file.path) { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).or_stalled(unwritable)?;
    }
    Ok(())
}

fn is_program(path: &str) -> bool {
    path.contains("/bin/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_below(folder: &Path, prefix: &str, found: &mut Vec<(String, bool)>) {
        for entry in fs::read_dir(folder).expect("readable") {
            let entry = entry.expect("readable");
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let metadata = entry.metadata().expect("there");
            match (metadata.is_dir(), name.as_str()) {
                (true, name) if name.ends_with("__pycache__") => {}
                (true, _) => files_below(&entry.path(), &format!("{name}/"), found),
                (false, _) => found.push((name, metadata.permissions().mode() & 0o111 != 0)),
            }
        }
    }

    /// All but the executors, which run beside a daemon and are no part of the story.
    #[test]
    fn the_program_carries_the_whole_folder() {
        let mut found = Vec::new();
        files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo"), "", &mut found);
        found.retain(|(path, _)| !path.starts_with("executors/"));
        found.sort();
        let carried: Vec<_> = FILES.iter().map(|file| (file.path.to_owned(), is_program(file.path))).collect();
        assert_eq!(carried, found);
    }
}
