//! CSRs, fences, traps and code that rewrites itself.

use super::{Generator, RESUME_REGISTER, integer, memory, window_entry};
use crate::support::assembler::{
    AUIPC, CSR_FCSR, CSR_FFLAGS, CSR_FRM, CSR_SATP, CSR_SCAUSE, CSR_SCOUNTEREN, CSR_SEPC, CSR_SIE, CSR_SIP,
    CSR_SSCRATCH, CSR_SSTATUS, CSR_STVAL, CSR_STVEC, CSRRC, CSRRS, CSRRW, EBREAK, ECALL, FENCE_I, JALR, LOAD, MISC_MEM,
    MRET, SFENCE_VMA_ALL, SRET, STORE, WFI, addi, csr as csr_access, i_type, s_type, u_type,
};
use crate::support::harness::{
    BAD_MEGAPAGES, CONTEXT, DATA_SLOT, NOWHERE, Paging, VECTOR, WINDOW_PAGES, window_entry_address,
};

/// Encodings that RV64GC with Zba, Zbb and Zbs leaves unassigned, and instructions of higher privilege.
const ILLEGAL: [u32; 22] = [
    0xffff_ffff,
    0x0000_0007 | 4 << 12,
    0x0000_0003 | 7 << 12,
    0x0000_0023 | 4 << 12,
    0x0000_0027 | 4 << 12,
    0x0000_0063 | 2 << 12,
    0x0000_0063 | 3 << 12,
    0x0000_0067 | 1 << 12,
    0x0000_002f,
    0x0000_202f | 0x05 << 27,
    0x0000_302f | 0x1f << 27,
    // LR with rs2.
    0x1010_202f,
    0x0000_006b,
    0x0000_0077,
    0x0000_0073 | 4 << 12,
    // CBO.CLEAN without Zicbom.
    0x0010_200f,
    MRET,
    // CSRR of mstatus, of an unassigned number, and a write of the read-only cycle.
    0x3000_2573,
    0x0000_2573 | 0x1ff << 20,
    0xc000_1073,
    // DRET, and SRET with rd.
    0x7b20_0073,
    SRET | 1 << 7,
];

pub fn float_status(generator: &mut Generator) {
    let rd = generator.destination();
    let number = generator.random.pick(&[CSR_FFLAGS, CSR_FFLAGS, CSR_FRM, CSR_FCSR]);
    let funct3 = generator.random.pick(&[CSRRW, CSRRS, CSRRC, 5, 6, 7]);
    let operand = generator.source();
    generator.code.push(csr_access(funct3, rd, number, operand));
    generator.mix(rd);
    // A reserved dynamic mode makes most that follows illegal: leave it soon.
    if generator.random.one_in(2) {
        generator.simple_item();
        generator.simple_item();
    }
    let mode = generator.random.below(5) as u32;
    generator.code.push(csr_access(5, 0, CSR_FRM, mode));
}

pub fn csr(generator: &mut Generator) {
    let kind = if generator.variant.is_user { 0 } else { generator.random.below(12) };
    match kind {
        // In U-mode supervisor CSRs trap; in S-mode this is a plain read and write of sscratch.
        0 | 1 => {
            let funct3 = generator.random.pick(&[CSRRW, CSRRS, CSRRC, 5, 6, 7]);
            let (rd, operand) = (generator.destination(), generator.source());
            generator.code.push(csr_access(funct3, rd, CSR_SSCRATCH, operand));
            generator.mix(rd);
        }
        2 => write_and_read(generator, CSR_STVAL, |random| random.integer()),
        3 => write_and_read(generator, CSR_SEPC, |random| random.integer() & !1),
        4 => write_and_read(generator, CSR_SCAUSE, |random| random.pick(&[0, 2, 8, 13, 15, 1 << 63 | 1, 1 << 63 | 9])),
        5 => write_and_read(generator, CSR_SCOUNTEREN, |random| random.below(8)),
        6 => {
            // The vector, direct or vectored, and back before the next trap.
            let (value, old, new) = three(generator);
            let mode = generator.random.below(2);
            let address = generator.random.integer() & !0xff | mode;
            generator.code.load_immediate(value, address);
            generator.code.push(csr_access(CSRRW, old, CSR_STVEC, value));
            generator.code.push(csr_access(CSRRW, new, CSR_STVEC, old));
            generator.mix(new);
        }
        7 | 8 => status_bits(generator),
        9 => return_to_self(generator),
        10 => software_interrupt(generator),
        _ => translation(generator),
    }
}

fn three(generator: &mut Generator) -> (u32, u32, u32) {
    let first = generator.temporary(&[]);
    let second = generator.temporary(&[first]);
    let third = generator.temporary(&[first, second]);
    (first, second, third)
}

fn write_and_read(generator: &mut Generator, number: u32, value: fn(&mut crate::support::random::Random) -> u64) {
    let register = generator.temporary(&[]);
    let value = value(&mut generator.random);
    generator.code.load_immediate(register, value);
    generator.code.push(csr_access(CSRRW, 0, number, register));
    let rd = generator.destination();
    generator.code.push(csr_access(CSRRS, rd, number, 0));
    generator.mix(rd);
}

/// Sets or clears SPIE, SPP, SUM and MXR, and reads sstatus. Floating point is dirty by then on both machines.
fn status_bits(generator: &mut Generator) {
    let register = generator.temporary(&[]);
    let bits = [1 << 5, 1 << 8, 1 << 18, 1 << 19];
    let mask = generator.random.pick(&bits) | generator.random.pick(&bits);
    generator.code.load_immediate(register, mask);
    let rd = generator.destination();
    let funct3 = generator.random.pick(&[CSRRS, CSRRC]);
    generator.code.push(csr_access(funct3, rd, CSR_SSTATUS, register));
    generator.mix(rd);
    if generator.random.one_in(4) {
        // Floating point off, one instruction that traps for it (or does not use it), and on again.
        generator.code.load_immediate(register, 3 << 13);
        generator.code.push(csr_access(CSRRC, 0, CSR_SSTATUS, register));
        if generator.random.one_in(3) {
            float_status(generator);
        } else {
            generator.simple_item();
        }
        generator.code.load_immediate(register, 3 << 13);
        generator.code.push(csr_access(CSRRS, 0, CSR_SSTATUS, register));
    }
}

/// SRET to the next instruction, staying in S-mode.
fn return_to_self(generator: &mut Generator) {
    let (target, mask, _) = three(generator);
    generator.code.load_immediate(mask, 1 << 8);
    generator.code.push(csr_access(CSRRS, 0, CSR_SSTATUS, mask));
    generator.code.load_immediate(mask, 1 << 5);
    generator.code.push(csr_access(CSRRC, 0, CSR_SSTATUS, mask));
    generator.code.push(u_type(AUIPC, target, 0));
    generator.code.push(addi(target, target, 16));
    generator.code.push(csr_access(CSRRW, 0, CSR_SEPC, target));
    generator.code.push(SRET);
}

/// A software interrupt: taken at once when enabled, through a direct or a vectored entry; or only seen by WFI, which
/// then does not wait.
fn software_interrupt(generator: &mut Generator) {
    let vector = generator.temporary(&[]);
    let mode = generator.random.below(2);
    let is_taken = generator.random.one_in(2);
    generator.code.load_immediate(vector, VECTOR | mode);
    generator.code.push(csr_access(CSRRW, 0, CSR_STVEC, vector));
    generator.code.push(csr_access(6, 0, CSR_SIE, 2));
    generator.code.push(csr_access(6, 0, CSR_SIP, 2));
    if is_taken {
        generator.code.push(csr_access(6, 0, CSR_SSTATUS, 2));
        integer::operation(generator);
        generator.code.push(csr_access(7, 0, CSR_SSTATUS, 2));
    } else {
        generator.code.push(WFI);
        generator.code.push(csr_access(7, 0, CSR_SIP, 2));
    }
    generator.code.push(csr_access(7, 0, CSR_SIE, 2));
    generator.code.load_immediate(vector, VECTOR);
    generator.code.push(csr_access(CSRRW, 0, CSR_STVEC, vector));
}

/// Bare: satp refuses a reserved mode. Paged: translation off and on, or an entry of the window replaced.
fn translation(generator: &mut Generator) {
    let (value, old, _) = three(generator);
    if generator.variant.paging == Paging::Bare {
        let reserved = generator.random.pick(&[1_u64, 7, 12, 15]) << 60 | generator.random.below(1 << 20);
        generator.code.load_immediate(value, reserved);
        generator.code.push(csr_access(CSRRW, 0, CSR_SATP, value));
        generator.code.push(csr_access(CSRRS, old, CSR_SATP, 0));
        generator.mix(old);
    } else if generator.random.one_in(3) {
        generator.code.push(csr_access(CSRRW, old, CSR_SATP, 0));
        generator.code.push(SFENCE_VMA_ALL);
        // Without translation the data is at its physical address.
        generator.code.load_immediate(value, DATA_SLOT);
        generator.code.push(i_type(LOAD, value, 3, value, 8 * generator.random.below(64) as i64));
        generator.code.push(csr_access(CSRRW, 0, CSR_SATP, old));
        generator.code.push(SFENCE_VMA_ALL);
    } else {
        let index = generator.random.below(WINDOW_PAGES as u64);
        let entry = window_entry(&mut generator.random, false);
        generator.code.load_immediate(old, window_entry_address(index));
        generator.code.load_immediate(value, entry);
        generator.code.push(s_type(STORE, 3, old, value, 0));
        if generator.random.one_in(2) {
            generator.code.push(SFENCE_VMA_ALL);
        } else {
            generator.code.load_immediate(old, generator.data_base + index * 4096);
            generator.code.push(SFENCE_VMA_ALL | old << 15);
        }
    }
}

/// FENCE with any fields, FENCE.I, and SFENCE.VMA, which traps in U-mode.
pub fn fence(generator: &mut Generator) {
    let instruction = match generator.random.below(4) {
        0 => FENCE_I,
        1 => SFENCE_VMA_ALL | generator.source() << 15 | generator.source() << 20,
        _ => i_type(MISC_MEM, 0, 0, 0, generator.random.below(256) as i64),
    };
    generator.code.push(instruction);
}

pub fn trap(generator: &mut Generator) {
    match generator.random.below(8) {
        0 => generator.code.push(EBREAK),
        1 => generator.code.push_compressed(0x9002),
        2 => environment_call(generator),
        3 if generator.variant.is_user => {
            let instruction = generator.random.pick(&[SRET, SFENCE_VMA_ALL]);
            generator.code.push(instruction);
        }
        4 => wild_access(generator),
        5 => wild_jump(generator),
        _ => {
            let illegal = generator.random.pick(&ILLEGAL);
            generator.code.push(illegal);
        }
    }
}

/// From U-mode a trap; from S-mode a call of an SBI extension that does not exist, which changes a0 and a1 alone.
fn environment_call(generator: &mut Generator) {
    if !generator.variant.is_user {
        generator.code.load_immediate(17, 0x0bad_cafe);
    }
    generator.code.push(ECALL);
    if !generator.variant.is_user {
        // The specification does not say what a1 holds after an error.
        generator.code.push(addi(11, 10, 0));
    }
}

/// An address that is not the program's to use.
fn wild_address(generator: &mut Generator) -> u64 {
    let low = generator.random.below(4096) & !7;
    if generator.variant.paging != Paging::Bare && generator.random.one_in(2) {
        return generator.data_base + generator.random.pick(&BAD_MEGAPAGES) + low;
    }
    let choices: &[u64] = match (generator.variant.paging, generator.variant.is_user) {
        (Paging::Bare, _) => &[NOWHERE],
        (Paging::Sv39, false) => &[0x10_0000_0000, 0x40_0000_0000, 0x8000_0000_0000_0000, 0xffff_ffbf_ffff_f000],
        (Paging::Sv39, true) => &[0x10_0000_0000, 0x40_0000_0000, CONTEXT & !0xfff, 0xffff_ffbf_ffff_f000],
        (Paging::Sv48, false) => &[0x10_0000_0000, 0x8000_0000_0000, 0x8000_0000_0000_0000, 0xffff_7fff_ffff_f000],
        (Paging::Sv48, true) => &[0x10_0000_0000, 0x8000_0000_0000, CONTEXT & !0xfff, 0xffff_7fff_ffff_f000],
    };
    generator.random.pick(choices) + low
}

fn wild_access(generator: &mut Generator) {
    let address = wild_address(generator);
    let base = generator.temporary(&[]);
    generator.code.load_immediate(base, address);
    let instruction = if generator.random.one_in(2) {
        let funct3 = generator.random.below(7) as u32;
        i_type(LOAD, generator.destination(), funct3, base, 0)
    } else {
        let funct3 = generator.random.below(4) as u32;
        s_type(STORE, funct3, base, generator.source(), 0)
    };
    generator.code.push(instruction);
}

fn wild_jump(generator: &mut Generator) {
    let address = wild_address(generator) + 2 * generator.random.below(2);
    let base = generator.temporary(&[]);
    jump_and_resume(generator, address, base);
}

/// Stores an instruction over a later one, and runs it after FENCE.I.
pub fn self_modification(generator: &mut Generator) {
    let (base, value, _) = three(generator);
    let new = integer::encode(generator);
    let old = integer::encode(generator);
    let start = generator.code.len_bytes();
    generator.code.push(u_type(AUIPC, base, 0));
    generator.code.load_immediate(value, u64::from(new));
    let position = generator.code.len_bytes();
    generator.code.push(0);
    generator.code.push(FENCE_I);
    let offset = (generator.code.len_bytes() - start) as i64;
    generator.code.push(old);
    generator.code.patch(position, s_type(STORE, 2, base, value, offset));
    generator.mix(new >> 7 & 31);
}

/// Writes a little code into the data and runs it where a page of the window has it, if that page may be executed;
/// often the first instruction's halves lie in two pages, of which the second may not be.
pub fn code_in_data(generator: &mut Generator) {
    // C.JR x24
    const RETURN: u64 = 0x8c02;
    let (base, value, _) = three(generator);
    let is_paged = generator.variant.paging != Paging::Bare;
    let writable = generator.data_base + if is_paged { memory::MEGAPAGE_OFFSET } else { 0 };
    let step = generator.random.below(4096) as i64 - 2048;
    let instruction = u64::from(addi(10, 10, step));
    let is_straddling = generator.random.one_in(2);
    let offset = if is_straddling { 4094 } else { generator.random.below(2040) * 2 };
    for page in [0, 1] {
        // The last halfword of one page goes on at the start of whatever page follows it in the window.
        let parts = if is_straddling {
            [(page * 4096 + 4094, instruction & 0xffff), (page * 4096, instruction >> 16 | RETURN << 16)]
        } else {
            [(page * 4096 + offset, instruction), (page * 4096 + offset + 4, RETURN)]
        };
        for (position, bits) in parts {
            generator.code.load_immediate(value, writable + position);
            generator.code.load_immediate(base, bits);
            let funct3 = if position == page * 4096 + 4094 || bits == RETURN { 1 } else { 2 };
            generator.code.push(s_type(STORE, funct3, value, base, 0));
        }
    }
    generator.code.push(FENCE_I);
    let page = if is_paged { generator.random.below(WINDOW_PAGES as u64) } else { 0 };
    jump_and_resume(generator, generator.data_base + page * 4096 + offset, base);
}

/// Jumps to `target`, from where x24 leads back, as it does from a failed fetch.
fn jump_and_resume(generator: &mut Generator, target: u64, base: u32) {
    let link = generator.destination();
    let start = generator.code.len_bytes();
    generator.code.push(u_type(AUIPC, RESUME_REGISTER, 0));
    let position = generator.code.len_bytes();
    generator.code.push(0);
    generator.code.load_immediate(base, target);
    generator.code.push(i_type(JALR, link, 0, base, 0));
    let offset = (generator.code.len_bytes() - start) as i64;
    generator.code.patch(position, addi(RESUME_REGISTER, RESUME_REGISTER, offset));
}
