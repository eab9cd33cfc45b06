//! Hot decoded code as code of the host.
//!
//! A [`Region`] is host code for hot runs of one physical page. It executes what the hart's hot state and the line table
//! answer, with the results, the clock and the instruction count of the interpreter, and leaves everything else to the
//! interpreter: it stops before the op that it cannot execute, in the state in which the interpreter would be there. So
//! the rules of misses, traps, devices, transactions and turns are written once, in the interpreter and the machine.
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

/// What a region gets beside the hot state.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The virtual address of the region's page.
    pub page_address: u64,
    /// The part of the hart's instruction-cache accelerator (`concord_mem::cache::FetchCache`) that may show lines of the
    /// page.
    pub recent_lines: *const Line,
    /// The first line of the page.
    pub first_line: Line,
}

/// How execution left a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Between two runs; the hot state's program counter is the next one's address.
    BetweenRuns,
    /// Before an op of a run that begins in this page.
    Inside {
        /// The page offset at which the run begins.
        run: u32,
        /// Completed ops of the run, of which each took a cycle.
        completed: u32,
    },
}

/// The value by which host code says [`Left::BetweenRuns`].
const BETWEEN_RUNS: u64 = u64::MAX;

impl Left {
    fn encode(run: u32, completed: u32) -> u64 {
        u64::from(run) | u64::from(completed) << 32
    }

    #[inline]
    fn decode(value: u64) -> Left {
        if value == BETWEEN_RUNS {
            return Left::BetweenRuns;
        }
        Left::Inside { run: value as u32, completed: (value >> 32) as u32 }
    }
}

type Code = unsafe extern "C" fn(*mut HotState, *const Surroundings, u64) -> u64;

/// Translated runs of one page. Its code depends on nothing but the page's contents and the variant.
pub struct Region {
    code: Code,
    /// The page offsets of the entries.
    entries: Box<[u16]>,
    /// Keeps the code in its place.
    _memory: Arc<CodeMemory>,
}

impl Region {
    /// The page offsets of the runs that the region may be entered at: the entry at place `n` of them has the number `n`.
    pub fn entries(&self) -> &[u16] {
        &self.entries
    }

    /// The code of an entry. It is valid while the region is.
    #[inline]
    pub fn entry(&self, entry: u16) -> Entry {
        Entry { code: self.code, number: entry }
    }
}

extern "C" fn nowhere(_: *mut HotState, _: *const Surroundings, _: u64) -> u64 {
    BETWEEN_RUNS
}

/// A place at which a region may be entered.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub struct Entry {
    code: Code,
    number: u16,
}

impl Entry {
    /// An entry that leaves at once.
    pub const NOWHERE: Entry = Entry { code: nowhere, number: 0 };

    /// Executes from the entry on until the limit of the hart's turn, or until something is not the region's.
    ///
    /// # Safety
    /// The entry's region exists, and the page contains the code that was translated. `hot` points to the hot state of a
    /// hart in the variant's gear and mode, whose turn is not over, which has fetched the entry's line, and whose line
    /// table holds host addresses of RAM in its matching entries. `surroundings` are those of the hart and the page.
    #[inline]
    pub unsafe fn run(self, hot: *mut HotState, surroundings: &Surroundings) -> Left {
        // SAFETY: the caller's promises.
        unsafe {
            let cycle = (*hot).cycle;
            let left = Left::decode((self.code)(hot, surroundings, self.number.into()));
            (*hot).instructions += (*hot).cycle - cycle;
            left
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
                    generator.serve(&shared, &request);
                    if let Some(done) = request.done {
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

    fn serve(&mut self, shared: &Mutex<Regions>, request: &Request) {
        let region = self.translate(request.key.variant, &request.runs);
        let mut regions = locked(shared);
        match region {
            Some(region) => regions.by_page.entry(request.key).or_default().push(Arc::new(region)),
            None => {
                // Without new memory the old generation stays full, and nothing more is translated.
                if let Ok(new) = Generator::new(self.code_bytes_max) {
                    *self = new;
                }
                *regions = Regions { generation: regions.generation + 1, ..Regions::default() };
            }
        }
    }

    fn translate(&mut self, variant: Variant, runs: &[Run]) -> Option<Region> {
        let mut module = locked(&self.memory.module);
        let module = module.as_mut()?;
        module.clear_context(&mut self.context);
        let pointer = AbiParam::new(types::I64);
        self.context.func.signature.params = vec![pointer; 3];
        self.context.func.signature.returns = vec![pointer];
        region::build(&mut self.context.func, &mut self.builder, module, variant, runs);
        let function = module.declare_anonymous_function(&self.context.func.signature).ok()?;
        module.define_function(function, &mut self.context).ok()?;
        module.finalize_definitions().ok()?;
        let code = module.get_finalized_function(function);
        // SAFETY: `region::build` made a function of this signature, in the host's C calling convention.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        let entries = runs.iter().map(|run| run.page_offset).collect();
        Some(Region { code, entries, _memory: self.memory.clone() })
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
