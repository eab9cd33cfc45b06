//! The reasons why an access cannot be carried out.

/// The purpose of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Fetch,
    Load,
    /// Stores and atomic read-modify-writes.
    Store,
}

/// The kind of exception that an access raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No memory or device answers at that physical address, or not with that size.
    Access,
    /// There is no valid translation, or it lacks the permission.
    Page,
}

/// An access that raises an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub access: Access,
    pub kind: FaultKind,
    /// The virtual address for the trap value register.
    pub address: u64,
}

impl Fault {
    /// The exception code (privileged specification, table of `scause` values).
    pub fn cause(self) -> u64 {
        match (self.kind, self.access) {
            (FaultKind::Access, Access::Fetch) => 1,
            (FaultKind::Access, Access::Load) => 5,
            (FaultKind::Access, Access::Store) => 7,
            (FaultKind::Page, Access::Fetch) => 12,
            (FaultKind::Page, Access::Load) => 13,
            (FaultKind::Page, Access::Store) => 15,
        }
    }
}
