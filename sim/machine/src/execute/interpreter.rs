//! The interpreter: executes one decoded run after the other.
//!
//! This file contains the work of every instruction, which needs the hart's hot state alone. Rarer work passes through
//! the [`Door`]. `concord_isa::semantics` defines what ops compute.

use crate::execute::door::{Door, Left, Stop};
use crate::execute::position::Position;
use crate::hart::{CAUSE_LOAD_MISALIGNED, CAUSE_STORE_MISALIGNED, SSTATUS_FS};
use concord_isa::float::{self, FloatResult};
use concord_isa::op::{Atomic, Kind, Op, SINK};
use concord_isa::semantics::{branches, compute, loaded};
use concord_mem::hot::HotState;

/// The register `ra`.
const RETURN_ADDRESS: u8 = 1;

/// True if floating-point instructions are enabled.
#[inline(always)]
pub(crate) fn float_is_on(hot: &HotState) -> bool {
    hot.sstatus & SSTATUS_FS != 0
}

/// Executes the ops from `first` on, which is at `start` in its run, until one leaves the run. `page_address` is the virtual
/// address of the run's page, and `ANSWERS` selects the accesses that the line table answers (`concord_mem::line_table`).
///
/// This function is longer than others, because the compiler keeps the loop's state in registers only if the whole loop
/// is in one function.
///
/// # Safety
/// `first` points into ops that end with one that leaves the run ([`Op::ends_run`] or [`Kind::Next`]) and name registers of at
/// most [`concord_isa::op::SINK`], which is below the length of the register arrays. `hot` points to the hot state of
/// `start`'s hart, whose line table holds host addresses of RAM in its matching entries. Neither moves during the call,
/// whatever goes through the door.
#[inline(always)]
pub(super) unsafe fn run_ops<const TIMED: bool, const ANSWERS: u8>(
    door: &mut impl Door,
    hot: *mut HotState,
    first: *const Op,
    start: Position,
    page_address: u64,
) -> Left {
    // Ops of this run that took no cycle.
    let mut free = start.free;
    // SAFETY: the caller's promises; an access that hits is aligned and inside RAM.
    unsafe {
        let mut next = first;
        let x = (&raw mut (*hot).x).cast::<u64>();
        let user = (*hot).user;
        macro_rules! x {
            ($register:expr) => {
                *x.add($register as usize)
            };
        }
        loop {
            let here = next;
            let op = *here;
            next = next.add(1);
            macro_rules! at {
                () => {
                    at!(here)
                };
                ($op:expr) => {
                    Position { completed: start.completed + $op.offset_from(first) as u32, free, ..start }
                };
            }
            macro_rules! stop {
                ($op:expr, $stop:expr) => {
                    return Left::Stopped { at: at!($op), op: $op, stop: $stop }
                };
            }
            macro_rules! set {
                ($value:expr) => {{
                    let value: u64 = $value;
                    x!(op.rd) = value;
                }};
            }
            // Each kind is known at compile time here, so the compiler removes the `Option`.
            macro_rules! binary {
                ($kind:ident) => {
                    set!(compute(Kind::$kind, x!(op.rs1), x!(op.rs2)).expect("an op that computes"))
                };
            }
            macro_rules! immediate {
                ($kind:ident) => {
                    set!(compute(Kind::$kind, x!(op.rs1), op.imm as i64 as u64).expect("an op that computes"))
                };
            }
            macro_rules! unary {
                ($kind:ident) => {
                    set!(compute(Kind::$kind, x!(op.rs1), 0).expect("an op that computes"))
                };
            }
            macro_rules! extend {
                ($kind:ident, $bytes:expr) => {
                    loaded(Kind::$kind, u64::from($bytes)).expect("an op that loads")
                };
            }
            macro_rules! branch {
                ($kind:ident) => {
                    if branches(Kind::$kind, x!(op.rs1), x!(op.rs2)).expect("a branch") {
                        return Left::Gone { at: at!(next), target: op.imm as i64 as u64 };
                    }
                };
            }
            macro_rules! load {
                ($type:ty) => {{
                    const SIZE: u64 = size_of::<$type>() as u64;
                    let address = x!(op.rs1).wrapping_add(op.imm as i64 as u64);
                    match (&(*hot).lines).hit(TIMED, ANSWERS, false, address, SIZE, user) {
                        Some(host) => *(host as *const $type),
                        None => match door.load(at!(), address, SIZE) {
                            Ok(value) => value as $type,
                            Err(stop) => stop!(here, stop),
                        },
                    }
                }};
            }
            macro_rules! store {
                ($type:ty, $value:expr) => {{
                    const SIZE: u64 = size_of::<$type>() as u64;
                    let address = x!(op.rs1).wrapping_add(op.imm as i64 as u64);
                    let value: u64 = $value;
                    match (&(*hot).lines).hit(TIMED, ANSWERS, true, address, SIZE, user) {
                        Some(host) => *(host as *mut $type) = value as $type,
                        None => {
                            if let Err(stop) = door.store(at!(), address, SIZE, value) {
                                stop!(here, stop);
                            }
                        }
                    }
                }};
            }
            macro_rules! atomic {
                ($type:ty, $apply:ident) => {{
                    const SIZE: u64 = size_of::<$type>() as u64;
                    let address = x!(op.rs1);
                    let operand = x!(op.rs2);
                    let operation = Atomic::from_immediate(op.imm);
                    match (&(*hot).lines).hit(TIMED, ANSWERS, true, address, SIZE, user) {
                        Some(host) => {
                            door.note_atomic(at!(), address);
                            let place = host as *mut $type;
                            let old = *place as u64;
                            *place = operation.$apply(old, operand) as $type;
                            old as $type
                        }
                        None if address % SIZE != 0 => {
                            stop!(here, Stop::Trap { cause: CAUSE_STORE_MISALIGNED, value: address })
                        }
                        None => {
                            let unread = (operation == Atomic::Add && op.rd == SINK).then_some(operand);
                            let update = |old| operation.$apply(old, operand);
                            match door.read_modify_write(at!(), address, SIZE, unread, update) {
                                Ok(old) => old as $type,
                                Err(stop) => stop!(here, stop),
                            }
                        }
                    }
                }};
            }
            macro_rules! load_reserved {
                ($type:ty) => {{
                    const SIZE: u64 = size_of::<$type>() as u64;
                    let address = x!(op.rs1);
                    if address % SIZE != 0 {
                        stop!(here, Stop::Trap { cause: CAUSE_LOAD_MISALIGNED, value: address });
                    }
                    match door.load_reserved(at!(), address, SIZE) {
                        Ok(value) => value as $type,
                        Err(stop) => stop!(here, stop),
                    }
                }};
            }
            macro_rules! store_conditional {
                ($type:ty) => {{
                    const SIZE: u64 = size_of::<$type>() as u64;
                    let address = x!(op.rs1);
                    if address % SIZE != 0 {
                        stop!(here, Stop::Trap { cause: CAUSE_STORE_MISALIGNED, value: address });
                    }
                    match door.store_conditional(at!(), address, SIZE, x!(op.rs2)) {
                        Ok(stored) => set!(u64::from(!stored)),
                        Err(stop) => stop!(here, stop),
                    }
                }};
            }
            macro_rules! float_is_on {
                () => {
                    if !float_is_on(&*hot) {
                        stop!(here, Stop::System);
                    }
                };
            }
            macro_rules! load_float {
                ($kind:ident, $type:ty) => {{
                    float_is_on!();
                    (*hot).f[op.rd as usize] = extend!($kind, load!($type));
                    (*hot).sstatus |= SSTATUS_FS;
                }};
            }
            macro_rules! store_float {
                ($type:ty) => {{
                    float_is_on!();
                    store!($type, (*hot).f[op.rs2 as usize]);
                }};
            }
            let imm = op.imm as i64 as u64;
            match op.kind {
                Kind::Next => return Left::Gone { at: at!(), target: imm },
                Kind::Nop | Kind::Fence => {}
                Kind::LoadImmediate => set!(imm),
                Kind::AddPc => set!(page_address.wrapping_add(imm)),
                Kind::Move => unary!(Move),
                Kind::AddImmediate => immediate!(AddImmediate),
                Kind::SetLessThanImmediate => immediate!(SetLessThanImmediate),
                Kind::SetLessThanUnsignedImmediate => immediate!(SetLessThanUnsignedImmediate),
                Kind::XorImmediate => immediate!(XorImmediate),
                Kind::OrImmediate => immediate!(OrImmediate),
                Kind::AndImmediate => immediate!(AndImmediate),
                Kind::ShiftLeftImmediate => immediate!(ShiftLeftImmediate),
                Kind::ShiftRightImmediate => immediate!(ShiftRightImmediate),
                Kind::ShiftRightArithmeticImmediate => immediate!(ShiftRightArithmeticImmediate),
                Kind::AddWordImmediate => immediate!(AddWordImmediate),
                Kind::ShiftLeftWordImmediate => immediate!(ShiftLeftWordImmediate),
                Kind::ShiftRightWordImmediate => immediate!(ShiftRightWordImmediate),
                Kind::ShiftRightArithmeticWordImmediate => immediate!(ShiftRightArithmeticWordImmediate),
                Kind::Add => binary!(Add),
                Kind::Subtract => binary!(Subtract),
                Kind::ShiftLeft => binary!(ShiftLeft),
                Kind::SetLessThan => binary!(SetLessThan),
                Kind::SetLessThanUnsigned => binary!(SetLessThanUnsigned),
                Kind::Xor => binary!(Xor),
                Kind::ShiftRight => binary!(ShiftRight),
                Kind::ShiftRightArithmetic => binary!(ShiftRightArithmetic),
                Kind::Or => binary!(Or),
                Kind::And => binary!(And),
                Kind::AddWord => binary!(AddWord),
                Kind::SubtractWord => binary!(SubtractWord),
                Kind::ShiftLeftWord => binary!(ShiftLeftWord),
                Kind::ShiftRightWord => binary!(ShiftRightWord),
                Kind::ShiftRightArithmeticWord => binary!(ShiftRightArithmeticWord),
                Kind::LoadByte => set!(extend!(LoadByte, load!(u8))),
                Kind::LoadHalf => set!(extend!(LoadHalf, load!(u16))),
                Kind::LoadWord => set!(extend!(LoadWord, load!(u32))),
                Kind::LoadDouble => set!(extend!(LoadDouble, load!(u64))),
                Kind::LoadByteUnsigned => set!(extend!(LoadByteUnsigned, load!(u8))),
                Kind::LoadHalfUnsigned => set!(extend!(LoadHalfUnsigned, load!(u16))),
                Kind::LoadWordUnsigned => set!(extend!(LoadWordUnsigned, load!(u32))),
                Kind::StoreByte => store!(u8, x!(op.rs2)),
                Kind::StoreHalf => store!(u16, x!(op.rs2)),
                Kind::StoreWord => store!(u32, x!(op.rs2)),
                Kind::StoreDouble => store!(u64, x!(op.rs2)),
                Kind::BranchEqual => branch!(BranchEqual),
                Kind::BranchNotEqual => branch!(BranchNotEqual),
                Kind::BranchLessThan => branch!(BranchLessThan),
                Kind::BranchGreaterEqual => branch!(BranchGreaterEqual),
                Kind::BranchLessThanUnsigned => branch!(BranchLessThanUnsigned),
                Kind::BranchGreaterEqualUnsigned => branch!(BranchGreaterEqualUnsigned),
                Kind::Jump => {
                    set!(page_address.wrapping_add(u64::from(op.rs1) | u64::from(op.rs2) << 8));
                    return Left::Gone { at: at!(next), target: imm };
                }
                Kind::JumpRegister => {
                    let target = x!(op.rs1).wrapping_add((op.imm >> 16) as u64) & !1;
                    set!(page_address.wrapping_add(imm & 0xffff));
                    return Left::Gone { at: at!(next), target: target.wrapping_sub(page_address) };
                }
                Kind::Multiply => binary!(Multiply),
                Kind::MultiplyHigh => binary!(MultiplyHigh),
                Kind::MultiplyHighSignedUnsigned => binary!(MultiplyHighSignedUnsigned),
                Kind::MultiplyHighUnsigned => binary!(MultiplyHighUnsigned),
                Kind::Divide => binary!(Divide),
                Kind::DivideUnsigned => binary!(DivideUnsigned),
                Kind::Remainder => binary!(Remainder),
                Kind::RemainderUnsigned => binary!(RemainderUnsigned),
                Kind::MultiplyWord => binary!(MultiplyWord),
                Kind::DivideWord => binary!(DivideWord),
                Kind::DivideWordUnsigned => binary!(DivideWordUnsigned),
                Kind::RemainderWord => binary!(RemainderWord),
                Kind::RemainderWordUnsigned => binary!(RemainderWordUnsigned),
                Kind::LoadReservedWord => set!(extend!(LoadReservedWord, load_reserved!(u32))),
                Kind::LoadReservedDouble => set!(extend!(LoadReservedDouble, load_reserved!(u64))),
                Kind::StoreConditionalWord => store_conditional!(u32),
                Kind::StoreConditionalDouble => store_conditional!(u64),
                Kind::AtomicWord => set!(extend!(AtomicWord, atomic!(u32, apply_word))),
                Kind::AtomicDouble => set!(extend!(AtomicDouble, atomic!(u64, apply))),
                Kind::LoadFloatWord => load_float!(LoadFloatWord, u32),
                Kind::LoadFloatDouble => load_float!(LoadFloatDouble, u64),
                Kind::StoreFloatWord => store_float!(u32),
                Kind::StoreFloatDouble => store_float!(u64),
                Kind::Float => {
                    if !execute_float(&mut *hot, op) {
                        stop!(here, Stop::System);
                    }
                }
                Kind::ShiftOneAdd => binary!(ShiftOneAdd),
                Kind::ShiftTwoAdd => binary!(ShiftTwoAdd),
                Kind::ShiftThreeAdd => binary!(ShiftThreeAdd),
                Kind::AddUnsignedWord => binary!(AddUnsignedWord),
                Kind::ShiftOneAddUnsignedWord => binary!(ShiftOneAddUnsignedWord),
                Kind::ShiftTwoAddUnsignedWord => binary!(ShiftTwoAddUnsignedWord),
                Kind::ShiftThreeAddUnsignedWord => binary!(ShiftThreeAddUnsignedWord),
                Kind::ShiftLeftUnsignedWordImmediate => immediate!(ShiftLeftUnsignedWordImmediate),
                Kind::AndNot => binary!(AndNot),
                Kind::OrNot => binary!(OrNot),
                Kind::XorNot => binary!(XorNot),
                Kind::CountLeadingZeros => unary!(CountLeadingZeros),
                Kind::CountTrailingZeros => unary!(CountTrailingZeros),
                Kind::CountOnes => unary!(CountOnes),
                Kind::CountLeadingZerosWord => unary!(CountLeadingZerosWord),
                Kind::CountTrailingZerosWord => unary!(CountTrailingZerosWord),
                Kind::CountOnesWord => unary!(CountOnesWord),
                Kind::Maximum => binary!(Maximum),
                Kind::MaximumUnsigned => binary!(MaximumUnsigned),
                Kind::Minimum => binary!(Minimum),
                Kind::MinimumUnsigned => binary!(MinimumUnsigned),
                Kind::SignExtendByte => unary!(SignExtendByte),
                Kind::SignExtendHalf => unary!(SignExtendHalf),
                Kind::ZeroExtendHalf => unary!(ZeroExtendHalf),
                Kind::RotateLeft => binary!(RotateLeft),
                Kind::RotateRight => binary!(RotateRight),
                Kind::RotateRightImmediate => immediate!(RotateRightImmediate),
                Kind::RotateLeftWord => binary!(RotateLeftWord),
                Kind::RotateRightWord => binary!(RotateRightWord),
                Kind::RotateRightWordImmediate => immediate!(RotateRightWordImmediate),
                Kind::OrCombineBytes => unary!(OrCombineBytes),
                Kind::ReverseBytes => unary!(ReverseBytes),
                Kind::BitClear => binary!(BitClear),
                Kind::BitClearImmediate => immediate!(BitClearImmediate),
                Kind::BitExtract => binary!(BitExtract),
                Kind::BitExtractImmediate => immediate!(BitExtractImmediate),
                Kind::BitInvert => binary!(BitInvert),
                Kind::BitInvertImmediate => immediate!(BitInvertImmediate),
                Kind::BitSet => binary!(BitSet),
                Kind::BitSetImmediate => immediate!(BitSetImmediate),
                Kind::Pause => {
                    if TIMED {
                        door.pause(start.hart);
                    }
                }
                Kind::LockHint => {
                    door.lock_hint(at!(), op.imm as u16, x!(op.rs1), x!(RETURN_ADDRESS));
                    free += u32::from(TIMED);
                }
                Kind::Straddle
                | Kind::Illegal
                | Kind::FenceInstruction
                | Kind::EnvironmentCall
                | Kind::Breakpoint
                | Kind::SupervisorReturn
                | Kind::WaitForInterrupt
                | Kind::FenceAddressTranslation
                | Kind::Csr
                | Kind::Hint
                | Kind::Transaction
                | Kind::TransactionTest
                | Kind::TransactionCompareAndSwap => stop!(here, Stop::System),
            }
        }
    }
}

/// Executes an arithmetic floating-point instruction; false if it is illegal now.
#[inline(never)]
fn execute_float(hot: &mut HotState, op: Op) -> bool {
    if !float_is_on(hot) {
        return false;
    }
    let [first, second, _] = float_operands(hot, op);
    match float::execute_inline(op.imm as u32, [first, second], hot.fcsr as u8) {
        Some(result) => accept_float(hot, op, result),
        None => return execute_float_by_call(hot, op),
    }
    true
}

/// The rest of [`execute_float`]. It stands apart so that nothing there has to survive a call.
#[inline(never)]
fn execute_float_by_call(hot: &mut HotState, op: Op) -> bool {
    let Ok(result) = float::execute_by_call(op.imm as u32, float_operands(hot, op), hot.fcsr as u8) else {
        return false;
    };
    accept_float(hot, op, result);
    true
}

#[inline(always)]
fn float_operands(hot: &HotState, op: Op) -> [u64; 3] {
    let register = |shift: u32| (op.imm as u32 >> shift & 31) as usize;
    let first = if op.rs1 == 1 { hot.x[register(15)] } else { hot.f[register(15)] };
    [first, hot.f[register(20)], hot.f[register(27)]]
}

#[inline(always)]
fn accept_float(hot: &mut HotState, op: Op, result: FloatResult) {
    hot.fcsr |= u64::from(result.flags);
    hot.sstatus |= SSTATUS_FS;
    match (op.rs2 == 1, (op.imm as u32 >> 7 & 31) as usize) {
        (true, 0) => {}
        (true, rd) => hot.x[rd] = result.value,
        (false, rd) => hot.f[rd] = result.value,
    }
}
