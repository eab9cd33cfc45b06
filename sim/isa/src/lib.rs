//! RISC-V decode and semantics, without memory, state or time.

pub mod compressed;
pub mod decode;
pub mod float;
pub mod integer;
pub mod op;
pub mod semantics;
