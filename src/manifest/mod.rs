//! From files to declared objects: reading, defaults, validation. Pure.
