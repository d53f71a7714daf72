//! What happens in a simulation, as people write it: a command a line, and `#` begins a comment.

use std::time::Duration;

use serde_json::{Value, json};

use crate::manifest::Problem;
use crate::model::cloud_event::{PREFIX, Phase};
use crate::model::data::merge;
use crate::model::duration;
use crate::model::ids::{ServiceName, StageName};
use crate::model::object::Location;

mod words;

use words::{Word, words};

/// The most bytes of a script.
pub const LARGEST: usize = 1 << 20;
/// The most commands of a script.
const MOST: usize = 10_000;
/// The longest that time may pass at once.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3_600);

/// Every command as it is written, with what it does.
pub const COMMANDS: [(&str, &str); 17] = [
    ("trigger STAGE.SEQUENCE SERVICE [KEY=VALUE…]", "starts a sequence, as `launchway trigger sequence` does"),
    ("send TYPE SERVICE [KEY=VALUE…]", "any other event happens; `stage=NAME` says in which stage"),
    ("start TASK [KEY=VALUE…]", "an executor begins a task; `by=NAME` says which, here and below"),
    ("report TASK message=TEXT", "it tells how far it is"),
    ("finish TASK [KEY=VALUE…]", "it is done: with `result=pass`, `status=succeeded`, unless said otherwise"),
    ("do TASK [KEY=VALUE…]", "both, start and finish"),
    (
        "answer TASK [KEY=VALUE…]",
        "from now on, each task of that name is done so at once; `*` is all that executors do",
    ),
    ("ignore TASK", "from now on, nobody does it any more"),
    ("approve STAGE/SERVICE [TEXT…]", "a person lets a sequence go on that waits for approval"),
    ("reject STAGE/SERVICE [TEXT…]", "a person ends it"),
    ("pause STAGE/SERVICE", "a person has what is under way there begin no further task"),
    ("resume STAGE/SERVICE", "a person lets it go on"),
    ("abort STAGE/SERVICE", "a person ends what is under way there"),
    (
        "rerun STAGE/SERVICE [SEQUENCE] [from-start]",
        "a person has the last sequence run again from the task that failed, or all of it",
    ),
    (
        "measure INDICATOR VALUE",
        "from now on, an indicator that objectives ask for has that value, or none where VALUE is no number",
    ),
    (
        "pods PREFIX works|hangs|fails [CODE] [KEY=VALUE…]",
        "how pods behave from now on whose names begin so, and what those of tasks write of how they went",
    ),
    ("pass DURATION", "time passes, such as `10m`"),
];

/// What has `rerun` repeat what has passed too.
const FROM_START: &str = "from-start";

/// What happens, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What problems name as the file.
    pub file: String,
    /// Its commands.
    pub lines: Vec<Line>,
}

/// A command and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counts from 1.
    pub number: u32,
    /// Where its first word begins; counts from 1.
    pub column: u32,
    /// As it is written, without a comment.
    pub text: String,
    /// What happens.
    pub command: Command,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// An event comes from outside.
    Send {
        /// Its type.
        kind: String,
        /// Of which service.
        service: ServiceName,
        /// The rest of its data.
        data: Value,
    },
    /// An executor does something to a task.
    Task {
        /// Which.
        task: TaskName,
        /// What, one after the other.
        phases: &'static [Phase],
        /// Who, and with which data.
        answer: ExecutorAnswer,
    },
    /// Executors do all tasks of a name from now on, or none.
    Answer {
        /// Which; nothing, if all that executors do.
        task: Option<String>,
        /// Who does them, and with which data; nothing, if nobody does.
        answer: Option<ExecutorAnswer>,
    },
    /// A person decides.
    Decide {
        /// About what.
        place: Place,
        /// Whether it goes on.
        approve: bool,
        /// Why.
        reason: String,
    },
    /// A person has what is under way begin no further task, or lets it.
    Pause {
        /// Where.
        place: Place,
        /// Whether it is paused.
        paused: bool,
    },
    /// A person ends what is under way.
    Abort {
        /// Where.
        place: Place,
    },
    /// A person has a sequence run again.
    Rerun {
        /// Where.
        place: Place,
        /// Which; the last one unless it is named.
        sequence: Option<String>,
        /// Whether what has passed runs again as well.
        from_start: bool,
    },
    /// An indicator has a value from now on.
    Measure {
        /// Its name.
        indicator: String,
        /// Its value, or why it has none.
        value: String,
    },
    /// Pods behave so from now on.
    Pods {
        /// What their names begin with.
        prefix: String,
        /// How.
        behaviour: Pods,
        /// What those of tasks write of how they went; `null` if nothing.
        writes: Value,
    },
    /// Time passes.
    Pass(Duration),
}

/// A task that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// Where, if that is said.
    pub place: Option<Place>,
    /// Its name.
    pub task: String,
}

/// A service in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The stage.
    pub stage: StageName,
    /// The service.
    pub service: ServiceName,
}

/// What an executor tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorAnswer {
    /// Its name.
    pub by: String,
    /// The data of its events.
    pub data: Value,
}

/// How pods behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pods {
    /// Ready at once; those that run once succeed at once.
    Work,
    /// Never ready; those that run once never end.
    Hang,
    /// Those that run once fail with this code.
    Fail(i32),
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// All that is wrong in it.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > LARGEST {
            let message = format!("a script may have {LARGEST} bytes, not {}", text.len());
            return Err(vec![Problem::in_file(file, "too-large", message)]);
        }
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        for (number, text) in (1..).zip(text.lines()) {
            match line(number, text) {
                Ok(read) => lines.extend(read),
                Err(wrong) => problems.push(wrong.at(file, number)),
            }
        }
        if let Some(beyond) = lines.get(MOST) {
            let message = format!("a script may have {MOST} commands");
            problems.push(Problem::error(&beyond.location(file), "too-large", message));
        }
        if problems.is_empty() { Ok(Self { file: file.to_owned(), lines }) } else { Err(problems) }
    }
}

impl Line {
    /// Where it stands.
    pub fn location(&self, file: &str) -> Location {
        Location { file: file.to_owned(), line: self.number, column: self.column }
    }
}

/// What is wrong in a line.
struct Wrong {
    column: u32,
    message: String,
    hint: String,
}

impl Wrong {
    fn word(word: &Word, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { column: word.column, message: message.into(), hint: hint.into() }
    }

    fn at(self, file: &str, line: u32) -> Problem {
        let location = Location { file: file.to_owned(), line, column: self.column };
        Problem::error(&location, "script", self.message).hint(self.hint)
    }
}

/// A line with a command; nothing, if it has none.
fn line(number: u32, text: &str) -> Result<Option<Line>, Wrong> {
    let words = words(text)?;
    let Some((verb, rest)) = words.split_first() else { return Ok(None) };
    let command = command(verb, rest)?;
    let text = text[..words.last().map_or(0, |last| last.end)].trim().to_owned();
    Ok(Some(Line { number, column: verb.column, text, command }))
}

fn command(verb: &Word, rest: &[Word]) -> Result<Command, Wrong> {
    let usage = COMMANDS.iter().find(|(usage, _)| usage.split(' ').next() == Some(&verb.text)).map(|(usage, _)| usage);
    let Some(usage) = usage else {
        let verbs: Vec<&str> = COMMANDS.iter().filter_map(|(usage, _)| usage.split(' ').next()).collect();
        return Err(Wrong::word(verb, format!("`{}` is no command", verb.text), format!("use {}", verbs.join(", "))));
    };
    let misused = |word: &Word, message: &str| Wrong::word(word, message, format!("write `{usage}`"));
    let too_few = || misused(verb, &format!("`{}` needs more words", verb.text));
    let too_many = |word: &Word| misused(word, &format!("`{}` is a word too many", word.text));
    let done = match (verb.text.as_str(), rest) {
        ("trigger", [what, service, given @ ..]) => trigger(what, service, given)?,
        ("send", [kind, service, given @ ..]) => {
            Command::Send { kind: kind.text.clone(), service: ServiceName::new(&*service.text), data: data(given)? }
        }
        (verb @ ("start" | "report" | "finish" | "do"), [task, given @ ..]) => {
            Command::Task { task: task_name(task)?, phases: phases(verb), answer: answer(given)? }
        }
        ("answer", [task, given @ ..]) => Command::Answer { task: any(task), answer: Some(answer(given)?) },
        ("ignore", [task]) => Command::Answer { task: any(task), answer: None },
        (verb @ ("approve" | "reject"), [at, reason @ ..]) => {
            let reason = reason.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            Command::Decide { place: place(at)?, approve: verb == "approve", reason }
        }
        (verb @ ("pause" | "resume"), [at]) => Command::Pause { place: place(at)?, paused: verb == "pause" },
        ("abort", [at]) => Command::Abort { place: place(at)? },
        ("rerun", [at, what @ ..]) => {
            let (from_start, named) = match what {
                [named @ .., last] if last.text == FROM_START => (true, named),
                named => (false, named),
            };
            if let [_, word, ..] = named {
                return Err(too_many(word));
            }
            let sequence = named.first().map(|sequence| sequence.text.clone());
            Command::Rerun { place: place(at)?, sequence, from_start }
        }
        ("measure", [name, value]) => Command::Measure { indicator: name.text.clone(), value: value.text.clone() },
        ("pods", [prefix, how, rest @ ..]) => {
            let (given, code): (Vec<Word>, Vec<Word>) = rest.iter().cloned().partition(|word| word.text.contains('='));
            let behaviour = pods(how, &code).ok_or_else(|| misused(how, "pods work, hang or fail"))?;
            if let (Pods::Hang, Some(word)) = (behaviour, given.first()) {
                return Err(misused(word, "pods that hang write nothing"));
            }
            let writes = if given.is_empty() { Value::Null } else { data(&given)? };
            Command::Pods { prefix: prefix.text.clone(), behaviour, writes }
        }
        ("pass", [time]) => Command::Pass(length(time)?),
        ("ignore" | "pause" | "resume" | "abort" | "pass", [_, word, ..]) | ("measure", [_, _, word, ..]) => {
            return Err(too_many(word));
        }
        _ => return Err(too_few()),
    };
    Ok(done)
}

fn trigger(what: &Word, service: &Word, given: &[Word]) -> Result<Command, Wrong> {
    let parts: Vec<&str> = what.text.split('.').collect();
    let [stage, sequence] = parts[..] else {
        let message = format!("`{}` names no sequence of a stage", what.text);
        return Err(Wrong::word(what, message, "write it as `dev.delivery`"));
    };
    let kind = format!("{PREFIX}{stage}.{sequence}.triggered");
    let data = merge(json!({ "stage": stage }), data(given)?);
    Ok(Command::Send { kind, service: ServiceName::new(&*service.text), data })
}

fn phases(verb: &str) -> &'static [Phase] {
    match verb {
        "start" => &[Phase::Started],
        "report" => &[Phase::StatusChanged],
        "finish" => &[Phase::Finished],
        _ => &[Phase::Started, Phase::Finished],
    }
}

fn any(task: &Word) -> Option<String> {
    (task.text != "*").then(|| task.text.clone())
}

/// `test` or `dev/cart/test`.
fn task_name(word: &Word) -> Result<TaskName, Wrong> {
    let parts: Vec<&str> = word.text.split('/').collect();
    match parts[..] {
        [task] => Ok(TaskName { place: None, task: task.to_owned() }),
        [stage, service, task] => {
            let place = Place { stage: StageName::new(stage), service: ServiceName::new(service) };
            Ok(TaskName { place: Some(place), task: task.to_owned() })
        }
        _ => {
            let message = format!("`{}` names no task", word.text);
            Err(Wrong::word(word, message, "write it as `test`, or as `dev/cart/test`"))
        }
    }
}

/// `dev/cart`.
fn place(word: &Word) -> Result<Place, Wrong> {
    let wrong = || Wrong::word(word, format!("`{}` names no service", word.text), "write it as `dev/cart`");
    let (stage, service) = word.text.split_once('/').ok_or_else(wrong)?;
    Ok(Place { stage: StageName::new(stage), service: ServiceName::new(service) })
}

fn length(word: &Word) -> Result<Duration, Wrong> {
    let wrong = |message: String| Wrong::word(word, message, "write it as `90s`, `10m` or `1h30m`, up to a year");
    let length = duration::parse(&word.text).ok_or_else(|| wrong(format!("`{}` is no duration", word.text)))?;
    if length > LONGEST {
        return Err(wrong(format!("`{}` is too long", word.text)));
    }
    Ok(length)
}

fn pods(how: &Word, code: &[Word]) -> Option<Pods> {
    match (how.text.as_str(), code) {
        ("works" | "work", []) => Some(Pods::Work),
        ("hangs" | "hang", []) => Some(Pods::Hang),
        ("fails" | "fail", []) => Some(Pods::Fail(1)),
        ("fails" | "fail", [code]) => code.text.parse().ok().map(Pods::Fail),
        _ => None,
    }
}

/// What an executor tells, and who it is.
fn answer(given: &[Word]) -> Result<ExecutorAnswer, Wrong> {
    let mut data = data(given)?;
    let by = data.as_object_mut().and_then(|fields| fields.remove("by"));
    let by = by.as_ref().and_then(Value::as_str).unwrap_or("executor").to_owned();
    Ok(ExecutorAnswer { by, data })
}

/// `a.b=1 c=text`: values are read as JSON where they are that and stand in no quotes, else as texts.
fn data(given: &[Word]) -> Result<Value, Wrong> {
    let mut data = json!({});
    for word in given {
        let pair = word.text.split_once('=').filter(|(key, _)| key.split('.').all(|part| !part.is_empty()));
        let Some((path, value)) = pair else {
            let message = format!("`{}` gives no value", word.text);
            return Err(Wrong::word(word, message, "write `key=value`; put values with spaces into \"quotes\""));
        };
        let text = || Value::from(value);
        let value = if word.is_quoted { text() } else { serde_json::from_str(value).unwrap_or_else(|_| text()) };
        let nested = path.rsplit('.').fold(value, |inner, key| json!({ key: inner }));
        data = merge(data, nested);
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
