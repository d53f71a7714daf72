//! `launchway completion SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::arguments::Arguments as Program;
use super::output::{Exit, Outcome, Output};

/// Print a script that completes launchway's verbs and options
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway completion bash > ~/.local/share/bash-completion/completions/launchway")]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Program::command(), "launchway", &mut script);
    output.bytes(&script)?;
    Ok(Exit::Good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Format;

    #[test]
    fn every_shell_gets_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut output = Output::plain(Format::Human, std::io::sink());
            assert_eq!(run(&Arguments { shell }, &mut output).ok(), Some(Exit::Good), "{shell}");
        }
    }
}
