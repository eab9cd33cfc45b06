//! Decoded code, by physical page, shared by all harts.
//!
//! A run is the decoded code from one entry point to the end of its cache line, past branches that are not taken. A
//! page keeps its runs one after the other, and a table from page offset to run. Decoded code has no effect on the
//! machine's state: decoding a page again gives the same ops, because stores to a page with code are noticed
//! (`MemorySystem::note_code`).

use crate::execute::translation::NEVER;
use concord_isa::compressed;
use concord_isa::decode::decode;
use concord_isa::op::{Kind, Op};
use concord_mem::ram::{LINE_BYTES, PAGE_BYTES, PAGE_SHIFT, RAM_BASE, Ram};
use concord_translate::{Entry, Region, Run, Variant};
use std::sync::Arc;

const OFFSETS: usize = (PAGE_BYTES / 2) as usize;

/// The place of a run's first op. It is never 0, because the run's [`Head`] stands before it.
pub type Place = u16;

/// What stands before the ops of a run: as long as an op and beside the first one, because the interpreter looks at both.
#[derive(Clone, Copy, Default)]
struct Head {
    /// How often the interpreter has executed the run, or [`UNTRANSLATABLE`].
    heat: u32,
    /// The variants, by [`Variant::index`], that have an entry into a region here: one bit each.
    variants: u8,
}

/// The heat of a run that no region can contain. It asks for nothing.
const UNTRANSLATABLE: u32 = u32::MAX;

impl Head {
    fn of(op: Op) -> Head {
        Head { heat: op.imm as u32, variants: op.rd }
    }

    fn op(self) -> Op {
        const { assert!(Variant::COUNT <= u8::BITS as usize) };
        Op { rd: self.variants, ..Op::bare(Kind::Next, self.heat as i32) }
    }
}

/// The translated runs of a page for one variant.
struct Translated {
    /// For each even page offset, the place of the region that has an entry there, and the entry's number.
    entries: Box<[(u16, u16); OFFSETS]>,
    regions: Vec<Arc<Region>>,
}

/// The place of the first op in a page of one run.
pub const FIRST: Place = 1;

const NO_ENTRY: (u16, u16) = (u16::MAX, u16::MAX);

/// The decoded runs of one physical page.
pub struct CodePage {
    /// Physical address.
    pub address: u64,
    /// For each even page offset, the place of the run that begins there, or 0 if that run is not decoded.
    starts: Box<[Place; OFFSETS]>,
    /// The runs, each with its [`Head`] before its ops.
    ops: Vec<Op>,
    /// The page offset of each op.
    offsets: Vec<u16>,
    stale: bool,
    /// The translated runs, by [`Variant::index`].
    translated: [Option<Box<Translated>>; Variant::COUNT],
    /// The heat at which a run asks for its translation; [`NEVER`] for none.
    heat_wanted: u32,
    /// The digest of the page's contents, once it was asked for.
    contents: Option<[u8; 32]>,
    /// A region was asked for.
    pub awaits_region: bool,
}

impl CodePage {
    fn new(address: u64, heat_wanted: u32) -> CodePage {
        CodePage {
            address,
            starts: Box::new([0; OFFSETS]),
            ops: Vec::new(),
            offsets: Vec::new(),
            stale: false,
            translated: [const { None }; Variant::COUNT],
            heat_wanted,
            contents: None,
            awaits_region: false,
        }
    }

    /// The digest of the page's contents.
    pub fn contents(&mut self, ram: &Ram) -> [u8; 32] {
        let index = ((self.address - RAM_BASE) >> PAGE_SHIFT) as usize;
        *self.contents.get_or_insert_with(|| *blake3::hash(ram.page(index)).as_bytes())
    }

    /// A page of one run of one instruction, for an instruction that must run alone.
    pub fn of_one(address: u64, page_offset: u32, instruction: u32, length_bytes: u32) -> CodePage {
        let mut page = CodePage::new(address, NEVER);
        page.push(Head::default().op(), page_offset);
        page.push(decode(instruction, page_offset, length_bytes), page_offset);
        page.push(Op::bare(Kind::Next, (page_offset + length_bytes) as i32), page_offset);
        page
    }

    /// A page of one run, which a region has.
    pub fn of_copy(address: u64, run: &Run) -> CodePage {
        let mut page = CodePage::new(address, NEVER);
        page.push(Head::default().op(), run.page_offset.into());
        page.ops.extend(&run.ops);
        page.offsets.extend(&run.offsets);
        page
    }

    /// A page of one run from `page_offset` that is cut off before `end`, for the debugger.
    pub fn of_run(ram: &Ram, address: u64, page_offset: u32, end: u32) -> CodePage {
        let mut page = CodePage::new(address, NEVER);
        page.decode_until(ram, page_offset, end);
        page
    }

    /// For a page of one run: the number of its instructions, whether execution continues after the last one, and
    /// where.
    pub fn extent(&self) -> (u64, bool, u32) {
        let ops = &self.ops[usize::from(FIRST)..];
        let count = ops.len() - 1;
        let goes_on = count.checked_sub(1).is_some_and(|last| !ops[last].ends_run());
        (count as u64, goes_on, ops[count].imm as u32)
    }

    /// For a page of one run: the first op for which `wanted` is true, and its page offset.
    pub fn find_first(&self, wanted: impl Fn(Op) -> bool) -> Option<(Op, u32)> {
        let found = usize::from(FIRST) + self.ops[usize::from(FIRST)..].iter().position(|op| wanted(*op))?;
        Some((self.ops[found], u32::from(self.offsets[found])))
    }

    /// The place of the run at a page offset, if that run is decoded.
    #[inline]
    pub fn find(&self, page_offset: u32) -> Option<Place> {
        match self.starts[start_of(page_offset)] {
            0 => None,
            place => Some(place),
        }
    }

    /// The first op of a run, and with it those after it.
    #[inline]
    pub fn first(&self, place: Place) -> *const Op {
        self.ops[usize::from(place)..].as_ptr()
    }

    /// True if a variant has an entry into a region at a decoded run.
    #[inline]
    pub fn has_entry(&self, variant: usize, place: Place) -> bool {
        Head::of(self.ops[usize::from(place) - 1]).variants & 1 << variant != 0
    }

    /// The entry of a variant's regions at a page offset.
    pub fn entry(&self, variant: usize, page_offset: u32) -> Option<Entry> {
        let translated = self.translated[variant].as_deref()?;
        match translated.entries[start_of(page_offset)] {
            NO_ENTRY => None,
            (region, entry) => Some(translated.regions[usize::from(region)].entry(entry)),
        }
    }

    /// The regions that a variant has.
    pub fn regions_count(&self, variant: usize) -> usize {
        self.translated[variant].as_ref().map_or(0, |translated| translated.regions.len())
    }

    fn has_regions(&self) -> bool {
        self.translated.iter().any(Option::is_some)
    }

    /// Adds a region of a variant. Where another one has an entry already, that stays.
    pub fn add_region(&mut self, variant: usize, region: Arc<Region>) {
        let translated = self.translated[variant].get_or_insert_with(|| {
            Box::new(Translated { entries: Box::new([NO_ENTRY; OFFSETS]), regions: Vec::new() })
        });
        for (entry, run) in region.runs().iter().enumerate() {
            let start = start_of(u32::from(run.page_offset));
            if translated.entries[start] == NO_ENTRY {
                translated.entries[start] = (translated.regions.len() as u16, entry as u16);
                if let Some(head) = usize::from(self.starts[start]).checked_sub(1) {
                    self.ops[head].rd |= 1 << variant;
                }
            }
        }
        translated.regions.push(region);
    }

    /// Counts an execution of a run by the interpreter; true if the run asks for its translation now.
    #[inline]
    pub fn heats(&mut self, place: Place) -> bool {
        let head = &mut self.ops[usize::from(place) - 1];
        let heat = (head.imm as u32).saturating_add(1);
        head.imm = heat as i32;
        // At least what is wanted, and neither of the two heats that are never reached.
        heat.wrapping_sub(self.heat_wanted) < u32::MAX - self.heat_wanted
    }

    /// Lets a run become hot again.
    pub fn cool(&mut self, place: Place) {
        self.ops[usize::from(place) - 1].imm = 0;
    }

    /// The runs without a region of a variant that have at least `heat_min`. Marks runs that no region can contain.
    pub fn hot_runs(&mut self, variant: usize, heat_min: u32) -> Vec<Run> {
        let mut hot = Vec::new();
        for (index, place) in self.starts.iter().enumerate() {
            let first = usize::from(*place);
            let Some(head) = first.checked_sub(1) else { continue };
            let Head { heat, variants } = Head::of(self.ops[head]);
            if heat < heat_min || heat == UNTRANSLATABLE || variants & 1 << variant != 0 {
                continue;
            }
            let is_known = concord_translate::executes(self.ops[first].kind);
            // The same run may become hot in another variant.
            self.ops[head] = Head { heat: if is_known { 0 } else { UNTRANSLATABLE }, variants }.op();
            if is_known {
                hot.push((2 * index as u16, first));
            }
        }
        hot.into_iter().map(|(page_offset, first)| self.copy_of(page_offset, first)).collect()
    }

    /// A copy of the run that begins with an op.
    fn copy_of(&self, page_offset: u16, first: usize) -> Run {
        let length = self.ops[first..].iter().position(|op| op.ends_run() || op.kind == Kind::Next);
        let range = first..=first + length.expect("a run ends");
        Run { page_offset, ops: self.ops[range.clone()].to_vec(), offsets: self.offsets[range].to_vec() }
    }

    /// Changes the heat at which a run asks for its translation.
    pub fn set_heat_wanted(&mut self, heat_wanted: u32) {
        self.heat_wanted = heat_wanted;
    }

    /// The heat at which a run asks for its translation.
    pub fn heat_wanted(&self) -> u32 {
        self.heat_wanted
    }

    /// The page offset of an op of this page.
    pub fn offset_of(&self, op: *const Op) -> u32 {
        // SAFETY: `op` points into `ops`; the interpreter gets all ops of this page from there.
        let index = unsafe { op.offset_from(self.ops.as_ptr()) };
        u32::from(self.offsets[index as usize])
    }

    /// The page offset of an op by its index in the run that begins at a page offset, if that run is decoded.
    pub fn offset_in_run(&self, page_offset: u32, place: usize) -> Option<u32> {
        let first = usize::from(self.find(page_offset)?);
        self.offsets.get(first + place).map(|offset| u32::from(*offset))
    }

    fn push(&mut self, op: Op, page_offset: u32) {
        self.ops.push(op);
        self.offsets.push(page_offset as u16);
    }

    /// The host memory that the page takes.
    fn size_bytes(&self) -> usize {
        let translated = self.translated.iter().flatten().count();
        PAGE_COST_BYTES + self.ops.capacity() * OP_COST_BYTES + translated * TRANSLATED_COST_BYTES
    }

    /// Drops every run. The ops themselves stay until the next decode, because one of the runs may be executing, and the
    /// regions go to `retired`, because one of them may.
    fn invalidate(&mut self, retired: &mut Vec<Arc<Region>>) {
        self.starts.fill(0);
        self.stale = true;
        for translated in &mut self.translated {
            retired.extend(translated.take().into_iter().flat_map(|translated| translated.regions));
        }
        self.contents = None;
        self.awaits_region = false;
    }

    /// Decodes the run that begins at `page_offset`.
    pub fn decode_run(&mut self, ram: &Ram, page_offset: u32) -> Place {
        // Runs can overlap. If a page has more ops than a place can name, it starts over.
        if self.stale || self.ops.len() > usize::from(Place::MAX) - 64 {
            self.starts.fill(0);
            self.ops.clear();
            self.offsets.clear();
            self.stale = false;
        }
        let place = self.ops.len() as Place + 1;
        self.decode_until(ram, page_offset, line_end(page_offset));
        let start = start_of(page_offset);
        self.starts[start] = place;
        for (variant, translated) in self.translated.iter().enumerate() {
            if translated.as_ref().is_some_and(|translated| translated.entries[start] != NO_ENTRY) {
                self.ops[usize::from(place) - 1].rd |= 1 << variant;
            }
        }
        place
    }

    /// Decodes a run: its head, and one instruction after the other from `page_offset` on, until one ends the run or the next would begin at
    /// `end` or later.
    fn decode_until(&mut self, ram: &Ram, page_offset: u32, end: u32) {
        self.push(Head::default().op(), page_offset);
        let mut offset = page_offset;
        while offset < end {
            let half = ram.read(self.address + u64::from(offset), 2) as u16;
            let (op, length) = if half & 3 != 3 {
                let op = match compressed::expand(half) {
                    Some(instruction) => decode(instruction, offset, 2),
                    None => Op::bare(Kind::Illegal, i32::from(half)),
                };
                (op, 2)
            } else if u64::from(offset) + 4 > PAGE_BYTES {
                (Op::bare(Kind::Straddle, 0), 4)
            } else {
                (decode(ram.read(self.address + u64::from(offset), 4) as u32, offset, 4), 4)
            };
            self.push(op, offset);
            offset += length;
            if op.ends_run() {
                break;
            }
        }
        self.push(Op::bare(Kind::Next, offset as i32), offset);
    }
}

/// The page offset at which the line of a page offset ends, and with it every run that begins in the line.
pub fn line_end(page_offset: u32) -> u32 {
    (page_offset | (LINE_BYTES as u32 - 1)) + 1
}

fn start_of(page_offset: u32) -> usize {
    (page_offset as usize & (PAGE_BYTES as usize - 1)) / 2
}

/// Every decoded page.
pub struct CodeCache {
    /// Boxed, because the interpreter holds pointers to pages while others are added.
    #[expect(clippy::vec_box)]
    pages: Vec<Box<CodePage>>,
    /// For each page of RAM, its index in `pages`, plus one.
    by_page: Vec<u32>,
    /// The heat at which runs of new pages ask for their translation; [`NEVER`] for none.
    heat_wanted: u32,
    /// Changes when a page loses its decoded code, and with it entries into its regions.
    epoch: u64,
    /// Regions of pages that have changed. Code of the last one may still be executing.
    retired: Vec<Arc<Region>>,
}

/// The host memory that a page's table takes, and that an op with its offset takes.
const PAGE_COST_BYTES: usize = OFFSETS * size_of::<Place>();
const TRANSLATED_COST_BYTES: usize = OFFSETS * size_of::<(u16, u16)>();
const OP_COST_BYTES: usize = size_of::<Op>() + size_of::<u16>();

impl CodeCache {
    pub fn new(ram_pages: usize, heat_wanted: u32) -> CodeCache {
        CodeCache { pages: Vec::new(), by_page: vec![0; ram_pages], heat_wanted, epoch: 0, retired: Vec::new() }
    }

    /// Sets the heat at which runs of new pages ask for their translation.
    pub fn set_heat_wanted(&mut self, heat_wanted: u32) {
        self.heat_wanted = heat_wanted;
    }

    /// The handle of a physical page, which is never 0.
    pub fn handle(&mut self, address: u64) -> u32 {
        let place = &mut self.by_page[((address - RAM_BASE) >> PAGE_SHIFT) as usize];
        if *place == 0 {
            self.pages.push(Box::new(CodePage::new(address, self.heat_wanted)));
            *place = self.pages.len() as u32;
        }
        *place
    }

    #[inline]
    pub fn page(&mut self, handle: u32) -> *mut CodePage {
        &raw mut *self.pages[handle as usize - 1]
    }

    /// The present epoch: entries into regions that were found in an earlier one may be gone.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The retired region with this code.
    pub fn retired(&self, entry: Entry) -> Option<&Arc<Region>> {
        self.retired.iter().find(|region| region.has(entry))
    }

    /// Frees the regions of pages that have changed. No run may be executing.
    pub fn free_retired(&mut self) {
        self.retired.clear();
    }

    /// The host memory that decoded code takes.
    pub fn size_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.size_bytes()).sum()
    }

    /// Drops everything. No run may be executing, and no handle may be used again.
    pub fn clear(&mut self) {
        self.retired.clear();
        self.epoch += 1;
        // Entry by entry, because most of the table was never written and so takes no host memory.
        for page in self.pages.drain(..) {
            self.by_page[((page.address - RAM_BASE) >> PAGE_SHIFT) as usize] = 0;
        }
    }

    /// Drops the runs of pages of RAM, given by index, and leaves the list empty. `forget` gets the numbers of the pages
    /// that had regions.
    pub fn invalidate(&mut self, ram_pages: &mut Vec<u32>, mut forget: impl FnMut(u64)) {
        for ram_page in ram_pages.drain(..) {
            if let Some(place) = (self.by_page[ram_page as usize] as usize).checked_sub(1) {
                let page = &mut self.pages[place];
                if page.has_regions() {
                    forget(page.address >> PAGE_SHIFT);
                }
                page.invalidate(&mut self.retired);
                self.epoch += 1;
            }
        }
    }
}
