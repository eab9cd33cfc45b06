//! Misaligned accesses, faults in their second part, instructions that straddle pages, and code that changes.

use crate::support::assembler::*;
use crate::support::bare::*;

const PATTERN: u64 = 0x8877_6655_4433_2211;

#[test]
fn misaligned_accesses_cross_lines_and_pages() {
    let offsets = [0x1_u64, 0x3c, 0x3f, 0xff9, 0xffc, 0xfff];
    let build = |bare: &mut Bare| {
        bare.map(0, READ | WRITE);
        bare.map(1, READ | WRITE);
        bare.translate();
        bare.load(S1, PATTERN);
        for offset in offsets {
            bare.load(S0, WINDOW + offset);
            bare.push(sd(S1, S0, 0));
            bare.push(ld(T0, S0, 0));
            bare.log(T0);
            // LHU of the two bytes in the middle.
            bare.push(i_type(LOAD, T0, 5, S0, 3));
            bare.log(T0);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        for pair in logs.words::<12>(0).chunks(2) {
            assert_eq!(pair, [PATTERN, 0x5544], "{:?}", logs.gear);
        }
    });
}

/// The fault of the second part reports where that part begins, and nothing of the first part was stored.
#[test]
fn a_store_that_faults_in_its_second_page_stores_nothing() {
    let build = |bare: &mut Bare| {
        bare.map(0, READ | WRITE);
        bare.map(1, READ);
        bare.translate();
        bare.load(S0, WINDOW + 0xffc);
        bare.load(S1, PATTERN);
        bare.trap(|bare| bare.push(sd(S1, S0, 0)));
        bare.push(ld(T0, S0, -4));
        bare.log(T0);
        bare.load(S0, WINDOW + 0x1ffe);
        bare.trap(|bare| bare.push(ld(S1, S0, 0)));
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let words: [u64; 11] = logs.words(0);
        assert_eq!(words[..2], [15, WINDOW + 0x1000]);
        assert_eq!(words[5], 0, "{:?}: part of the store was done", logs.gear);
        assert_eq!(words[6..8], [13, WINDOW + 0x2000]);
    });
}

/// The same at the end of RAM, where the second part has nothing behind its address.
#[test]
fn an_access_across_the_end_of_memory_faults_whole() {
    let end = 0x8000_0000 + (16_u64 << 20);
    let build = |bare: &mut Bare| {
        bare.load(S0, end - 4);
        bare.load(S1, PATTERN);
        bare.trap(|bare| bare.push(sd(S1, S0, 0)));
        bare.trap(|bare| bare.push(ld(T0, S0, 0)));
        bare.push(ld(T0, S0, -4));
        bare.log(T0);
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        assert_eq!(logs.traps(2), [(7, end), (5, end)], "{:?}", logs.gear);
        assert_eq!(logs.words::<11>(0)[10], 0, "{:?}: part of the store was done", logs.gear);
    });
}

#[test]
fn an_instruction_across_two_pages_runs_and_faults_in_its_second() {
    let build = |bare: &mut Bare| {
        // addi s1, x0, 77 at the end of page 0, ebreak behind it.
        bare.set_code(DATA + 0xffe, &[addi(S1, ZERO, 77), EBREAK]);
        bare.map(0, READ | EXECUTE);
        bare.map(1, READ | EXECUTE);
        bare.set_code(DATA + 0x2ffe, &[addi(S1, ZERO, 78), EBREAK]);
        bare.map(2, READ | EXECUTE);
        bare.translate();
        for page in [0, 2] {
            bare.load(S0, WINDOW + page * 0x1000 + 0xffe);
            bare.trap(|bare| bare.push(i_type(JALR, ZERO, 0, S0, 0)));
        }
        bare.log(S1);
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let records = logs.records(2);
        assert_eq!(records[0][..3], [3, WINDOW + 0x1002, WINDOW + 0x1002]);
        assert_eq!(records[1][..3], [12, WINDOW + 0x3000, WINDOW + 0x2ffe]);
        assert_eq!(logs.words::<11>(0)[10], 77, "{:?}", logs.gear);
    });
}

#[test]
fn changed_code_runs_after_fence_i() {
    let build = |bare: &mut Bare| {
        let ret = i_type(JALR, 0, 0, 1, 0);
        bare.set_code(DATA, &[addi(S1, ZERO, 1), ret]);
        bare.load(S0, DATA);
        for number in [0, 2, 3] {
            if number != 0 {
                bare.load(T0, u64::from(addi(S1, ZERO, number)));
                bare.push(s_type(STORE, 2, S0, T0, 0));
                bare.push(FENCE_I);
            }
            bare.push(i_type(JALR, 1, 0, S0, 0));
            bare.log(S1);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| assert_eq!(logs.words::<3>(0), [1, 2, 3], "{:?}", logs.gear));
}

/// The link of a jump in the last word of the address space is zero, and what runs past it goes on at zero.
#[test]
fn the_program_counter_wraps_at_the_end_of_the_address_space() {
    let page = u64::MAX - 0xfff;
    let build = |bare: &mut Bare| {
        // The window's tables serve the top of the address space too: its last page is page 7 of the data.
        bare.set_word(TABLES + 8 * 511, entry(TABLES + 0x1000, 0));
        bare.set_word(TABLES + 0x1000 + 8 * 511, entry(TABLES + 0x2000, 0));
        bare.set_word(entry_address(511), entry(DATA + 0x7000, READ | EXECUTE));
        bare.set_code(DATA + 0x7fe0, &[EBREAK]);
        bare.translate();
        bare.load(S0, page + 0xfe0);
        bare.load(S1, page + 0xffc);
        for instruction in [j_type(1, -28), i_type(JALR, 1, 0, S0, 0), addi(1, 0, 5)] {
            bare.load(T0, DATA + 0x7ffc);
            bare.load(T1, u64::from(instruction));
            bare.push(s_type(STORE, 2, T0, T1, 0));
            bare.push(FENCE_I);
            bare.load(1, 1);
            bare.trap(|bare| bare.push(i_type(JALR, 0, 0, S1, 0)));
            bare.log(1);
        }
        bare.finish();
    };
    in_both_gears(1, build, |logs| {
        let words: [u64; 18] = logs.words(0);
        let found: Vec<[u64; 3]> = words.chunks(6).map(|record| [record[0], record[2], record[5]]).collect();
        assert_eq!(found, [[3, page + 0xfe0, 0], [3, page + 0xfe0, 0], [12, 0, 5]], "{:?}", logs.gear);
    });
}
