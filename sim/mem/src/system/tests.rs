//! The memory system against a slow model that shares no code with it, and against its own invariants.

mod random;
mod reference;
mod restore;
