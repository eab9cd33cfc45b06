//! The computation of integer ops and branches as host code: the counterpart of `concord_isa::semantics`, op by op.
//!
//! The test of this file executes each kind on both sides with random operands.

use concord_isa::op::Kind;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;

/// Emits the value that an integer op computes from two operands, as [`concord_isa::semantics::compute`] defines it.
/// `None` if the op is of another sort.
pub fn compute(builder: &mut FunctionBuilder, kind: Kind, first: Value, second: Value) -> Option<Value> {
    let mut emit = Emit { builder };
    Some(match kind {
        Kind::Move => first,
        Kind::Add | Kind::AddImmediate => emit.ins().iadd(first, second),
        Kind::Subtract => emit.ins().isub(first, second),
        Kind::SetLessThan | Kind::SetLessThanImmediate => emit.compare(IntCC::SignedLessThan, first, second),
        Kind::SetLessThanUnsigned | Kind::SetLessThanUnsignedImmediate => {
            emit.compare(IntCC::UnsignedLessThan, first, second)
        }
        Kind::Xor | Kind::XorImmediate => emit.ins().bxor(first, second),
        Kind::Or | Kind::OrImmediate => emit.ins().bor(first, second),
        Kind::And | Kind::AndImmediate => emit.ins().band(first, second),
        // The host's shifts take their distance modulo the width, as the guest's do.
        Kind::ShiftLeft | Kind::ShiftLeftImmediate => emit.ins().ishl(first, second),
        Kind::ShiftRight | Kind::ShiftRightImmediate => emit.ins().ushr(first, second),
        Kind::ShiftRightArithmetic | Kind::ShiftRightArithmeticImmediate => emit.ins().sshr(first, second),
        Kind::AddWord | Kind::AddWordImmediate => emit.by_word(first, second, |emit, a, b| emit.ins().iadd(a, b)),
        Kind::SubtractWord => emit.by_word(first, second, |emit, a, b| emit.ins().isub(a, b)),
        Kind::ShiftLeftWord | Kind::ShiftLeftWordImmediate => {
            emit.by_word(first, second, |emit, a, b| emit.ins().ishl(a, b))
        }
        Kind::ShiftRightWord | Kind::ShiftRightWordImmediate => {
            emit.by_word(first, second, |emit, a, b| emit.ins().ushr(a, b))
        }
        Kind::ShiftRightArithmeticWord | Kind::ShiftRightArithmeticWordImmediate => {
            emit.by_word(first, second, |emit, a, b| emit.ins().sshr(a, b))
        }
        Kind::Multiply => emit.ins().imul(first, second),
        Kind::MultiplyHigh => emit.ins().smulhi(first, second),
        Kind::MultiplyHighSignedUnsigned => emit.multiply_high_signed_unsigned(first, second),
        Kind::MultiplyHighUnsigned => emit.ins().umulhi(first, second),
        Kind::Divide => emit.divide(first, second),
        Kind::DivideUnsigned => emit.divide_unsigned(first, second),
        Kind::Remainder => emit.remainder(first, second),
        Kind::RemainderUnsigned => emit.remainder_unsigned(first, second),
        Kind::MultiplyWord => emit.by_word(first, second, |emit, a, b| emit.ins().imul(a, b)),
        Kind::DivideWord => emit.by_word(first, second, Emit::divide),
        Kind::DivideWordUnsigned => emit.by_word(first, second, Emit::divide_unsigned),
        Kind::RemainderWord => emit.by_word(first, second, Emit::remainder),
        Kind::RemainderWordUnsigned => emit.by_word(first, second, Emit::remainder_unsigned),
        Kind::ShiftOneAdd => emit.shift_add(first, 1, second),
        Kind::ShiftTwoAdd => emit.shift_add(first, 2, second),
        Kind::ShiftThreeAdd => emit.shift_add(first, 3, second),
        Kind::AddUnsignedWord => emit.unsigned_word_shift_add(first, 0, second),
        Kind::ShiftOneAddUnsignedWord => emit.unsigned_word_shift_add(first, 1, second),
        Kind::ShiftTwoAddUnsignedWord => emit.unsigned_word_shift_add(first, 2, second),
        Kind::ShiftThreeAddUnsignedWord => emit.unsigned_word_shift_add(first, 3, second),
        Kind::ShiftLeftUnsignedWordImmediate => {
            let word = emit.zero_extended_word(first);
            emit.ins().ishl(word, second)
        }
        Kind::AndNot => emit.ins().band_not(first, second),
        Kind::OrNot => emit.ins().bor_not(first, second),
        Kind::XorNot => emit.ins().bxor_not(first, second),
        Kind::CountLeadingZeros => emit.ins().clz(first),
        Kind::CountTrailingZeros => emit.ins().ctz(first),
        Kind::CountOnes => emit.ins().popcnt(first),
        Kind::CountLeadingZerosWord => emit.count_word(first, |emit, word| emit.ins().clz(word)),
        Kind::CountTrailingZerosWord => emit.count_word(first, |emit, word| emit.ins().ctz(word)),
        Kind::CountOnesWord => emit.count_word(first, |emit, word| emit.ins().popcnt(word)),
        Kind::Maximum => emit.ins().smax(first, second),
        Kind::MaximumUnsigned => emit.ins().umax(first, second),
        Kind::Minimum => emit.ins().smin(first, second),
        Kind::MinimumUnsigned => emit.ins().umin(first, second),
        Kind::SignExtendByte => emit.sign_extended(types::I8, first),
        Kind::SignExtendHalf => emit.sign_extended(types::I16, first),
        Kind::ZeroExtendHalf => {
            let half = emit.ins().ireduce(types::I16, first);
            emit.ins().uextend(types::I64, half)
        }
        Kind::RotateLeft => emit.ins().rotl(first, second),
        Kind::RotateRight | Kind::RotateRightImmediate => emit.ins().rotr(first, second),
        Kind::RotateLeftWord => emit.by_word(first, second, |emit, a, b| emit.ins().rotl(a, b)),
        Kind::RotateRightWord | Kind::RotateRightWordImmediate => {
            emit.by_word(first, second, |emit, a, b| emit.ins().rotr(a, b))
        }
        Kind::OrCombineBytes => emit.or_combine_bytes(first),
        Kind::ReverseBytes => emit.ins().bswap(first),
        Kind::BitClear | Kind::BitClearImmediate => {
            let bit = emit.bit(second);
            emit.ins().band_not(first, bit)
        }
        Kind::BitExtract | Kind::BitExtractImmediate => {
            let shifted = emit.ins().ushr(first, second);
            let one = emit.constant(1);
            emit.ins().band(shifted, one)
        }
        Kind::BitInvert | Kind::BitInvertImmediate => {
            let bit = emit.bit(second);
            emit.ins().bxor(first, bit)
        }
        Kind::BitSet | Kind::BitSetImmediate => {
            let bit = emit.bit(second);
            emit.ins().bor(first, bit)
        }
        _ => return None,
    })
}

/// The condition under which a branch is taken, as [`concord_isa::semantics::branches`] defines it; `None` for any
/// other op.
pub fn condition(kind: Kind) -> Option<IntCC> {
    Some(match kind {
        Kind::BranchEqual => IntCC::Equal,
        Kind::BranchNotEqual => IntCC::NotEqual,
        Kind::BranchLessThan => IntCC::SignedLessThan,
        Kind::BranchGreaterEqual => IntCC::SignedGreaterThanOrEqual,
        Kind::BranchLessThanUnsigned => IntCC::UnsignedLessThan,
        Kind::BranchGreaterEqualUnsigned => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

/// Operations that take more than one instruction of the code generator.
struct Emit<'a, 'b> {
    builder: &'a mut FunctionBuilder<'b>,
}

impl<'b> Emit<'_, 'b> {
    fn ins(&mut self) -> cranelift_frontend::FuncInstBuilder<'_, 'b> {
        self.builder.ins()
    }

    fn constant(&mut self, value: u64) -> Value {
        self.ins().iconst(types::I64, value as i64)
    }

    fn compare(&mut self, condition: IntCC, first: Value, second: Value) -> Value {
        let flag = self.ins().icmp(condition, first, second);
        self.ins().uextend(types::I64, flag)
    }

    fn word(&mut self, value: Value) -> Value {
        self.ins().ireduce(types::I32, value)
    }

    fn zero_extended_word(&mut self, value: Value) -> Value {
        let word = self.word(value);
        self.ins().uextend(types::I64, word)
    }

    fn sign_extended(&mut self, narrow: Type, value: Value) -> Value {
        let value = self.ins().ireduce(narrow, value);
        self.ins().sextend(types::I64, value)
    }

    /// Computes in words and sign-extends the result.
    fn by_word(&mut self, first: Value, second: Value, apply: impl FnOnce(&mut Self, Value, Value) -> Value) -> Value {
        let (first, second) = (self.word(first), self.word(second));
        let result = apply(self, first, second);
        self.ins().sextend(types::I64, result)
    }

    fn count_word(&mut self, value: Value, count: impl FnOnce(&mut Self, Value) -> Value) -> Value {
        let word = self.word(value);
        let counted = count(self, word);
        self.ins().uextend(types::I64, counted)
    }

    fn shift_add(&mut self, first: Value, distance: i64, second: Value) -> Value {
        let distance = self.ins().iconst(types::I64, distance);
        let shifted = self.ins().ishl(first, distance);
        self.ins().iadd(shifted, second)
    }

    fn unsigned_word_shift_add(&mut self, first: Value, distance: i64, second: Value) -> Value {
        let word = self.zero_extended_word(first);
        self.shift_add(word, distance, second)
    }

    fn bit(&mut self, number: Value) -> Value {
        let one = self.constant(1);
        self.ins().ishl(one, number)
    }

    fn multiply_high_signed_unsigned(&mut self, first: Value, second: Value) -> Value {
        // The unsigned product counts a negative first operand 2^64 too high.
        let high = self.ins().umulhi(first, second);
        let distance = self.constant(63);
        let sign = self.ins().sshr(first, distance);
        let excess = self.ins().band(sign, second);
        self.ins().isub(high, excess)
    }

    /// A constant of the operand's type.
    fn like(&mut self, operand: Value, value: i64) -> Value {
        let width = self.builder.func.dfg.value_type(operand);
        self.ins().iconst(width, value)
    }

    fn is(&mut self, operand: Value, value: i64) -> Value {
        let value = self.like(operand, value);
        self.ins().icmp(IntCC::Equal, operand, value)
    }

    /// The divisor, or 1 where the host would trap: for 0, and for the one signed division that overflows. Divided by 1
    /// that one gives the guest's results.
    fn divisor(&mut self, dividend: Value, divisor: Value) -> Value {
        let width = self.builder.func.dfg.value_type(dividend);
        let minimum = if width == types::I32 { i64::from(i32::MIN) } else { i64::MIN };
        // Constants of words are given zero-extended.
        let mask = if width == types::I32 { i64::from(u32::MAX) } else { -1 };
        let (is_zero, is_minus_one) = (self.is(divisor, 0), self.is(divisor, mask));
        let is_minimum = self.is(dividend, minimum & mask);
        let overflows = self.ins().band(is_minus_one, is_minimum);
        let traps = self.ins().bor(is_zero, overflows);
        let one = self.like(divisor, 1);
        self.ins().select(traps, one, divisor)
    }

    fn divide(&mut self, dividend: Value, divisor: Value) -> Value {
        let safe = self.divisor(dividend, divisor);
        let quotient = self.ins().sdiv(dividend, safe);
        self.unless_zero(divisor, quotient)
    }

    fn divide_unsigned(&mut self, dividend: Value, divisor: Value) -> Value {
        let safe = self.nonzero(divisor);
        let quotient = self.ins().udiv(dividend, safe);
        self.unless_zero(divisor, quotient)
    }

    fn remainder(&mut self, dividend: Value, divisor: Value) -> Value {
        let safe = self.divisor(dividend, divisor);
        let rest = self.ins().srem(dividend, safe);
        let is_zero = self.is(divisor, 0);
        self.ins().select(is_zero, dividend, rest)
    }

    fn remainder_unsigned(&mut self, dividend: Value, divisor: Value) -> Value {
        let safe = self.nonzero(divisor);
        let rest = self.ins().urem(dividend, safe);
        let is_zero = self.is(divisor, 0);
        self.ins().select(is_zero, dividend, rest)
    }

    fn nonzero(&mut self, divisor: Value) -> Value {
        let is_zero = self.is(divisor, 0);
        let one = self.like(divisor, 1);
        self.ins().select(is_zero, one, divisor)
    }

    /// The quotient, or all ones for a division by zero.
    fn unless_zero(&mut self, divisor: Value, quotient: Value) -> Value {
        let is_zero = self.is(divisor, 0);
        let zero = self.like(quotient, 0);
        let ones = self.ins().bnot(zero);
        self.ins().select(is_zero, ones, quotient)
    }

    /// Each byte becomes 0xff where it is not zero: the addition carries into the byte's highest bit, and no further.
    fn or_combine_bytes(&mut self, value: Value) -> Value {
        let low_bits = self.constant(0x7f7f_7f7f_7f7f_7f7f);
        let low = self.ins().band(value, low_bits);
        let carried = self.ins().iadd(low, low_bits);
        let any = self.ins().bor(carried, value);
        let seven = self.constant(7);
        let flags = self.ins().ushr(any, seven);
        let ones = self.constant(0x0101_0101_0101_0101);
        let flags = self.ins().band(flags, ones);
        let byte = self.constant(0xff);
        self.ins().imul(flags, byte)
    }
}
