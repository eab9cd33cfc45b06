//! The software transactions of `tm`, measured and validated by its check programs. Libraries and workloads are data: `stm.toml`.

use super::check_programs::CheckPrograms;
use super::{System, data};
use std::sync::LazyLock;

static PROGRAMS: LazyLock<CheckPrograms> = LazyLock::new(|| data("stm", include_str!("stm.toml")));

/// The system.
pub fn system() -> &'static dyn System {
    programs()
}

/// The same with what only check programs have.
pub fn programs() -> &'static CheckPrograms {
    &PROGRAMS
}
