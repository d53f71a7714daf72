//! Where the text of every value stands in a file, for whoever changes it there.

use std::borrow::Cow;
use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Span, StrInput, StructureStyle};

use super::indentation::Mender;
use super::split;

/// The documents of a file, in bytes from its beginning.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// In the file's order, those that the reader leaves out among them.
    pub(crate) documents: Vec<Laid>,
    /// Whether it is JSON, in which nothing may be written that is YAML alone.
    pub(crate) is_json: bool,
}

/// One document.
#[derive(Debug)]
pub(crate) struct Laid {
    /// Everything between its marks, comments included.
    pub(crate) range: Range<usize>,
    /// Its value.
    pub(crate) root: Node,
}

/// A value.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its text without anchor and tag; a block's ends where its last value does.
    pub(crate) range: Range<usize>,
    /// What it is.
    pub(crate) kind: NodeKind,
}

/// What a value is, and how it is written.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// Text, a number and the like.
    Scalar(Style),
    /// Another value's name.
    Alias,
    /// A list, in brackets or not.
    Sequence { is_flow: bool, items: Vec<Item> },
    /// A mapping, in braces or not.
    Mapping { is_flow: bool, entries: Vec<Entry> },
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Nothing stands there.
    Empty,
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// Lines behind a `|`.
    Literal,
    /// Lines behind a `>`.
    Folded,
}

/// A value of a list.
#[derive(Debug)]
pub(crate) struct Item {
    /// The place of its dash, where it has one.
    pub(crate) dash: Option<usize>,
    pub(crate) node: Node,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key begins.
    pub(crate) start: usize,
    /// Behind the colon; behind the key where there is none.
    pub(crate) colon: usize,
    /// Characters before the key in its line.
    pub(crate) column: usize,
    pub(crate) node: Node,
}

/// Reads where everything stands; the reader must have taken the file.
///
/// # Errors
/// The place of a line that is not read as it stands there.
pub(crate) fn layout(text: &str) -> Result<Layout, usize> {
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let parts = split::parts(&text[mark..]);
    let is_json = parts.len() > 1 || text[mark..].trim_start().starts_with(['{', '[']) && is_one_json(&text[mark..]);
    let mut layout = Layout { documents: Vec::new(), is_json };
    let mut mender = Mender::default();
    for part in parts {
        let from = mark + part.offset;
        let mut readable = part.text;
        loop {
            let mut builder = Builder::new(&readable);
            let Err(stopped) = builder.documents() else {
                layout.documents.extend(builder.found.into_iter().map(|found| moved(found, from)));
                break;
            };
            let is_in_brackets = builder.brackets > 0;
            let mended = mender.mended(&readable, &stopped.kind, stopped.line, is_in_brackets);
            match mended.filter(|mended| mended.len() == readable.len()) {
                Some(mended) => readable = Cow::Owned(mended),
                None => return Err(from + stopped.at),
            }
        }
    }
    Ok(layout)
}

/// What has no text in it may be either, and is left to become YAML.
fn is_one_json(text: &str) -> bool {
    text.contains('"') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn moved(found: Laid, by: usize) -> Laid {
    let mut root = found.root;
    shift(&mut root, by);
    Laid { range: found.range.start + by..found.range.end + by, root }
}

fn shift(node: &mut Node, by: usize) {
    node.range = node.range.start + by..node.range.end + by;
    match &mut node.kind {
        NodeKind::Sequence { items, .. } => items.iter_mut().for_each(|item| {
            item.dash = item.dash.map(|dash| dash + by);
            shift(&mut item.node, by);
        }),
        NodeKind::Mapping { entries, .. } => entries.iter_mut().for_each(|entry| {
            (entry.start, entry.colon) = (entry.start + by, entry.colon + by);
            shift(&mut entry.node, by);
        }),
        NodeKind::Scalar(_) | NodeKind::Alias => {}
    }
}

/// Why the parser went no further.
struct Stopped {
    kind: ErrorKind,
    line: usize,
    at: usize,
}

struct Builder<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    /// Behind the last token.
    cursor: usize,
    brackets: usize,
    found: Vec<Laid>,
}

type Step<T> = Result<T, Stopped>;

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        let options = granit_parser::options! { emit_comments: false };
        let parser = Parser::new_from_str_with_options(text, options);
        Self { text, parser, cursor: 0, brackets: 0, found: Vec::new() }
    }

    fn next(&mut self) -> Step<(Event<'a>, Span)> {
        match self.parser.next_event() {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(Stopped {
                kind: error.kind().clone(),
                line: error.marker().line(),
                at: error.marker().byte_offset().unwrap_or_default(),
            }),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn documents(&mut self) -> Step<()> {
        loop {
            match self.next()? {
                (Event::DocumentStart(is_marked, ..), span) => {
                    let mark = bytes(&span);
                    if let Some(before) = self.found.last_mut().filter(|before| before.range.end == usize::MAX) {
                        before.range.end = mark.start;
                    }
                    let start = if is_marked { self.behind_mark(mark.end) } else { self.cursor };
                    self.cursor = if is_marked { mark.end } else { self.cursor };
                    let (event, span) = self.next()?;
                    let root = self.node(event, &span)?;
                    self.found.push(Laid { range: start..usize::MAX, root });
                }
                (Event::DocumentEnd, span) => {
                    let mark = bytes(&span);
                    self.cursor = self.cursor.max(mark.end);
                    if let Some(before) = self.found.last_mut().filter(|_| !mark.is_empty() && mark.end > mark.start) {
                        before.range.end = mark.start;
                    }
                }
                (Event::StreamEnd, _) => {
                    let end = self.text.len();
                    self.found.last_mut().into_iter().for_each(|last| last.range.end = last.range.end.min(end));
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// Where a document begins whose mark ends at `end`: in the next line, unless something stands in this one.
    fn behind_mark(&self, end: usize) -> usize {
        let line = &self.text[end..];
        let newline = line.find('\n').map_or(line.len(), |newline| newline + 1);
        let rest = line[..newline].trim();
        if rest.is_empty() || rest.starts_with('#') { end + newline } else { end }
    }

    fn node(&mut self, event: Event<'a>, span: &Span) -> Step<Node> {
        let own = bytes(span);
        match event {
            Event::Scalar(_, style, ..) => Ok(self.scalar(style, own)),
            Event::SequenceStart(style, ..) => self.collection(style, own, Self::sequence),
            Event::MappingStart(style, ..) => self.collection(style, own, Self::mapping),
            _ => {
                self.cursor = own.end.max(self.cursor);
                Ok(Node { range: own, kind: NodeKind::Alias })
            }
        }
    }

    fn scalar(&mut self, style: ScalarStyle, own: Range<usize>) -> Node {
        let style = match style {
            ScalarStyle::Plain if own.is_empty() => Style::Empty,
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::Single,
            ScalarStyle::DoubleQuoted => Style::Double,
            ScalarStyle::Literal => Style::Literal,
            ScalarStyle::Folded => Style::Folded,
        };
        let range = match style {
            Style::Empty => self.cursor..self.cursor,
            Style::Literal | Style::Folded => {
                let start = behind_properties(self.text, self.cursor);
                let header = self.text[start..].lines().next().unwrap_or_default();
                let whole = &self.text[start..own.end.max(start)];
                let kept = if header.contains('+') { whole.trim_end_matches([' ', '\t']) } else { whole.trim_end() };
                start..start + kept.len()
            }
            _ => own,
        };
        self.cursor = self.cursor.max(range.end);
        Node { range, kind: NodeKind::Scalar(style) }
    }

    fn collection(
        &mut self,
        style: StructureStyle,
        own: Range<usize>,
        read: impl FnOnce(&mut Self, bool) -> Step<(NodeKind, Option<usize>, usize)>,
    ) -> Step<Node> {
        let is_flow = style == StructureStyle::Flow;
        if is_flow {
            self.cursor = own.end;
        }
        self.brackets += usize::from(is_flow);
        let (kind, first, end) = read(self, is_flow)?;
        self.brackets -= usize::from(is_flow);
        self.cursor = self.cursor.max(end);
        let start = if is_flow { own.start } else { first.unwrap_or(own.start) };
        Ok(Node { range: start..end.max(start), kind })
    }

    fn sequence(&mut self, is_flow: bool) -> Step<(NodeKind, Option<usize>, usize)> {
        let mut items: Vec<Item> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let end = if is_flow { bytes(&span).end } else { self.cursor };
                let first = items.first().and_then(|item| item.dash);
                return Ok((NodeKind::Sequence { is_flow, items }, first, end));
            }
            let dash = (!is_flow).then(|| behind_properties(self.text, self.cursor));
            self.cursor = dash.map_or(self.cursor, |dash| dash + 1);
            items.push(Item { dash, node: self.node(event, &span)? });
        }
    }

    fn mapping(&mut self, is_flow: bool) -> Step<(NodeKind, Option<usize>, usize)> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let own = bytes(&span);
            let key = match event {
                Event::MappingEnd => {
                    let end = if is_flow { own.end } else { self.cursor };
                    let first = entries.first().map(|entry| entry.start);
                    return Ok((NodeKind::Mapping { is_flow, entries }, first, end));
                }
                Event::Scalar(text, ..) => text.into_owned(),
                // The reader takes no other keys but names of texts, and nobody asks for those.
                _ => String::new(),
            };
            self.cursor = self.cursor.max(own.end);
            let colon = behind_blanks(self.text, self.cursor);
            if self.text[colon..].starts_with(':') {
                self.cursor = colon + 1;
            }
            let (start, colon, column) = (own.start, self.cursor, span.start.col());
            let (event, span) = self.next()?;
            entries.push(Entry { key, start, colon, column, node: self.node(event, &span)? });
        }
    }
}

fn bytes(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or_default()
}

/// Behind white space, line breaks and comments.
pub(crate) fn behind_blanks(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']).len();
        at += blank;
        if !text[at..].starts_with('#') {
            return at;
        }
        at += text[at..].find('\n').unwrap_or(text.len() - at);
    }
}

/// The same, and behind anchors and tags.
fn behind_properties(text: &str, from: usize) -> usize {
    let mut at = behind_blanks(text, from);
    while text[at..].starts_with(['&', '!']) {
        at += text[at..].find([' ', '\t', '\r', '\n']).unwrap_or(text.len() - at);
        at = behind_blanks(text, at);
    }
    at
}
