//! Decoded code, by physical page, shared by all harts.
//!
//! A run is the decoded code from one entry point to the end of its cache line, past branches that are not taken. A
//! page keeps its runs one after the other, and a table from page offset to run. Decoded code has no effect on the
//! machine's state: decoding a page again gives the same ops, because stores to a page with code are noticed
//! (`MemorySystem::note_code`).

use concord_isa::compressed;
use concord_isa::decode::decode;
use concord_isa::op::{Kind, Op};
use concord_mem::ram::{LINE_BYTES, PAGE_BYTES, PAGE_SHIFT, RAM_BASE, Ram};

const OFFSETS: usize = (PAGE_BYTES / 2) as usize;

/// The decoded runs of one physical page.
pub struct CodePage {
    /// Physical address.
    pub address: u64,
    /// For each even page offset, the index of the first op of the run that begins there, plus one; 0 if that run is
    /// not decoded.
    starts: Box<[u16; OFFSETS]>,
    ops: Vec<Op>,
    /// The page offset of each op.
    offsets: Vec<u16>,
    stale: bool,
}

impl CodePage {
    fn new(address: u64) -> CodePage {
        CodePage { address, starts: Box::new([0; OFFSETS]), ops: Vec::new(), offsets: Vec::new(), stale: false }
    }

    /// A page of one run of one instruction, for an instruction that must run alone.
    pub fn of_one(address: u64, page_offset: u32, instruction: u32, length_bytes: u32) -> CodePage {
        let mut page = CodePage::new(address);
        page.push(decode(instruction, page_offset, length_bytes), page_offset);
        page.push(Op::bare(Kind::Next, (page_offset + length_bytes) as i32), page_offset);
        page
    }

    /// A page of one run from `page_offset` that is cut off before `end`, for the debugger.
    pub fn of_run(ram: &Ram, address: u64, page_offset: u32, end: u32) -> CodePage {
        let mut page = CodePage::new(address);
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
        match self.starts[(page_offset as usize & (PAGE_BYTES as usize - 1)) / 2] {
            0 => None,
            start => Some(&raw const self.ops[usize::from(start) - 1]),
        }
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
        let first = usize::from(self.starts[page_offset as usize / 2]).checked_sub(1)?;
        self.offsets.get(first + place).map(|offset| u32::from(*offset))
    }

    fn push(&mut self, op: Op, page_offset: u32) {
        self.ops.push(op);
        self.offsets.push(page_offset as u16);
    }

    /// Drops every run. The ops themselves stay until the next decode, because one of the runs may be executing.
    fn invalidate(&mut self) {
        self.starts.fill(0);
        self.stale = true;
    }

    /// Decodes the run that begins at `page_offset`.
    pub fn decode_run(&mut self, ram: &Ram, page_offset: u32) -> *const Op {
        // Runs can overlap. If a page has more ops than the table can name, it starts over.
        if self.stale || self.ops.len() > usize::from(u16::MAX) - 64 {
            self.starts.fill(0);
            self.ops.clear();
            self.offsets.clear();
            self.stale = false;
        }
        let first = self.ops.len();
        self.decode_until(ram, page_offset, line_end(page_offset));
        self.starts[page_offset as usize / 2] = first as u16 + 1;
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

/// Every decoded page.
pub struct CodeCache {
    /// Boxed, because the interpreter holds pointers to pages while others are added.
    #[expect(clippy::vec_box)]
    pages: Vec<Box<CodePage>>,
    /// For each page of RAM, its index in `pages`, plus one.
    by_page: Vec<u32>,
}

/// The host memory that a page's table takes, and that an op with its offset takes.
const PAGE_COST_BYTES: usize = OFFSETS * size_of::<u16>();
const OP_COST_BYTES: usize = size_of::<Op>() + size_of::<u16>();

impl CodeCache {
    pub fn new(ram_pages: usize) -> CodeCache {
        CodeCache { pages: Vec::new(), by_page: vec![0; ram_pages] }
    }

    /// The handle of a physical page, which is never 0.
    pub fn handle(&mut self, address: u64) -> u32 {
        let place = &mut self.by_page[((address - RAM_BASE) >> PAGE_SHIFT) as usize];
        if *place == 0 {
            self.pages.push(Box::new(CodePage::new(address)));
            *place = self.pages.len() as u32;
        }
        *place
    }

    #[inline]
    pub fn page(&mut self, handle: u32) -> *mut CodePage {
        &raw mut *self.pages[handle as usize - 1]
    }

    /// The host memory that decoded code takes.
    pub fn size_bytes(&self) -> usize {
        self.pages.iter().map(|page| PAGE_COST_BYTES + page.ops.capacity() * OP_COST_BYTES).sum()
    }

    /// Drops everything. No run may be executing, and no handle may be used again.
    pub fn clear(&mut self) {
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
            }
        }
    }
}
