//! The C header for guests, generated so that it cannot drift from the Rust side.

use crate::hint::Hint;
use std::fmt::Write;

/// The text of `workloads/include/concord.h`.
pub fn text() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n\
         /* Generated from sim/abi (CONCORD_UPDATE=1 cargo test -p concord-abi); do not edit. */\n\
         #ifndef CONCORD_H\n#define CONCORD_H\n\n\
         /* Hint codes: slti x0, argument, code. */\n",
    );
    for (hint, name) in Hint::ALL {
        let _ = writeln!(text, "#define CONCORD_HINT_{name} {}", hint as u16);
    }
    text.push_str(
        "\n#ifdef __ASSEMBLER__\n\
         .macro concord_hint code, argument=x0\n\tslti x0, \\argument, \\code\n.endm\n\
         #else\n\
         #define concord_hint(code, argument) \\\n\
         \t__asm__ volatile(\"slti x0, %0, %1\" : : \"r\"((unsigned long)(argument)), \"i\"(code) : \"memory\")\n\
         #endif\n\n#endif\n",
    );
    text
}

#[cfg(test)]
mod tests {
    /// Run with `CONCORD_UPDATE=1` to write the header anew.
    #[test]
    fn the_committed_header_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/include/concord.h");
        if std::env::var_os("CONCORD_UPDATE").is_some() {
            std::fs::write(path, super::text()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert_eq!(committed, super::text());
    }
}
