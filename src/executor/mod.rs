//! Takes actions from the outbox and performs them.
