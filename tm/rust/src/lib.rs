// SPDX-License-Identifier: GPL-2.0-only OR MIT
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod calls;
mod transaction;
mod value;
mod variable;

pub use transaction::{Abort, Restart, Transaction, atomically, try_atomically};
pub use value::Value;
pub use variable::TVar;
