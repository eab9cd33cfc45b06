//! The host code of a region: one block for each run, with the branches between them inside.
//!
//! Invariants, for every place where the code may be left:
//! - Each write of a guest register goes to the hot state at once. Values that the host's registers hold are copies,
//!   and no copy outlives its run.
//! - The clock and the instruction count are those of the beginning of the current run, as in the interpreter. They are
//!   updated at the run's end, where the clock meets the limit of the turn. The program counter is updated where the region
//!   is left.
//! - A run in another line than the one before it begins after a look at the instruction cache's accelerator, and where that
//!   does not show the line, the fetch is charged. A run in the same line needs no look: nothing but this hart's own misses
//!   changes its instruction cache.
//! - What the line table does not answer goes through the functions of the surroundings, in the middle of the run. No copy
//!   of a guest register outlives an access, so that those calls cost nothing where they are not made.

use crate::compute::{compute, condition};
use crate::memory::{Access, constant, hit, host_address};
use crate::{At, BETWEEN_RUNS, STOPPED, Surroundings};
use concord_isa::op::{Kind, Op, PlainAccess, SINK};
use concord_mem::cache::Line;
use concord_mem::hot::{HotState, SSTATUS_FS};
use concord_mem::line_table::NOTHING;
use concord_mem::ram::LINE_SHIFT;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, Function, Inst, InstBuilder, JumpTableData, MemFlagsData, SigRef, Signature,
    Type, Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::collections::BTreeMap;
use std::mem::offset_of;

const REGISTERS: usize = SINK as usize;

/// The state of a hart that the code of a region is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The gear.
    pub timed: bool,
    /// The accesses that the line table answers: `concord_mem::line_table::BY_LINE` or `BY_WORD`.
    pub answers: u8,
    pub user: bool,
}

impl Variant {
    /// The number of variants.
    pub const COUNT: usize = 8;

    /// The variant's number.
    #[inline]
    pub const fn index(self) -> usize {
        assert!(self.answers < NOTHING);
        (self.timed as usize) << 2 | (self.answers as usize) << 1 | self.user as usize
    }
}

/// A decoded run.
#[derive(Clone, Debug)]
pub struct Run {
    pub page_offset: u16,
    /// Its ops, of which the last ends the run ([`Op::ends_run`] or [`Kind::Next`]).
    pub ops: Vec<Op>,
    /// The page offset of each op.
    pub offsets: Vec<u16>,
}

/// True if a region executes ops of this kind: it stops before all others.
pub fn executes(kind: Kind) -> bool {
    match kind {
        Kind::Next | Kind::Nop | Kind::Fence | Kind::LoadImmediate | Kind::AddPc | Kind::Jump | Kind::JumpRegister => {
            true
        }
        _ => compute_is_known(kind) || condition(kind).is_some() || kind.plain_access().is_some() || calls(kind),
    }
}

/// True if a region calls the machine for each op of this kind.
pub fn calls(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LoadReservedWord
            | Kind::LoadReservedDouble
            | Kind::StoreConditionalWord
            | Kind::StoreConditionalDouble
            | Kind::AtomicWord
            | Kind::AtomicDouble
            | Kind::Float
            | Kind::Pause
            | Kind::LockHint
    )
}

fn compute_is_known(kind: Kind) -> bool {
    concord_isa::semantics::compute(kind, 0, 0).is_some()
}

/// The type in memory of an access.
fn width(access: PlainAccess) -> Type {
    Type::int(8 * access.size_bytes as u16).expect("a power of two of bytes")
}

/// Builds the function of a region. Its entries are the runs, by number.
pub fn build(
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    target: TargetFrontendConfig,
    variant: Variant,
    runs: &[Run],
) {
    let mut builder = FunctionBuilder::new(function, context);
    let head = builder.create_block();
    builder.append_block_params_for_function_params(head);
    builder.switch_to_block(head);
    let &[hot, surroundings, entry] = builder.block_params(head) else { unreachable!("the signature has three") };
    let blocks: BTreeMap<u32, Block> =
        runs.iter().map(|run| (u32::from(run.page_offset), builder.create_block())).collect();
    let leave = builder.create_block();
    builder.append_block_param(leave, types::I64);
    let targets: Vec<BlockCall> =
        runs.iter().map(|run| builder.func.dfg.block_call(blocks[&u32::from(run.page_offset)], &[])).collect();
    let value = BlockArg::Value(constant(&mut builder, BETWEEN_RUNS));
    let none = builder.func.dfg.block_call(leave, &[value]);
    branch_to_entry(&mut builder, entry, none, &targets);
    let functions = Functions::import(&mut builder, target);
    let mut emitter = Emitter {
        builder,
        variant,
        hot,
        surroundings,
        functions,
        blocks,
        leave,
        exits: BTreeMap::new(),
        registers: [None; REGISTERS],
        free: 0,
    };
    for run in runs {
        emitter.run(run);
    }
    emitter.finish(target);
}

fn branch_to_entry(builder: &mut FunctionBuilder, entry: Value, none: BlockCall, targets: &[BlockCall]) {
    let table = builder.create_jump_table(JumpTableData::new(none, targets));
    let entry = builder.ins().ireduce(types::I32, entry);
    builder.ins().br_table(entry, table);
}

/// A function under construction.
struct Emitter<'a> {
    builder: FunctionBuilder<'a>,
    variant: Variant,
    hot: Value,
    surroundings: Value,
    functions: Functions,
    /// The blocks of the runs, by page offset.
    blocks: BTreeMap<u32, Block>,
    /// The block that returns its parameter.
    leave: Block,
    /// The blocks that leave the region between two runs, by the offset at which the hart continues.
    exits: BTreeMap<u64, Block>,
    /// The guest registers whose values this run has loaded or computed.
    registers: [Option<Value>; REGISTERS],
    /// The ops of this run so far that take no cycle.
    free: u32,
}

/// The signatures of the functions in [`Surroundings`].
#[derive(Clone, Copy)]
struct Functions {
    load: SigRef,
    store: SigRef,
    execute: SigRef,
    fetch: SigRef,
}

impl Functions {
    fn import(builder: &mut FunctionBuilder, target: TargetFrontendConfig) -> Functions {
        let mut import = |parameters: usize, results: usize| {
            let mut signature = Signature::new(target.default_call_conv);
            signature.params = vec![AbiParam::new(types::I64); parameters];
            signature.returns = vec![AbiParam::new(types::I64); results];
            builder.import_signature(signature)
        };
        Functions { load: import(3, 2), store: import(4, 1), execute: import(3, 1), fetch: import(2, 0) }
    }
}

impl Emitter<'_> {
    fn finish(mut self, target: TargetFrontendConfig) {
        for (target, block) in std::mem::take(&mut self.exits) {
            self.builder.switch_to_block(block);
            let target = self.constant(target);
            let page_address = self.load_surrounding(offset_of!(Surroundings, page_address));
            let pc = self.builder.ins().iadd(page_address, target);
            self.leave_at(pc);
        }
        self.builder.switch_to_block(self.leave);
        let value = self.builder.block_params(self.leave)[0];
        self.builder.ins().return_(&[value]);
        self.builder.seal_all_blocks();
        self.builder.finalize(target);
    }

    fn constant(&mut self, value: u64) -> Value {
        constant(&mut self.builder, value)
    }

    fn load_hot(&mut self, offset: usize) -> Value {
        self.builder.ins().load(types::I64, MemFlagsData::trusted(), self.hot, offset as i32)
    }

    fn store_hot(&mut self, offset: usize, value: Value) {
        self.builder.ins().store(MemFlagsData::trusted(), value, self.hot, offset as i32);
    }

    fn load_surrounding(&mut self, offset: usize) -> Value {
        self.builder.ins().load(types::I64, MemFlagsData::trusted(), self.surroundings, offset as i32)
    }

    /// Calls the function at an offset in the surroundings.
    fn call(&mut self, signature: SigRef, offset: usize, arguments: &[Value]) -> Inst {
        let function = self.load_surrounding(offset);
        let arguments = [&[self.surroundings], arguments].concat();
        self.builder.ins().call_indirect(signature, function, &arguments)
    }

    /// The value of an integer register.
    fn register(&mut self, register: u8) -> Value {
        if register == 0 {
            return self.constant(0);
        }
        if let Some(value) = self.registers[usize::from(register)] {
            return value;
        }
        let value = self.load_hot(offset_of!(HotState, x) + 8 * usize::from(register));
        self.registers[usize::from(register)] = Some(value);
        value
    }

    fn set_register(&mut self, register: u8, value: Value) {
        if register != SINK {
            self.store_hot(offset_of!(HotState, x) + 8 * usize::from(register), value);
            self.registers[usize::from(register)] = Some(value);
        }
    }

    /// Emits a run into its block.
    fn run(&mut self, run: &Run) {
        self.builder.switch_to_block(self.blocks[&u32::from(run.page_offset)]);
        self.registers = [None; REGISTERS];
        self.free = 0;
        for (index, (op, page_offset)) in run.ops.iter().zip(&run.offsets).enumerate() {
            let size_bytes = op.kind.plain_access().map_or(0, |access| access.size_bytes);
            let at = At::new(run.page_offset, index, self.free, *page_offset, size_bytes);
            if self.op(at, *op) {
                return;
            }
        }
        unreachable!("a run ends with an op that ends it");
    }

    /// Emits an op; true if nothing follows it.
    fn op(&mut self, at: At, op: Op) -> bool {
        let imm = op.imm as i64 as u64;
        match op.kind {
            Kind::Next => {
                let cycle = self.leave_run(at.completed());
                self.go_on(at, imm, cycle);
                return true;
            }
            Kind::Nop | Kind::Fence => {}
            Kind::LoadImmediate => {
                let value = self.constant(imm);
                self.set_register(op.rd, value);
            }
            Kind::AddPc => self.set_to_page_offset(op.rd, imm),
            Kind::Jump => {
                self.set_to_page_offset(op.rd, u64::from(op.rs1) | u64::from(op.rs2) << 8);
                let cycle = self.leave_run(at.completed() + 1);
                self.go_on(at, imm, cycle);
                return true;
            }
            Kind::JumpRegister => {
                let base = self.register(op.rs1);
                let displacement = self.constant((op.imm >> 16) as u64);
                let target = self.builder.ins().iadd(base, displacement);
                let even = self.constant(!1);
                let target = self.builder.ins().band(target, even);
                self.set_to_page_offset(op.rd, imm & 0xffff);
                self.leave_run(at.completed() + 1);
                self.leave_at(target);
                return true;
            }
            kind => return self.plain_op(at, op, kind),
        }
        false
    }

    /// An op that computes, branches or accesses memory, or that is not the region's.
    fn plain_op(&mut self, at: At, op: Op, kind: Kind) -> bool {
        if let Some(access) = kind.plain_access() {
            self.access(at, op, access);
            return false;
        }
        if let Some(condition) = condition(kind) {
            self.branch(at, op, condition);
            return false;
        }
        if calls(kind) {
            self.execute(at, op);
            return false;
        }
        if !compute_is_known(kind) {
            self.stop(at);
            return true;
        }
        if op.rd != SINK {
            let first = self.register(op.rs1);
            let second = if has_immediate(kind) { self.constant(op.imm as i64 as u64) } else { self.register(op.rs2) };
            let value = compute(&mut self.builder, kind, first, second).expect("each kind that computes has its code");
            self.set_register(op.rd, value);
        }
        false
    }

    /// Calls the machine for an op.
    fn execute(&mut self, at: At, op: Op) {
        let place = self.constant(at.0);
        // SAFETY: an op has no padding.
        let bits = self.constant(unsafe { std::mem::transmute::<Op, u64>(op) });
        let call = self.call(self.functions.execute, offset_of!(Surroundings, execute), &[place, bits]);
        let stops = self.builder.inst_results(call)[0];
        self.stopped_if(at, stops);
        self.registers = [None; REGISTERS];
        // As in the interpreter.
        self.free += u32::from(self.variant.timed && op.kind == Kind::LockHint);
    }

    fn set_to_page_offset(&mut self, register: u8, offset: u64) {
        if register != SINK {
            let offset = self.constant(offset);
            let page_address = self.load_surrounding(offset_of!(Surroundings, page_address));
            let value = self.builder.ins().iadd(page_address, offset);
            self.set_register(register, value);
        }
    }

    fn branch(&mut self, at: At, op: Op, condition: IntCC) {
        let (first, second) = (self.register(op.rs1), self.register(op.rs2));
        let is_taken = self.builder.ins().icmp(condition, first, second);
        let (taken, falls_through) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(is_taken, taken, &[], falls_through, &[]);
        self.builder.switch_to_block(taken);
        let cycle = self.leave_run(at.completed() + 1);
        self.go_on(at, op.imm as i64 as u64, cycle);
        self.builder.switch_to_block(falls_through);
    }

    fn access(&mut self, at: At, op: Op, plain: PlainAccess) {
        if plain.float {
            let status = self.load_hot(offset_of!(HotState, sstatus));
            let mask = self.constant(SSTATUS_FS);
            let is_on = self.builder.ins().band(status, mask);
            self.stop_unless(at, is_on);
        }
        let base = self.register(op.rs1);
        let displacement = self.constant(op.imm as i64 as u64);
        let address = self.builder.ins().iadd(base, displacement);
        let access = Access { store: plain.store, size_bytes: plain.size_bytes, address };
        let float = |register: u8| offset_of!(HotState, f) + 8 * usize::from(register);
        if plain.store {
            let value = if plain.float { self.load_hot(float(op.rs2)) } else { self.register(op.rs2) };
            self.store(at, access, width(plain), value);
        } else {
            let value = self.load(at, access, width(plain));
            let value = self.extended(op.kind, width(plain), value);
            if plain.float {
                self.store_hot(float(op.rd), value);
                let status = self.load_hot(offset_of!(HotState, sstatus));
                let mask = self.constant(SSTATUS_FS);
                let status = self.builder.ins().bor(status, mask);
                self.store_hot(offset_of!(HotState, sstatus), status);
            } else {
                self.set_register(op.rd, value);
            }
        }
    }

    /// Branches by whether an access hits. Goes on in the block for the hit, and returns the entry, the block for the miss
    /// and the one after both.
    fn by_hit(&mut self, access: Access) -> (Value, Block, Block) {
        let (hits, entry) = hit(&mut self.builder, self.variant, self.hot, access);
        let [hit, miss, done] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().brif(hits, hit, &[], miss, &[]);
        self.builder.set_cold_block(miss);
        self.builder.switch_to_block(hit);
        (entry, miss, done)
    }

    fn load(&mut self, at: At, access: Access, width: Type) -> Value {
        let (entry, miss, done) = self.by_hit(access);
        let result = self.builder.append_block_param(done, width);
        let host = host_address(&mut self.builder, entry, access.address);
        // A hit is aligned and inside RAM.
        let value = self.builder.ins().load(width, MemFlagsData::trusted(), host, 0);
        self.builder.ins().jump(done, &[BlockArg::Value(value)]);
        self.builder.switch_to_block(miss);
        let place = self.constant(at.0);
        let call = self.call(self.functions.load, offset_of!(Surroundings, load), &[place, access.address]);
        let &[value, stops] = self.builder.inst_results(call) else { unreachable!("the signature has two results") };
        self.stopped_if(at, stops);
        let value = self.narrowed(width, value);
        self.builder.ins().jump(done, &[BlockArg::Value(value)]);
        self.builder.switch_to_block(done);
        self.registers = [None; REGISTERS];
        result
    }

    fn store(&mut self, at: At, access: Access, width: Type, value: Value) {
        let (entry, miss, done) = self.by_hit(access);
        let host = host_address(&mut self.builder, entry, access.address);
        let narrow = self.narrowed(width, value);
        self.builder.ins().store(MemFlagsData::trusted(), narrow, host, 0);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(miss);
        let place = self.constant(at.0);
        let call = self.call(self.functions.store, offset_of!(Surroundings, store), &[place, access.address, value]);
        let stops = self.builder.inst_results(call)[0];
        self.stopped_if(at, stops);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
        self.registers = [None; REGISTERS];
    }

    /// Leaves the region at an op that was stopped, if the value is not zero.
    fn stopped_if(&mut self, at: At, stops: Value) {
        let goes_on = self.builder.create_block();
        self.builder.set_cold_block(goes_on);
        let value = self.constant(at.0 | STOPPED);
        self.builder.ins().brif(stops, self.leave, &[BlockArg::Value(value)], goes_on, &[]);
        self.builder.switch_to_block(goes_on);
    }

    fn narrowed(&mut self, width: Type, value: Value) -> Value {
        if width == types::I64 { value } else { self.builder.ins().ireduce(width, value) }
    }

    /// The counterpart of `concord_isa::semantics::loaded`.
    fn extended(&mut self, kind: Kind, width: Type, value: Value) -> Value {
        match kind {
            _ if width == types::I64 => value,
            Kind::LoadByte | Kind::LoadHalf | Kind::LoadWord => self.builder.ins().sextend(types::I64, value),
            Kind::LoadFloatWord => {
                let value = self.builder.ins().uextend(types::I64, value);
                let boxed = self.constant(u64::from(u32::MAX) << 32);
                self.builder.ins().bor(value, boxed)
            }
            _ => self.builder.ins().uextend(types::I64, value),
        }
    }

    /// Leaves the region before the op at `at` if the condition is zero.
    fn stop_unless(&mut self, at: At, condition: Value) {
        let (goes_on, stops) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(condition, goes_on, &[], stops, &[]);
        self.builder.set_cold_block(stops);
        self.builder.switch_to_block(stops);
        self.stop(at);
        self.builder.switch_to_block(goes_on);
    }

    /// Leaves the region before the op at `at`.
    fn stop(&mut self, at: At) {
        let value = self.constant(at.0);
        self.builder.ins().jump(self.leave, &[BlockArg::Value(value)]);
    }

    /// Updates the clock and the instruction count at the end of a run, as `HotState::leave_run` does, and returns the
    /// clock.
    fn leave_run(&mut self, completed: u32) -> Value {
        let count = self.constant(completed.into());
        let instructions = self.load_hot(offset_of!(HotState, instructions));
        let instructions = self.builder.ins().iadd(instructions, count);
        self.store_hot(offset_of!(HotState, instructions), instructions);
        let cycle = self.load_hot(offset_of!(HotState, cycle));
        let cycles = self.constant((completed - self.free).into());
        let mut cycle = self.builder.ins().iadd(cycle, cycles);
        if self.variant.timed {
            let stall_cycles = self.load_hot(offset_of!(HotState, stall_cycles));
            cycle = self.builder.ins().iadd(cycle, stall_cycles);
            let none = self.constant(0);
            self.store_hot(offset_of!(HotState, stall_cycles), none);
        }
        self.store_hot(offset_of!(HotState, cycle), cycle);
        cycle
    }

    /// Continues at an offset from the page's address after the run that `at` is in: inside the region if the turn is not
    /// over and the region has the run.
    fn go_on(&mut self, at: At, target: u64, cycle: Value) {
        let exit = self.exit(target);
        let run = u32::try_from(target).ok().and_then(|offset| self.blocks.get(&offset).copied());
        let Some(run) = run else {
            self.builder.ins().jump(exit, &[]);
            return;
        };
        let limit = self.load_surrounding(offset_of!(Surroundings, limit));
        let is_over = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, cycle, limit);
        let target_line = (target as u32) >> LINE_SHIFT;
        if !self.variant.timed || target_line == at.run() >> LINE_SHIFT {
            self.builder.ins().brif(is_over, exit, &[], run, &[]);
            return;
        }
        let fetch = self.builder.create_block();
        self.builder.ins().brif(is_over, exit, &[], fetch, &[]);
        self.builder.switch_to_block(fetch);
        // A page's lines are neighbours in the accelerator, because both begin at multiples of their length.
        let slot = target_line as usize * size_of::<Line>();
        let recent_lines = self.load_surrounding(offset_of!(Surroundings, recent_lines));
        let flags = MemFlagsData::trusted();
        let recent = self.builder.ins().load(types::I32, flags, recent_lines, slot as i32);
        let first_line = offset_of!(Surroundings, first_line) as i32;
        let first_line = self.builder.ins().load(types::I32, flags, self.surroundings, first_line);
        let target_line = self.builder.ins().iconst(types::I32, i64::from(target_line));
        let line = self.builder.ins().iadd(first_line, target_line);
        let hits = self.builder.ins().icmp(IntCC::Equal, recent, line);
        let miss = self.builder.create_block();
        self.builder.set_cold_block(miss);
        self.builder.ins().brif(hits, run, &[], miss, &[]);
        self.builder.switch_to_block(miss);
        let line = self.builder.ins().uextend(types::I64, line);
        self.call(self.functions.fetch, offset_of!(Surroundings, fetch), &[line]);
        self.builder.ins().jump(run, &[]);
    }

    /// The block that leaves the region for an offset from the page's address.
    fn exit(&mut self, target: u64) -> Block {
        let builder = &mut self.builder;
        *self.exits.entry(target).or_insert_with(|| {
            let block = builder.create_block();
            builder.set_cold_block(block);
            block
        })
    }

    /// Leaves the region between two runs.
    fn leave_at(&mut self, pc: Value) {
        self.store_hot(offset_of!(HotState, pc), pc);
        let value = self.constant(BETWEEN_RUNS);
        self.builder.ins().jump(self.leave, &[BlockArg::Value(value)]);
    }
}

/// True if the second operand of an op that computes is its immediate.
pub(crate) fn has_immediate(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AddImmediate
            | Kind::SetLessThanImmediate
            | Kind::SetLessThanUnsignedImmediate
            | Kind::XorImmediate
            | Kind::OrImmediate
            | Kind::AndImmediate
            | Kind::ShiftLeftImmediate
            | Kind::ShiftRightImmediate
            | Kind::ShiftRightArithmeticImmediate
            | Kind::AddWordImmediate
            | Kind::ShiftLeftWordImmediate
            | Kind::ShiftRightWordImmediate
            | Kind::ShiftRightArithmeticWordImmediate
            | Kind::ShiftLeftUnsignedWordImmediate
            | Kind::RotateRightImmediate
            | Kind::RotateRightWordImmediate
            | Kind::BitClearImmediate
            | Kind::BitExtractImmediate
            | Kind::BitInvertImmediate
            | Kind::BitSetImmediate
    )
}
