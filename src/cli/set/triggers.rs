//! `launchway set triggers`.

use clap::Args;
use serde::Serialize;

use crate::cli::arguments::Global;
use crate::cli::output::{Complaint, Exit, Outcome, Output, Table};
use crate::cli::target::ConfigName;
use crate::cli::work_file::{HowToEdit, WorkFile, refused};
use crate::error::Failure;
use crate::manifest::edit::{Config, TriggerRequest, TriggerRow, TriggerSource, Wish, listed, triggers};
use crate::model::object::Kind;

/// List what starts deployments, or change it in the file
///
/// Without options the triggers are listed: NAME, TYPE, VALUE, AUTO. A `Deployment` has them in its annotations.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway set triggers dc/web\n  launchway set triggers dc/web --manual\n  launchway set triggers deploy/cart --from-config --remove\n  launchway set triggers dc/web --from-image=shop/web:latest --containers=web --dry-run"
)]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    name: ConfigName,
    /// The trigger of the pod template: a change of it starts a deployment
    #[arg(long)]
    from_config: bool,
    /// The trigger of an image, as NAMESPACE/NAME:TAG or NAME:TAG
    #[arg(long, value_name = "IMAGE")]
    from_image: Option<String>,
    /// The containers that get the image [default: the only one]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    containers: Vec<String>,
    /// Let all triggers, or the one that is named, start deployments by themselves
    #[arg(long)]
    auto: bool,
    /// Let all triggers, or the one that is named, start nothing by themselves
    #[arg(long)]
    manual: bool,
    /// Remove the trigger that is named
    #[arg(long)]
    remove: bool,
    /// Remove all triggers
    #[arg(long)]
    remove_all: bool,
    #[command(flatten)]
    how: HowToEdit,
}

pub(super) fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let request = arguments.request()?;
    let (file, config) = WorkFile::declaring(&arguments.name.0, &arguments.how, global)?;
    let Some(request) = request else { return list(&config, output) };
    let new = triggers(&file.text, &config, &request).map_err(|problem| refused(&problem))?;
    file.put(&new, config.title(), "triggers updated", &arguments.how, output)
}

impl Arguments {
    /// What is asked for; nothing if they are to be listed.
    fn request(&self) -> Outcome<Option<TriggerRequest>> {
        let named = usize::from(self.from_config) + usize::from(self.from_image.is_some());
        let usage = |message: &str| Err(Complaint::usage(Failure::stalled(message.to_owned())));
        let of = match &self.from_image {
            _ if self.auto && self.manual => return usage("you must specify at most one of --auto or --manual"),
            _ if self.remove && self.remove_all => return usage("you must specify either --remove or --remove-all"),
            _ if self.remove_all && (named > 0 || self.auto || self.manual) => {
                return usage("--remove-all may not be used with any other flag");
            }
            _ if self.remove && named == 0 => {
                return usage("--remove requires a flag defining a trigger type to be specified");
            }
            _ if named > 1 => return usage("you may only set one trigger type at a time"),
            _ if self.from_config && self.manual => {
                return usage(
                    "a trigger of the pod template is there or not: take it away with --from-config --remove",
                );
            }
            None if !self.containers.is_empty() => return usage("--containers belongs to --from-image"),
            Some(image) => Some(source(image, &self.containers)?),
            None => self.from_config.then_some(TriggerSource::Config),
        };
        let wish = match (self.remove || self.remove_all, self.manual) {
            (true, _) => Wish::Removed,
            (false, true) => Wish::Manual,
            (false, false) => Wish::Automatic,
        };
        let lists = of.is_none() && wish == Wish::Automatic && !self.auto;
        Ok((!lists).then_some(TriggerRequest { of, wish }))
    }
}

/// An image stream's tag.
fn source(image: &str, containers: &[String]) -> Outcome<TriggerSource> {
    let usage = |message: &str| Err(Complaint::usage(Failure::stalled(message.to_owned())));
    let (namespace, name) = match image.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, image),
    };
    let has_server = name.contains('/') || namespace.as_ref().is_some_and(|namespace| namespace.contains(['.', ':']));
    if has_server || image.contains('@') {
        return usage("the value of --from-image must point to an image stream tag");
    }
    match name.split_once(':') {
        Some((stream, tag)) if !stream.is_empty() && !tag.is_empty() => {
            Ok(TriggerSource::Image { name: name.to_owned(), namespace, containers: containers.to_vec() })
        }
        _ => usage("the value of --from-image must include the tag you wish to pull from"),
    }
}

/// A line of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    r#type: &'static str,
    value: String,
    auto: bool,
}

fn list(config: &Config, output: &mut Output) -> Outcome {
    let kind = if config.kind == Kind::Deployment { "deployments" } else { "deploymentconfigs" };
    let row = |TriggerRow { kind: of, value, is_automatic }| Row {
        name: format!("{kind}/{}", config.name),
        r#type: of,
        value,
        auto: is_automatic,
    };
    let rows: Vec<Row> = listed(config).map_err(|problem| refused(&problem))?.into_iter().map(row).collect();
    output.show(&rows, |rows| {
        let mut table = Table::new(["NAME", "TYPE", "VALUE", "AUTO"]);
        for row in rows {
            table.row([row.name.clone(), row.r#type.to_owned(), row.value.clone(), row.auto.to_string()]);
        }
        table.render("No triggers.")
    })?;
    Ok(Exit::Good)
}
