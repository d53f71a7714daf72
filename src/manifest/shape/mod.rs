//! The keys and types of every format, as tables: one walk checks a file against them and normalises it, another
//! turns them into JSON Schemas for editors.

pub(crate) mod autoscaler;
pub(crate) mod core;
pub(crate) mod deployment;
pub(crate) mod deployment_config;
pub(crate) mod evaluation;
pub(crate) mod image_stream;
pub(crate) mod own;
pub(crate) mod pod;
pub(crate) mod replication_controller;
pub(crate) mod schema;
pub(crate) mod shipyard;
pub(crate) mod template;

mod check;
mod nearest;

pub(crate) use check::{Strictness, check, check_at};
pub(crate) use nearest::{nearest, nearest_within};

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    /// Text.
    Text,
    /// Text that no message may show.
    Secret,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// A port's number or name, a number or a percentage.
    IntegerOrText,
    /// An amount such as `250m` or `64Mi`.
    Quantity,
    /// Anything.
    Any,
    /// Each of them like this.
    List(&'static Type),
    /// Keys of the user's choice.
    Map(&'static Type),
    /// Keys as in the table.
    Object(&'static Shape),
}

/// The keys of an object.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) fields: &'static [Field],
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    /// Whether it must be there and not be empty.
    pub(crate) required: bool,
    /// Whether an empty value means something else than an absent one.
    pub(crate) kept: bool,
    /// Whether it is read and then forgotten: `status` and what only a server writes.
    pub(crate) forgotten: bool,
    /// For editors.
    pub(crate) doc: &'static str,
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: Type) -> Self {
        Self { name, kind, required: false, kept: false, forgotten: false, doc: "" }
    }

    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(crate) const fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    pub(crate) const fn forgotten(self) -> Self {
        Self { forgotten: true, ..self }
    }

    pub(crate) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

pub(crate) const fn text(name: &'static str) -> Field {
    Field::new(name, Type::Text)
}

pub(crate) const fn texts(name: &'static str) -> Field {
    Field::new(name, Type::List(&Type::Text))
}

pub(crate) const fn text_map(name: &'static str) -> Field {
    Field::new(name, Type::Map(&Type::Text))
}

pub(crate) const fn word(name: &'static str, words: &'static [&'static str]) -> Field {
    Field::new(name, Type::Word(words))
}

pub(crate) const fn flag(name: &'static str) -> Field {
    Field::new(name, Type::Flag)
}

/// Zero or more.
pub(crate) const fn count(name: &'static str) -> Field {
    Field::new(name, Type::Integer(0, i64::MAX))
}

/// Fits in 32 bits, as upstream's `int32`.
pub(crate) const fn small_count(name: &'static str) -> Field {
    Field::new(name, Type::Integer(0, i32::MAX as i64))
}

/// One or more.
pub(crate) const fn positive(name: &'static str) -> Field {
    Field::new(name, Type::Integer(1, i64::MAX)).kept()
}

pub(crate) const fn port(name: &'static str) -> Field {
    Field::new(name, Type::Integer(1, 65_535)).kept()
}

pub(crate) const fn any(name: &'static str) -> Field {
    Field::new(name, Type::Any)
}

pub(crate) const fn object(name: &'static str, shape: &'static Shape) -> Field {
    Field::new(name, Type::Object(shape))
}

pub(crate) const fn list(name: &'static str, item: &'static Type) -> Field {
    Field::new(name, Type::List(item))
}
