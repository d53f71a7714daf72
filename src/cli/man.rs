//! `launchway man`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::arguments::Arguments as Program;
use super::output::{Exit, Outcome, Output};
use crate::error::{Context, Result};

/// Print the manual page, or write one for every verb into a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  launchway man | man -l -\n  launchway man --into ~/.local/share/man/man1")]
pub(super) struct Arguments {
    /// Write launchway.1 and one page for every verb there
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let mut program = Program::command();
    program.build();
    match &arguments.into {
        Some(folder) => {
            let written = write_pages(&program, folder)?;
            output.line(format!("{written} pages in {}", folder.display()))?;
        }
        None => output.bytes(&page(program)?)?,
    }
    Ok(Exit::Good)
}

/// Writes the pages of a command and all below it; returns how many.
fn write_pages(command: &Command, folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder).or_stalled(|| format!("cannot make the folder `{}`", folder.display()))?;
    let mut open = vec![command];
    let mut written = 0;
    while let Some(command) = open.pop() {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let path = folder.join(format!("{name}.1"));
        let mut file = fs::File::create(&path).or_stalled(|| format!("cannot make `{}`", path.display()))?;
        file.write_all(&page(command.clone())?).or_stalled(|| format!("cannot write `{}`", path.display()))?;
        written += 1;
        open.extend(command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help"));
    }
    Ok(written)
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text).or_stalled(|| "cannot render the manual page".to_owned())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_gets_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut program = Program::command();
        program.build();
        let written = write_pages(&program, folder.path()).expect("written");
        assert_eq!(written, fs::read_dir(folder.path()).expect("listed").count());
        let page = fs::read_to_string(folder.path().join("launchway-completion.1")).expect("a page");
        assert!(page.contains("SYNOPSIS"));
    }
}
