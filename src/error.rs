//! Failures that people read: what was attempted, what is wrong, what to do, and who acts next.

use std::fmt;

/// What has to happen before trying again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The environment may recover by itself: try again, with growing pauses.
    Transient,
    /// Something that launchway knows of must happen first: try again when it does.
    Waiting,
    /// A person must act: a commit, a command, a changed configuration.
    Stalled,
}

/// What is wrong with the question itself, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It makes no sense, whatever is there.
    Malformed,
    /// What it names is not there.
    Missing,
}

/// A failed operation.
#[derive(Debug)]
pub struct Failure {
    class: Class,
    fault: Option<Fault>,
    message: String,
    hint: Option<String>,
    until: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of an operation that may fail so.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure that may pass by itself. `message` is a lower-case fragment such as "cannot reach `x`".
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(Class::Transient, message)
    }

    /// A failure that passes when something known happens.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self::new(Class::Waiting, message)
    }

    /// A failure that needs a person.
    pub fn stalled(message: impl Into<String>) -> Self {
        Self::new(Class::Stalled, message)
    }

    fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, fault: None, message: message.into(), hint: None, until: None, source: None }
    }

    /// Adds what the reader can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what is announced when it has passed.
    #[must_use]
    pub fn until(mut self, announced: impl Into<String>) -> Self {
        self.until = Some(announced.into());
        self
    }

    /// Adds what caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Says that the question makes no sense, whatever is there.
    #[must_use]
    pub fn malformed(self) -> Self {
        Self { fault: Some(Fault::Malformed), ..self }
    }

    /// Says that what the question names is not there.
    #[must_use]
    pub fn missing(self) -> Self {
        Self { fault: Some(Fault::Missing), ..self }
    }

    /// What is wrong with the question itself, if that is known.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Who acts next.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What the reader can do, if anything is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What is announced when it has passed, if anything is.
    pub fn awaits(&self) -> Option<&str> {
        self.until.as_deref()
    }

    /// Message, causes and hint in one line, for logs, statuses and records.
    pub fn one_line(&self) -> String {
        let text = match &self.hint {
            Some(hint) => format!("{self:#} ({hint})"),
            None => format!("{self:#}"),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Failure {
    /// The message; with `{:#}` also the chain of causes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if f.alternate() {
            causes(self).skip(1).try_for_each(|cause| write!(f, ": {cause}"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

/// Attaches an operation to any error.
pub trait Context<T> {
    /// Turns an error into a transient failure.
    fn or_transient(self, message: impl FnOnce() -> String) -> Result<T>;
    /// Turns an error into one that needs a person.
    fn or_stalled(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn or_transient(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::transient(message()).because(error))
    }

    fn or_stalled(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::stalled(message()).because(error))
    }
}

/// An error, what caused it, what caused that, and so on.
pub fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// What an error comes down to: libraries say what they were about, and keep beneath it what was the matter.
pub fn root_cause<'e>(error: &'e (dyn std::error::Error + 'static)) -> &'e (dyn std::error::Error + 'static) {
    causes(error).last().unwrap_or(error)
}
