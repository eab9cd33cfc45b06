//! Accesses while transactions live: conflicts first, then the caches, then the sets.

use crate::execute::door::Stop;
use crate::execute::position::Position;
use crate::machine::Machine;
use crate::transaction::checking::words_at;
use crate::transaction::{Words, rights_outside};
use concord_htm::policy::OutsideReads;
use concord_htm::{Masks, Memory, Party, Request, Verdict, WORD_BYTES, WORD_SHIFT, Word, word_mask};
use concord_mem::fault::{Access, Fault, FaultKind};
use concord_mem::line_table::{self, LineTable, Rights};
use concord_mem::ram::{LINE_SHIFT, RAM_BASE};
use concord_mem::system::{Admission, Place};

impl Machine {
    /// The destination of an access inside one line, while a transaction is live or the isolation checker is on.
    #[inline(never)]
    pub(crate) fn place_watched(
        &mut self,
        at: Position,
        address: u64,
        size_bytes: u64,
        access: Access,
        admission: Admission,
    ) -> Result<Place, Stop> {
        if self.transactions.has_deferred(at.hart) {
            let (physical, _) = self.translate_watched(at, address, access)?;
            self.add_before(at, physical, size_bytes)?;
        }
        if let Some(place) = self.table_hit(at, address, size_bytes, access) {
            return Ok(place);
        }
        let (physical, flags) = self.translate_watched(at, address, access)?;
        if !self.memory.ram.contains(physical, 1) {
            return Ok(Place::Device(physical));
        }
        if admission == Admission::Queues {
            self.admit(at, physical, access)?;
        }
        let party = self.party(at.hart, access);
        let request = self.request(at, party, physical, size_bytes, access == Access::Store);
        self.resolve(at, &request)?;
        self.enter(at, address, physical, flags, &request, true)?;
        Ok(Place::Ram(physical))
    }

    /// Admits an access to RAM, or makes its instruction wait for the line: conflicts are resolved at its turn.
    pub(crate) fn admit(&mut self, at: Position, physical: u64, access: Access) -> Result<(), Stop> {
        Ok(self.memory.admit(at.hart, physical, access, at.cycles())?)
    }

    /// The physical address of an access and the flags of its leaf. The walk may make transactions lose.
    #[inline]
    fn translate_watched(&mut self, at: Position, address: u64, access: Access) -> Result<(u64, u64), Stop> {
        if let Some(found) = self.memory.core(at.hart).find_translation(address, access) {
            return Ok(found);
        }
        self.resolve_walk(at, address, access);
        let translated = self.memory.translate(at.hart, address, access, at.cycles());
        self.drop_stale_code();
        Ok(translated?)
    }

    /// The physical address of an access that only RAM takes. The walk may make transactions lose.
    pub(crate) fn locate(&mut self, at: Position, address: u64, access: Access) -> Result<u64, Stop> {
        let (physical, _) = self.translate_watched(at, address, access)?;
        if !self.memory.ram.contains(physical, 1) {
            return Err(Fault { access, kind: FaultKind::Access, address }.into());
        }
        Ok(physical)
    }

    /// Checks an access in two lines before it happens in either: an access that traps, or does not win in both, makes
    /// no transaction lose.
    pub(crate) fn foresee(&mut self, at: Position, parts: [(u64, u64); 2], access: Access) -> Result<(), Stop> {
        let mut requests = Vec::new();
        let mut places = [(0, 0); 2];
        for ((part, part_bytes), place) in parts.into_iter().zip(&mut places) {
            *place = (self.locate(at, part, access)?, part_bytes);
        }
        self.admit(at, places[0].0, access)?;
        for (physical, part_bytes) in places {
            self.add_before(at, physical, part_bytes)?;
        }
        for (physical, part_bytes) in places {
            let party = self.party(at.hart, access);
            requests.push(self.request(at, party, physical, part_bytes, access == Access::Store));
        }
        if let Some(request) = requests.iter().find(|request| !self.transactions.wins(request)) {
            return self.resolve(at, request);
        }
        // Both are resolved before either joins a set, because joining changes the requester's rank.
        requests.iter().try_for_each(|request| self.resolve(at, request))
    }

    /// The party that a hart's plain access belongs to.
    pub(crate) fn party(&self, hart: usize, access: Access) -> Party {
        match access {
            _ if self.transactions.is_active(hart) => Party::Transaction(hart),
            Access::Load => Party::Reader(hart),
            Access::Store | Access::Fetch => Party::Nontransactional(hart),
        }
    }

    /// Makes the transactions lose that wrote what an LR is about to read, where a load would read around them: the SC
    /// that follows must find what the LR read.
    pub(crate) fn win_reserved(&mut self, at: Position, address: u64, size_bytes: u64) -> Result<(), Stop> {
        if !self.reads_around(at.hart) {
            return Ok(());
        }
        let physical = self.locate(at, address, Access::Load)?;
        let request = self.request(at, Party::Nontransactional(at.hart), physical, size_bytes, false);
        self.resolve(at, &request)
    }

    /// Whether a hart's loads read around the writes of transactions now.
    fn reads_around(&self, hart: usize) -> bool {
        self.watch.is_on
            && self.transactions.policy().outside_reads == OutsideReads::Committed
            && !self.transactions.is_active(hart)
    }

    /// A word as a hart sees it.
    pub(super) fn seen_word(&self, hart: usize, word: Word) -> u64 {
        let committed = if self.reads_around(hart) { self.transactions.committed(word) } else { None };
        committed.unwrap_or_else(|| Words(&self.memory.ram).load(word))
    }

    /// The bytes of RAM that a hart's load returns.
    pub(super) fn seen_bytes(&self, hart: usize, physical: u64, size_bytes: u64) -> u64 {
        let mut value = self.memory.ram.read(physical, size_bytes);
        if self.reads_around(hart) {
            for word in words_at(physical, size_bytes) {
                let Some(committed) = self.transactions.committed(word) else { continue };
                let first = word << WORD_SHIFT;
                for address in first.max(physical)..(first + WORD_BYTES).min(physical + size_bytes) {
                    let (byte, shift) = (committed >> (8 * (address - first)) & 0xff, 8 * (address - physical));
                    value = value & !(0xff << shift) | byte << shift;
                }
            }
        }
        value
    }

    /// The engine's request for an access.
    pub(crate) fn request(
        &mut self,
        at: Position,
        party: Party,
        physical: u64,
        size_bytes: u64,
        write: bool,
    ) -> Request {
        Request {
            party,
            line: physical >> LINE_SHIFT,
            words: word_mask(physical, size_bytes),
            write,
            pc: self.pc_in_run(at),
            now: self.now(at),
        }
    }

    /// Resolves the conflicts of an access. A [`Stop`] means that the access must not happen now.
    pub(crate) fn resolve(&mut self, at: Position, request: &Request) -> Result<(), Stop> {
        let mut losses = Vec::new();
        let verdict = self.transactions.resolve(request, &mut Words(&self.memory.ram), &mut losses);
        let own_loss = if losses.is_empty() { None } else { self.settle(Some(at.hart), &mut losses) };
        match verdict {
            Verdict::Granted => Ok(()),
            Verdict::Lost => {
                Err(Stop::Lost(own_loss.expect("a request that lost comes with the loss of its transaction")))
            }
            Verdict::Wait { cycles } => Err(Stop::Wait { cycles }),
            Verdict::Refused => Err(Stop::Refused),
        }
    }

    /// Makes a granted access: caches and line table, then the sets if it is a transaction's and `joins` them.
    pub(crate) fn enter(
        &mut self,
        at: Position,
        address: u64,
        physical: u64,
        flags: u64,
        request: &Request,
        joins: bool,
    ) -> Result<(), Stop> {
        let joins = joins && matches!(request.party, Party::Transaction(_));
        let access = if request.write { Access::Store } else { Access::Load };
        if self.memory.is_timed() {
            let masks = self.transactions.masks(at.hart, request.line);
            if masks.others_overflowed {
                let cycles = self.configuration.costs().overflow_check_cycles;
                self.memory.charge(at.hart, cycles);
            }
            let rights = self.rights_of(at.hart, &masks, request, joins);
            self.memory.install(at.hart, address, physical, flags, access, rights, at.cycles());
            if let Some(own_loss) = self.note_evictions_of(at.hart) {
                // The words that were about to join the sets do not join.
                let rights = Rights { readable_words: 0, writable_words: 0, ..rights };
                self.memory.narrow(at.hart, concord_mem::cache::line_of(physical), rights);
                return Err(Stop::Lost(own_loss));
            }
        } else if request.write {
            self.memory.note_change(physical);
        }
        self.drop_stale_code();
        if joins {
            let words = Words(&self.memory.ram);
            self.transactions.join(at.hart, request.line, request.words, request.write, request.pc, &words);
        }
        Ok(())
    }

    /// The rights of the line table to a line from now on. In a transaction every access goes by the words in its sets,
    /// so other transactions' words of the line do not matter. Outside, they keep the table from answering for the
    /// whole line.
    fn rights_of(&self, hart: usize, masks: &Masks, request: &Request, joins: bool) -> Rights {
        if !self.transactions.is_active(hart) {
            return rights_outside(masks);
        }
        let joining = if joins { self.transactions.policy().span(request.words) } else { 0 };
        let written = if request.write { joining } else { 0 };
        let in_sets = joins || masks.readable != 0;
        Rights {
            read: in_sets || masks.line_is_readable,
            write: in_sets || masks.line_is_writable,
            readable_words: masks.readable | joining,
            writable_words: masks.writable | written,
        }
    }

    /// A hit of the line table that the interpreter's one comparison misses: in supervisor mode on a user page, with
    /// every access watched, or because the words are not yet in the sets of the hart's transaction. In the last case
    /// they join, if no other transaction has words of the line.
    #[inline]
    pub(crate) fn table_hit(&mut self, at: Position, address: u64, size_bytes: u64, access: Access) -> Option<Place> {
        let timed = self.memory.is_timed();
        if !timed && self.transactions.is_live() {
            return None;
        }
        let store = access == Access::Store;
        let context = self.memory.core(at.hart).context;
        let lines = &self.memory.hot[at.hart].lines;
        // Any access inside the line hits, aligned or not, so it is checked as an access of one byte.
        let own = lines.matching(timed, store, address, 1, context.user_tag());
        let entry = match own {
            None if context.supervisor_user_memory => lines.matching(timed, store, address, 1, line_table::USER)?,
            own => own?,
        };
        let (line_number, words) = (entry.line, if store { entry.writable_words } else { entry.readable_words });
        let shift = line_table::shift(timed);
        let physical = u64::from(line_number) << shift | address & ((1 << shift) - 1);
        if self.watch.is_on && self.transactions.is_active(at.hart) {
            let needed = word_mask(physical, size_bytes);
            if words & needed != needed {
                let (line, pc) = (physical >> LINE_SHIFT, self.pc_in_run(at));
                let words = Words(&self.memory.ram);
                let joined = self.transactions.join_alone(at.hart, line, needed, store, pc, &words)?;
                let entry = self.memory.hot[at.hart].lines.entry(LineTable::slot(timed, address));
                entry.readable_words = joined.readable;
                entry.writable_words = joined.writable;
            }
        }
        Some(Place::Ram(physical))
    }

    /// The page walk of an access, before it happens. A walker always wins, and never conflicts with the hart's own
    /// transaction.
    pub(crate) fn resolve_walk(&mut self, at: Position, address: u64, access: Access) {
        let mut losses = Vec::new();
        loop {
            let steps = self.memory.walk_steps(at.hart, address, access);
            for step in &steps {
                let request = self.request(at, Party::Nontransactional(at.hart), step.address, 8, step.store);
                self.transactions.resolve(&request, &mut Words(&self.memory.ram), &mut losses);
                if words_at(step.address, 8).any(|word| self.transactions.active_wrote(at.hart, word)) {
                    self.harts[at.hart].translations_tainted = true;
                }
            }
            if losses.is_empty() {
                return self.check_walk(at, &steps);
            }
            // A rollback may have changed an entry, and with it the path of the walk.
            let own_loss = self.settle(Some(at.hart), &mut losses);
            debug_assert!(own_loss.is_none(), "the walker of a hart does not meet the hart's own transaction");
        }
    }

    /// The program counter of the op that accesses memory, during a run: a run is a straight line of instructions.
    pub(crate) fn pc_in_run(&mut self, at: Position) -> u64 {
        let mut pc = self.memory.hot[at.hart].pc;
        if at.completed == 0 {
            return pc;
        }
        let translations = &mut self.memory.core(at.hart).fetch_translations;
        let slot = translations.slot(pc);
        let entry = translations.entry(slot);
        let (page, code) = (entry.page(), entry.code);
        if code != 0 {
            // SAFETY: pages are boxed and never freed while a run executes; the reference ends with this statement.
            let offset = unsafe { (*self.code.page(code)).offset_in_run(pc as u32 & 0xfff, at.completed as usize) };
            if let Some(offset) = offset {
                return pc & !0xfff | u64::from(offset);
            }
        }
        // The run has just written to its own code.
        for _ in 0..at.completed {
            let physical = page | pc & 0xfff;
            if !(RAM_BASE <= physical && self.memory.ram.contains(physical, 2)) {
                break;
            }
            pc += if self.memory.ram.read(physical, 2) & 3 == 3 { 4 } else { 2 };
        }
        pc
    }
}
