//! Control and status registers of supervisor and user mode (privileged specification, "CSR Listing").

use crate::execute::interpreter::float_is_on;
use crate::hart::{INTERRUPT_SOFTWARE, INTERRUPTS, Privilege, SSTATUS_FS, SSTATUS_SD, SSTATUS_UXL, SSTATUS_WRITABLE};
use crate::machine::Machine;
use concord_mem::translation::{MODE_BARE, MODE_SV39, MODE_SV48};

pub(crate) const FFLAGS: u32 = 0x001;
pub(crate) const FRM: u32 = 0x002;
pub(crate) const FCSR: u32 = 0x003;
const SSTATUS: u32 = 0x100;
const SIE: u32 = 0x104;
const STVEC: u32 = 0x105;
const SCOUNTEREN: u32 = 0x106;
const SENVCFG: u32 = 0x10a;
const SSCRATCH: u32 = 0x140;
const SEPC: u32 = 0x141;
const SCAUSE: u32 = 0x142;
const STVAL: u32 = 0x143;
const SIP: u32 = 0x144;
const STIMECMP: u32 = 0x14d;
const SATP: u32 = 0x180;
const CYCLE: u32 = 0xc00;
const TIME: u32 = 0xc01;
const INSTRET: u32 = 0xc02;

/// Every register of the base architecture except those of floating point, with its name in debuggers.
pub(crate) const NAMES: [(u32, &str); 15] = [
    (SSTATUS, "sstatus"),
    (SIE, "sie"),
    (STVEC, "stvec"),
    (SCOUNTEREN, "scounteren"),
    (SENVCFG, "senvcfg"),
    (SSCRATCH, "sscratch"),
    (SEPC, "sepc"),
    (SCAUSE, "scause"),
    (STVAL, "stval"),
    (SIP, "sip"),
    (STIMECMP, "stimecmp"),
    (SATP, "satp"),
    (CYCLE, "cycle"),
    (TIME, "time"),
    (INSTRET, "instret"),
];

/// The access is an illegal instruction.
pub(crate) struct IllegalCsr;

impl Machine {
    /// Executes a Zicsr instruction, given as its word.
    pub(crate) fn execute_csr(&mut self, hart: usize, instruction: u32) -> Result<(), IllegalCsr> {
        let csr = instruction >> 20;
        let source = (instruction >> 15 & 31) as usize;
        let destination = (instruction >> 7 & 31) as usize;
        let operand = if instruction >> 14 & 1 == 1 { source as u64 } else { self.memory.hot[hart].x[source] };
        let operation = instruction >> 12 & 3;
        // CSRRS and CSRRC with x0 or an immediate of zero do not write.
        let writes = operation == 1 || source != 0;
        if writes && csr >> 10 == 3 {
            return Err(IllegalCsr);
        }
        let old = self.read_csr(hart, csr)?;
        if writes {
            let new = match operation {
                1 => operand,
                2 => old | operand,
                _ => old & !operand,
            };
            self.write_csr(hart, csr, new)?;
        }
        if destination != 0 {
            self.memory.hot[hart].x[destination] = old;
        }
        Ok(())
    }

    /// Reads a CSR as an instruction of this hart does.
    pub(crate) fn read_csr(&self, index: usize, csr: u32) -> Result<u64, IllegalCsr> {
        let (hart, hot) = (&self.harts[index], &self.memory.hot[index]);
        let supervisor = hart.privilege == Privilege::Supervisor;
        if csr >> 8 & 3 > u32::from(supervisor) {
            return Err(IllegalCsr);
        }
        if matches!(csr, FFLAGS | FRM | FCSR) && !float_is_on(hot) {
            return Err(IllegalCsr);
        }
        if matches!(csr, CYCLE | TIME | INSTRET) && !supervisor && hart.scounteren >> (csr - CYCLE) & 1 == 0 {
            return Err(IllegalCsr);
        }
        self.csr_value(index, csr)
    }

    /// The contents of a CSR, whether or not the hart may read it in its present mode.
    pub(crate) fn csr_value(&self, index: usize, csr: u32) -> Result<u64, IllegalCsr> {
        let cycles_per_tick = self.order.cycles_per_tick;
        let (hart, hot) = (&self.harts[index], &self.memory.hot[index]);
        Ok(match csr {
            FFLAGS => hot.fcsr & 31,
            FRM => hot.fcsr >> 5,
            FCSR => hot.fcsr,
            SSTATUS => {
                let dirty = if hot.sstatus & SSTATUS_FS == SSTATUS_FS { SSTATUS_SD } else { 0 };
                hot.sstatus | SSTATUS_UXL | dirty
            }
            SIE => hart.sie,
            STVEC => hart.stvec,
            SCOUNTEREN => hart.scounteren,
            SENVCFG => hart.senvcfg,
            SSCRATCH => hart.sscratch,
            SEPC => hart.sepc,
            SCAUSE => hart.scause,
            STVAL => hart.stval,
            SIP => hart.pending_interrupts(hot, cycles_per_tick),
            STIMECMP => hart.stimecmp,
            SATP => hart.satp,
            CYCLE => hot.cycle,
            TIME => hot.cycle / cycles_per_tick,
            INSTRET => hot.instructions,
            _ => return self.read_transaction_csr(index, csr),
        })
    }

    pub(crate) fn write_csr(&mut self, index: usize, csr: u32, value: u64) -> Result<(), IllegalCsr> {
        let (hart, hot) = (&mut self.harts[index], &mut self.memory.hot[index]);
        if matches!(csr, FFLAGS | FRM | FCSR) {
            hot.sstatus |= SSTATUS_FS;
        }
        match csr {
            FFLAGS => hot.fcsr = hot.fcsr & !31 | value & 31,
            FRM => hot.fcsr = hot.fcsr & 31 | (value & 7) << 5,
            FCSR => hot.fcsr = value & 0xff,
            SSTATUS => hot.sstatus = value & SSTATUS_WRITABLE,
            SIE => hart.sie = value & INTERRUPTS,
            // Modes above 1 are reserved; the write keeps the old mode.
            STVEC => hart.stvec = if value & 2 == 0 { value } else { value & !3 | hart.stvec & 3 },
            SCOUNTEREN => hart.scounteren = value & 7,
            SENVCFG => hart.senvcfg = value & 1,
            SSCRATCH => hart.sscratch = value,
            SEPC => hart.sepc = value & !1,
            SCAUSE => hart.scause = value,
            STVAL => hart.stval = value,
            SIP => hart.software_interrupt = value & INTERRUPT_SOFTWARE != 0,
            STIMECMP => {
                hart.stimecmp = value;
                hot.limit = hot.limit.min(hart.timer_cycle(self.order.cycles_per_tick).max(hot.cycle + 1));
            }
            SATP => {
                // A write with a mode that is not implemented has no effect at all. ASIDLEN is 0.
                if matches!(value >> 60, MODE_BARE | MODE_SV39 | MODE_SV48) {
                    hart.satp = value & !(0xffff << 44);
                }
            }
            _ => return self.write_transaction_csr(index, csr, value),
        }
        self.update_context(index);
        Ok(())
    }
}
