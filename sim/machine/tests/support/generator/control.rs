//! Loops, forward branches and jumps of every form.

use super::{Generator, LOOP_REGISTER, compressed, integer};
use crate::support::assembler::{AUIPC, JALR, addi, i_type, u_type};

pub fn bounded_loop(generator: &mut Generator) {
    let count = 1 + generator.random.below(12);
    generator.code.load_immediate(LOOP_REGISTER, count);
    let start = generator.code.here();
    for _ in 0..1 + generator.random.below(6) {
        generator.simple_item();
    }
    generator.code.push(addi(LOOP_REGISTER, LOOP_REGISTER, -1));
    generator.code.branch(1, LOOP_REGISTER, 0, start);
}

/// A branch over a few items, taken or not; or C.BEQZ or C.BNEZ over a few instructions.
pub fn forward_branch(generator: &mut Generator) {
    if generator.random.one_in(3) {
        let position = generator.code.len_bytes();
        generator.code.push_compressed(0);
        short_body(generator);
        let offset = (generator.code.len_bytes() - position) as u16;
        let funct3 = generator.random.pick(&[6_u16, 7]);
        let register = generator.random.below(8) as u16;
        let bits = (offset >> 8 & 1) << 12
            | (offset >> 3 & 3) << 10
            | register << 7
            | (offset >> 6 & 3) << 5
            | (offset >> 1 & 3) << 3
            | (offset >> 5 & 1) << 2;
        generator.code.patch_compressed(position, funct3 << 13 | bits | 1);
        return;
    }
    let funct3 = generator.random.pick(&[0, 1, 4, 5, 6, 7]);
    let (rs1, rs2) = (generator.source(), generator.source());
    let after = generator.code.label();
    generator.code.branch(funct3, rs1, rs2, after);
    for _ in 0..1 + generator.random.below(3) {
        generator.simple_item();
    }
    generator.code.bind(after);
}

fn short_body(generator: &mut Generator) {
    for _ in 0..1 + generator.random.below(4) {
        if generator.random.one_in(2) {
            compressed::operation(generator);
        } else {
            integer::operation(generator);
        }
    }
}

/// JAL, C.J, JALR, C.JR or C.JALR over a few instructions.
pub fn forward_jump(generator: &mut Generator) {
    let rd = generator.destination();
    match generator.random.below(5) {
        0 => {
            let after = generator.code.label();
            generator.code.jump(rd, after);
            short_body(generator);
            generator.code.bind(after);
        }
        1 => {
            let position = generator.code.len_bytes();
            generator.code.push_compressed(0);
            short_body(generator);
            let offset = (generator.code.len_bytes() - position) as u16;
            let bits = (offset >> 11 & 1) << 12
                | (offset >> 4 & 1) << 11
                | (offset >> 8 & 3) << 9
                | (offset >> 10 & 1) << 8
                | (offset >> 6 & 1) << 7
                | (offset >> 7 & 1) << 6
                | (offset >> 1 & 7) << 3
                | (offset >> 5 & 1) << 2;
            generator.code.patch_compressed(position, 5 << 13 | bits | 1);
        }
        2 => {
            let base = generator.temporary(&[]);
            let start = generator.code.len_bytes();
            generator.code.push(u_type(AUIPC, base, 0));
            let position = generator.code.len_bytes();
            generator.code.push(0);
            short_body(generator);
            // JALR clears the lowest bit of its target.
            let odd = generator.random.below(2) as i64;
            let offset = (generator.code.len_bytes() - start) as i64 + odd;
            generator.code.patch(position, i_type(JALR, rd, 0, base, offset));
        }
        form => {
            let base = generator.temporary(&[]);
            let start = generator.code.len_bytes();
            generator.code.push(u_type(AUIPC, base, 0));
            let position = generator.code.len_bytes();
            generator.code.push(0);
            let link = if form == 3 { 0x8002 } else { 0x9002 };
            generator.code.push_compressed(link | (base as u16) << 7);
            short_body(generator);
            let offset = (generator.code.len_bytes() - start) as i64;
            generator.code.patch(position, addi(base, base, offset));
        }
    }
}
