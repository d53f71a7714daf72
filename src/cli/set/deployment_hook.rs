//! `launchway set deployment-hook`.

use clap::{Args, ValueEnum};

use crate::cli::arguments::Global;
use crate::cli::output::{Complaint, Outcome, Output, remark};
use crate::cli::target::ConfigName;
use crate::cli::work_file::{HowToEdit, WorkFile, refused};
use crate::error::Failure;
use crate::manifest::edit::{Config, HookPoint, HookRequest, hooks};
use crate::manifest::names;

/// Set or remove a hook of a deployment in the file
///
/// A hook that is there keeps what only launchway has in it, such as `timeoutSeconds`. A `Deployment` has its hooks in an
/// annotation.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway set deployment-hook dc/web --pre --volumes=data --failure-policy=abort -- bin/migrate --all\n  launchway set deployment-hook deploy/cart --post -c cart -e MODE=smoke -- bin/check\n  launchway set deployment-hook dc/web --remove --pre --post"
)]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    name: ConfigName,
    /// Before the rollout
    #[arg(long)]
    pre: bool,
    /// In the middle of the rollout
    #[arg(long)]
    mid: bool,
    /// Behind the rollout
    #[arg(long)]
    post: bool,
    /// The container that the hook is made from [default: the first one]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// A variable of the hook
    #[arg(short, long, value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// Volumes of the pod template that the hook gets
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    volumes: Vec<String>,
    /// What a failure of the hook means
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Policy::Ignore)]
    failure_policy: Policy,
    /// Remove the hooks that are named
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    how: HowToEdit,
    /// The command, not run by a shell
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// The deployment fails.
    Abort,
    /// The hook runs again.
    Retry,
    /// The deployment goes on.
    Ignore,
}

pub(super) fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let request = arguments.request()?;
    let (file, config) = WorkFile::declaring(&arguments.name.0, &arguments.how, global)?;
    arguments.warn(&config);
    let new = hooks(&file.text, &config, &request).map_err(|problem| refused(&problem))?;
    file.put(&new, config.title(), "hooks updated", &arguments.how, output)
}

impl Arguments {
    fn request(&self) -> Outcome<HookRequest> {
        let usage = |message: &str| Err(Complaint::usage(Failure::stalled(message.to_owned())));
        let chosen = [(self.pre, HookPoint::Pre), (self.mid, HookPoint::Mid), (self.post, HookPoint::Post)];
        let points: Vec<HookPoint> =
            chosen.into_iter().filter(|(is_chosen, _)| *is_chosen).map(|(_, point)| point).collect();
        if self.remove {
            let has_more = self.container.is_some()
                || [&self.command, &self.volumes, &self.environment].iter().any(|given| !given.is_empty());
            return match points.is_empty() {
                _ if has_more => usage("--remove may not be used with any option except --pre, --mid, or --post"),
                true => usage("you must specify at least one of --pre, --mid, or --post with the --remove flag"),
                false => Ok(HookRequest::Remove(points)),
            };
        }
        let [point] = points[..] else { return usage("you must specify one of --pre, --mid, or --post") };
        if self.command.is_empty() {
            return usage("you must specify a command for the deployment hook");
        }
        let policy = match self.failure_policy {
            Policy::Abort => "Abort",
            Policy::Retry => "Retry",
            Policy::Ignore => "Ignore",
        };
        let (command, volumes, container) = (self.command.clone(), self.volumes.clone(), self.container.clone());
        Ok(HookRequest::Set { point, command, container, environment: self.variables()?, volumes, policy })
    }

    fn variables(&self) -> Outcome<Vec<(String, String)>> {
        let read = |variable: &String| match variable.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let no_name = |wrong| Complaint::usage(Failure::stalled(format!("`{name}` {wrong}")));
                names::identifier(name).map_err(no_name)?;
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => {
                let failure = Failure::stalled(format!("`{variable}` is no variable"));
                Err(Complaint::usage(failure.hint("write it as NAME=VALUE")))
            }
        };
        self.environment.iter().map(read).collect()
    }

    /// What will be there only when somebody adds it.
    fn warn(&self, config: &Config) {
        let known = config.containers(false);
        if let Some(container) = self.container.as_deref().filter(|name| !known.contains(name)) {
            remark(format!("deployment config \"{}\" does not have a container named \"{container}\"", config.name));
        }
        let known = config.volumes();
        for volume in self.volumes.iter().filter(|name| !known.contains(&name.as_str())) {
            remark(format!("deployment config \"{}\" does not have a volume named \"{volume}\"", config.name));
        }
    }
}
