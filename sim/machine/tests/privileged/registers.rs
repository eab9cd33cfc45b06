//! What CSRs keep of what is written to them, and who may touch them (privileged specification, "Supervisor CSRs").

use crate::support::assembler::*;
use crate::support::bare::*;

const CSR_SENVCFG: u32 = 0x10a;
const CSR_CYCLE: u32 = 0xc00;
const CSR_INSTRET: u32 = 0xc02;
const CSR_HPMCOUNTER3: u32 = 0xc03;
const FS: u64 = 3 << 13;
const UXL_64: u64 = 2 << 32;
const SD: u64 = 1 << 63;

/// Each write of a CSR, and what a read then gives.
const WRITES: [(u32, u64, u64); 22] = [
    (CSR_SSTATUS, 0, UXL_64),
    // FS is dirty whenever it is on, and SIE stays off here so that nothing interrupts.
    (CSR_SSTATUS, !SIE, SPIE | SPP | FS | SUM | MXR | UXL_64 | SD),
    (CSR_SIE, u64::MAX, SOFTWARE | TIMER | EXTERNAL),
    (CSR_SIE, 0, 0),
    (CSR_SIP, u64::MAX, SOFTWARE),
    (CSR_SIP, 0, 0),
    (CSR_SEPC, u64::MAX, u64::MAX - 1),
    (CSR_SCAUSE, u64::MAX, u64::MAX),
    (CSR_STVAL, u64::MAX, u64::MAX),
    (CSR_SSCRATCH, 0x0123_4567_89ab_cdef, 0x0123_4567_89ab_cdef),
    (CSR_SCOUNTEREN, u64::MAX, 7),
    (CSR_SENVCFG, u64::MAX, 1),
    (CSR_STIMECMP, u64::MAX, u64::MAX),
    (CSR_STVEC, VECTOR | 1, VECTOR | 1),
    // Modes 2 and 3 are reserved; the mode stays as it was.
    (CSR_STVEC, VECTOR | 2, VECTOR | 1),
    (CSR_STVEC, VECTOR, VECTOR),
    (CSR_STVEC, VECTOR | 3, VECTOR),
    // No mode but bare, Sv39 and Sv48; no address-space number.
    (CSR_SATP, 10 << 60 | 5, 0),
    (CSR_SATP, 1 << 60 | 5, 0),
    (CSR_SATP, 15 << 60 | 5, 0),
    (CSR_SATP, SATP_SV39 | 0xffff << 44, SATP_SV39),
    (CSR_SATP, 11 << 60, SATP_SV39),
];

#[test]
fn writes_keep_what_is_legal() {
    let build = |bare: &mut Bare| {
        for (number, value, _) in WRITES {
            bare.set_csr(number, value);
            bare.log_csr(number);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        for ((number, value, expected), found) in WRITES.into_iter().zip(logs.words::<22>(0)) {
            assert_eq!(found, expected, "{:?}: CSR {number:#x} after a write of {value:#x}", logs.gear);
        }
    });
}

#[test]
fn csrs_that_do_not_exist_or_cannot_be_written_are_illegal() {
    let illegal = [
        csr(CSRRS, T1, 0x300, 0),
        csr(CSRRS, T1, 0x5d0, 0),
        csr(CSRRS, T1, 0x600, 0),
        csr(CSRRS, T1, 0xf14, 0),
        csr(CSRRS, T1, 0x015, 0),
        csr(CSRRS, T1, CSR_HPMCOUNTER3, 0),
        csr(CSRRW, 0, CSR_CYCLE, 0),
        csr(CSRRS, 0, CSR_TIME, T1),
        csr(CSRRC, 0, CSR_INSTRET, T1),
        csr(5, 0, CSR_CYCLE, 0),
        csr(6, 0, CSR_CYCLE, 1),
        csr(4, 0, CSR_SSTATUS, 0),
    ];
    let legal = [csr(CSRRS, T1, CSR_CYCLE, 0), csr(6, T1, CSR_CYCLE, 0), csr(7, T1, CSR_TIME, 0)];
    let build = |bare: &mut Bare| {
        for instruction in illegal.into_iter().chain(legal) {
            bare.trap(|bare| bare.push(instruction));
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let traps = logs.traps(illegal.len() + legal.len());
        for (instruction, trap) in illegal.into_iter().zip(&traps) {
            assert_eq!(*trap, (2, u64::from(instruction)), "{instruction:#010x}");
        }
        assert_eq!(traps[illegal.len()..], [(0x7a7, 0x7a7); 3]);
    });
}

#[test]
fn user_mode_reads_the_counters_that_scounteren_opens() {
    let counters = [CSR_CYCLE, CSR_TIME, CSR_INSTRET];
    let build = |bare: &mut Bare| {
        for (index, counter) in counters.into_iter().enumerate() {
            bare.set_code(DATA + 16 * index as u64, &[csr(CSRRS, T1, counter, 0), EBREAK]);
        }
        for open in 0..8 {
            bare.set_csr(CSR_SCOUNTEREN, open);
            for index in 0..3 {
                bare.trap(|bare| bare.enter_user(DATA + 16 * index));
            }
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let causes: Vec<u64> = logs.traps(24).iter().map(|trap| trap.0).collect();
        let expected = |open: usize, index: usize| if open >> index & 1 == 1 { 3 } else { 2 };
        let expected: Vec<u64> = (0..24).map(|attempt| expected(attempt / 3, attempt % 3)).collect();
        assert_eq!(causes, expected, "{:?}", logs.gear);
    });
}

#[test]
fn floating_point_that_is_off_is_illegal_and_on_is_dirty() {
    let add = r_type(OP_FP, 0, 0, 0, 0, 1);
    let attempts = [
        add,
        csr(CSRRS, T1, CSR_FCSR, 0),
        csr(CSRRS, T1, CSR_FRM, 0),
        i_type(LOAD_FP, 0, 3, S0, 0),
        s_type(STORE_FP, 3, S0, 0, 0),
    ];
    let build = |bare: &mut Bare| {
        bare.load(S0, DATA);
        bare.clear_bits(CSR_SSTATUS, FS);
        for instruction in attempts {
            bare.trap(|bare| bare.push(instruction));
        }
        bare.set_bits(CSR_SSTATUS, 1 << 13);
        for instruction in attempts {
            bare.trap(|bare| bare.push(instruction));
        }
        // Rounding mode 5 is reserved: an instruction that takes its mode from frm is illegal.
        bare.set_csr(CSR_FRM, 5);
        bare.trap(|bare| bare.push(r_type(OP_FP, 0, 7, 0, 0, 1)));
        bare.log_csr(CSR_SSTATUS);
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let causes: Vec<u64> = logs.traps(11).iter().map(|trap| trap.0).collect();
        assert_eq!(causes, [[2; 5], [0x7a7; 5]].concat().into_iter().chain([2]).collect::<Vec<u64>>());
        assert_eq!(logs.words::<56>(0)[55] & (FS | SD), FS | SD);
    });
}
