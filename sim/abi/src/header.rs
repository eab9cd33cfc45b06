//! The headers for guests. They are generated from this crate, so the two sides cannot differ.

pub mod xmetatm_c;
mod xmetatm_constants;
pub mod xmetatm_rust;

use crate::hint::{Hint, SectionKind};
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
    text.push_str("\n/* Kinds of sections, to be added to the codes of their begins; ra is the call site there. */\n");
    for (kind, name) in SectionKind::ALL {
        let _ = writeln!(text, "#define CONCORD_SECTION_{name} {}", kind as u16);
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
    use super::{text, xmetatm_c, xmetatm_rust};

    /// Run with `CONCORD_UPDATE=1` to write the headers anew.
    #[test]
    fn the_committed_headers_are_the_generated_ones() {
        for (name, text) in [
            ("workloads/include/concord.h", text()),
            ("workloads/include/xmetatm.h", xmetatm_c::text()),
            // tm has a copy of its own, because it builds from its own folder alone.
            ("tm/arch/riscv64/xmetatm.h", xmetatm_c::text()),
            ("workloads/include/xmetatm.rs", xmetatm_rust::text()),
        ] {
            let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("CONCORD_UPDATE").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "{name} is out of date; CONCORD_UPDATE=1 writes it");
        }
    }
}
