//! What a verb prints: tables that line up, objects as JSON or YAML, colour on a terminal only.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use super::terminal::{shown, shown_json, styled};
use crate::control::commands::Done;
use crate::error::Failure;

/// How a verb ended, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and good.
    Good,
    /// What was asked about failed: a deployment, a check.
    Failed,
    /// The command was used wrongly.
    Usage,
    /// The environment is in the way: no server, no access.
    Environment,
    /// With `--exit-code`: there are changes.
    Changes,
    /// As a command ended that was run elsewhere.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Good => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::Changes => 10,
            Exit::Command(code) => code,
        })
    }
}

/// A verb that could not do what it was asked for.
#[derive(Debug)]
pub struct Complaint {
    /// What scripts see.
    pub exit: Exit,
    /// What people read.
    pub failure: Failure,
}

impl Complaint {
    /// What was asked about failed, or is not there.
    pub fn failed(failure: Failure) -> Self {
        Self { exit: Exit::Failed, failure }
    }

    /// The command was used wrongly.
    pub fn usage(failure: Failure) -> Self {
        Self { exit: Exit::Usage, failure }
    }
}

impl From<Failure> for Complaint {
    /// A failure that nobody judged further is the environment's.
    fn from(failure: Failure) -> Self {
        Self { exit: Exit::Environment, failure }
    }
}

/// The result of a verb.
pub type Outcome<T = Exit> = Result<T, Complaint>;

/// What the user wants to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and sentences.
    #[default]
    Human,
    /// JSON, for scripts.
    Json,
    /// The same as YAML.
    Yaml,
    /// The name of what it is about, and nothing else; of `rollout latest` alone.
    Name,
}

/// Where a verb prints to.
pub struct Output {
    format: Format,
    stream: Box<dyn Write>,
    /// The same, without anything that changes what is written.
    raw: Box<dyn Write>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Output {
    /// Standard output; colour only if it is a terminal and neither `NO_COLOR` nor the user forbids it.
    pub fn standard(format: Format, color: bool) -> Self {
        let stream = if color { AutoStream::auto(io::stdout()) } else { AutoStream::never(io::stdout()) };
        Self { format, stream: Box::new(stream), raw: Box::new(io::stdout()) }
    }

    /// Any writer, without colour.
    pub fn plain(format: Format, writer: impl Write + Clone + 'static) -> Self {
        let raw = Box::new(writer.clone());
        let stream = AutoStream::new(Box::new(writer) as Box<dyn Write>, ColorChoice::Never);
        Self { format, stream: Box::new(stream), raw }
    }

    /// What the user wants to read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Prints a line of text.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Outcome<()> {
        written(writeln!(self.stream, "{}", shown(&text.to_string())))
    }

    /// Prints bytes as they are, such as what a program has printed, with its colours wherever they go.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome<()> {
        written(self.raw.write_all(bytes).and_then(|()| self.raw.flush()))
    }

    /// Prints `value` for scripts, or what `human` makes of it for people.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn show<T: Serialize>(&mut self, value: &T, human: impl FnOnce(&T) -> String) -> Outcome<()> {
        let text = match self.format {
            Format::Human | Format::Name => shown(&human(value)).into_owned(),
            Format::Json => shown_json(&serde_json::to_string_pretty(value).map_err(unprintable)?) + "\n",
            Format::Yaml => yaml(value)?,
        };
        written(self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush()))
    }

    /// Shows what a verb has done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn done(&mut self, done: &Done) -> Outcome {
        self.show(done, |done| if done.message.is_empty() { String::new() } else { format!("{}\n", done.message) })?;
        Ok(Exit::Good)
    }
}

/// Writes a complaint to standard error, with what the reader can do; not that nobody reads any more.
pub fn complain(complaint: &Complaint, color: bool) {
    if complaint.exit == Exit::Good {
        return;
    }
    let stream = if color { AutoStream::auto(io::stderr()) } else { AutoStream::never(io::stderr()) };
    let told = write_complaint(stream, &complaint.failure);
    // Without a standard error nobody is there to read; the exit code still says it.
    drop(told);
}

/// Says on standard error what a reader of the output should know.
pub fn remark(text: impl std::fmt::Display) {
    // Without a standard error nobody is there to read.
    drop(writeln!(io::stderr(), "note: {}", shown(&text.to_string())));
}

/// Says how far something is, to whoever watches.
pub fn progress(text: &str) {
    if io::stderr().is_terminal() {
        drop(writeln!(io::stderr(), "{}", shown(text)));
    }
}

fn write_complaint(mut stream: impl Write, failure: &Failure) -> io::Result<()> {
    writeln!(stream, "{}", shown(&format!("{} {failure:#}", styled(BAD, "error:"))))?;
    match failure.hint_text() {
        Some(hint) => writeln!(stream, "{}", shown(&format!("{} {hint}", styled(FAINT, "hint:")))),
        None => Ok(()),
    }
}

/// Whoever closes a pipe has read enough, as `head` does: that is a good end, and nothing to complain about.
pub(super) fn written(result: io::Result<()>) -> Outcome<()> {
    result.map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Good } else { Exit::Environment };
        Complaint { exit, failure: Failure::stalled("cannot write the output").because(error) }
    })
}

/// What YAML would leave as it is in plain text, JSON escapes, which is YAML as well.
pub(super) fn yaml(value: &impl Serialize) -> Outcome<String> {
    let yaml = serde_yaml::to_string(value).map_err(unprintable)?;
    match shown(&yaml) == yaml {
        true => Ok(yaml),
        false => Ok(shown_json(&serde_json::to_string_pretty(value).map_err(unprintable)?) + "\n"),
    }
}

fn unprintable(error: impl std::error::Error + Send + Sync + 'static) -> Complaint {
    Failure::stalled("cannot print the result").because(error).into()
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const BUSY: Style = AnsiColor::Yellow.on_default();
const FAINT: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();

/// A heading.
pub fn heading(text: &str) -> String {
    styled(HEADING, text)
}

/// What may be skipped by the reader.
pub fn faint(text: &str) -> String {
    styled(FAINT, text)
}

/// A check mark, or its opposite.
pub fn mark(good: bool) -> String {
    if good { styled(GOOD, "✓") } else { styled(BAD, "✗") }
}

/// A word in the colour of what it means; words that mean neither good nor bad stay as they are.
pub fn colored(word: &str) -> String {
    styled(style_of(word), word)
}

fn style_of(word: &str) -> Style {
    match word.to_ascii_lowercase().as_str() {
        "success" | "complete" | "ready" | "succeeded" | "good" | "passed" => GOOD,
        "failure" | "failed" | "error" | "refused" | "broken" | "unknown" => BAD,
        "running" | "pending" | "new" | "starting" | "stopping" | "queued" | "held" | "waiting" => BUSY,
        "skipped" | "cancelled" | "superseded" | "none" | "down" => FAINT,
        _ => Style::new(),
    }
}

/// Rows under column names, lined up. Cells that are words of status get their colour.
#[derive(Debug)]
pub struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: usize = 3;

impl Table {
    /// A table without rows.
    pub fn new<const N: usize>(columns: [&'static str; N]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; line breaks in cells become spaces, empty cells a dash.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().map(one_line).collect());
    }

    /// Without a column that says the same in every row.
    #[must_use]
    pub fn without_common(mut self, column: &str) -> Self {
        let Some(at) = self.columns.iter().position(|name| *name == column) else { return self };
        let said: BTreeSet<_> = self.rows.iter().map(|row| row.get(at)).collect();
        if said.len() <= 1 {
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// The table, or `otherwise` if it has no rows.
    pub fn render(&self, otherwise: &str) -> String {
        if self.rows.is_empty() {
            return format!("{otherwise}\n");
        }
        let widths = self.widths();
        let mut text = String::new();
        push_line(&mut text, self.columns.iter().map(|column| (*column, HEADING)), &widths);
        for row in &self.rows {
            push_line(&mut text, row.iter().map(|cell| (cell.as_str(), style_of(cell))), &widths);
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize, name: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(name.len())
        };
        self.columns.iter().enumerate().map(|(column, name)| width(column, name)).collect()
    }
}

fn one_line(cell: String) -> String {
    let joined = cell.split_whitespace().collect::<Vec<_>>().join(" ");
    if joined.is_empty() { "-".to_owned() } else { joined }
}

/// The last cell is not padded, so that no line ends in spaces.
fn push_line<'a>(text: &mut String, cells: impl ExactSizeIterator<Item = (&'a str, Style)>, widths: &[usize]) {
    let last = cells.len().saturating_sub(1);
    for (column, ((cell, style), width)) in cells.zip(widths).enumerate() {
        let padding = if column == last { 0 } else { width.saturating_sub(cell.chars().count()) + GAP };
        text.push_str(&format!("{}{:padding$}", styled(style, cell), ""));
    }
    text.push('\n');
}

/// What tests print to.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(super) struct Page(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Page {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics while writing").clone()).expect("text")
    }
}

#[cfg(test)]
impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while writing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: Format, print: impl FnOnce(&mut Output)) -> String {
        let page = Page::default();
        print(&mut Output::plain(format, page.clone()));
        page.text()
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let mut table = Table::new(["NAME", "STATE"]);
        table.row(["web".into(), "Complete".into()]);
        table.row(["catalog-ä".into(), String::new()]);
        let text = printed(Format::Human, |output| output.line(table.render("none").trim_end()).expect("written"));
        assert_eq!(text, "NAME        STATE\nweb         Complete\ncatalog-ä   -\n");
    }

    #[test]
    fn a_column_that_tells_nothing_apart_is_left_out() {
        let shown = |repositories: [&str; 2]| {
            let mut table = Table::new(["NAME", "REPOSITORY"]);
            repositories.into_iter().for_each(|repository| table.row(["web".into(), repository.into()]));
            table.without_common("REPOSITORY").columns
        };
        assert_eq!(shown(["bank", "bank"]), ["NAME"]);
        assert_eq!(shown(["bank", "shop"]), ["NAME", "REPOSITORY"]);
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(Table::new(["NAME"]).render("No deployments."), "No deployments.\n");
    }

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::new(["A", "B"]);
        table.row(["x".into(), "two\n lines".into()]);
        assert!(table.render("").contains("two lines"));
    }

    #[test]
    fn the_same_value_is_printed_in_every_format() {
        let value = serde_json::json!({"name": "web", "replicas": 2});
        let show = |format| printed(format, |output| output.show(&value, |_| "web\n".into()).expect("written"));
        assert_eq!(show(Format::Human), "web\n");
        assert_eq!(show(Format::Json), "{\n  \"name\": \"web\",\n  \"replicas\": 2\n}\n");
        assert_eq!(show(Format::Yaml), "name: web\nreplicas: 2\n");
    }

    #[test]
    fn colour_is_left_out_where_nobody_sees_it() {
        assert_eq!(printed(Format::Human, |output| output.line(colored("failure")).expect("written")), "failure\n");
        assert!(shown(&colored("failure")).contains('\u{1b}'));
    }

    #[test]
    fn what_a_program_has_printed_stays_as_it_is() {
        let page = Page::default();
        Output::plain(Format::Human, page.clone()).bytes(b"\x1b[1mbold\xff\x1b[0m\0\n").expect("written");
        assert_eq!(*page.0.lock().expect("no test panics while writing"), b"\x1b[1mbold\xff\x1b[0m\0\n");
    }

    #[test]
    fn a_complaint_says_what_to_do() {
        let failure = Failure::stalled("no daemon answers").hint("start one with `launchway up`");
        let mut text = Vec::new();
        write_complaint(anstream::StripStream::new(&mut text), &failure).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text, "error: no daemon answers\nhint: start one with `launchway up`\n");
    }
}
