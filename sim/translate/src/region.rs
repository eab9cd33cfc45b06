//! The host code of a region: one block for each run, with the branches between them inside.
//!
//! Invariants, for every place where the code may be left:
//! - Each write of a guest register goes to the hot state at once. Values that the host's registers hold are copies,
//!   and no copy outlives its run.
//! - The clock is that of the beginning of the current run, as in the interpreter. It is updated at the run's end, where it
//!   meets the limit of the turn. The instruction count and the program counter are updated where the region is left.
//! - Nothing in a region stalls, because whatever stalls leaves it first. So `stall_cycles` is zero.
//! - A run is entered only if the instruction cache's accelerator shows its line. A run in the line of the run before it
//!   needs no second look: nothing but this hart's own misses changes its instruction cache.

use crate::compute::{compute, condition};
use crate::memory::{Access, constant, hit, host_address};
use crate::{BETWEEN_RUNS, Left, Surroundings};
use concord_isa::op::{Kind, Op, PlainAccess, SINK};
use concord_mem::cache::Line;
use concord_mem::hot::{HotState, SSTATUS_FS};
use concord_mem::line_table::NOTHING;
use concord_mem::ram::LINE_SHIFT;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, InstBuilder, JumpTableData, MemFlagsData, Type, Value, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::Module;
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
}

/// True if a region executes ops of this kind: it stops before all others.
pub fn executes(kind: Kind) -> bool {
    match kind {
        Kind::Next | Kind::Nop | Kind::Fence | Kind::LoadImmediate | Kind::AddPc | Kind::Jump | Kind::JumpRegister => {
            true
        }
        _ => compute_is_known(kind) || condition(kind).is_some() || kind.plain_access().is_some(),
    }
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
    module: &JITModule,
    variant: Variant,
    runs: &[Run],
) {
    let mut builder = FunctionBuilder::new(function, context);
    let head = builder.create_block();
    builder.append_block_params_for_function_params(head);
    builder.switch_to_block(head);
    let &[hot, surroundings, entry] = builder.block_params(head) else { unreachable!("the signature has three") };
    let load = |builder: &mut FunctionBuilder, base, offset: usize| {
        builder.ins().load(types::I64, MemFlagsData::trusted(), base, offset as i32)
    };
    let limit = load(&mut builder, hot, offset_of!(HotState, limit));
    let recent_lines = load(&mut builder, surroundings, offset_of!(Surroundings, recent_lines));
    let first_line = builder.ins().load(
        types::I32,
        MemFlagsData::trusted(),
        surroundings,
        offset_of!(Surroundings, first_line) as i32,
    );
    let page_address = load(&mut builder, surroundings, offset_of!(Surroundings, page_address));
    let blocks: BTreeMap<u32, Block> =
        runs.iter().map(|run| (u32::from(run.page_offset), builder.create_block())).collect();
    let leave = builder.create_block();
    builder.append_block_param(leave, types::I64);
    let targets: Vec<BlockCall> =
        runs.iter().map(|run| builder.func.dfg.block_call(blocks[&u32::from(run.page_offset)], &[])).collect();
    let value = BlockArg::Value(constant(&mut builder, BETWEEN_RUNS));
    let none = builder.func.dfg.block_call(leave, &[value]);
    branch_to_entry(&mut builder, entry, none, &targets);
    let mut emitter = Emitter {
        builder,
        variant,
        hot,
        limit,
        recent_lines,
        first_line,
        page_address,
        blocks,
        leave,
        exits: BTreeMap::new(),
        registers: [None; REGISTERS],
    };
    for run in runs {
        emitter.run(run);
    }
    emitter.finish(module);
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
    limit: Value,
    recent_lines: Value,
    first_line: Value,
    page_address: Value,
    /// The blocks of the runs, by page offset.
    blocks: BTreeMap<u32, Block>,
    /// The block that returns its parameter.
    leave: Block,
    /// The blocks that leave the region between two runs, by the offset at which the hart continues.
    exits: BTreeMap<u64, Block>,
    /// The guest registers whose values this run has loaded or computed.
    registers: [Option<Value>; REGISTERS],
}

/// A place in a run: everything before it is complete.
#[derive(Clone, Copy)]
struct At {
    run: u32,
    completed: u32,
}

impl Emitter<'_> {
    fn finish(mut self, module: &JITModule) {
        for (target, block) in std::mem::take(&mut self.exits) {
            self.builder.switch_to_block(block);
            let target = self.constant(target);
            let pc = self.builder.ins().iadd(self.page_address, target);
            self.leave_at(pc);
        }
        self.builder.switch_to_block(self.leave);
        let value = self.builder.block_params(self.leave)[0];
        self.builder.ins().return_(&[value]);
        self.builder.seal_all_blocks();
        self.builder.finalize(module.target_config());
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
        for (index, op) in run.ops.iter().enumerate() {
            let at = At { run: run.page_offset.into(), completed: index as u32 };
            if self.op(at, *op) {
                return;
            }
        }
        unreachable!("a run ends with an op that ends it");
    }

    /// Emits an op; true if nothing follows it.
    fn op(&mut self, at: At, op: Op) -> bool {
        let imm = op.imm as i64 as u64;
        let after = At { completed: at.completed + 1, ..at };
        match op.kind {
            Kind::Next => {
                let cycle = self.leave_run(at);
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
                let cycle = self.leave_run(after);
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
                self.leave_run(after);
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

    fn set_to_page_offset(&mut self, register: u8, offset: u64) {
        if register != SINK {
            let offset = self.constant(offset);
            let value = self.builder.ins().iadd(self.page_address, offset);
            self.set_register(register, value);
        }
    }

    fn branch(&mut self, at: At, op: Op, condition: IntCC) {
        let (first, second) = (self.register(op.rs1), self.register(op.rs2));
        let is_taken = self.builder.ins().icmp(condition, first, second);
        let (taken, falls_through) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(is_taken, taken, &[], falls_through, &[]);
        self.builder.switch_to_block(taken);
        let cycle = self.leave_run(At { completed: at.completed + 1, ..at });
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
        let (hits, entry) = hit(&mut self.builder, self.variant, self.hot, access);
        self.stop_unless(at, hits);
        let host = host_address(&mut self.builder, entry, address);
        // Guest memory may be aliased by nothing that the code holds in registers, and a hit is aligned.
        let flags = MemFlagsData::trusted();
        let float = |register: u8| offset_of!(HotState, f) + 8 * usize::from(register);
        if plain.store {
            let value = if plain.float { self.load_hot(float(op.rs2)) } else { self.register(op.rs2) };
            let value = self.narrowed(width(plain), value);
            self.builder.ins().store(flags, value, host, 0);
            return;
        }
        let value = self.builder.ins().load(width(plain), flags, host, 0);
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
        let value = self.constant(Left::encode(at.run, at.completed));
        self.builder.ins().jump(self.leave, &[BlockArg::Value(value)]);
    }

    /// Updates the clock at the end of a run, and returns it. Every op of a region takes one cycle, so the caller knows the
    /// number of instructions from the clock.
    fn leave_run(&mut self, at: At) -> Value {
        let cycle = self.load_hot(offset_of!(HotState, cycle));
        let count = self.constant(at.completed.into());
        let cycle = self.builder.ins().iadd(cycle, count);
        self.store_hot(offset_of!(HotState, cycle), cycle);
        cycle
    }

    /// Continues at an offset from the page's address after the run that `at` is in: inside the region if the turn is not
    /// over, the region has the run, and the instruction cache has its line.
    fn go_on(&mut self, at: At, target: u64, cycle: Value) {
        let exit = self.exit(target);
        let run = u32::try_from(target).ok().and_then(|offset| self.blocks.get(&offset).copied());
        let Some(run) = run else {
            self.builder.ins().jump(exit, &[]);
            return;
        };
        let is_over = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, cycle, self.limit);
        let target_line = (target as u32) >> LINE_SHIFT;
        if !self.variant.timed || target_line == at.run >> LINE_SHIFT {
            self.builder.ins().brif(is_over, exit, &[], run, &[]);
            return;
        }
        let fetch = self.builder.create_block();
        self.builder.ins().brif(is_over, exit, &[], fetch, &[]);
        self.builder.switch_to_block(fetch);
        // A page's lines are neighbours in the accelerator, because both begin at multiples of their length.
        let slot = target_line as usize * size_of::<Line>();
        let recent = self.builder.ins().load(types::I32, MemFlagsData::trusted(), self.recent_lines, slot as i32);
        let target_line = self.builder.ins().iconst(types::I32, i64::from(target_line));
        let line = self.builder.ins().iadd(self.first_line, target_line);
        let hits = self.builder.ins().icmp(IntCC::Equal, recent, line);
        self.builder.ins().brif(hits, run, &[], exit, &[]);
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
