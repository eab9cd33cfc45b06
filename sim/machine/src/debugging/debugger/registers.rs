//! The registers that gdb sees beyond x0 to x31 and pc: floating point, control and status, the privilege mode.
//!
//! Their numbers are those of gdb's own RISC-V target, which gdbstub knows too: f0 to f31 from 33 on, CSRs from 65 on, and the
//! privilege mode behind them.

use crate::execute::csr::{self, FCSR, FFLAGS, FRM};
use crate::hart::Privilege;
use crate::machine::Machine;
use concord_abi::htm;
use concord_htm::policy::Mode;
use gdbstub_arch::riscv::reg::id::RiscvRegId;
use std::fmt::Write;

const FIRST_FLOAT: u32 = 33;
const FIRST_CSR: u32 = 65;
const PRIVILEGE: u32 = 4161;

/// The calling convention's names of x0 to x31, which gdb insists on.
const INTEGER_NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2",
    "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The calling convention's names of f0 to f31.
const FLOAT_NAMES: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
    "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];

/// Describes one register by its name, its number, and the attributes of its type and group.
type Describe<'a> = &'a mut dyn FnMut(&str, u32, &str);

/// The target description (gdb manual, "Target Descriptions" and "RISC-V Features") of a machine's harts.
pub(super) fn description(machine: &Machine) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
         <target version=\"1.0\"><architecture>riscv:rv64</architecture>",
    );
    let mut feature = |name: &str, registers: &mut dyn FnMut(Describe<'_>)| {
        let _ = write!(text, "<feature name=\"org.gnu.gdb.riscv.{name}\">");
        registers(&mut |name, number, kind| {
            // As gdbstub has them.
            let size_bits = if number == PRIVILEGE { 8 } else { 64 };
            let _ = write!(text, "<reg name=\"{name}\" bitsize=\"{size_bits}\" regnum=\"{number}\" {kind}/>");
        });
        text.push_str("</feature>");
    };
    feature("cpu", &mut |register| {
        for (number, name) in (0..).zip(INTEGER_NAMES) {
            let kind = if matches!(name, "sp" | "gp" | "tp" | "fp") { "data_ptr" } else { "int" };
            register(name, number, &format!("type=\"{kind}\" group=\"general\""));
        }
        register("pc", 32, "type=\"code_ptr\" group=\"general\"");
    });
    feature("fpu", &mut |register| {
        for (number, name) in (FIRST_FLOAT..).zip(FLOAT_NAMES) {
            register(name, number, "type=\"ieee_double\" group=\"float\"");
        }
        for (csr, name) in [(FFLAGS, "fflags"), (FRM, "frm"), (FCSR, "fcsr")] {
            register(name, FIRST_CSR + csr, "type=\"int\" group=\"float\"");
        }
    });
    feature("csr", &mut |register| {
        for (csr, name) in control_registers(machine) {
            register(name, FIRST_CSR + csr, "type=\"int\" group=\"csr\"");
        }
    });
    feature("virtual", &mut |register| register("priv", PRIVILEGE, "type=\"int\" group=\"general\""));
    text.push_str("</target>");
    text
}

/// The control and status registers of a machine's harts, with their names.
fn control_registers(machine: &Machine) -> impl Iterator<Item = (u32, &'static str)> {
    let has_transactions = machine.transactions.policy().mode != Mode::None;
    csr::NAMES.into_iter().chain(htm::CSRS.into_iter().filter(move |_| has_transactions))
}

/// A register's value; none where the hart does not have it in its present mode.
pub(super) fn read(machine: &Machine, hart: usize, id: RiscvRegId<u64>) -> Option<u64> {
    let hot = &machine.memory.hot[hart];
    match id {
        RiscvRegId::Gpr(number) => Some(hot.x[usize::from(number)]),
        RiscvRegId::Pc => Some(hot.pc),
        RiscvRegId::Fpr(number) => Some(hot.f[usize::from(number)]),
        RiscvRegId::Csr(number) => machine.csr_value(hart, u32::from(number)).ok(),
        RiscvRegId::Priv => Some(u64::from(machine.harts[hart].privilege == Privilege::Supervisor)),
        _ => None,
    }
}

/// Writes a register; none where it cannot be written. Registers of transactions cannot: they belong to the engine.
pub(super) fn write(machine: &mut Machine, hart: usize, id: RiscvRegId<u64>, value: u64) -> Option<()> {
    let hot = &mut machine.memory.hot[hart];
    match id {
        RiscvRegId::Gpr(0) => {}
        RiscvRegId::Gpr(number) => hot.x[usize::from(number)] = value,
        RiscvRegId::Pc => hot.pc = value & !1,
        RiscvRegId::Fpr(number) => hot.f[usize::from(number)] = value,
        RiscvRegId::Csr(number) => {
            let csr = u32::from(number);
            // The upper two bits of a register's number say that it is read-only.
            if csr >> 10 == 3 || htm::CSRS.iter().any(|(other, _)| *other == csr) {
                return None;
            }
            machine.write_csr(hart, csr, value).ok()?;
        }
        _ => return None,
    }
    Some(())
}
