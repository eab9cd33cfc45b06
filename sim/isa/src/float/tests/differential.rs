//! Every operation that rounds or compares against SoftFloat, on operands near the edges of what the host may compute.

use super::*;
use std::cmp::Ordering;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, figure 17). Strategies of
/// proptest would take most of the time of a test with millions of cases.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Bits with long runs and few ones, so that exact results and halves are frequent.
    fn bits(&mut self) -> u64 {
        let value = self.next();
        let shift = self.below(64);
        match self.below(5) {
            0 => value,
            1 => (value & 63) << shift,
            2 => (value & 3).wrapping_neg(),
            3 => 1 << shift | value & 1,
            _ => value >> shift,
        }
    }
}

/// The layout of a format, written down anew: the tests do not share the constants of the code under test.
#[derive(Clone, Copy)]
struct Layout {
    fraction_bits: u32,
    exponent_max: u64,
}

impl Layout {
    const fn of(format: u32) -> Layout {
        if format == D {
            Layout { fraction_bits: 52, exponent_max: 2047 }
        } else {
            Layout { fraction_bits: 23, exponent_max: 255 }
        }
    }

    fn number(self, random: &mut Random, exponent: u64) -> u64 {
        let fraction_mask = (1 << self.fraction_bits) - 1;
        // Fractions that begin with the same bits as an integer: as low bits they make it odd, as high bits short.
        let fraction = match random.below(3) {
            0 => random.bits(),
            1 => random.bits() << (self.fraction_bits / 2),
            _ => random.bits().reverse_bits() >> (64 - self.fraction_bits),
        } & fraction_mask;
        let sign = random.below(2) << (if self.fraction_bits == 52 { 63 } else { 31 });
        sign | exponent.min(self.exponent_max) << self.fraction_bits | fraction
    }

    /// Three numbers whose sums, products and quotients are ordinary, cancel, or lie at an end of the format's range.
    fn operands(self, random: &mut Random) -> [u64; 3] {
        let bias = self.exponent_max / 2;
        let edge = |random: &mut Random| match random.below(3) {
            0 => random.below(3),
            1 => self.exponent_max - random.below(3),
            _ => random.below(self.exponent_max + 1),
        };
        let first = match random.below(4) {
            0 => bias - 4 + random.below(8),
            1 => bias - 2 + random.below(70),
            2 => bias / 2 + random.below(bias),
            _ => edge(random),
        };
        // The exponent of the product, of the quotient or of the second operand itself is at an edge, or the second
        // operand is near the first.
        let target = edge(random);
        let second = match random.below(5) {
            0 => (target + bias).saturating_sub(first),
            1 => (first + bias).saturating_sub(target),
            2 => target,
            _ => first - first.min(2) + random.below(4),
        };
        let [a, b] = [first, second].map(|exponent| self.number(random, exponent));
        let third = (first + second).saturating_sub(bias) + random.below(5);
        let c = match random.below(4) {
            0 => self.number(random, target),
            1 => self.product(a, b) ^ random.below(2),
            _ => self.number(random, third - third.min(2)),
        };
        // Exact quotients and squares are rare among independent numbers.
        let b = if random.below(8) == 0 { a } else { b };
        let a = if random.below(8) == 0 { self.product(a, b) } else { a };
        [a, b, c]
    }

    fn product(self, a: u64, b: u64) -> u64 {
        if self.fraction_bits == 52 {
            d(f64::from_bits(a) * f64::from_bits(b))
        } else {
            (f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits().into()
        }
    }

    /// The f register of a number. One single of 32 is not NaN-boxed.
    fn register(self, random: &mut Random, number: u64) -> u64 {
        match (self.fraction_bits, random.below(32)) {
            (52, _) => number,
            (_, 0) => number | random.bits() << 32,
            (_, _) => number | 0xffff_ffff << 32,
        }
    }

    /// An f register that holds the same number, boxed.
    fn valid(self, register: u64) -> u64 {
        if self.fraction_bits == 52 || register >> 32 == 0xffff_ffff { register } else { NAN_S }
    }
}

/// SoftFloat's value and flags for an instruction in `mode` on boxed operands.
fn expected<F: Format>(instruction: u32, raw: [u64; 3], mode: RoundingMode) -> (u64, u8) {
    let [a, b, c] = raw.map(F::unbox);
    let [x, y] = [a, b].map(F::to_soft);
    let result = match (opcode(instruction), bits(instruction, 27, 5)) {
        (OPCODE_FMADD, _) => soft::multiply_add::<F>(a, b, c, mode).boxed::<F>(),
        (OPCODE_FMSUB, _) => soft::multiply_add::<F>(a, b, c ^ F::SIGN, mode).boxed::<F>(),
        (OPCODE_FNMSUB, _) => soft::multiply_add::<F>(a ^ F::SIGN, b, c, mode).boxed::<F>(),
        (OPCODE_FNMADD, _) => soft::multiply_add::<F>(a ^ F::SIGN, b, c ^ F::SIGN, mode).boxed::<F>(),
        (_, funct5::COMPARE) => {
            let is_invalid = match rm(instruction) {
                2 => [a, b].into_iter().any(F::is_signaling_nan),
                _ => [a, b].into_iter().any(F::is_nan),
            };
            let holds = match (rm(instruction), x.compare(y)) {
                (0 | 1, Some(Ordering::Less)) | (0 | 2, Some(Ordering::Equal)) => 1,
                _ => 0,
            };
            FloatResult { value: holds, flags: if is_invalid { NV } else { 0 } }
        }
        (_, funct5::CONVERT_TO_INTEGER) => {
            let mut result = collect(|| match rs2(instruction) {
                0 => x.to_i32(mode) as u64,
                1 => x.to_u32(mode) as i32 as u64,
                2 => x.to_i64(mode) as u64,
                _ => x.to_u64(mode),
            });
            // The crate's conversions do not report inexact.
            if result.flags == 0 && x.round_to_integral(mode).compare(x) != Some(Ordering::Equal) {
                result.flags = NX;
            }
            result
        }
        _ => soft::execute::<F>(instruction, raw[0], raw[1], mode),
    };
    (result.value, result.flags)
}

/// One instruction of each operation in `format`, in the mode `rm`.
fn instructions(format: u32, random: &mut Random, rm: u32) -> [u32; 10] {
    let kind = random.below(4) as u32;
    let fused = [OPCODE_FMADD, OPCODE_FMSUB, OPCODE_FNMSUB, OPCODE_FNMADD][kind as usize];
    [
        op(funct5::ADD, format, 0, rm),
        op(funct5::SUB, format, 0, rm),
        op(funct5::MUL, format, 0, rm),
        op(funct5::DIV, format, 0, rm),
        op(funct5::SQRT, format, 0, rm),
        op(funct5::CONVERT_FORMAT, format, 1 - format, rm),
        op(funct5::CONVERT_TO_INTEGER, format, kind, rm),
        op(funct5::CONVERT_FROM_INTEGER, format, kind, rm),
        op(funct5::COMPARE, format, 0, kind % 3),
        fused | format << 25 | rm << 12,
    ]
}

/// Compares `count` cases of each operation in each format. Three of four round to nearest even, as the host does.
fn compare_with_softfloat(seed: u64, count: u64) {
    let random = &mut Random(seed);
    for _ in 0..count {
        for format in [S, D] {
            let layout = Layout::of(format);
            let (rm, mode) = MODES[random.below(20).saturating_sub(15) as usize];
            let operands = layout.operands(random).map(|number| layout.register(random, number));
            let other = Layout::of(1 - format);
            for instruction in instructions(format, random, rm) {
                let (raw, valid) = match (opcode(instruction), bits(instruction, 27, 5)) {
                    (OPCODE_OP_FP, funct5::CONVERT_FROM_INTEGER) => ([random.bits(); 3], None),
                    (OPCODE_OP_FP, funct5::CONVERT_FORMAT) => {
                        (other.operands(random).map(|number| other.register(random, number)), Some(other))
                    }
                    _ => (operands, Some(layout)),
                };
                let valid = raw.map(|register| valid.map_or(register, |layout| layout.valid(register)));
                let expected = if format == D { expected::<Double> } else { expected::<Single> };
                let actual = run(instruction, raw);
                assert_eq!(actual, expected(instruction, valid, mode), "{instruction:#010x} {raw:#x?} seed {seed:#x}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// More than a million cases of each operation in each format.
    #[test]
    fn the_host_equals_softfloat(seed in any::<u64>()) {
        compare_with_softfloat(seed, 1 << 16);
    }

    #[test]
    #[ignore = "takes minutes"]
    fn the_host_equals_softfloat_at_length(seed in any::<u64>()) {
        compare_with_softfloat(seed, 1 << 22);
    }
}
