//! Cost and effect of accesses, written for correctness and not for speed.
//!
//! MESI over lists: a second-level cache is a list of lines for each set, most recent first; a first-level data cache
//! is a ring of ways with a hand; the line table is a map from slot to virtual and physical line, and gives CLOCK its
//! reference bits. The queue of a line is what is left of the list of all requests that were ever made.

use crate::contention::{ContentionModel, QueueCounters};
use crate::fault::{Access, FaultKind};
use crate::ram::RAM_BASE;
use crate::system::{Admission, Counters, Model};
use crate::translation::Context;
use std::collections::BTreeMap;

const SLOTS: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mesi {
    Modified,
    Exclusive,
    Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    pub virtual_page: u64,
    pub physical_page: u64,
    pub flags: u64,
    pub level: u64,
}

/// One core. Lines are physical addresses divided by 64.
#[derive(Clone, Default)]
pub struct Core {
    pub context: Context,
    pub data_translations: BTreeMap<u64, Translation>,
    pub fetch_translations: BTreeMap<u64, Translation>,
    /// For each slot of the line table, the virtual and the physical line, and whether it answers for the line. One that
    /// does not answer has forgotten its page.
    pub table: BTreeMap<u64, (u64, u64, bool)>,
    pub first: Vec<Vec<Option<u64>>>,
    pub hands: Vec<usize>,
    pub second: Vec<Vec<(u64, Mesi)>>,
    pub fetch: Vec<Vec<Option<u64>>>,
    pub fetch_hands: Vec<usize>,
    pub reservation: Option<u64>,
    pub counters: Counters,
    pub clock: u64,
    pub queues: QueueCounters,
}

/// A request that has kept, keeps or will keep its line busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    pub core: usize,
    pub line: u64,
    pub store: bool,
    pub since: u64,
    /// When the service before it ends.
    before: u64,
    pub start: u64,
    pub end: u64,
    paid: u64,
    /// It is in the queue.
    pub waits: bool,
}

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Done(u64),
    Queued,
    Fault(FaultKind),
}

/// The whole model.
pub struct Reference {
    model: Model,
    pub timed: bool,
    pub cores: Vec<Core>,
    /// Page-table entries, by physical address.
    pub memory: BTreeMap<u64, u64>,
    ram_bytes: u64,
    perturbation: u64,
    /// In the order of arrival.
    pub services: Vec<Service>,
    bus_free: u64,
    window: u64,
}

impl Core {
    fn state(&mut self, line: u64) -> Option<&mut Mesi> {
        self.second.iter_mut().flatten().find(|(held, _)| *held == line).map(|(_, state)| state)
    }

    /// Removes the line from this core altogether.
    fn lose(&mut self, line: u64) {
        self.second.iter_mut().for_each(|set| set.retain(|(held, _)| *held != line));
        self.first.iter_mut().flatten().filter(|way| **way == Some(line)).for_each(|way| *way = None);
        self.forget_entry(line);
        self.reservation = self.reservation.filter(|reserved| *reserved != line);
    }

    fn forget_entry(&mut self, line: u64) {
        self.table.retain(|_, (_, physical, _)| *physical != line);
    }

    fn forget_page(&mut self, virtual_page: u64) {
        self.table.retain(|_, (virtual_line, _, answers)| !*answers || *virtual_line >> 6 != virtual_page);
    }

    pub fn flush(&mut self) {
        self.data_translations.clear();
        self.fetch_translations.clear();
        self.table.clear();
    }
}

impl Reference {
    pub fn new(model: Model, cores: usize, ram_bytes: u64, seed: u64) -> Reference {
        let core = Core {
            first: vec![vec![None; model.data.ways]; model.data.sets],
            hands: vec![0; model.data.sets],
            second: vec![Vec::new(); model.second.sets],
            fetch: vec![vec![None; model.instruction.ways]; model.instruction.sets],
            fetch_hands: vec![0; model.instruction.sets],
            ..Core::default()
        };
        Reference {
            model,
            timed: false,
            cores: vec![core; cores],
            memory: BTreeMap::new(),
            ram_bytes,
            perturbation: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6a09_e667_f3bc_c909,
            services: Vec::new(),
            bus_free: 0,
            window: seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x3c6e_f372_fe94_f82b,
        }
    }

    fn is_ram(&self, address: u64) -> bool {
        (RAM_BASE..RAM_BASE + self.ram_bytes).contains(&address)
    }

    pub fn set_timed(&mut self, timed: bool) {
        if self.timed != timed {
            self.timed = timed;
            self.services.clear();
            self.bus_free = 0;
            for core in &mut self.cores {
                core.flush();
                core.reservation = None;
            }
        }
    }

    pub fn set_context(&mut self, core: usize, context: Context) {
        let core = &mut self.cores[core];
        let old = std::mem::replace(&mut core.context, context);
        if old.satp != context.satp {
            core.flush();
        } else if old.make_executable_readable != context.make_executable_readable
            || context.satp >> 60 == 0 && old.user != context.user
        {
            core.table.clear();
        }
    }

    /// `sfence.vma` of an address: drops every leaf that maps it.
    pub fn fence(&mut self, core: usize, address: u64) {
        let core = &mut self.cores[core];
        let covers = |translation: &Translation| {
            let shift = 9 * translation.level;
            translation.virtual_page >> shift == address >> 12 >> shift
        };
        let dropped: Vec<u64> =
            core.data_translations.values().filter(|entry| covers(entry)).map(|entry| entry.virtual_page).collect();
        core.data_translations.retain(|_, entry| !covers(entry));
        core.fetch_translations.retain(|_, entry| !covers(entry));
        for page in dropped {
            core.forget_page(page);
        }
    }

    pub fn device_write(&mut self, address: u64, length: u64) {
        for line in address >> 6..=(address + length - 1) >> 6 {
            for core in &mut self.cores {
                core.reservation = core.reservation.filter(|reserved| *reserved != line);
                if self.timed {
                    core.lose(line);
                }
            }
        }
    }

    /// A load or store; where it went may be a device.
    pub fn access(&mut self, core: usize, address: u64, access: Access, admission: Admission) -> Fate {
        let physical = match self.translate(core, address, access) {
            Ok(physical) => physical,
            Err(kind) => return Fate::Fault(kind),
        };
        if self.is_ram(physical) && self.timed {
            let (line, store) = (physical >> 6, access == Access::Store);
            let paid = match admission {
                Admission::Exempt => None,
                Admission::Queues => match self.request(core, line, store) {
                    Some(paid) => paid,
                    None => return Fate::Queued,
                },
            };
            self.touch(core, line, store, paid);
            let answers = !self.services.iter().any(|service| service.line == line && service.waits);
            let core = &mut self.cores[core];
            core.forget_entry(line);
            core.table.insert((address >> 6) % SLOTS, (address >> 6, line, answers));
        }
        Fate::Done(physical)
    }

    /// Takes a line as a store does, before a load with a reservation. False if the core waits for it.
    pub fn own(&mut self, core: usize, line: u64) -> bool {
        if self.model.contention.is_none() || !self.timed {
            return true;
        }
        let now = self.cores[core].clock;
        let is_busy = |service: &Service| service.waits || service.line == line && service.end > now;
        let is_clear = self.bus_free <= now && !self.services.iter().any(is_busy);
        let is_elsewhere =
            self.cores.iter_mut().enumerate().any(|(number, other)| number != core && other.state(line).is_some());
        if is_clear && !is_elsewhere {
            return true;
        }
        let Some(paid) = self.request(core, line, true) else { return false };
        self.touch(core, line, true, paid);
        true
    }

    /// Whether an access may be made now: with what it has paid, if it was in the queue.
    fn request(&mut self, core: usize, line: u64, store: bool) -> Option<Option<u64>> {
        let Some(model) = self.model.contention else { return Some(None) };
        let now = self.cores[core].clock;
        if let Some(own) = self.waiting(core) {
            let service = self.services[own];
            if service.line == line {
                assert!(now >= service.start, "the harness lets nobody go on before its turn");
                self.services[own].waits = false;
                self.cores[core].queues.queued_cycles += service.start - service.since;
                return Some(Some(service.paid));
            }
            self.leave(core, now);
        }
        let state = self.cores[core].state(line).copied();
        let has_it = matches!(state, Some(Mesi::Modified | Mesi::Exclusive)) || state.is_some() && !store;
        let mut in_line = self.services.iter().filter(|service| service.line == line);
        let is_late = in_line.clone().any(|other| other.waits && other.start <= now && (other.store || store));
        if has_it && !is_late {
            return Some(None);
        }
        let last = in_line.next_back().copied();
        let from = now.max(self.bus_free);
        let behind = last.filter(|last| is_late || last.end > from);
        if behind.is_none() && from == now {
            return Some(None);
        }
        self.occupy_bus(model, from);
        let before = behind.map_or(from, |behind| behind.end.max(from));
        let (window, busy) = match (behind, store) {
            (Some(Service { store: true, .. }), _) => {
                let window = self.draw_window(model);
                (window, (self.model.second_latency_cycles + self.model.transfer_latency_cycles).saturating_sub(window))
            }
            (_, false) => (0, model.shared_busy_cycles),
            (_, true) if state.is_some() => (0, self.model.upgrade_latency_cycles),
            (_, true) => (0, self.model.second_latency_cycles + self.model.memory_latency_cycles),
        };
        let start = (before + window).max(now + 1);
        let end = start + busy.max(1);
        let service = Service { core, line, store, since: now, before, start, end, paid: window, waits: true };
        self.services.push(service);
        self.cores[core].queues.queued_requests += 1;
        for (_, physical, answers) in self.cores.iter_mut().flat_map(|core| core.table.values_mut()) {
            *answers &= *physical != line;
        }
        None
    }

    /// The place of the service that a core waits for.
    fn waiting(&self, core: usize) -> Option<usize> {
        self.services.iter().position(|service| service.core == core && service.waits)
    }

    /// What a core waits for is not done.
    pub fn leave(&mut self, core: usize, now: u64) {
        let Some(place) = self.waiting(core) else { return };
        if self.services[place].start <= now {
            let service = &mut self.services[place];
            service.waits = false;
            self.cores[core].queues.queued_cycles += service.start - service.since;
            return;
        }
        let gone = self.services.remove(place);
        self.cores[core].queues.queued_cycles += now.min(gone.start) - gone.since;
        let is_behind = |other: &Service| other.line == gone.line && other.waits && other.start > gone.start;
        let mut gap = gone.end - gone.before;
        for other in self.services[place..].iter().filter(|other| is_behind(other)) {
            gap = gap.min(other.start.saturating_sub(now + 1)).min(other.start - other.since - 1);
        }
        let mut has_followers = false;
        for other in self.services[place..].iter_mut().filter(|other| is_behind(other)) {
            other.before -= gap;
            other.start -= gap;
            other.end -= gap;
            has_followers = true;
        }
        if !has_followers {
            gap = gap.min(gone.end.saturating_sub(now + 1));
            // The line is busy up to here, and it is as its last request leaves it.
            self.services.push(Service { waits: false, end: gone.end - gap, ..gone });
        }
    }

    fn occupy_bus(&mut self, model: ContentionModel, from: u64) {
        self.bus_free = if model.bus_busy_cycles == 0 { 0 } else { from + model.bus_busy_cycles };
    }

    /// What a request costs; one that has not been in the queue waits for its line here, or keeps it busy.
    fn serve(
        &mut self,
        core: usize,
        line: u64,
        store: bool,
        latency: u64,
        needs_owner: bool,
        paid: Option<u64>,
    ) -> u64 {
        let Some(model) = self.model.contention else { return latency };
        if let Some(paid) = paid {
            return latency.saturating_sub(paid);
        }
        let now = self.cores[core].clock;
        let from = now.max(self.bus_free);
        self.occupy_bus(model, from);
        let last = self.services.iter().rfind(|service| service.line == line);
        let free = last.map_or(0, |last| last.end).max(from);
        if free > now {
            let queues = &mut self.cores[core].queues;
            queues.queued_requests += 1;
            queues.queued_cycles += free - now;
        } else {
            let end = now + if needs_owner { latency } else { model.shared_busy_cycles };
            let service =
                Service { core, line, store, since: now, before: now, start: now, end, paid: 0, waits: false };
            self.services.push(service);
        }
        latency + (free - now)
    }

    fn draw_window(&mut self, model: ContentionModel) -> u64 {
        let mut word = self.window;
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.window = word;
        model.window_cycles / 2 + (word >> 33) % (model.window_cycles + 1)
    }

    /// The physical address of a load or store.
    pub fn translate(&mut self, core: usize, address: u64, access: Access) -> Result<u64, FaultKind> {
        let context = self.cores[core].context;
        let physical = if context.satp >> 60 == 0 {
            address
        } else {
            let slot = address >> 12 & (self.model.translation_entries as u64 - 1);
            let cached = self.cores[core].data_translations.get(&slot).copied();
            let usable = cached.filter(|entry| {
                entry.virtual_page == address >> 12
                    && may(context, entry.flags, access)
                    && (access != Access::Store || entry.flags & 0x80 != 0)
            });
            let entry = match usable {
                Some(entry) => entry,
                None => {
                    let entry = self.walk(core, address, access)?;
                    self.cores[core].counters.data_translation_misses += 1;
                    let old = self.cores[core].data_translations.insert(slot, entry);
                    if let Some(old) = old.filter(|old| old.virtual_page != entry.virtual_page) {
                        self.cores[core].forget_page(old.virtual_page);
                    }
                    entry
                }
            };
            entry.physical_page << 12 | address & 0xfff
        };
        Ok(physical)
    }

    /// An instruction fetch. Returns the physical address.
    pub fn fetch(&mut self, core: usize, address: u64) -> Result<u64, FaultKind> {
        let context = self.cores[core].context;
        let slot = address >> 12 & (self.model.translation_entries as u64 - 1);
        let cached = self.cores[core].fetch_translations.get(&slot).copied();
        let usable =
            cached.filter(|entry| entry.virtual_page == address >> 12 && (entry.flags & 0x10 != 0) == context.user);
        let entry = match usable {
            Some(entry) => entry,
            None => {
                let entry = if context.satp >> 60 == 0 {
                    let flags = if context.user { 0x10 } else { 0 };
                    Translation { virtual_page: address >> 12, physical_page: address >> 12, flags, level: 0 }
                } else {
                    self.cores[core].counters.fetch_translation_misses += 1;
                    self.walk(core, address, Access::Fetch)?
                };
                if !self.is_ram(entry.physical_page << 12) {
                    return Err(FaultKind::Access);
                }
                self.cores[core].fetch_translations.insert(slot, entry);
                entry
            }
        };
        let physical = entry.physical_page << 12 | address & 0xfff;
        if self.timed {
            let line = physical >> 6;
            let set = (line as usize) % self.model.instruction.sets;
            let cache = &mut self.cores[core];
            if !cache.fetch[set].contains(&Some(line)) {
                let hand = cache.fetch_hands[set];
                cache.fetch[set][hand] = Some(line);
                cache.fetch_hands[set] = (hand + 1) % self.model.instruction.ways;
                cache.counters.fetch_misses += 1;
                self.touch_second(core, line, false, None);
            }
        }
        Ok(physical)
    }

    pub fn flush_fetch(&mut self, core: usize) {
        if self.timed {
            self.cores[core].fetch.iter_mut().flatten().for_each(|way| *way = None);
        }
    }

    /// The page-table walk (privileged specification, "Virtual Address Translation Process").
    fn walk(&mut self, core: usize, address: u64, access: Access) -> Result<Translation, FaultKind> {
        let context = self.cores[core].context;
        let levels = if context.satp >> 60 == 9 { 4 } else { 3 };
        let top = (address as i64) >> (12 + 9 * levels - 1);
        if top != 0 && top != -1 {
            return Err(FaultKind::Page);
        }
        let mut table = (context.satp & 0xfff_ffff_ffff) << 12;
        let mut level = levels;
        loop {
            level -= 1;
            let place = table + 8 * (address >> (12 + 9 * level) & 0x1ff);
            if !self.is_ram(place) {
                return Err(FaultKind::Access);
            }
            if self.timed {
                self.touch(core, place >> 6, false, None);
            }
            let entry = self.memory.get(&place).copied().unwrap_or(0);
            let (valid, read, write, execute) = (entry & 1 == 1, entry & 2 == 2, entry & 4 == 4, entry & 8 == 8);
            if !valid || write && !read || entry >> 54 != 0 {
                return Err(FaultKind::Page);
            }
            let physical_page = entry >> 10 & 0xfff_ffff_ffff;
            if !read && !execute {
                if level == 0 || entry & 0xd0 != 0 {
                    return Err(FaultKind::Page);
                }
                table = physical_page << 12;
                continue;
            }
            let low_pages = (1 << (9 * level)) - 1;
            if !may(context, entry, access) || physical_page & low_pages != 0 {
                return Err(FaultKind::Page);
            }
            let used = entry | 0x40 | if access == Access::Store { 0x80 } else { 0 };
            if used != entry {
                self.memory.insert(place, used);
                if self.timed {
                    self.touch(core, place >> 6, true, None);
                }
            }
            let virtual_page = address >> 12;
            let physical_page = physical_page | virtual_page & low_pages;
            return Ok(Translation { virtual_page, physical_page, flags: used & 0xff, level: level as u64 });
        }
    }

    /// An access to the first level.
    fn touch(&mut self, core: usize, line: u64, store: bool, paid: Option<u64>) {
        let set = (line as usize) % self.model.data.sets;
        if self.cores[core].first[set].contains(&Some(line)) {
            if store {
                self.modify(core, line, paid);
            }
            return;
        }
        self.cores[core].counters.data_misses += 1;
        self.touch_second(core, line, store, paid);
        let core = &mut self.cores[core];
        loop {
            let hand = core.hands[set];
            core.hands[set] = (hand + 1) % self.model.data.ways;
            let held = core.first[set][hand];
            let is_referenced = held.is_some_and(|held| core.table.values().any(|entry| entry.1 == held));
            match held {
                Some(held) if is_referenced => core.forget_entry(held),
                _ => {
                    core.first[set][hand] = Some(line);
                    return;
                }
            }
        }
    }

    fn charge(&mut self, core: usize, cycles: u64) {
        self.cores[core].counters.stall_cycles += cycles;
        self.cores[core].clock += cycles;
    }

    /// Makes a line that this core holds modified.
    fn modify(&mut self, core: usize, line: u64, paid: Option<u64>) {
        if self.cores[core].state(line) == Some(&mut Mesi::Shared) {
            self.cores[core].counters.upgrades += 1;
            let cycles = self.serve(core, line, true, self.model.upgrade_latency_cycles, true, paid);
            self.charge(core, cycles);
            self.take_away(core, line);
        }
        if let Some(state) = self.cores[core].state(line) {
            *state = Mesi::Modified;
        }
    }

    fn take_away(&mut self, core: usize, line: u64) {
        for (number, other) in self.cores.iter_mut().enumerate() {
            if number != core && other.state(line).is_some() {
                other.counters.invalidations += 1;
                other.lose(line);
            }
        }
    }

    fn touch_second(&mut self, core: usize, line: u64, store: bool, paid: Option<u64>) {
        self.charge(core, self.model.second_latency_cycles);
        let set = (line as usize) % self.model.second.sets;
        let list = &mut self.cores[core].second[set];
        if let Some(place) = list.iter().position(|(held, _)| *held == line) {
            let entry = list.remove(place);
            list.insert(0, entry);
            if store {
                self.modify(core, line, paid);
            }
            return;
        }
        self.cores[core].counters.second_misses += 1;
        let others: Vec<Mesi> = self.others(core, line);
        let was_modified = others.contains(&Mesi::Modified);
        let state = match (store, others.is_empty()) {
            (true, _) => Mesi::Modified,
            (false, true) => Mesi::Exclusive,
            (false, false) => Mesi::Shared,
        };
        if store {
            self.take_away(core, line);
        } else {
            self.share(core, line);
        }
        self.cores[core].counters.transfers += u64::from(was_modified);
        let latency = if was_modified { self.model.transfer_latency_cycles } else { self.model.memory_latency_cycles };
        let extra = self.draw();
        let needs_owner = store || others.iter().any(|other| *other != Mesi::Shared);
        let cycles = self.serve(core, line, store, latency, needs_owner, paid);
        self.charge(core, cycles + extra);
        let core = &mut self.cores[core];
        if core.second[set].len() == self.model.second.ways {
            let (victim, state) = core.second[set][self.model.second.ways - 1];
            core.counters.writebacks += u64::from(state == Mesi::Modified);
            core.lose(victim);
        }
        core.second[set].insert(0, (line, state));
    }

    fn others(&mut self, core: usize, line: u64) -> Vec<Mesi> {
        let others = self.cores.iter_mut().enumerate().filter(|(number, _)| *number != core);
        others.filter_map(|(_, other)| other.state(line).copied()).collect()
    }

    fn share(&mut self, core: usize, line: u64) {
        for (_, other) in self.cores.iter_mut().enumerate().filter(|(number, _)| *number != core) {
            let Some(state) = other.state(line) else { continue };
            let old = std::mem::replace(state, Mesi::Shared);
            other.counters.downgrades += u64::from(old != Mesi::Shared);
            other.counters.writebacks += u64::from(old == Mesi::Modified);
        }
    }

    fn draw(&mut self) -> u64 {
        let mut word = self.perturbation;
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.perturbation = word;
        (word >> 33) % (self.model.perturbation_cycles_max + 1)
    }
}

/// Whether a leaf permits the access (privileged specification, "Addressing and Memory Protection").
pub fn may(context: Context, flags: u64, access: Access) -> bool {
    let user_page = flags & 0x10 != 0;
    let privilege = match (context.user, user_page) {
        (true, page) => page,
        (false, false) => true,
        (false, true) => context.supervisor_user_memory && access != Access::Fetch,
    };
    let right = match access {
        Access::Load if context.make_executable_readable => flags & (2 | 8) != 0,
        Access::Load => flags & 2 != 0,
        Access::Store => flags & 4 != 0,
        Access::Fetch => flags & 8 != 0,
    };
    privilege && right
}
