//! The areas in which each processor has its own copy of the kernel's per-cpu variables (`mm/percpu.c`, first chunk).

use super::kernel::Kernel;

/// Processors that are looked at. A choice far above what a board has.
const PROCESSORS_MAX: u64 = 4096;

/// The area of one processor.
pub(super) struct PerCpu {
    /// Physical address of its begin.
    begin: u64,
    size_bytes: u64,
}

impl Kernel<'_> {
    pub(super) fn per_cpu_areas(&self) -> Option<Vec<PerCpu>> {
        let count = self.read_root("nr_cpu_ids", 4)?.min(PROCESSORS_MAX);
        let size_bytes = self.read_root("pcpu_unit_size", 4)?;
        let offsets = self.types.root("__per_cpu_offset")?;
        let start = self.types.root("__per_cpu_start")?;
        let area = |processor: u64| {
            let offset = self.read(offsets.wrapping_add(processor * 8), 8)?;
            Some(PerCpu { begin: self.physical(start.wrapping_add(offset))?, size_bytes })
        };
        (0..count).map(area).collect()
    }

    /// The processor in whose area a physical address lies, and the address that the variable there was linked for; none for
    /// what was allocated in the area.
    pub(super) fn per_cpu(&self, address: u64) -> Option<(usize, Option<u64>)> {
        let inside = |area: &PerCpu| address.checked_sub(area.begin).filter(|offset| *offset < area.size_bytes);
        let (processor, offset) =
            self.per_cpu.iter().enumerate().find_map(|(processor, area)| Some((processor, inside(area)?)))?;
        let linked = self.types.root("__per_cpu_start")?.wrapping_add(offset);
        Some((processor, (linked < self.types.root("__per_cpu_end")?).then_some(linked)))
    }
}
