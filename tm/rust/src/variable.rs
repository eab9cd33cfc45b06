// SPDX-License-Identifier: GPL-2.0-only OR MIT

use crate::transaction::{Restart, Transaction};
use crate::value::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A variable that threads share and that transactions read and write.
///
/// A transaction reads and writes only variables that live longer than it does, because the library may store to them up to its end:
///
/// ```compile_fail,E0597
/// use concord_tm::{TVar, atomically};
///
/// atomically(|tx| {
///     let short_lived = TVar::new(1);
///     short_lived.write(tx, 2)
/// });
/// ```
///
/// Threads may share a variable if they may send each other its values:
///
/// ```
/// fn may_be_shared<T: Send + Sync>() {}
/// may_be_shared::<concord_tm::TVar<u32>>();
/// ```
///
/// ```compile_fail,E0277
/// use concord_tm::{TVar, Value};
///
/// #[derive(Clone, Copy)]
/// struct Local(*const u8);
/// impl Value for Local {
///     fn to_word(self) -> u64 {
///         self.0 as u64
///     }
///     fn from_word(word: u64) -> Local {
///         Local(word as *const u8)
///     }
/// }
/// fn may_be_shared<T: Sync>() {}
/// may_be_shared::<TVar<Local>>();
/// ```
pub struct TVar<T> {
    word: AtomicU64,
    /// `Send` and `Sync` as a `Mutex` of the value would be.
    value: PhantomData<Mutex<T>>,
}

impl<T: Value> TVar<T> {
    /// A variable with this value.
    pub fn new(value: T) -> TVar<T> {
        TVar { word: AtomicU64::new(value.to_word()), value: PhantomData }
    }

    /// The value, in the transaction's state of memory.
    pub fn read<'env>(&'env self, transaction: &mut Transaction<'env>) -> Result<T, Restart> {
        transaction.load(&self.word).map(T::from_word)
    }

    /// Writes the value. Other threads see it when the transaction has committed.
    pub fn write<'env>(&'env self, transaction: &mut Transaction<'env>, value: T) -> Result<(), Restart> {
        transaction.store(&self.word, value.to_word())
    }

    /// Replaces the value by what the function makes of it.
    pub fn modify<'env>(
        &'env self,
        transaction: &mut Transaction<'env>,
        change: impl FnOnce(T) -> T,
    ) -> Result<(), Restart> {
        let value = self.read(transaction)?;
        self.write(transaction, change(value))
    }

    /// The value, without a transaction: nobody else has the variable.
    pub fn get(&mut self) -> T {
        T::from_word(*self.word.get_mut())
    }

    /// The last value.
    pub fn into_inner(self) -> T {
        T::from_word(self.word.into_inner())
    }
}

impl<T: Value + Default> Default for TVar<T> {
    fn default() -> TVar<T> {
        TVar::new(T::default())
    }
}

impl<T: Value + fmt::Debug> fmt::Debug for TVar<T> {
    /// Shows what is in memory at the moment, which may belong to a transaction that has not committed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("TVar").field(&self.word.load(Ordering::Relaxed)).finish()
    }
}
