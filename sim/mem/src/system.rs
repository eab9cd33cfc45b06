//! The memory system: every core's view of RAM, and the coherence between them.
//!
//! Coherence is MESI over private second-level caches on a snooping bus. One word a line records the result of a snoop
//! (which cores hold the line), so a miss costs the host the same with 2 cores as with 64. The timing is that of a bus.

mod queued;
mod saved;
#[cfg(test)]
mod tests;
mod touched;
mod transactions;

pub use queued::{Admission, Refusal};
pub(crate) use saved::ensure;
pub use saved::{SavedMemory, StateError};

use crate::cache::{DataCache, FetchCache, Geometry, Line, SecondCache, State, line_of};
use crate::contention::{ContentionModel, Queues};
use crate::fault::{Access, Fault, FaultKind};
use crate::holders::Holders;
use crate::hot::HotState;
use crate::line_table::{self, Entry, INVALID, LineTable, Rights};
use crate::prefetch::prefetch;
use crate::ram::{LINE_SHIFT, PAGE_BYTES, PAGE_SHIFT, RAM_BASE, Ram};
use crate::translation::{
    ACCESSED, Context, DIRTY, EXECUTE, Leaf, MODE_BARE, READ, TranslationCache, USER_PAGE, WRITE, WalkerAccess, walk,
};
use serde::{Deserialize, Serialize};

/// Sizes and latencies of the modelled memory system. Latencies are in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    pub instruction: Geometry,
    pub data: Geometry,
    pub second: Geometry,
    /// A first-level miss that hits the second level.
    pub second_latency_cycles: u64,
    /// A second-level miss that memory answers, on top of the first-level miss.
    pub memory_latency_cycles: u64,
    /// A second-level miss that another core's cache serves.
    pub transfer_latency_cycles: u64,
    /// A store to a line that this core shares with others.
    pub upgrade_latency_cycles: u64,
    /// Each second-level miss takes up to this many cycles more, drawn by seed (Alameldeen and Wood, HPCA 2003).
    pub perturbation_cycles_max: u64,
    /// Queues of contended lines; without them, requests for one line are served side by side.
    pub contention: Option<ContentionModel>,
    pub translation_entries: usize,
}

/// Counters of a core's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub data_misses: u64,
    pub fetch_misses: u64,
    pub second_misses: u64,
    pub upgrades: u64,
    /// Misses that another core's cache served.
    pub transfers: u64,
    /// Lines that other cores' stores invalidated.
    pub invalidations: u64,
    /// Lines that other cores' loads made shared.
    pub downgrades: u64,
    pub writebacks: u64,
    pub data_translation_misses: u64,
    pub fetch_translation_misses: u64,
    pub stall_cycles: u64,
}

/// The part of the memory system that belongs to one core.
#[derive(Clone, Serialize, Deserialize)]
pub struct Core {
    pub fetch_translations: TranslationCache,
    data_translations: TranslationCache,
    data: DataCache,
    fetch: FetchCache,
    second: SecondCache,
    pub context: Context,
    /// The line that a load-reserved watches.
    pub reservation: Option<Line>,
    pub counters: Counters,
}

/// The destination of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Ram(u64),
    Device(u64),
}

/// When an access happens, and what it has paid.
#[derive(Clone, Copy)]
struct Moment {
    /// Cycles that the hart has spent in its run of ops and that its hot state does not contain yet.
    ahead_cycles: u64,
    /// The part of the latency that passed in a queue, for a request that has queued.
    paid_cycles: Option<u64>,
}

const PAGE_HAS_CODE: u8 = 1;
const PAGE_TOUCHED: u8 = 2;
const PAGE_WRITE_MAPPED: u8 = 4;

/// The initial state of the generator of perturbations. Neighbouring seeds begin far apart, and no seed begins at the
/// generator's fixed point, zero.
fn perturbation_of(seed: u64) -> u64 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6a09_e667_f3bc_c909).max(1)
}

/// The memory system of a machine.
pub struct MemorySystem {
    pub ram: Ram,
    model: Model,
    timed: bool,
    /// The hot state of each core's hart.
    pub hot: Vec<HotState>,
    cores: Vec<Core>,
    /// Which cores' second-level caches hold each line.
    holders: Holders,
    page_flags: Vec<u8>,
    /// The number of pages with [`PAGE_TOUCHED`].
    touched: usize,
    perturbation: u64,
    queues: Queues,
    /// Pages with decoded code that were written to since their decoding.
    stale_code: Vec<u32>,
    /// Lines that left a core's first-level data cache because it was full; kept only while evictions are noted.
    evictions: Vec<(usize, Line)>,
    notes_evictions: bool,
}

impl MemorySystem {
    pub fn new(ram: Ram, cores: usize, model: Model, seed: u64) -> MemorySystem {
        let core = Core {
            fetch_translations: TranslationCache::new(model.translation_entries),
            data_translations: TranslationCache::new(model.translation_entries),
            data: DataCache::new(model.data),
            fetch: FetchCache::new(model.instruction),
            second: SecondCache::new(model.second),
            context: Context::default(),
            reservation: None,
            counters: Counters::default(),
        };
        MemorySystem {
            holders: Holders::new((ram.size_bytes() >> LINE_SHIFT) as usize, cores),
            page_flags: vec![0; ram.pages()],
            touched: 0,
            ram,
            model,
            timed: false,
            hot: vec![HotState::default(); cores],
            cores: vec![core; cores],
            perturbation: perturbation_of(seed),
            queues: Queues::new(model.contention, cores, seed),
            stale_code: Vec::new(),
            evictions: Vec::new(),
            notes_evictions: false,
        }
    }

    /// Perturbs the latencies of misses by this seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.perturbation = perturbation_of(seed);
        self.queues.reseed(seed);
    }

    #[inline]
    pub fn core(&mut self, core: usize) -> &mut Core {
        &mut self.cores[core]
    }

    /// Brings the state with which a core's turn begins into the host's caches; the other cores' turns have displaced it.
    #[inline]
    pub fn prefetch(&self, core: usize) {
        let (core, hot) = (&self.cores[core], &self.hot[core]);
        for register in (0..32).step_by(8) {
            prefetch(&hot.x[register]);
        }
        prefetch(&hot.pc);
        prefetch(core);
        prefetch(&core.context);
        prefetch(&core.counters);
    }

    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Changes the gear. The granularity of the line tables changes with it, so they and the translation caches start
    /// empty.
    pub fn set_timed(&mut self, timed: bool) {
        if self.timed != timed {
            self.timed = timed;
            self.queues.clear();
            for (core, hot) in self.cores.iter_mut().zip(&mut self.hot) {
                core.reservation = None;
                core.flush_translations(hot);
            }
        }
    }

    /// Changes the translation context of a core.
    pub fn set_context(&mut self, core: usize, context: Context) {
        let (core, hot) = (&mut self.cores[core], &mut self.hot[core]);
        hot.user = context.user_tag();
        let old = std::mem::replace(&mut core.context, context);
        if old.satp != context.satp {
            core.flush_translations(hot);
        } else if old.make_executable_readable != context.make_executable_readable
            || context.mode() == MODE_BARE && old.user != context.user
        {
            hot.lines.clear();
        }
    }

    /// `sfence.vma` of one address, or of all if `address` is `None`.
    pub fn flush_translations(&mut self, core: usize, address: Option<u64>) {
        let timed = self.timed;
        let (core, hot) = (&mut self.cores[core], &mut self.hot[core]);
        match address {
            None => core.flush_translations(hot),
            Some(address) => {
                let lines = &mut hot.lines;
                core.data_translations.drop_address(address, |page| lines.drop_page(timed, page));
                core.fetch_translations.drop_address(address, |_| {});
            }
        }
    }

    /// `fence.i`: from now on this core fetches the contents of memory. Decoded code is always coherent, so this
    /// affects the modelled cache only.
    pub fn flush_fetch(&mut self, core: usize) {
        if self.timed {
            self.cores[core].fetch.clear();
        }
    }

    /// Translates, charges and installs an access that does not cross a line, and returns its destination. `address`
    /// must be naturally aligned, or the access must at least stay inside its line. `ahead_cycles` are those that the
    /// hart has spent and that its hot state does not contain yet.
    #[inline(never)]
    pub fn access(
        &mut self,
        index: usize,
        address: u64,
        access: Access,
        ahead_cycles: u64,
        admission: Admission,
    ) -> Result<Place, Refusal> {
        let (physical, flags) = self.translate(index, address, access, ahead_cycles)?;
        if !self.ram.contains(physical, 1) {
            return Ok(Place::Device(physical));
        }
        // The host fetches what the access will need while the model looks at queues and first-level cache.
        prefetch(self.ram.host_address(physical));
        if self.timed {
            self.cores[index].second.prefetch(line_of(physical));
        }
        if admission == Admission::Queues {
            self.admit(index, physical, access, ahead_cycles)?;
        }
        self.install(index, address, physical, flags, access, Rights::ALL, ahead_cycles);
        Ok(Place::Ram(physical))
    }

    /// The physical address of an access, and the flags of its leaf. `ahead_cycles` is as in [`MemorySystem::access`].
    #[inline]
    pub fn translate(
        &mut self,
        index: usize,
        address: u64,
        access: Access,
        ahead_cycles: u64,
    ) -> Result<(u64, u64), Fault> {
        match self.cores[index].find_translation(address, access) {
            Some(found) => Ok(found),
            None => self.translate_data(index, address, access, ahead_cycles),
        }
    }

    /// Charges an access to RAM that was translated and admitted, and enters its line into the line table with `rights`
    /// at most. `ahead_cycles` is as in [`MemorySystem::access`].
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "it is a part of two callers, and all of these are in registers")]
    pub fn install(
        &mut self,
        index: usize,
        address: u64,
        physical: u64,
        flags: u64,
        access: Access,
        rights: Rights,
        ahead_cycles: u64,
    ) {
        let store = access == Access::Store;
        let readable_by_execution = self.cores[index].context.make_executable_readable;
        let page = ((physical - RAM_BASE) >> PAGE_SHIFT) as usize;
        if store {
            self.note_store(page);
        }
        let timed = self.timed;
        let slot = LineTable::slot(timed, address);
        let mut writable = flags & (WRITE | DIRTY) == WRITE | DIRTY && self.page_flags[page] & PAGE_HAS_CODE == 0;
        let mut rights = rights;
        if timed {
            let line = line_of(physical);
            let paid_cycles = self.queues.serve(index, line);
            let way = self.touch_data(index, line, store, Moment { ahead_cycles, paid_cycles });
            if self.queues.is_waited_for(line) {
                rights = Rights { read: false, write: false, ..rights };
            }
            let core = &mut self.cores[index];
            writable &= core.data.is_writable(way);
            core.data.set_slot(way, slot, &mut self.hot[index].lines);
        }
        if writable {
            self.flag_touched(page, PAGE_WRITE_MAPPED);
        }
        let readable = flags & READ != 0 || readable_by_execution && flags & EXECUTE != 0;
        let user = if flags & USER_PAGE != 0 { line_table::USER } else { 0 };
        let tag = line_table::access_tag(timed, address, 1, user) & !7;
        *self.hot[index].lines.entry(slot) = Entry {
            read_tag: if readable && rights.read { tag } else { INVALID },
            write_tag: if writable && rights.write { tag } else { INVALID },
            addend: (self.ram.host_address(physical) as u64).wrapping_sub(address),
            line: (physical >> line_table::shift(timed)) as u32,
            readable_words: rights.readable_words,
            writable_words: rights.writable_words,
        };
    }

    /// The pages whose decoded code has become stale since the last call.
    #[inline]
    pub fn stale_code(&mut self) -> &mut Vec<u32> {
        &mut self.stale_code
    }

    /// Records that code was decoded from a page, so that later stores to the page are noticed.
    pub fn note_code(&mut self, page: usize) {
        let flags = &mut self.page_flags[page];
        *flags |= PAGE_HAS_CODE;
        if *flags & PAGE_WRITE_MAPPED != 0 {
            *flags &= !PAGE_WRITE_MAPPED;
            let physical_page = page as u32 + (RAM_BASE >> PAGE_SHIFT) as u32;
            for hot in &mut self.hot {
                hot.lines.revoke_writes_to_page(self.timed, physical_page);
            }
        }
    }

    /// Translates an access that misses the translation cache, and fills the cache with its page.
    #[cold]
    fn translate_data(
        &mut self,
        core: usize,
        address: u64,
        access: Access,
        ahead_cycles: u64,
    ) -> Result<(u64, u64), Fault> {
        let leaf = self.walk(core, address, access, ahead_cycles)?;
        let timed = self.timed;
        let (core, hot) = (&mut self.cores[core], &mut self.hot[core]);
        core.counters.data_translation_misses += 1;
        if let Some(evicted) = core.data_translations.fill(address, leaf) {
            hot.lines.drop_page(timed, evicted);
        }
        Ok((leaf.page | address & (PAGE_BYTES - 1), leaf.flags))
    }

    fn walk(&mut self, core: usize, address: u64, access: Access, ahead_cycles: u64) -> Result<Leaf, Fault> {
        let context = self.cores[core].context;
        // A walk makes at most four reads and one write.
        let mut walked = [WalkerAccess { address: 0, store: false, bits: 0 }; 5];
        let mut count = 0;
        let found = walk(&self.ram, &context, address, access, |access| {
            walked[count] = access;
            count += 1;
        });
        for step in &walked[..count] {
            if step.store {
                self.note_store(((step.address - RAM_BASE) >> PAGE_SHIFT) as usize);
            }
            if self.timed {
                self.touch_data(core, line_of(step.address), step.store, Moment { ahead_cycles, paid_cycles: None });
            }
        }
        found.map_err(|kind| Fault { access, kind, address })
    }

    /// Translates a fetch and returns the slot of the fetch translation cache that holds the page.
    pub fn translate_fetch(&mut self, core: usize, address: u64) -> Result<usize, Fault> {
        let context = self.cores[core].context;
        let leaf = if context.mode() == MODE_BARE {
            let user = if context.user { USER_PAGE } else { 0 };
            Leaf {
                page: address & u64::MAX << PAGE_SHIFT,
                flags: READ | WRITE | EXECUTE | ACCESSED | DIRTY | user,
                level: 0,
            }
        } else {
            self.cores[core].counters.fetch_translation_misses += 1;
            self.walk(core, address, Access::Fetch, 0)?
        };
        if !self.ram.contains(leaf.page, PAGE_BYTES) {
            return Err(Fault { access: Access::Fetch, kind: FaultKind::Access, address });
        }
        let translations = &mut self.cores[core].fetch_translations;
        translations.fill(address, leaf);
        Ok(translations.slot(address))
    }

    /// Charges the fetch of a line of code.
    #[inline]
    pub fn touch_fetch(&mut self, core: usize, line: Line) {
        if !self.cores[core].fetch.hits(line) {
            self.touch_fetch_slowly(core, line);
        }
    }

    #[cold]
    fn touch_fetch_slowly(&mut self, core: usize, line: Line) {
        self.cores[core].second.prefetch(line);
        if !self.cores[core].fetch.access(line) {
            self.cores[core].counters.fetch_misses += 1;
            self.touch_second(core, line);
        }
    }

    /// Brings a line into the first-level data cache with the rights that the access needs, charges it, and returns its
    /// way.
    #[inline]
    fn touch_data(&mut self, index: usize, line: Line, store: bool, moment: Moment) -> usize {
        let core = &mut self.cores[index];
        if let Some(way) = core.data.find(line) {
            if store && !core.data.is_writable(way) {
                core.data.set_writable(way, true);
                self.make_modified(index, line, moment);
            }
            return way;
        }
        let hot = &mut self.hot[index];
        core.counters.data_misses += 1;
        core.charge(hot, self.model.second_latency_cycles);
        let way = match core.second.access(line) {
            // Most misses end here, without a look at other cores.
            Some(state) if !store || state == State::Modified => {
                core.data.fill(line, state == State::Modified, &mut hot.lines)
            }
            state => {
                let state = self.acquire(index, line, store, state, moment);
                let (core, hot) = (&mut self.cores[index], &mut self.hot[index]);
                core.data.fill(line, state == State::Modified, &mut hot.lines)
            }
        };
        if self.notes_evictions {
            self.note_eviction(index, self.cores[index].data.victim());
        }
        way
    }

    /// Fetches a line of code that misses the first-level cache.
    fn touch_second(&mut self, index: usize, line: Line) {
        let core = &mut self.cores[index];
        core.charge(&mut self.hot[index], self.model.second_latency_cycles);
        if core.second.access(line).is_none() {
            self.acquire(index, line, false, None, Moment { ahead_cycles: 0, paid_cycles: None });
        }
    }

    /// Acquires a line whose `state` in the second level, just looked up, does not suffice. Returns the new state.
    #[inline(never)]
    fn acquire(&mut self, index: usize, line: Line, store: bool, state: Option<State>, moment: Moment) -> State {
        match state {
            None => self.miss(index, line, store, moment),
            Some(state) => {
                if state == State::Shared {
                    self.upgrade(index, line, moment);
                }
                self.cores[index].second.set_recent_state(line, State::Modified);
                State::Modified
            }
        }
    }

    /// Makes a line that this core's second level holds modified.
    fn make_modified(&mut self, core: usize, line: Line, moment: Moment) {
        if self.cores[core].second.state(line) == Some(State::Shared) {
            self.upgrade(core, line, moment);
        }
        self.cores[core].second.set_state(line, State::Modified);
    }

    /// Invalidates a shared line in the other cores.
    fn upgrade(&mut self, core: usize, line: Line, moment: Moment) {
        self.cores[core].counters.upgrades += 1;
        let latency = self.model.upgrade_latency_cycles;
        let cycles = self.request_cycles(core, line, true, latency, true, moment);
        self.cores[core].charge(&mut self.hot[core], cycles);
        self.invalidate_others(core, line);
    }

    /// Invalidates a line in every other core; true if one of them had modified it.
    fn invalidate_others(&mut self, core: usize, line: Line) -> bool {
        let mut others = self.holders.get(line) & !(1 << core);
        let mut modified = false;
        while others != 0 {
            let index = others.trailing_zeros() as usize;
            let other = &mut self.cores[index];
            others &= others - 1;
            modified |= other.second.state(line) == Some(State::Modified);
            other.drop_line(&mut self.hot[index], line);
            other.counters.invalidations += 1;
        }
        self.holders.set(line, self.holders.get(line) & 1 << core);
        modified
    }

    /// A second-level miss: the bus serves it.
    fn miss(&mut self, core: usize, line: Line, store: bool, moment: Moment) -> State {
        let others = self.holders.get(line) & !(1 << core);
        self.cores[core].counters.second_misses += 1;
        let (state, owner) = if store {
            let modified = self.invalidate_others(core, line);
            (State::Modified, modified.then_some(State::Modified))
        } else if others == 0 {
            (State::Exclusive, None)
        } else {
            (State::Shared, self.share(line, others))
        };
        let latency = if owner == Some(State::Modified) {
            self.cores[core].counters.transfers += 1;
            self.model.transfer_latency_cycles
        } else {
            self.model.memory_latency_cycles
        };
        let perturbation = self.draw_perturbation();
        let cycles = self.request_cycles(core, line, store, latency, store || owner.is_some(), moment);
        let (holder, hot) = (&mut self.cores[core], &mut self.hot[core]);
        holder.charge(hot, cycles + perturbation);
        if let Some((victim, modified)) = holder.second.fill(line, state) {
            holder.counters.writebacks += u64::from(modified);
            holder.drop_line(hot, victim);
            self.holders.remove(victim, core);
            if self.notes_evictions {
                self.note_eviction(core, Some(victim));
            }
        }
        self.holders.insert(line, core);
        state
    }

    /// Shares a line that other cores hold, for a load: a core that may store to it loses that right. Returns the state
    /// of the line in that core's cache, if there is one.
    fn share(&mut self, line: Line, others: u64) -> Option<State> {
        if !others.is_power_of_two() {
            return None;
        }
        let index = others.trailing_zeros() as usize;
        let owner = &mut self.cores[index];
        let state = owner.second.state(line);
        if state == Some(State::Shared) {
            return None;
        }
        owner.second.set_state(line, State::Shared);
        owner.data.revoke_write(line, &mut self.hot[index].lines);
        owner.counters.downgrades += 1;
        owner.counters.writebacks += u64::from(state == Some(State::Modified));
        state
    }

    fn draw_perturbation(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003): small, and good enough to spread latencies.
        self.perturbation ^= self.perturbation << 13;
        self.perturbation ^= self.perturbation >> 7;
        self.perturbation ^= self.perturbation << 17;
        (self.perturbation >> 33) % (self.model.perturbation_cycles_max + 1)
    }

    /// A device wrote to a range of RAM.
    pub fn note_device_write(&mut self, address: u64, length: u64) {
        if length == 0 || !self.ram.contains(address, length) {
            return;
        }
        for page in (address - RAM_BASE) >> PAGE_SHIFT..=(address + length - 1 - RAM_BASE) >> PAGE_SHIFT {
            self.note_store(page as usize);
        }
        let (first, last) = (line_of(address), line_of(address + length - 1));
        for core in &mut self.cores {
            if core.reservation.is_some_and(|line| (first..=last).contains(&line)) {
                core.reservation = None;
            }
        }
        if self.timed {
            for line in first..=last {
                let mut holders = self.holders.get(line);
                self.holders.set(line, 0);
                while holders != 0 {
                    let index = holders.trailing_zeros() as usize;
                    self.cores[index].drop_line(&mut self.hot[index], line);
                    holders &= holders - 1;
                }
            }
        }
    }

    /// Marks a page as possibly not all zeroes, because the loader or a snapshot wrote to it.
    pub fn note_loaded(&mut self, address: u64, length: u64) {
        self.note_device_write(address, length);
    }

    /// Resets the statistics to zero.
    pub fn reset_counters(&mut self) {
        for core in &mut self.cores {
            core.counters = Counters::default();
        }
        self.queues.reset_counters();
    }
}

impl Core {
    /// The physical address and the leaf's flags, if the translation cache has them and they permit the access.
    #[inline]
    pub fn find_translation(&self, address: u64, access: Access) -> Option<(u64, u64)> {
        let context = &self.context;
        if context.mode() == MODE_BARE {
            let user = if context.user { USER_PAGE } else { 0 };
            return Some((address, READ | WRITE | DIRTY | user));
        }
        let entry = self.data_translations.find(address)?;
        let flags = entry.flags();
        let goes = context.permits(flags, access) && (access != Access::Store || flags & DIRTY != 0);
        goes.then(|| (entry.page() | address & (PAGE_BYTES - 1), flags))
    }

    #[inline]
    pub(crate) fn charge(&mut self, hot: &mut HotState, cycles: u64) {
        hot.stall_cycles += cycles;
        self.counters.stall_cycles += cycles;
    }

    /// See [`FetchCache::recent_lines`].
    #[inline]
    pub fn recent_fetch_lines(&self, first_line: Line) -> *const Line {
        self.fetch.recent_lines(first_line)
    }

    fn flush_translations(&mut self, hot: &mut HotState) {
        hot.lines.clear();
        self.data_translations.clear();
        self.fetch_translations.clear();
    }

    /// Removes a line because of another core's store, a device or an eviction.
    fn drop_line(&mut self, hot: &mut HotState, line: Line) {
        self.data.drop_line(line, &mut hot.lines);
        self.second.drop_line(line);
        if self.reservation == Some(line) {
            self.reservation = None;
        }
    }
}
