//! The one reader of YAML and JSON.
//!
//! Values and their places come from a single pass over granit-parser's events, so that a message can point at
//! anything that was read. Scalars follow YAML 1.1 where Kubernetes does (`yes` is a boolean, `0644` is octal): the
//! check of an object's shape then asks for quotes where text is wanted, instead of guessing. Duplicate keys are
//! errors. Size, depth and the growth through aliases are bounded.

pub mod documents;
mod foreign;
mod indentation;
pub(crate) mod layout;
mod scalar;
mod split;

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use serde_json::{Map, Value};

use indentation::Mender;
use split::Part;

/// No file is larger; the caller usually stops earlier.
pub const MAX_BYTES: usize = 16 << 20;
/// Collections inside collections: less than what a reader of JSON takes, as which it is stored.
const MAX_DEPTH: usize = 100;
/// Values in a document, aliases expanded.
const MAX_NODES: usize = 250_000;
/// Characters of a document's scalars in bytes, aliases expanded.
const MAX_TEXT: usize = 32 << 20;

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// What was read of a file: the documents up to the first syntax error, or what was made of them, and what is wrong.
#[derive(Debug)]
pub struct Reading<T = Document> {
    /// In the file's order; empty documents are left out.
    pub documents: Vec<T>,
    /// Nothing of the file may be used if there is any.
    pub errors: Vec<ReadError>,
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Where.
    pub position: Position,
    /// A short stable word.
    pub code: &'static str,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What the reader can do.
    pub hint: Option<String>,
    /// JSON pointer of the value that it is about; empty if it is about none.
    pub pointer: String,
}

/// One document with the places of its values.
#[derive(Debug)]
pub struct Document {
    /// Its value.
    pub value: Value,
    places: HashMap<String, Place>,
}

/// Where a value and its key stand, and how a value that is not text was written.
#[derive(Debug)]
struct Place {
    key: Option<Position>,
    value: Position,
    written: Option<Box<str>>,
    /// Whether it is text whose lines are those of the file (`|`).
    is_literal: bool,
}

impl Document {
    /// Where the value at a JSON pointer stands; if there is none, its nearest parent.
    pub fn position(&self, pointer: &str) -> Position {
        self.nearest(pointer).map_or(START, |place| place.value)
    }

    /// Where the key of the value at a JSON pointer stands; the value itself if it has no key.
    pub fn key_position(&self, pointer: &str) -> Position {
        self.nearest(pointer).map_or(START, |place| place.key.unwrap_or(place.value))
    }

    /// How a number or boolean was written, before it was read as one.
    pub fn written(&self, pointer: &str) -> Option<&str> {
        self.places.get(pointer)?.written.as_deref()
    }

    /// Where something at `inner` of the text at a JSON pointer stands; the text as a whole, where its lines are not those
    /// of the file.
    pub fn position_within(&self, pointer: &str, inner: Position) -> Position {
        let outer = self.position(pointer);
        let text = self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        // The parser says where the first line stands that is not empty.
        let empty = text.chars().take_while(|character| *character == '\n').count();
        let line = inner.line.checked_sub(1 + u32::try_from(empty).unwrap_or_default());
        match line.filter(|_| self.places.get(pointer).is_some_and(|place| place.is_literal)) {
            Some(line) => Position { line: outer.line + line, column: outer.column + inner.column - 1 },
            None => outer,
        }
    }

    fn nearest(&self, pointer: &str) -> Option<&Place> {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return Some(place);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }
}

const START: Position = Position { line: 1, column: 1 };

/// Reads a file: YAML documents, or JSON objects one after another.
pub fn read(bytes: &[u8]) -> Reading {
    read_each(bytes, &|document| Some(document))
}

/// Reads a file, and of each document keeps what `keep` makes of it: a file may hold any number of them, and those that
/// nobody needs take no memory beside each other.
pub fn read_each<T>(bytes: &[u8], keep: &dyn Fn(Document) -> Option<T>) -> Reading<T> {
    let text = match text_of(bytes) {
        Ok(text) => text,
        Err(error) => return Reading { documents: Vec::new(), errors: vec![error] },
    };
    let mut reading = Reading { documents: Vec::new(), errors: Vec::new() };
    let mut mender = Mender::default();
    for part in split::parts(text) {
        let ended = read_part(part, &mut mender, keep, &mut reading);
        if let Err(error) = ended {
            reading.errors.push(ReadError { hint: foreign::hint(text).or(error.hint.clone()), ..error });
            break;
        }
    }
    reading
}

/// Reads what the parser can read by itself, again and again as long as what stopped it can be mended.
fn read_part<T>(
    part: Part<'_>,
    mender: &mut Mender,
    keep: &dyn Fn(Document) -> Option<T>,
    reading: &mut Reading<T>,
) -> Step<()> {
    let mut text = part.text;
    loop {
        let mut reader = Reader::new(&text, part.start);
        let mut documents = Vec::new();
        let ended = reader.documents(&mut |document| documents.extend(keep(document)));
        let stopped = reader.stopped.take();
        let mended = stopped.and_then(|(kind, line)| mender.mended(&text, &kind, line, reader.brackets > 0));
        let Some(mended) = mended else {
            reading.documents.append(&mut documents);
            reading.errors.append(&mut reader.errors);
            return ended;
        };
        text = Cow::Owned(mended);
    }
}

/// What a scalar without quotes means.
pub(crate) fn read_scalar(text: &str) -> Value {
    scalar::resolve(text)
}

/// The place of a byte of a text.
pub(crate) fn position(text: &str, at: usize) -> Position {
    split::end_of(START, text.get(..at).unwrap_or(text).trim_start_matches('\u{feff}'))
}

/// Appends one segment to a JSON pointer.
pub fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, ReadError> {
    let refuse = |position, message: &str, hint: &str| {
        Err(ReadError {
            position,
            code: "encoding",
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
            pointer: String::new(),
        })
    };
    if bytes.len() > MAX_BYTES {
        return refuse(START, "the file is larger than 16 MiB", "split it");
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return refuse(START, "the file is UTF-16", "save it as UTF-8");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            refuse(split::end_of(START, &good), "the file is not UTF-8", "save it as UTF-8")
        }
    }
}

type Step<T> = Result<T, ReadError>;

/// What a subtree costs; kept for anchors, so that an alias is paid for before it is copied.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    text: usize,
}

struct Reader<'input> {
    parser: Parser<'input, granit_parser::StrInput<'input>>,
    start: Position,
    errors: Vec<ReadError>,
    /// Why the parser stopped, and in which of its lines.
    stopped: Option<(ErrorKind, usize)>,
    /// In how many brackets or braces it is.
    brackets: usize,
    // Of the document that is being read:
    places: HashMap<String, Place>,
    pointer: String,
    anchors: HashMap<usize, (Value, Cost)>,
    spent: Cost,
}

impl<'input> Reader<'input> {
    fn new(text: &'input str, start: Position) -> Self {
        let options = granit_parser::options! { emit_comments: false };
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            start,
            errors: Vec::new(),
            stopped: None,
            brackets: 0,
            places: HashMap::new(),
            pointer: String::new(),
            anchors: HashMap::new(),
            spent: Cost::default(),
        }
    }

    fn documents(&mut self, take: &mut dyn FnMut(Document)) -> Step<()> {
        loop {
            match self.next()? {
                (Event::DocumentStart(..), _) => {
                    let (event, span) = self.next()?;
                    let value = self.node(event, span, None, 0)?;
                    self.anchors.clear();
                    self.spent = Cost::default();
                    let places = std::mem::take(&mut self.places);
                    if !value.is_null() {
                        take(Document { value, places });
                    }
                }
                (Event::StreamEnd, _) => return Ok(()),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Step<(Event<'input>, Span)> {
        match self.parser.next_event() {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => {
                self.stopped = Some((error.kind().clone(), error.marker().line()));
                Err(self.syntax(&error))
            }
            None => Err(self.refuse(START, "syntax", "the document ends too early")),
        }
    }

    fn syntax(&self, error: &ScanError) -> ReadError {
        let marker = error.marker();
        let position = self.moved(marker.line(), marker.col());
        let mut refused = self.refuse(position, "syntax", error.info());
        if refused.message.contains("tab") {
            refused.hint = Some("indent with spaces".to_owned());
        }
        refused
    }

    fn refuse(&self, position: Position, code: &'static str, message: impl Into<String>) -> ReadError {
        ReadError { position, code, message: message.into(), hint: None, pointer: String::new() }
    }

    /// The parser counts lines from 1 and columns from 0, in its part of the file.
    fn moved(&self, line: usize, column: usize) -> Position {
        let line = u32::try_from(line.max(1)).unwrap_or(u32::MAX);
        let column = u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1);
        if line == 1 {
            Position { line: self.start.line, column: column + self.start.column - 1 }
        } else {
            Position { line: line + self.start.line - 1, column }
        }
    }

    /// Reads the value that starts with `event`; `key` is where its key stands.
    fn node(&mut self, event: Event<'input>, span: Span, key: Option<Position>, depth: usize) -> Step<Value> {
        let position = self.moved(span.start.line(), span.start.col());
        if depth > MAX_DEPTH {
            return Err(self.refuse(position, "limit", format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let before = self.spent;
        self.spend(Cost { nodes: 1, text: 0 }, position)?;
        let is_literal = matches!(event, Event::Scalar(_, ScalarStyle::Literal, ..));
        self.places.insert(self.pointer.clone(), Place { key, value: position, written: None, is_literal });
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (self.scalar(text, style, tag.as_deref(), position)?, anchor),
            Event::SequenceStart(style, anchor, tag) => {
                self.known_tag(tag.as_deref(), &["seq"], position);
                (self.inside(style, |reader| reader.sequence(depth))?, anchor)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.known_tag(tag.as_deref(), &["map"], position);
                (self.inside(style, |reader| reader.mapping(depth))?, anchor)
            }
            Event::Alias(target) => (self.alias(target, position)?, 0),
            _ => return Err(self.refuse(position, "syntax", "a value is expected here")),
        };
        if anchor != 0 {
            let cost = Cost { nodes: self.spent.nodes - before.nodes, text: self.spent.text - before.text };
            self.anchors.insert(anchor, (value.clone(), cost));
        }
        Ok(value)
    }

    /// Reads a collection. What stopped the parser stopped it inside of those that are still open.
    fn inside(&mut self, style: StructureStyle, read: impl FnOnce(&mut Self) -> Step<Value>) -> Step<Value> {
        self.brackets += usize::from(style == StructureStyle::Flow);
        let value = read(self)?;
        self.brackets -= usize::from(style == StructureStyle::Flow);
        Ok(value)
    }

    fn spend(&mut self, cost: Cost, position: Position) -> Step<()> {
        self.spent.nodes = self.spent.nodes.saturating_add(cost.nodes);
        self.spent.text = self.spent.text.saturating_add(cost.text);
        if self.spent.nodes > MAX_NODES {
            return Err(self.refuse(position, "limit", format!("more than {MAX_NODES} values in one document")));
        }
        if self.spent.text > MAX_TEXT {
            return Err(self.refuse(position, "limit", "the document is larger than 32 MiB once aliases are expanded"));
        }
        Ok(())
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Step<Value> {
        self.spend(Cost { nodes: 0, text: text.len() }, at)?;
        self.known_tag(tag, &["str", "int", "float", "bool", "null"], at);
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str") || tag.original() == "!");
        let wants_resolving = tag.is_some_and(Tag::is_yaml_core_schema) && !is_text;
        if is_text || (style != ScalarStyle::Plain && !wants_resolving) {
            return Ok(Value::String(text.into_owned()));
        }
        let value = scalar::resolve(&text);
        if scalar::is_not_finite(&text) {
            self.errors.push(self.refuse(at, "number", format!("`{text}` is not a number that can be used here")));
        }
        if (value.is_number() || value.is_boolean())
            && let Some(place) = self.places.get_mut(&self.pointer)
        {
            place.written = Some(text.into());
        }
        Ok(value)
    }

    /// A tag that is not understood changes what a value means: better refused than ignored.
    fn known_tag(&mut self, tag: Option<&Tag>, known: &[&str], position: Position) {
        let Some(tag) = tag else { return };
        let is_known = tag.original() == "!" || tag.core_suffix().is_some_and(|suffix| known.contains(&suffix));
        if !is_known {
            let message = format!("the tag `{}` is not understood", tag.original());
            self.errors.push(self.refuse(position, "tag", message));
        }
    }

    fn alias(&mut self, target: usize, position: Position) -> Step<Value> {
        let Some((_, cost)) = self.anchors.get(&target) else {
            return Err(self.refuse(position, "syntax", "an alias cannot stand inside its own anchor"));
        };
        self.spend(*cost, position)?;
        Ok(self.anchors.get(&target).map(|(value, _)| value.clone()).unwrap_or_default())
    }

    fn sequence(&mut self, depth: usize) -> Step<Value> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Value::Array(items));
            }
            let length = self.pointer.len();
            push_segment(&mut self.pointer, &items.len().to_string());
            items.push(self.node(event, span, None, depth + 1)?);
            self.pointer.truncate(length);
        }
    }

    fn mapping(&mut self, depth: usize) -> Step<Value> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                merge(&mut map, merged);
                return Ok(Value::Object(map));
            }
            let at = self.moved(span.start.line(), span.start.col());
            let (key, is_merge) = self.key(event, at)?;
            self.spend(Cost { nodes: 0, text: key.len() }, at)?;
            let is_duplicate = !is_merge && map.contains_key(&key);
            if is_duplicate {
                self.duplicate(&key, at);
            }
            let length = self.pointer.len();
            push_segment(&mut self.pointer, &key);
            let (event, span) = self.next()?;
            let value = self.node(event, span, Some(at), depth + 1)?;
            self.pointer.truncate(length);
            if is_merge {
                self.collect_merge(value, &mut merged, at);
            } else if !is_duplicate {
                map.insert(key, value);
            }
        }
    }

    fn key(&mut self, event: Event<'input>, at: Position) -> Step<(String, bool)> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                if anchor != 0 {
                    let cost = Cost { nodes: 1, text: text.len() };
                    self.anchors.insert(anchor, (Value::String(text.to_string()), cost));
                }
                let is_merge = text == "<<" && style == ScalarStyle::Plain;
                Ok((text.into_owned(), is_merge))
            }
            Event::Alias(target) => match self.anchors.get(&target) {
                Some((Value::String(text), _)) => Ok((text.clone(), false)),
                _ => Err(self.refuse(at, "key", "a key must be text")),
            },
            _ => Err(self.refuse(at, "key", "a key must be text")),
        }
    }

    fn duplicate(&mut self, key: &str, at: Position) {
        let mut pointer = self.pointer.clone();
        push_segment(&mut pointer, key);
        let first = self.places.get(&pointer).and_then(|place| place.key).map(|position| position.line);
        let mut error = self.refuse(at, "duplicate-key", format!("the key `{key}` stands here a second time"));
        error.hint = first.map(|line| format!("it is already set in line {line}: remove one of the two"));
        error.pointer = pointer;
        self.errors.push(error);
    }

    fn collect_merge(&mut self, value: Value, merged: &mut Vec<Map<String, Value>>, at: Position) {
        match value {
            Value::Object(map) => merged.push(map),
            Value::Array(items) if items.iter().all(Value::is_object) => {
                for item in items {
                    self.collect_merge(item, merged, at);
                }
            }
            _ => self.errors.push(self.refuse(at, "merge", "`<<` must name a mapping or a list of mappings")),
        }
    }
}

/// Keys of their own win; among merged mappings the first one does.
fn merge(map: &mut Map<String, Value>, merged: Vec<Map<String, Value>>) {
    for (key, value) in merged.into_iter().flatten() {
        if !map.contains_key(&key) {
            map.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests;
