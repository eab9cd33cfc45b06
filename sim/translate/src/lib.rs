//! Hot decoded code as code of the host.
//!
//! A [`Region`] is host code for hot runs of one physical page. It executes what the hart's hot state and the line table
//! answer, with the results, the clock and the instruction count of the interpreter. It calls the machine for other loads
//! and stores, for fetches, and for the ops whose meaning the interpreter keeps ([`Surroundings`]). It stops before every
//! op that the machine executes between runs, in the state in which the interpreter would be there. So the rules of misses,
//! traps, devices, transactions and turns are written once, in the interpreter and the machine.
//! `docs/notes/machine.md` has the invariants.
//!
//! Cranelift generates the code (Bytecode Alliance; Leiserson et al., "ISLE", describes its instruction selection).

mod code_memory;
mod compute;
mod memory;
mod region;
#[cfg(test)]
mod tests;

pub use region::{Run, Variant, calls, executes};

use crate::code_memory::CodeMemory;
use concord_isa::op::Op;
use concord_mem::cache::Line;
use concord_mem::hot::HotState;
use cranelift_codegen::Context as CodeContext;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The host memory that a generation of translated code may take. When it is full, all of it goes. A choice: many
/// times what a kernel workload takes.
pub const CODE_BYTES_MAX: usize = 128 << 20;

/// The reason why nothing can be translated on this host.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TranslatorError {
    #[error("this host's instruction set has no code generator: {0}")]
    Host(String),
    #[error("this host has no executable memory for translated code: {0}")]
    Memory(String),
}

/// What a region gets beside the hot state. The functions are those of the machine; a region calls them during a run, with
/// the surroundings that it got.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The virtual address of the region's page.
    pub page_address: u64,
    /// The clock value from which on the region is left at the end of a run. The functions may change it.
    pub limit: u64,
    /// The part of the hart's instruction-cache accelerator (`concord_mem::cache::FetchCache`) that may show lines of the
    /// page.
    pub recent_lines: *const Line,
    /// Loads what the line table does not answer for.
    pub load: unsafe extern "C" fn(*mut Surroundings, At, u64) -> Loaded,
    /// Stores what the line table does not answer for; true if the op stops the run.
    pub store: unsafe extern "C" fn(*mut Surroundings, At, u64, u64) -> u64,
    /// Executes an op ([`calls`]); true if the op stops the run.
    pub execute: unsafe extern "C" fn(*mut Surroundings, At, Op) -> u64,
    /// Charges the fetch of a line that the accelerator does not show.
    pub fetch: unsafe extern "C" fn(*mut Surroundings, u64),
    /// The first line of the page.
    pub first_line: Line,
}

/// What [`Surroundings::load`] returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The bytes, zero-extended.
    pub value: u64,
    /// Not 0 if the op stops the run.
    pub stops: u64,
}

/// An op of a run that a region executes; every op before it is complete.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(u64);

impl At {
    fn new(run: u16, completed: usize, free: u32, page_offset: u16, size_bytes: u64) -> At {
        let counts = (completed as u64) << 16 | u64::from(free) << 24;
        At(u64::from(run) | counts | u64::from(page_offset) << 32 | size_bytes << 48)
    }

    /// The page offset at which the run begins.
    #[inline]
    pub fn run(self) -> u32 {
        self.0 as u32 & 0xffff
    }

    /// Completed ops of the run.
    #[inline]
    pub fn completed(self) -> u32 {
        (self.0 >> 16) as u32 & 0xff
    }

    /// Those of them that took no cycle.
    #[inline]
    pub fn free(self) -> u32 {
        (self.0 >> 24) as u32 & 0xff
    }

    /// The page offset of the op.
    #[inline]
    pub fn page_offset(self) -> u32 {
        (self.0 >> 32) as u32 & 0xffff
    }

    /// The bytes that the op accesses, where it accesses memory.
    #[inline]
    pub fn size_bytes(self) -> u64 {
        self.0 >> 48 & 0xf
    }
}

/// How execution left a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Between two runs; the hot state's program counter is the next one's address.
    BetweenRuns,
    /// Before an op that is not the region's.
    Inside(At),
    /// At an op that a function of the surroundings stopped.
    Stopped(At),
}

/// The values by which host code says [`Left::BetweenRuns`], and the bit by which it says [`Left::Stopped`].
const BETWEEN_RUNS: u64 = u64::MAX;
const STOPPED: u64 = 1 << 63;

impl Left {
    #[inline]
    fn decode(value: u64) -> Left {
        match value {
            BETWEEN_RUNS => Left::BetweenRuns,
            _ if value & STOPPED != 0 => Left::Stopped(At(value & !STOPPED)),
            _ => Left::Inside(At(value)),
        }
    }
}

type Code = unsafe extern "C" fn(*mut HotState, *mut Surroundings, u64) -> u64;

/// Translated runs of one page. Its code depends on nothing but the page's contents and the variant.
pub struct Region {
    code: Code,
    runs: Vec<Run>,
    /// Keeps the code in its place.
    _memory: Arc<CodeMemory>,
}

impl Region {
    /// The runs, at each of which the region may be entered: the one at place `n` has the entry `n`.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// True if the entry is one of this region's.
    pub fn has(&self, entry: Entry) -> bool {
        self.code as usize as u64 == entry.address()
    }

    /// The code of an entry. It is valid while the region is.
    #[inline]
    pub fn entry(&self, entry: u16) -> Entry {
        Entry::new(self.code, entry)
    }
}

/// A place at which a region may be entered: the address of the region's code, and in the bits that addresses do not use
/// the number of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

/// No host that Cranelift knows gives a process addresses of more bits, unless it asks for them.
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;

impl Entry {
    /// An entry that is never run.
    pub const NOWHERE: Entry = Entry(0);

    fn new(code: Code, number: u16) -> Entry {
        let address = code as usize as u64;
        assert_eq!(address & !ADDRESS_MASK, 0, "code lies below 2^{ADDRESS_BITS}");
        Entry(address | u64::from(number) << ADDRESS_BITS)
    }

    #[inline]
    fn address(self) -> u64 {
        self.0 & ADDRESS_MASK
    }

    /// Executes from the entry on until the limit of the hart's turn, or until something is not the region's.
    ///
    /// # Safety
    /// The entry's region exists, and the page contains the code that was translated. `hot` points to the hot state of a
    /// hart in the variant's gear and mode, whose turn is not over, which has fetched the entry's line, and whose line
    /// table holds host addresses of RAM in its matching entries. `surroundings` points to those of the hart and the page.
    /// Their functions are sound to call, free no region, and leave the hart's registers as they are.
    #[inline]
    pub unsafe fn run(self, hot: *mut HotState, surroundings: *mut Surroundings) -> Left {
        // SAFETY: the caller's promises.
        unsafe {
            let code = std::mem::transmute::<usize, Code>(self.address() as usize);
            Left::decode(code(hot, surroundings, self.0 >> ADDRESS_BITS))
        }
    }
}

/// The contents of a page, by a digest, and the state that code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub variant: Variant,
    pub contents: [u8; 32],
}

struct Request {
    key: Key,
    runs: Vec<Run>,
    done: Option<SyncSender<()>>,
}

/// Makes regions on a thread of its own, and keeps those of equal pages for all machines of the process.
pub struct Translator {
    regions: Arc<Mutex<Regions>>,
    requests: Mutex<Sender<Request>>,
}

#[derive(Default)]
struct Regions {
    by_page: HashMap<Key, Vec<Arc<Region>>>,
    generation: u64,
}

impl Translator {
    /// The process's translator.
    ///
    /// # Errors
    /// If the host has no executable memory, or an instruction set that the code generator does not know.
    pub fn of_process() -> Result<&'static Translator, TranslatorError> {
        static TRANSLATOR: OnceLock<Result<Translator, TranslatorError>> = OnceLock::new();
        TRANSLATOR.get_or_init(Translator::new).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<Translator, TranslatorError> {
        let mut generator = Generator::new(CODE_BYTES_MAX)?;
        let regions = Arc::new(Mutex::new(Regions::default()));
        let (requests, received) = channel::<Request>();
        let shared = regions.clone();
        std::thread::Builder::new()
            .name("translator".to_owned())
            .spawn(move || {
                // The newest request first: what became hot last is what runs now, and a boot makes requests faster than they are
                // served.
                let mut waiting = Vec::new();
                while let Some(request) = next_request(&received, &mut waiting) {
                    let done = request.done.clone();
                    generator.serve(&shared, request);
                    if let Some(done) = done {
                        // Whoever waited may have gone.
                        let _ = done.send(());
                    }
                }
            })
            .map_err(|error| TranslatorError::Host(error.to_string()))?;
        Ok(Translator { regions, requests: Mutex::new(requests) })
    }

    /// Counts how often code memory became full. Whoever has regions of an earlier generation drops them.
    pub fn generation(&self) -> u64 {
        locked(&self.regions).generation
    }

    /// The regions of pages with these contents, beyond the first `known`.
    pub fn regions(&self, key: &Key, known: usize) -> Vec<Arc<Region>> {
        let regions = locked(&self.regions);
        regions.by_page.get(key).map_or(Vec::new(), |regions| regions[known.min(regions.len())..].to_vec())
    }

    /// Asks for a region of runs of a page with these contents. [`Translator::regions`] has it later; if `waits`, when
    /// this returns.
    pub fn request(&self, key: Key, runs: Vec<Run>, waits: bool) {
        let (done, is_done) = sync_channel(1);
        let request = Request { key, runs, done: waits.then_some(done) };
        // Without the thread nothing is translated any more.
        if locked(&self.requests).send(request).is_ok() && waits {
            let _ = is_done.recv();
        }
    }
}

/// The newest request of those that have come, after waiting for one; `None` when none will come.
fn next_request(received: &Receiver<Request>, waiting: &mut Vec<Request>) -> Option<Request> {
    if waiting.is_empty() {
        waiting.push(received.recv().ok()?);
    }
    waiting.extend(received.try_iter());
    waiting.pop()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes code.
struct Generator {
    code_bytes_max: usize,
    isa: OwnedTargetIsa,
    memory: Arc<CodeMemory>,
    used_bytes: usize,
    context: CodeContext,
    builder: FunctionBuilderContext,
}

impl Generator {
    fn new(code_bytes_max: usize) -> Result<Generator, TranslatorError> {
        Ok(Generator {
            code_bytes_max,
            isa: instruction_set()?,
            memory: Arc::new(CodeMemory::new(code_bytes_max)?),
            used_bytes: 0,
            context: CodeContext::new(),
            builder: FunctionBuilderContext::new(),
        })
    }

    fn serve(&mut self, shared: &Mutex<Regions>, request: Request) {
        let region = self.translate(request.key.variant, request.runs);
        let mut regions = locked(shared);
        match region {
            Some(region) => {
                regions.by_page.entry(request.key).or_default().push(Arc::new(region));
            }
            None => {
                // Without new memory the old generation stays full, and nothing more is translated.
                if let Ok(memory) = CodeMemory::new(self.code_bytes_max) {
                    (self.memory, self.used_bytes) = (Arc::new(memory), 0);
                }
                *regions = Regions { generation: regions.generation + 1, ..Regions::default() };
            }
        }
    }

    fn translate(&mut self, variant: Variant, runs: Vec<Run>) -> Option<Region> {
        self.context.clear();
        let pointer = AbiParam::new(types::I64);
        let mut signature = Signature::new(self.isa.default_call_conv());
        signature.params = vec![pointer; 3];
        signature.returns = vec![pointer];
        self.context.func.signature = signature;
        region::build(&mut self.context.func, &mut self.builder, self.isa.frontend_config(), variant, &runs);
        let compiled = self.context.compile(&*self.isa, &mut ControlPlane::default()).ok()?;
        assert!(compiled.buffer.relocs().is_empty(), "a region refers to nothing outside of it");
        // SAFETY: this is the only generator, and the memory is its own.
        let code = unsafe { self.memory.push(compiled.code_buffer(), &mut self.used_bytes)? };
        // SAFETY: `region::build` made a function of this signature, in the host's C calling convention.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        Some(Region { code, runs, _memory: self.memory.clone() })
    }
}

/// The host's instruction set.
fn instruction_set() -> Result<OwnedTargetIsa, TranslatorError> {
    let host = |error: &dyn std::fmt::Display| TranslatorError::Host(error.to_string());
    let mut flags = settings::builder();
    for (name, value) in [
        // Optimization costs more here than it saves: regions repeat little that the emitter does not see.
        ("opt_level", "none"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|error| host(&error))?;
    }
    let isa = cranelift_native::builder().map_err(|error| host(&error))?;
    isa.finish(settings::Flags::new(flags)).map_err(|error| host(&error))
}
