//! The values that a board may have.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{Board, BoardError, ClockBoard, LevelBoard};

const HARTS: RangeInclusive<usize> = 1..=64;
/// A microsecond for a `pause`: beyond that it is a mistake in the unit.
const PAUSE_CYCLES: RangeInclusive<u64> = 1..=1_000;
const PAGE_BYTES: u64 = 4096;
const MEMORY_BYTES_MIN: u64 = 16 << 20;
const MEMORY_BYTES_MAX: u64 = 64 << 30;
const QUANTUM_CYCLES: RangeInclusive<u64> = 1..=100_000;
const FUNCTIONAL_QUANTUM_CYCLES: RangeInclusive<u64> = 1..=10_000_000;
const LINE_BYTES: u64 = 64;
const WAYS: RangeInclusive<usize> = 1..=64;
const CACHE_BYTES_MAX: u64 = 1 << 30;
/// A millisecond for one miss, or one act of a transaction: beyond that it is a mistake in the unit.
const MISS_LATENCY_CYCLES: RangeInclusive<u64> = 0..=1_000_000;
/// A microsecond for one request's use of the bus: beyond that it is a mistake in the unit.
const BUS_BUSY_CYCLES: RangeInclusive<u64> = 0..=1_000;
/// 100 seconds.
const DEVICE_LATENCY_CYCLES: RangeInclusive<u64> = 0..=100_000_000_000;
const BANDWIDTH: RangeInclusive<u64> = 1..=1 << 40;
const TRANSLATION_ENTRIES: RangeInclusive<usize> = 2..=65_536;
/// Twenty doublings of it are still 18 minutes, not an overflow.
const BACKOFF_BASE_CYCLES: RangeInclusive<u64> = 0..=1 << 20;
const BACKOFF_EXPONENT: RangeInclusive<u32> = 0..=20;
const RESTART_THRESHOLD: RangeInclusive<u32> = 1..=u32::MAX;
/// Each access of a transaction looks through them.
const DEFERRED_ADDS: RangeInclusive<u32> = 0..=1024;
const NAME_CHARS_MAX: usize = 64;

struct Check<'a> {
    origin: &'a str,
}

impl Check<'_> {
    fn refuse(&self, key: &str, value: impl Display, allowed: impl Into<String>) -> BoardError {
        BoardError::Value {
            origin: self.origin.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    fn range<T: PartialOrd + Display + Copy>(
        &self,
        key: &str,
        value: T,
        range: &RangeInclusive<T>,
    ) -> Result<(), BoardError> {
        if range.contains(&value) {
            Ok(())
        } else {
            let allowed = format!("{} to {}", range.start(), range.end());
            Err(self.refuse(key, value, allowed))
        }
    }

    fn level(&self, key: &str, level: &LevelBoard) -> Result<(), BoardError> {
        self.range(&format!("{key}.ways"), level.ways, &WAYS)?;
        let size_key = format!("{key}.size_bytes");
        if level.size_bytes == 0 || level.size_bytes > CACHE_BYTES_MAX {
            return Err(self.refuse(&size_key, level.size_bytes, "1 set to 1 GiB"));
        }
        // `ways` is at most 64 here.
        let set_bytes = level.ways as u64 * LINE_BYTES;
        if !level.size_bytes.is_multiple_of(set_bytes) {
            let allowed = format!("a multiple of {set_bytes} ({} ways of {LINE_BYTES}-byte lines)", level.ways);
            return Err(self.refuse(&size_key, level.size_bytes, allowed));
        }
        let sets = level.size_bytes / set_bytes;
        if !sets.is_power_of_two() {
            let allowed = format!("a power of two of sets; {} ways of {LINE_BYTES}-byte lines make {sets}", level.ways);
            return Err(self.refuse(&size_key, level.size_bytes, allowed));
        }
        Ok(())
    }
}

pub(super) fn validate(board: &Board, origin: &str) -> Result<(), BoardError> {
    let check = Check { origin };
    name(board, &check)?;
    check.range("harts.count", board.harts.count, &HARTS)?;
    check.range("harts.pause_cycles", board.harts.pause_cycles, &PAUSE_CYCLES)?;
    memory(board, &check)?;
    check.range("order.quantum_cycles", board.order.quantum_cycles, &QUANTUM_CYCLES)?;
    check.range(
        "order.functional_quantum_cycles",
        board.order.functional_quantum_cycles,
        &FUNCTIONAL_QUANTUM_CYCLES,
    )?;
    cache(board, &check)?;
    contention(board, &check)?;
    let entries = board.translation.entries;
    if !TRANSLATION_ENTRIES.contains(&entries) || !entries.is_power_of_two() {
        let allowed = format!("a power of two from {} to {}", TRANSLATION_ENTRIES.start(), TRANSLATION_ENTRIES.end());
        return Err(check.refuse("translation.entries", entries, allowed));
    }
    for (key, cycles) in
        [("disk.latency_cycles", board.disk.latency_cycles), ("link.latency_cycles", board.link.latency_cycles)]
    {
        check.range(key, cycles, &DEVICE_LATENCY_CYCLES)?;
    }
    if let Some(bandwidth) = board.disk.bandwidth_bytes_per_second {
        check.range("disk.bandwidth_bytes_per_second", bandwidth, &BANDWIDTH)?;
    }
    transactions(board, &check)?;
    clock(board, &check)
}

fn name(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if board.name.is_empty() || board.name.len() > NAME_CHARS_MAX || !board.name.chars().all(plain) {
        let allowed = format!("1 to {NAME_CHARS_MAX} letters, digits, '-', '_' or '.'");
        return Err(check.refuse("name", format_args!("{:?}", board.name), allowed));
    }
    Ok(())
}

fn memory(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let size_bytes = board.memory.size_bytes;
    if !(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX).contains(&size_bytes) || !size_bytes.is_multiple_of(PAGE_BYTES) {
        return Err(check.refuse("memory.size_bytes", size_bytes, "16 MiB to 64 GiB in whole pages of 4 KiB"));
    }
    Ok(())
}

fn cache(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let cache = &board.cache;
    if cache.line_bytes != LINE_BYTES {
        return Err(check.refuse("cache.line_bytes", cache.line_bytes, "64 only"));
    }
    let first = [("cache.instruction", &cache.instruction), ("cache.data", &cache.data)];
    check.level("cache.second", &cache.second)?;
    for (key, level) in first {
        check.level(key, level)?;
        // The second level includes the first, so that a snoop need only ask the second.
        if level.size_bytes > cache.second.size_bytes {
            let allowed = format!("at most cache.second.size_bytes, {}", cache.second.size_bytes);
            return Err(check.refuse(&format!("{key}.size_bytes"), level.size_bytes, allowed));
        }
    }
    for (key, cycles) in [
        ("cache.second_latency_cycles", cache.second_latency_cycles),
        ("cache.memory_latency_cycles", cache.memory_latency_cycles),
        ("cache.transfer_latency_cycles", cache.transfer_latency_cycles),
        ("cache.upgrade_latency_cycles", cache.upgrade_latency_cycles),
        ("cache.perturbation_cycles_max", cache.perturbation_cycles_max),
    ] {
        check.range(key, cycles, &MISS_LATENCY_CYCLES)?;
    }
    Ok(())
}

fn contention(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let contention = &board.contention;
    for (key, cycles, latency_key, latency) in [
        ("window_cycles", contention.window_cycles, "transfer_latency_cycles", board.cache.transfer_latency_cycles),
        (
            "shared_busy_cycles",
            contention.shared_busy_cycles,
            "memory_latency_cycles",
            board.cache.memory_latency_cycles,
        ),
    ] {
        if cycles > latency {
            let allowed = format!("at most cache.{latency_key}, {latency}");
            return Err(check.refuse(&format!("contention.{key}"), cycles, allowed));
        }
    }
    check.range("contention.bus_busy_cycles", contention.bus_busy_cycles, &BUS_BUSY_CYCLES)
}

fn transactions(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let transactions = &board.transactions;
    check.range("transactions.backoff_base_cycles", transactions.backoff_base_cycles, &BACKOFF_BASE_CYCLES)?;
    check.range("transactions.backoff_exponent_max", transactions.backoff_exponent_max, &BACKOFF_EXPONENT)?;
    check.range("transactions.restart_threshold", transactions.restart_threshold, &RESTART_THRESHOLD)?;
    check.range("transactions.deferred_adds", transactions.deferred_adds, &DEFERRED_ADDS)?;
    for (key, cycles) in [
        ("transactions.begin_cycles", transactions.begin_cycles),
        ("transactions.commit_cycles", transactions.commit_cycles),
        ("transactions.rollback_word_cycles", transactions.rollback_word_cycles),
        ("transactions.overflow_cycles", transactions.overflow_cycles),
        ("transactions.overflow_check_cycles", transactions.overflow_check_cycles),
    ] {
        check.range(key, cycles, &MISS_LATENCY_CYCLES)?;
    }
    Ok(())
}

fn clock(board: &Board, check: &Check<'_>) -> Result<(), BoardError> {
    let only = ClockBoard::default();
    for (key, value, only) in [
        ("clock.frequency_hertz", board.clock.frequency_hertz, only.frequency_hertz),
        ("clock.timebase_hertz", board.clock.timebase_hertz, only.timebase_hertz),
    ] {
        if value != only {
            return Err(check.refuse(key, value, format!("{only} only")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One change to a good board.
    type Change = fn(&mut Board);

    const IMPOSSIBLE: &[Change] = &[
        |b| b.name.clear(),
        |b| b.name = "two words".to_owned(),
        |b| b.name = "x".repeat(65),
        |b| b.harts.count = 0,
        |b| b.harts.count = 65,
        |b| b.memory.size_bytes = 0,
        |b| b.memory.size_bytes = (16 << 20) - 4096,
        |b| b.memory.size_bytes = (64 << 30) + 4096,
        |b| b.memory.size_bytes = (1 << 30) + 1,
        |b| b.order.quantum_cycles = 0,
        |b| b.order.quantum_cycles = 100_001,
        |b| b.order.functional_quantum_cycles = 0,
        |b| b.order.functional_quantum_cycles = 10_000_001,
        |b| b.cache.line_bytes = 32,
        |b| b.cache.data.ways = 0,
        |b| b.cache.data.ways = 65,
        |b| b.cache.data.ways = 3,
        |b| b.cache.instruction.size_bytes = 0,
        |b| b.cache.instruction.size_bytes = 16_000,
        |b| b.cache.instruction.size_bytes = 24 << 10,
        |b| b.cache.second.size_bytes = 2 << 30,
        |b| b.cache.second.size_bytes = 8 << 10,
        |b| b.cache.second_latency_cycles = 1_000_001,
        |b| b.cache.memory_latency_cycles = u64::MAX,
        |b| b.cache.transfer_latency_cycles = u64::MAX,
        |b| b.cache.upgrade_latency_cycles = u64::MAX,
        |b| b.cache.perturbation_cycles_max = u64::MAX,
        |b| b.harts.pause_cycles = 0,
        |b| b.harts.pause_cycles = 1_001,
        |b| b.contention.window_cycles = 201,
        |b| b.contention.shared_busy_cycles = 201,
        |b| b.contention.bus_busy_cycles = 1_001,
        |b| b.translation.entries = 0,
        |b| b.translation.entries = 1,
        |b| b.translation.entries = 500,
        |b| b.translation.entries = 131_072,
        |b| b.disk.latency_cycles = u64::MAX,
        |b| b.disk.bandwidth_bytes_per_second = Some(0),
        |b| b.link.latency_cycles = u64::MAX,
        |b| b.transactions.backoff_base_cycles = (1 << 20) + 1,
        |b| b.transactions.backoff_exponent_max = 21,
        |b| b.transactions.restart_threshold = 0,
        |b| b.transactions.deferred_adds = 1025,
        |b| b.transactions.begin_cycles = 1_000_001,
        |b| b.transactions.commit_cycles = u64::MAX,
        |b| b.transactions.rollback_word_cycles = u64::MAX,
        |b| b.transactions.overflow_cycles = u64::MAX,
        |b| b.transactions.overflow_check_cycles = u64::MAX,
        |b| b.clock.frequency_hertz = 3_000_000_000,
        |b| b.clock.timebase_hertz = 0,
    ];

    #[test]
    fn the_impossible_is_refused_with_what_is_allowed() {
        let mut lines = String::new();
        for (index, change) in IMPOSSIBLE.iter().enumerate() {
            let mut board = Board::preset("metatm-2007").expect("the preset is valid");
            change(&mut board);
            match validate(&board, "my.toml") {
                Ok(()) => panic!("change {index} was accepted: {board:?}"),
                Err(error) => lines.push_str(&format!("{error}\n")),
            }
        }
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        let good: &[Change] = &[
            |b| b.harts.count = 1,
            |b| b.harts.count = 64,
            |b| b.memory.size_bytes = MEMORY_BYTES_MIN,
            |b| b.memory.size_bytes = MEMORY_BYTES_MAX,
            |b| b.memory.size_bytes = MEMORY_BYTES_MIN + PAGE_BYTES,
            |b| b.order.quantum_cycles = 1,
            |b| b.order.quantum_cycles = 100_000,
            |b| b.cache.data.ways = 1,
            |b| b.cache.data = b.cache.second.clone(),
            |b| b.cache.data.size_bytes = 256,
            |b| b.cache.second_latency_cycles = 0,
            |b| b.harts.pause_cycles = 1_000,
            |b| b.contention.window_cycles = 200,
            |b| b.contention.window_cycles = 0,
            |b| b.contention.shared_busy_cycles = 200,
            |b| b.contention.bus_busy_cycles = 1_000,
            |b| b.translation.entries = 2,
            |b| b.disk.latency_cycles = 0,
            |b| b.disk.bandwidth_bytes_per_second = Some(1),
            |b| b.transactions.backoff_base_cycles = 1 << 20,
            |b| b.transactions.backoff_base_cycles = 0,
            |b| b.transactions.backoff_exponent_max = 20,
            |b| b.transactions.backoff_exponent_max = 0,
            |b| b.transactions.restart_threshold = 1,
            |b| b.transactions.deferred_adds = 1024,
            |b| b.transactions.overflow_cycles = 1_000_000,
        ];
        for (index, change) in good.iter().enumerate() {
            let mut board = Board::preset("metatm-2007").expect("the preset is valid");
            change(&mut board);
            if let Err(error) = board.validate() {
                panic!("change {index} was refused: {error}");
            }
        }
    }
}
