//! The rule of a hit in the line table as host code: the counterpart of `concord_mem::line_table::LineTable::hit`.

use crate::region::Variant;
use concord_mem::hot::HotState;
use concord_mem::line_table::{self, BY_WORD, ENTRIES, Entry, USER};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::FunctionBuilder;
use std::mem::{offset_of, size_of};

/// An access that code is emitted for.
#[derive(Clone, Copy)]
pub struct Access {
    pub store: bool,
    pub size_bytes: u64,
    pub address: Value,
}

/// Emits the comparison of an access with the line table of the hot state. Returns whether it hits, and the address of
/// the entry, less the table's place in the hot state.
pub fn hit(builder: &mut FunctionBuilder, variant: Variant, hot: Value, access: Access) -> (Value, Value) {
    const { assert!(size_of::<Entry>().is_power_of_two()) };
    let Access { store, size_bytes, address } = access;
    let entry_shift = size_of::<Entry>().trailing_zeros();
    let shifted = constant(builder, u64::from(line_table::shift(variant.timed) - entry_shift));
    let shifted = builder.ins().ushr(address, shifted);
    let mask = constant(builder, ((ENTRIES - 1) << entry_shift) as u64);
    let place = builder.ins().band(shifted, mask);
    let entry = builder.ins().iadd(hot, place);
    let tag_offset = if store { offset_of!(Entry, write_tag) } else { offset_of!(Entry, read_tag) };
    let tag = builder.ins().load(types::I64, MemFlagsData::trusted(), entry, entry_offset(tag_offset));
    let mask = constant(builder, line_table::access_tag(variant.timed, u64::MAX, size_bytes, 0));
    let mut wanted = builder.ins().band(address, mask);
    if variant.user {
        let user = constant(builder, USER);
        wanted = builder.ins().bor(wanted, user);
    }
    let hits = builder.ins().icmp(IntCC::Equal, tag, wanted);
    if variant.answers != BY_WORD {
        return (hits, entry);
    }
    let is_member = is_member(builder, entry, access);
    (builder.ins().band(hits, is_member), entry)
}

/// Whether the words of an access are in a set of the hart's transaction.
fn is_member(builder: &mut FunctionBuilder, entry: Value, access: Access) -> Value {
    let words = if access.store { offset_of!(Entry, writable_words) } else { offset_of!(Entry, readable_words) };
    let words = builder.ins().uload16(types::I64, MemFlagsData::trusted(), entry, entry_offset(words));
    let word_shift = constant(builder, line_table::WORD_SHIFT.into());
    let word = builder.ins().ushr(access.address, word_shift);
    let mask = constant(builder, 15);
    let word = builder.ins().band(word, mask);
    let words = builder.ins().ushr(words, word);
    let needed = constant(builder, line_table::words_needed(access.size_bytes).into());
    let words = builder.ins().band(words, needed);
    builder.ins().icmp(IntCC::Equal, words, needed)
}

/// Emits the host address of an access that hits.
pub fn host_address(builder: &mut FunctionBuilder, entry: Value, address: Value) -> Value {
    let addend = entry_offset(offset_of!(Entry, addend));
    let addend = builder.ins().load(types::I64, MemFlagsData::trusted(), entry, addend);
    builder.ins().iadd(address, addend)
}

fn entry_offset(field: usize) -> i32 {
    (offset_of!(HotState, lines) + field) as i32
}

pub fn constant(builder: &mut FunctionBuilder, value: u64) -> Value {
    builder.ins().iconst(types::I64, value as i64)
}
