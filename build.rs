//! Gives every build a name, so that `launchway` and `launchway-shim` can tell whether they are of the same one.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for source in ["src", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={source}");
        add(Path::new(source), &mut hasher)?;
    }
    println!("cargo::rustc-env=LAUNCHWAY_BUILD={:016x}", hasher.finish());
    Ok(())
}

fn add(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_file() {
        hasher.write(path.to_string_lossy().as_bytes());
        hasher.write(&fs::read(path)?);
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| add(entry, hasher))
}
