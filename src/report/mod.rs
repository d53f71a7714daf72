//! What is told to people and machines about a revision.
