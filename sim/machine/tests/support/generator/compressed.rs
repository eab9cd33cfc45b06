//! Sixteen-bit instructions that only compute, reserved encodings included.

use super::{DATA_REGISTER, Generator, RESERVED_FIRST};

/// Whether the halfword computes or traps, and changes no register that the program depends on.
fn is_harmless(halfword: u16) -> bool {
    let register = u32::from(halfword >> 7 & 31);
    let is_reserved_register = (RESERVED_FIRST..=DATA_REGISTER).contains(&register);
    match (halfword & 3, halfword >> 13) {
        // C.ADDI4SPN and a reserved space: their registers are x8 to x15.
        (0, 0 | 4) => true,
        (1, 0..=3) => !is_reserved_register,
        (1, 4) => true,
        (2, 0) => !is_reserved_register,
        // C.MV, C.ADD and C.EBREAK; not the jumps C.JR and C.JALR, whose rs2 field is zero.
        (2, 4) => !is_reserved_register && (halfword >> 2 & 31 != 0 || halfword == 0x9002),
        _ => false,
    }
}

fn destination(halfword: u16) -> u32 {
    u32::from(match (halfword & 3, halfword >> 13) {
        (0, _) => 8 + (halfword >> 2 & 7),
        (1, 4) => 8 + (halfword >> 7 & 7),
        _ => halfword >> 7 & 31,
    })
}

pub fn operation(generator: &mut Generator) {
    loop {
        let halfword = generator.random.next() as u16;
        if is_harmless(halfword) {
            generator.code.push_compressed(halfword);
            generator.mix(destination(halfword));
            return;
        }
    }
}
