//! The digest of a machine's state.

use crate::error::MachineError;
use crate::hart::{Activity, Hart, ModeCycles, Privilege};
use crate::machine::Machine;
use concord_mem::hot::{HotState, registers};
use serde::Serialize;

/// A hart as digests have it, whatever way its state is kept. The order of the fields is part of every digest.
#[derive(Serialize)]
struct DigestedHart<'a> {
    #[serde(serialize_with = "registers::serialize")]
    x: &'a [u64; concord_mem::hot::REGISTERS],
    #[serde(serialize_with = "registers::serialize")]
    f: &'a [u64; concord_mem::hot::REGISTERS],
    pc: u64,
    privilege: Privilege,
    activity: Activity,
    cycle: u64,
    instructions: u64,
    limit: u64,
    sstatus: u64,
    sie: u64,
    stvec: u64,
    scounteren: u64,
    senvcfg: u64,
    sscratch: u64,
    sepc: u64,
    scause: u64,
    stval: u64,
    satp: u64,
    stimecmp: u64,
    xtrap: u64,
    xenable: u64,
    translations_tainted: bool,
    fcsr: u64,
    software_interrupt: bool,
    external_interrupt: bool,
    accounted_cycle: u64,
    modes: ModeCycles,
    disk_use_cycles: u64,
}

impl<'a> DigestedHart<'a> {
    fn of((hart, hot): (&'a Hart, &'a HotState)) -> DigestedHart<'a> {
        DigestedHart {
            x: &hot.x,
            f: &hot.f,
            pc: hot.pc,
            privilege: hart.privilege,
            activity: hart.activity,
            cycle: hot.cycle,
            instructions: hot.instructions,
            limit: hot.limit,
            sstatus: hot.sstatus,
            sie: hart.sie,
            stvec: hart.stvec,
            scounteren: hart.scounteren,
            senvcfg: hart.senvcfg,
            sscratch: hart.sscratch,
            sepc: hart.sepc,
            scause: hart.scause,
            stval: hart.stval,
            satp: hart.satp,
            stimecmp: hart.stimecmp,
            xtrap: hart.xtrap,
            xenable: hart.xenable,
            translations_tainted: hart.translations_tainted,
            fcsr: hot.fcsr,
            software_interrupt: hart.software_interrupt,
            external_interrupt: hart.external_interrupt,
            accounted_cycle: hart.accounted_cycle,
            modes: hart.modes,
            disk_use_cycles: hart.disk_use_cycles,
        }
    }
}

impl Machine {
    /// The digest of the machine's state: what the guest could see, and every clock. Two runs that end with the same digest were the
    /// same run.
    pub fn digest(&mut self) -> Result<String, MachineError> {
        let mut hasher = blake3::Hasher::new();
        let counters: Vec<_> = self.memory.cores().iter().map(|core| core.counters).collect();
        // From here on the saved disks name what their images hold; where the images lie is not part of the run.
        self.bus.disk_digests()?;
        let harts: Vec<_> = self.harts.iter().zip(&self.memory.hot).map(DigestedHart::of).collect();
        let state = (&harts, counters, self.bus.save(), self.accounting.instructions, &self.transactions);
        postcard::to_io(&state, &mut hasher).map_err(|error| MachineError::Digest(error.to_string()))?;
        // Runs in which nobody ever waited for a line have the digest of a board without queues.
        if self.memory.queue_counters().iter().any(|counters| counters.queued_requests > 0) {
            let requests: Vec<_> = self.memory.requests().collect();
            postcard::to_io(&(self.memory.queue_counters(), requests), &mut hasher)
                .map_err(|error| MachineError::Digest(error.to_string()))?;
        }
        for index in self.nonzero_pages() {
            hasher.update(&(index as u32).to_le_bytes());
            hasher.update(self.memory.ram.page(index));
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}
