//! Hot decoded code as code of the host.
//!
//! A [`Region`] is host code for hot runs of one physical page. It executes what the hart's hot state and the line table
//! answer, with the results, the clock and the instruction count of the interpreter. It calls the machine for other loads
//! and stores and for fetches ([`Surroundings`]), and stops before every other op, in the state in which the interpreter
//! would be there. So the rules of misses, traps, devices, transactions and turns are written once, in the interpreter and
//! the machine.
//! `docs/notes/machine.md` has the invariants.
//!
//! Cranelift generates the code (Bytecode Alliance; Leiserson et al., "ISLE", describes its instruction selection).

mod compute;
mod memory;
mod region;
#[cfg(test)]
mod tests;

pub use region::{Run, Variant, executes};

use concord_mem::cache::Line;
use concord_mem::hot::HotState;
use concord_mem::ram::PAGE_BYTES;
use cranelift_codegen::Context as CodeContext;
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
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

/// An op of a run that a region executes; every op before it is complete, and each took a cycle.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(u64);

impl At {
    fn new(run: u16, completed: usize, page_offset: u16, size_bytes: u64) -> At {
        At(u64::from(run) | (completed as u64) << 16 | u64::from(page_offset) << 32 | size_bytes << 48)
    }

    /// The page offset at which the run begins.
    #[inline]
    pub fn run(self) -> u32 {
        self.0 as u32 & 0xffff
    }

    /// Completed ops of the run.
    #[inline]
    pub fn completed(self) -> u32 {
        (self.0 >> 16) as u32 & 0xffff
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
        probe_executable_memory()?;
        let mut generator = Generator::new(CODE_BYTES_MAX)?;
        let regions = Arc::new(Mutex::new(Regions::default()));
        let (requests, received) = channel::<Request>();
        let shared = regions.clone();
        std::thread::Builder::new()
            .name("translator".to_owned())
            .spawn(move || {
                for request in received {
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes code.
struct Generator {
    code_bytes_max: usize,
    memory: Arc<CodeMemory>,
    context: CodeContext,
    builder: FunctionBuilderContext,
}

impl Generator {
    fn new(code_bytes_max: usize) -> Result<Generator, TranslatorError> {
        let module = new_module(code_bytes_max)?;
        Ok(Generator {
            code_bytes_max,
            context: module.make_context(),
            memory: Arc::new(CodeMemory { module: Mutex::new(Some(module)) }),
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
                if let Ok(new) = Generator::new(self.code_bytes_max) {
                    *self = new;
                }
                *regions = Regions { generation: regions.generation + 1, ..Regions::default() };
            }
        }
    }

    fn translate(&mut self, variant: Variant, runs: Vec<Run>) -> Option<Region> {
        let mut module = locked(&self.memory.module);
        let module = module.as_mut()?;
        module.clear_context(&mut self.context);
        let pointer = AbiParam::new(types::I64);
        self.context.func.signature.params = vec![pointer; 3];
        self.context.func.signature.returns = vec![pointer];
        region::build(&mut self.context.func, &mut self.builder, module, variant, &runs);
        let function = module.declare_anonymous_function(&self.context.func.signature).ok()?;
        module.define_function(function, &mut self.context).ok()?;
        module.finalize_definitions().ok()?;
        let code = module.get_finalized_function(function);
        // SAFETY: `region::build` made a function of this signature, in the host's C calling convention.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        Some(Region { code, runs, _memory: self.memory.clone() })
    }
}

/// The memory of a generation's code. The last region frees it.
struct CodeMemory {
    module: Mutex<Option<JITModule>>,
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = module.take() {
            // SAFETY: each region owns a share of this, so none is left.
            unsafe { module.free_memory() };
        }
    }
}

fn new_module(code_bytes_max: usize) -> Result<JITModule, TranslatorError> {
    let host = |error: &dyn std::fmt::Display| TranslatorError::Host(error.to_string());
    let mut flags = settings::builder();
    for (name, value) in [
        // Optimization costs more here than it saves: regions repeat little that the emitter does not see.
        ("opt_level", "none"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|error| host(&error))?;
    }
    let isa = cranelift_native::builder().map_err(|error| host(&error))?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(|error| host(&error))?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    let memory = ArenaMemoryProvider::new_with_size(code_bytes_max)
        .map_err(|error| TranslatorError::Memory(error.to_string()))?;
    builder.memory_provider(Box::new(memory));
    Ok(JITModule::new(builder))
}

/// Asks the host for a page that is first writable and then executable, as code memory is. Cranelift's own provider
/// panics where the host refuses.
fn probe_executable_memory() -> Result<(), TranslatorError> {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
    let length = PAGE_BYTES as usize;
    let refused = |error: rustix::io::Errno| TranslatorError::Memory(error.to_string());
    // SAFETY: the page is new, and nothing else uses it.
    unsafe {
        let page = mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            .map_err(refused)?;
        let protected = mprotect(page, length, MprotectFlags::READ | MprotectFlags::EXEC);
        munmap(page, length).map_err(refused)?;
        protected.map_err(refused)
    }
}
