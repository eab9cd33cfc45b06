//! RISC-V decode and semantics, as pure as they can be: no memory, no state, no time.

pub mod compressed;
pub mod decode;
pub mod float;
pub mod integer;
pub mod op;
pub mod semantics;
