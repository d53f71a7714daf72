//! From declared and applied to a plan: what a revision would do, and why. Pure.
