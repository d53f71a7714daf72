//! Everything put together over a pretended runtime.
