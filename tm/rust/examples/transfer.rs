// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! No money is lost, and nobody sees it on its way.

use concord_tm::{TVar, atomically};
use std::thread;

fn main() {
    let accounts = [TVar::new(2000), TVar::new(0)];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let sum = atomically(|tx| {
                        accounts[0].modify(tx, |balance| balance - 1)?;
                        accounts[1].modify(tx, |balance| balance + 1)?;
                        Ok(accounts[0].read(tx)? + accounts[1].read(tx)?)
                    });
                    assert_eq!(sum, 2000);
                }
            });
        }
    });
    let [from, to] = accounts;
    println!("{} {}", from.into_inner(), to.into_inner());
}
