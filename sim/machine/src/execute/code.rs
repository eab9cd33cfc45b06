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

/// An even page offset, where a run may begin.
#[derive(Clone, Copy, Default)]
struct Start {
    /// The index of the first op of the run that begins here, plus one; 0 if that run is not decoded.
    op: u16,
    /// How often the interpreter has executed the run, or [`UNTRANSLATABLE`].
    heat: u16,
}

/// The heat of a run that no region can contain. It asks for nothing.
const UNTRANSLATABLE: u16 = u16::MAX;

/// The translated runs of a page for one variant.
struct Translated {
    /// For each even page offset, the place of the region that has an entry there, and the entry's number.
    entries: Box<[(u16, u16); OFFSETS]>,
    regions: Vec<Arc<Region>>,
}

const NO_ENTRY: (u16, u16) = (u16::MAX, u16::MAX);

/// The decoded runs of one physical page.
pub struct CodePage {
    /// Physical address.
    pub address: u64,
    starts: Box<[Start; OFFSETS]>,
    ops: Vec<Op>,
    /// The page offset of each op.
    offsets: Vec<u16>,
    stale: bool,
    /// The translated runs, by [`Variant::index`].
    translated: [Option<Box<Translated>>; Variant::COUNT],
    /// The heat at which a run asks for its translation; [`NEVER`] for none.
    heat_wanted: u16,
    /// The digest of the page's contents, once it was asked for.
    contents: Option<[u8; 32]>,
    /// A region was asked for.
    pub awaits_region: bool,
}

impl CodePage {
    fn new(address: u64, heat_wanted: u16) -> CodePage {
        CodePage {
            address,
            starts: Box::new([Start::default(); OFFSETS]),
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
        page.push(decode(instruction, page_offset, length_bytes), page_offset);
        page.push(Op::bare(Kind::Next, (page_offset + length_bytes) as i32), page_offset);
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
        let count = self.ops.len() - 1;
        let goes_on = count.checked_sub(1).is_some_and(|last| !self.ops[last].ends_run());
        (count as u64, goes_on, self.ops[count].imm as u32)
    }

    /// The first op for which `wanted` is true, and its page offset.
    pub fn find_first(&self, wanted: impl Fn(Op) -> bool) -> Option<(Op, u32)> {
        let found = self.ops.iter().position(|op| wanted(*op))?;
        Some((self.ops[found], u32::from(self.offsets[found])))
    }

    /// The first op of the run at a page offset, if that run is decoded.
    #[inline]
    pub fn find(&self, page_offset: u32) -> Option<*const Op> {
        match self.starts[start_of(page_offset)].op {
            0 => None,
            op => Some(&raw const self.ops[usize::from(op) - 1]),
        }
    }

    /// The entry of a variant's regions at a page offset.
    #[inline]
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

    /// Adds a region of a variant. Where another one has an entry already, that stays.
    pub fn add_region(&mut self, variant: usize, region: Arc<Region>) {
        let translated = self.translated[variant].get_or_insert_with(|| {
            Box::new(Translated { entries: Box::new([NO_ENTRY; OFFSETS]), regions: Vec::new() })
        });
        for (entry, page_offset) in region.entries().iter().enumerate() {
            let start = start_of(u32::from(*page_offset));
            if translated.entries[start] == NO_ENTRY {
                translated.entries[start] = (translated.regions.len() as u16, entry as u16);
            }
        }
        translated.regions.push(region);
    }

    /// Counts an execution of the run at a page offset by the interpreter; true if the run asks for its translation now.
    #[inline]
    pub fn heats(&mut self, page_offset: u32) -> bool {
        let start = &mut self.starts[start_of(page_offset)];
        start.heat = start.heat.saturating_add(1);
        // At least what is wanted, and neither of the two heats that are never reached.
        start.heat.wrapping_sub(self.heat_wanted) < u16::MAX - self.heat_wanted
    }

    /// Lets the run at a page offset become hot again.
    pub fn cool(&mut self, page_offset: u32) {
        self.starts[start_of(page_offset)].heat = 0;
    }

    /// The runs without a region of a variant that have at least `heat_min`. Marks runs that no region can contain.
    pub fn hot_runs(&mut self, variant: usize, heat_min: u16) -> Vec<Run> {
        let mut hot = Vec::new();
        for (index, start) in self.starts.iter_mut().enumerate() {
            let Some(first) = usize::from(start.op).checked_sub(1) else { continue };
            if start.heat < heat_min || start.heat == UNTRANSLATABLE {
                continue;
            }
            if self.translated[variant].as_ref().is_some_and(|translated| translated.entries[index] != NO_ENTRY) {
                continue;
            }
            // The same run may become hot in another variant.
            start.heat = 0;
            if concord_translate::executes(self.ops[first].kind) {
                hot.push((2 * index as u16, first));
            } else {
                start.heat = UNTRANSLATABLE;
            }
        }
        let ops = |first: usize| {
            let last = self.ops[first..].iter().position(|op| op.ends_run() || op.kind == Kind::Next);
            self.ops[first..=first + last.expect("a run ends")].to_vec()
        };
        hot.into_iter().map(|(page_offset, first)| Run { page_offset, ops: ops(first) }).collect()
    }

    /// Changes the heat at which a run asks for its translation.
    pub fn set_heat_wanted(&mut self, heat_wanted: u16) {
        self.heat_wanted = heat_wanted;
    }

    /// The heat at which a run asks for its translation.
    pub fn heat_wanted(&self) -> u16 {
        self.heat_wanted
    }

    /// The first op, for a page of one run.
    pub fn first(&self) -> *const Op {
        self.ops.as_ptr()
    }

    /// The page offset of an op of this page.
    pub fn offset_of(&self, op: *const Op) -> u32 {
        // SAFETY: `op` points into `ops`; the interpreter gets all ops of this page from there.
        let index = unsafe { op.offset_from(self.ops.as_ptr()) };
        u32::from(self.offsets[index as usize])
    }

    /// The page offset of an op by its index in the run that begins at a page offset, if that run is decoded.
    pub fn offset_in_run(&self, page_offset: u32, place: usize) -> Option<u32> {
        let first = usize::from(self.starts[page_offset as usize / 2].op).checked_sub(1)?;
        self.offsets.get(first + place).map(|offset| u32::from(*offset))
    }

    fn push(&mut self, op: Op, page_offset: u32) {
        self.ops.push(op);
        self.offsets.push(page_offset as u16);
    }

    /// Drops every run. The ops themselves stay until the next decode, because one of the runs may be executing.
    fn invalidate(&mut self) {
        self.starts.fill(Start::default());
        self.stale = true;
        self.translated.fill_with(|| None);
        self.contents = None;
        self.awaits_region = false;
    }

    /// Decodes the run that begins at `page_offset`.
    pub fn decode_run(&mut self, ram: &Ram, page_offset: u32) -> *const Op {
        // Runs can overlap. If a page has more ops than the table can name, it starts over.
        if self.stale || self.ops.len() > usize::from(u16::MAX) - 64 {
            self.starts.fill(Start::default());
            self.ops.clear();
            self.offsets.clear();
            self.stale = false;
        }
        let first = self.ops.len();
        self.decode_until(ram, page_offset, line_end(page_offset));
        self.starts[page_offset as usize / 2].op = first as u16 + 1;
        &raw const self.ops[first]
    }

    /// Decodes one instruction after the other from `page_offset` on, until one ends the run or the next would begin at
    /// `end` or later.
    fn decode_until(&mut self, ram: &Ram, page_offset: u32, end: u32) {
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
    heat_wanted: u16,
    /// Changes when a page loses its decoded code, and with it entries into its regions.
    epoch: u32,
}

/// The host memory that a page's table takes, and that an op with its offset takes.
const PAGE_COST_BYTES: usize = OFFSETS * size_of::<Start>();
const OP_COST_BYTES: usize = size_of::<Op>() + size_of::<u16>();

impl CodeCache {
    pub fn new(ram_pages: usize, heat_wanted: u16) -> CodeCache {
        CodeCache { pages: Vec::new(), by_page: vec![0; ram_pages], heat_wanted, epoch: 0 }
    }

    /// Sets the heat at which runs of new pages ask for their translation.
    pub fn set_heat_wanted(&mut self, heat_wanted: u16) {
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
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The host memory that decoded code takes.
    pub fn size_bytes(&self) -> usize {
        self.pages.iter().map(|page| PAGE_COST_BYTES + page.ops.capacity() * OP_COST_BYTES).sum()
    }

    /// Drops everything. No run may be executing, and no handle may be used again.
    pub fn clear(&mut self) {
        // Whoever clears everything has forgotten all entries.
        self.epoch = 0;
        // Entry by entry, because most of the table was never written and so takes no host memory.
        for page in self.pages.drain(..) {
            self.by_page[((page.address - RAM_BASE) >> PAGE_SHIFT) as usize] = 0;
        }
    }

    /// Drops the runs of pages of RAM, given by index, and leaves the list empty.
    pub fn invalidate(&mut self, ram_pages: &mut Vec<u32>) {
        for ram_page in ram_pages.drain(..) {
            if let Some(place) = (self.by_page[ram_page as usize] as usize).checked_sub(1) {
                self.pages[place].invalidate();
                self.epoch += 1;
            }
        }
    }
}
