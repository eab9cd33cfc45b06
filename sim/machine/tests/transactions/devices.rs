//! Devices and firmware in memory that transactions have in their sets: section 13 of docs/xmetatm.md.

use super::guest::*;
use crate::support::assembler::*;
use crate::support::bare::*;
use concord_abi::exit::Exit;
use concord_abi::htm::*;
use concord_dev::DiskMode;
use concord_machine::{DiskImage, Gear};

/// The first virtio slot, with a disk in it.
const DISK: u64 = 0x1000_1000;
/// What the disk reads from, and what it writes to.
const SOURCE: u64 = DATA + 0x2000;
const TARGET: u64 = DATA + 0x2800;
const SECTOR_BYTES: u64 = 512;
/// The queue: descriptors, available ring, used ring, headers, status bytes.
const QUEUE: u64 = DATA + 0x3000;
const AVAILABLE: u64 = QUEUE + 0x100;
const USED: u64 = QUEUE + 0x200;
const HEADERS: u64 = QUEUE + 0x300;
const STATUSES: u64 = QUEUE + 0x400;

/// A queue with two requests: to write the source to sector 0, and to read sector 0 into the target (virtio 1.2, sections 2.7 and
/// 5.2.6).
fn set_queue(bare: &mut Bare) {
    const NEXT: u64 = 1 << 32;
    const WRITE: u64 = 2 << 32;
    for (request, (operation, data, flags)) in [(1, SOURCE, 0), (0, TARGET, WRITE)].into_iter().enumerate() {
        let request = request as u64;
        let (header, status) = (HEADERS + 16 * request, STATUSES + 64 * request);
        bare.set_word(header, operation);
        bare.set_word(status, 0xff);
        let first = 3 * request;
        let parts = [
            (header, 16 | NEXT | (first + 1) << 48),
            (data, SECTOR_BYTES | NEXT | flags | (first + 2) << 48),
            (status, 1 | WRITE),
        ];
        for (index, (address, rest)) in parts.into_iter().enumerate() {
            let descriptor = QUEUE + 16 * (first + index as u64);
            bare.set_word(descriptor, address);
            bare.set_word(descriptor + 8, rest);
        }
    }
    // Flags and index, then the heads of the two chains.
    bare.set_word(AVAILABLE, 3 << 48);
}

fn write_register(bare: &mut Bare, offset: i64, value: u64) {
    bare.load(T0, DISK);
    bare.load(T1, value);
    bare.push(s_type(STORE, 2, T0, T1, offset));
}

/// Initializes the disk (virtio 1.2, sections 3.1.1 and 4.2.3).
fn start_disk(bare: &mut Bare) {
    let registers = [
        (0x70, 0),
        (0x70, 3),
        // The feature VIRTIO_F_VERSION_1, and no other.
        (0x24, 1),
        (0x20, 1),
        (0x70, 11),
        (0x30, 0),
        (0x38, 8),
        (0x80, QUEUE),
        (0x84, 0),
        (0x90, AVAILABLE),
        (0x94, 0),
        (0xa0, USED),
        (0xa4, 0),
        (0x44, 1),
        (0x70, 15),
    ];
    for (offset, value) in registers {
        write_register(bare, offset, value);
    }
}

/// Has the first requests done, up to `count` of them, and waits for the last.
fn run_requests(bare: &mut Bare, count: u64) {
    bare.load(T0, AVAILABLE);
    bare.load(T1, count);
    bare.push(s_type(STORE, 1, T0, T1, 2));
    write_register(bare, 0x50, 0);
    bare.load(T0, STATUSES + 64 * (count - 1));
    let again = bare.code.here();
    bare.push(i_type(LOAD, T1, 4, T0, 0));
    bare.code.branch(1, T1, ZERO, again);
}

/// A disk of one sector of a byte.
fn disk(byte: u8) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), vec![byte; 4 * SECTOR_BYTES as usize]).expect("the disk is written");
    file
}

fn with_disk(bare: &mut Bare, file: &tempfile::NamedTempFile) {
    bare.disks = vec![DiskImage { path: file.path().to_owned(), mode: DiskMode::Overlay }];
    bare.board.disk.latency_cycles = 500;
    set_queue(bare);
}

/// Harts sleep for long, and a disk is at work for a part of that: this part is I/O wait, of whoever sleeps.
#[test]
fn an_idle_hart_waits_for_the_disk_that_has_a_request() {
    const DISK_CYCLES: u64 = 50_000;
    const SLEEP_TICKS: u64 = 2_000;
    let file = disk(0);
    let sleep = |bare: &mut Bare| {
        bare.read_csr(S2, CSR_TIME);
        bare.load(S3, SLEEP_TICKS);
        bare.push(add(S2, S2, S3));
        bare.csrw(CSR_STIMECMP, S2);
        bare.set_bits(CSR_SIE, TIMER);
        bare.push(WFI);
    };
    let first = |bare: &mut Bare| {
        start_disk(bare);
        sleep(bare);
        bare.load(T0, AVAILABLE);
        bare.load(T1, 1);
        bare.push(s_type(STORE, 1, T0, T1, 2));
        write_register(bare, 0x50, 0);
        sleep(bare);
        sleep(bare);
    };
    // One hart works, one sleeps on, and one was never started.
    let second = |bare: &mut Bare| bare.rest();
    let third = |bare: &mut Bare| {
        bare.push(WFI);
        bare.rest();
    };
    for gear in [Gear::Functional, Gear::Timed] {
        let mut bare = Bare::new(3);
        bare.board.harts.count = 4;
        with_disk(&mut bare, &file);
        bare.board.disk.latency_cycles = DISK_CYCLES;
        let cycles_per_tick = bare.board.clock.frequency_hertz / bare.board.clock.timebase_hertz;
        bare.instructions_max = 10_000_000;
        on_harts(&[&first, &second, &third])(&mut bare);
        let (_, machine) = bare.run_whole(gear);
        let modes = machine.region().modes;
        // A quantum, and what the transfer takes besides the latency.
        let is_about = |cycles: u64| cycles.abs_diff(DISK_CYCLES) < 3_000;
        let slept_cycles = 3 * SLEEP_TICKS * cycles_per_tick;
        assert!(modes[0].idle_cycles.abs_diff(slept_cycles) < 3_000, "{gear:?} {modes:?}");
        assert!(is_about(modes[0].io_wait_cycles), "{gear:?} {modes:?}");
        assert_eq!((modes[1].io_wait_cycles, modes[1].idle_cycles < slept_cycles), (0, true), "{gear:?} {modes:?}");
        for sleeper in [2, 3] {
            assert!(is_about(modes[sleeper].io_wait_cycles), "{gear:?} {modes:?}");
            assert!(modes[sleeper].idle_cycles > slept_cycles, "{gear:?} {modes:?}");
        }
    }
}

/// a device reads what is committed, while the writer is active as while it is suspended; the writer commits afterwards.
#[test]
fn a_device_reads_committed_data() {
    let file = disk(0);
    for suspended in [false, true] {
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                bare.store(SOURCE, 5);
                bare.store(SOURCE + 504, 5);
                bare.store(A, 5);
                if suspended {
                    bare.meet(1);
                } else {
                    bare.outside(|bare| bare.store(FLAG, 1));
                    bare.poll(ANSWER, 1);
                }
            };
            let again = |bare: &mut Bare| {
                for word in [SOURCE, SOURCE + 504, A] {
                    bare.store(word, 5);
                }
            };
            bare.attempt(S2, first, again);
            bare.end();
            bare.log(S2);
            for word in [TARGET, TARGET + 8, TARGET + 504, SOURCE, SOURCE + 504, A] {
                bare.log_word(word);
            }
        };
        let second = |bare: &mut Bare| {
            start_disk(bare);
            bare.wait_for(FLAG, 1);
            run_requests(bare, 1);
            run_requests(bare, 2);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            with_disk(bare, &file);
            for (word, value) in [(SOURCE, 1), (SOURCE + 8, 2), (SOURCE + 504, 3)] {
                bare.set_word(word, value);
            }
            on_harts(&[&first, &second])(bare);
        };
        everywhere(2, build, |logs| {
            let words: [u64; 7] = logs.words(0);
            assert!([0, NONTRANSACTIONAL].contains(&words[0]), "{:?}: {}", logs.gear, words[0]);
            assert_eq!(words[1..], [1, 2, 3, 5, 5, 5], "{:?} {suspended}", logs.gear);
        });
    }
}

/// what a device writes wins against readers and writers, and is what stays; who has a word beside it
/// goes on.
#[test]
fn a_device_writes_and_wins() {
    let file = disk(0x77);
    let pattern = 0x7777_7777_7777_7777;
    // Where the transaction is, whether it writes there, whether it loses.
    let cases = [
        (TARGET, false, true),
        (TARGET, true, true),
        (TARGET + 504, false, true),
        (TARGET + 504, true, true),
        (TARGET + 512, true, false),
        (TARGET - 8, true, false),
    ];
    for (word, writes, loses) in cases {
        for suspended in [false, true] {
            let first = |bare: &mut Bare| {
                let first = |bare: &mut Bare| {
                    if writes {
                        bare.store(word, 5);
                    } else {
                        bare.load_word(S3, word);
                    }
                    bare.store(A, 5);
                    if suspended {
                        bare.meet(1);
                    } else {
                        bare.outside(|bare| bare.store(FLAG, 1));
                        bare.poll(ANSWER, 1);
                    }
                };
                bare.attempt(S2, first, |_| ());
                bare.end();
                bare.log(S2);
                bare.log_word(word);
                bare.log_word(A);
                bare.log_csr(CSR_CONFLICT);
                bare.log_csr(CSR_WINNER);
            };
            let second = |bare: &mut Bare| {
                start_disk(bare);
                bare.wait_for(FLAG, 1);
                // The second chain alone.
                bare.store(AVAILABLE, 3 << 32);
                bare.store(STATUSES, 0xff);
                bare.load(T0, AVAILABLE);
                bare.load(T1, 1);
                bare.push(s_type(STORE, 1, T0, T1, 2));
                write_register(bare, 0x50, 0);
                bare.load(T0, STATUSES + 64);
                let again = bare.code.here();
                bare.push(i_type(LOAD, T1, 4, T0, 0));
                bare.code.branch(1, T1, ZERO, again);
                bare.store(ANSWER, 1);
            };
            let build = |bare: &mut Bare| {
                with_disk(bare, &file);
                on_harts(&[&first, &second])(bare);
            };
            everywhere(2, build, |logs| {
                let expected = if loses { [NONTRANSACTIONAL, pattern, 0, word, 0] } else { [0, 5, 5, 0, 0] };
                assert_eq!(logs.words::<5>(0), expected, "{:?}: {word:#x} {writes} {suspended}", logs.gear);
            });
        }
    }
}

/// Runs a guest in both gears, checked and not, and gives its logs and what it printed before them.
fn printing(harts: usize, build: impl Fn(&mut Bare), check: impl Fn(Logs, &str)) {
    for gear in [Gear::Functional, Gear::Timed] {
        for check_isolation in [false, true] {
            let mut bare = Bare::new(harts);
            bare.check_isolation = check_isolation;
            build(&mut bare);
            let end = bare.run_to_any_end(gear);
            assert_eq!(end.outcome.end.exit, Exit::PoweredOff, "{gear:?}: {:?}", end.outcome);
            let text = &end.printed[..end.printed.len() - 0x1000 * harts];
            check(Logs::new(gear, &end.printed, harts), &String::from_utf8_lossy(text));
        }
    }
}

fn text(text: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*text)
}

/// the console prints what is committed, for another hart as for the writer's own, and the writer's own text once
/// it has committed.
#[test]
fn the_console_prints_committed_text() {
    for own in [false, true] {
        let print = |bare: &mut Bare| bare.sbi_quietly(SBI_CONSOLE, 0, &[16, A, 0]);
        let first = |bare: &mut Bare| {
            let write = |bare: &mut Bare| bare.store(A, text(b"new text"));
            let first = |bare: &mut Bare| {
                write(bare);
                bare.outside(|bare| if own { print(bare) } else { bare.meet_plainly(1) });
            };
            bare.attempt(S2, first, write);
            bare.end();
            print(bare);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            print(bare);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.set_word(A, text(b"old text"));
            bare.set_word(A + 8, text(b", again."));
            on_harts(&[&first, &second])(bare);
        };
        printing(2, build, |logs, printed| {
            assert_eq!(printed, "old text, again.new text, again.", "{:?}: own {own}", logs.gear);
        });
    }
}

/// what the console reads into a transaction's words wins.
#[test]
fn the_console_reads_and_wins() {
    for (writes, own) in [(false, false), (true, false), (false, true), (true, true)] {
        let read = |bare: &mut Bare| bare.sbi_quietly(SBI_CONSOLE, 1, &[5, A + 2, 0]);
        let first = |bare: &mut Bare| {
            let first = |bare: &mut Bare| {
                if writes {
                    bare.store(A, text(b"new text"));
                } else {
                    bare.load_word(S3, A);
                }
                bare.outside(|bare| if own { read(bare) } else { bare.meet_plainly(1) });
                bare.spin();
            };
            bare.attempt(S2, first, |_| ());
            bare.end();
            bare.log(S2);
            bare.log_word(A);
        };
        let second = |bare: &mut Bare| {
            bare.wait_for(FLAG, 1);
            read(bare);
            bare.store(ANSWER, 1);
        };
        let build = |bare: &mut Bare| {
            bare.set_word(A, text(b"old text"));
            bare.typed = b"typed".to_vec();
            on_harts(&[&first, &second])(bare);
        };
        printing(2, build, |logs, _| {
            let expected = [NONTRANSACTIONAL, text(b"oltypedt")];
            assert_eq!(logs.words::<2>(0), expected, "{:?}: {writes} {own}", logs.gear);
        });
    }
}
