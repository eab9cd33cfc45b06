//! Snapshots of the whole machine.
//!
//! A file is the magic, the version (little-endian), a zstd stream, and the BLAKE3 digest of all before it. The stream holds
//! the length of the state, the state (postcard), and each page of RAM that is not all zeroes, with its index. Disks are
//! not in it, only what was written to them: the images must be what they were, and their digests say whether they are.

use crate::accounting::critical_sections::CriticalSections;
use crate::accounting::origins::Origins;
use crate::accounting::sizes::Sizes;
use crate::accounting::statistics::Statistics;
use crate::configuration::Configuration;
use crate::console::Console;
use crate::error::MachineError;
use crate::hart::{Activity, Hart, TIME_CYCLES_MAX};
use crate::machine::Machine;
use crate::output::AtomicFile;
use crate::saving::changes::Changed;
use crate::symbols::SymbolTable;
use crate::transaction::Transactions;
use crate::types::{TypeFile, Types};
use concord_dev::{Bus, BusState};
use concord_htm::kinds::Kinds;
use concord_mem::ram::PAGE_BYTES;
use concord_mem::system::SavedMemory;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"CONCORDS";
const VERSION: u32 = 8;
const HEADER_BYTES: usize = MAGIC.len() + 4;
/// RAM is mostly text, code and zeroes; higher levels cost far more time than they save space.
const COMPRESSION_LEVEL: i32 = 1;
/// No state comes near; a stream that claims more is not one of ours.
const STATE_BYTES_MAX: u64 = 1 << 32;

/// The longest snapshot file: the largest memory and the longest state, if neither could be compressed.
const FILE_BYTES_MAX: u64 = (64 << 30) + STATE_BYTES_MAX;

/// What is wrong with a snapshot file.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("is not a snapshot")]
    NotASnapshot,
    #[error("is a snapshot of version {found}; this program reads version {VERSION}")]
    Version { found: u32 },
    #[error("is damaged: its content does not have the digest that it ends with")]
    Digest,
    #[error("is damaged: {0}")]
    Content(String),
}

/// Everything but RAM.
#[derive(Serialize, Deserialize)]
struct State {
    configuration: Configuration,
    changed: Vec<Changed>,
    harts: Vec<Hart>,
    memory: SavedMemory,
    transactions: Transactions,
    conflict_kinds: Kinds,
    bus: BusState,
    statistics: Statistics,
    critical_sections: CriticalSections,
    sizes: Sizes,
    origins: Origins,
    console: Console,
    symbols: Option<SymbolTable>,
    types: Option<Types>,
    next_turns: Vec<u64>,
    external_interrupts: u64,
    instructions: u64,
}

impl Machine {
    /// Writes a snapshot. The machine goes on as if nothing had happened.
    pub fn save(&mut self, path: &Path) -> Result<(), MachineError> {
        self.bus.disk_digests()?;
        self.types.read();
        let state = State {
            configuration: self.configuration.clone(),
            changed: self.changed.clone(),
            harts: self.harts.clone(),
            memory: self.memory.save(),
            transactions: self.transactions.clone(),
            conflict_kinds: self.transactions.kinds().clone(),
            bus: self.bus.save(),
            statistics: self.accounting.statistics.clone(),
            critical_sections: self.accounting.critical_sections.clone(),
            sizes: self.accounting.sizes.clone(),
            origins: self.accounting.origins.clone(),
            console: self.console.clone(),
            symbols: self.symbols.clone(),
            types: self.types.types().cloned(),
            next_turns: self.order.next_turns.clone(),
            external_interrupts: self.order.external_interrupts,
            instructions: self.accounting.instructions,
        };
        let mut file = AtomicFile::create(path)?;
        match self.write_snapshot(&state, &mut file) {
            Ok(()) => Ok(file.commit()?),
            Err(error) => Err(file.error(error).into()),
        }
    }

    fn write_snapshot(&self, state: &State, file: &mut AtomicFile) -> io::Result<()> {
        let mut hashed = HashingWriter { inner: file, hasher: blake3::Hasher::new() };
        hashed.write_all(MAGIC)?;
        hashed.write_all(&VERSION.to_le_bytes())?;
        let mut encoder = zstd::Encoder::new(&mut hashed, COMPRESSION_LEVEL)?;
        let state = postcard::to_stdvec(state).map_err(io::Error::other)?;
        encoder.write_all(&(state.len() as u64).to_le_bytes())?;
        encoder.write_all(&state)?;
        for index in self.nonzero_pages() {
            encoder.write_all(&(index as u32).to_le_bytes())?;
            encoder.write_all(self.memory.ram.page(index))?;
        }
        encoder.finish()?;
        let digest = hashed.hasher.finalize();
        hashed.inner.write_all(digest.as_bytes())
    }

    pub(super) fn nonzero_pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.memory.touched_pages().filter(|index| self.memory.ram.page(*index).iter().any(|byte| *byte != 0))
    }

    /// The machine that a snapshot holds, as it was when the snapshot was taken.
    pub fn resume(path: &Path) -> Result<Machine, MachineError> {
        let at = |error| MachineError::Snapshot { path: path.to_owned(), error };
        let bytes = read(path).map_err(at)?;
        let stream = check(&bytes).map_err(at)?;
        Machine::from_stream(stream).map_err(|error| match error {
            ResumeError::Snapshot(error) => at(error),
            ResumeError::Machine(error) => error,
        })
    }

    fn from_stream(stream: &[u8]) -> Result<Machine, ResumeError> {
        let content = |what: &str| SnapshotError::Content(what.to_owned());
        let mut decoder = zstd::Decoder::new(stream).map_err(|error| content(&error.to_string()))?;
        let mut length = [0; 8];
        decoder.read_exact(&mut length).map_err(|error| content(&error.to_string()))?;
        let length = u64::from_le_bytes(length);
        if length > STATE_BYTES_MAX {
            return Err(content("its state is too long").into());
        }
        let mut state = Vec::new();
        decoder.by_ref().take(length).read_to_end(&mut state).map_err(|error| content(&error.to_string()))?;
        let state: State = postcard::from_bytes(&state).map_err(|error| content(&error.to_string()))?;
        let board = &state.configuration.board;
        board.validate().map_err(MachineError::from)?;
        let harts = board.harts.count;
        if state.harts.len() != harts || state.next_turns.len() != harts || !state.statistics.fits(harts) {
            return Err(content("its harts are not those of its board").into());
        }
        // Before any memory is allocated by what the board says: a file cannot ask for much more than it is long.
        let sizes = state.memory.check_sizes(&state.configuration.model(), harts);
        sizes.map_err(|error| content(&error.to_string()))?;
        let mut machine = Machine::bare(state.configuration)?;
        machine.bus = Bus::restore(machine.configuration.bus(), &state.bus).map_err(MachineError::from)?;
        machine.read_pages(&mut decoder)?;
        machine.memory.restore(state.memory).map_err(|error| content(&error.to_string()))?;
        machine.changed = state.changed;
        machine.harts = state.harts;
        machine.accounting.statistics = state.statistics;
        machine.accounting.critical_sections = state.critical_sections;
        machine.accounting.sizes = state.sizes;
        machine.accounting.origins = state.origins;
        if !machine.accounting.critical_sections.restore(harts) {
            return Err(content("its critical sections are impossible").into());
        }
        machine.console = state.console;
        machine.symbols = state.symbols;
        machine.types = TypeFile::Read(state.types);
        machine.order.next_turns = state.next_turns;
        machine.order.external_interrupts = state.external_interrupts;
        machine.accounting.instructions = state.instructions;
        machine.restore_transactions(state.transactions).map_err(SnapshotError::Content)?;
        machine.transactions.set_kinds(state.conflict_kinds);
        machine.check_harts().map_err(SnapshotError::Content)?;
        Ok(machine)
    }

    /// Checks what the interpreter and the scheduler rely on, after a state was read.
    fn check_harts(&self) -> Result<(), String> {
        for (index, (hart, hot)) in self.harts.iter().zip(&self.memory.hot).enumerate() {
            let turn = self.order.next_turns[index];
            let turn_fits = match hart.activity {
                Activity::Stopped => turn == u64::MAX,
                Activity::Running => turn == self.memory.turn(index).unwrap_or(0).max(hot.cycle),
                Activity::Waiting | Activity::Suspended { .. } => turn >= hot.cycle,
                Activity::BackingOff { until } => turn >= hot.cycle && until >= turn && until < TIME_CYCLES_MAX,
            };
            let lines_up = self.order.external_interrupts >> index & 1 == 1;
            if !hart.is_possible(hot) {
                return Err(format!("hart {index} has impossible registers"));
            } else if !turn_fits || hart.activity != Activity::Running && self.memory.turn(index).is_some() {
                return Err(format!("hart {index} has an impossible next turn"));
            } else if hart.context(hot) != self.memory.cores()[index].context {
                return Err(format!("hart {index} and its memory disagree about its mode"));
            } else if hart.external_interrupt != lines_up {
                return Err(format!("hart {index} and the machine disagree about its interrupts"));
            }
        }
        let none_beyond = |harts: u64| harts.checked_shr(self.harts.len() as u32).unwrap_or(0) == 0;
        if !none_beyond(self.order.external_interrupts) || !none_beyond(self.bus.external_interrupt_harts()) {
            return Err("it interrupts harts that do not exist".to_owned());
        }
        Ok(())
    }

    fn read_pages(&mut self, decoder: &mut impl Read) -> Result<(), SnapshotError> {
        let mut page = [0; PAGE_BYTES as usize];
        let mut index = [0; 4];
        loop {
            match decoder.read(&mut index[..1]) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(SnapshotError::Content(error.to_string())),
            }
            decoder
                .read_exact(&mut index[1..])
                .and_then(|()| decoder.read_exact(&mut page))
                .map_err(|error| SnapshotError::Content(error.to_string()))?;
            let index = u32::from_le_bytes(index) as usize;
            if index >= self.memory.ram.pages() {
                return Err(SnapshotError::Content(format!("page {index} lies outside its RAM")));
            }
            self.memory.ram.set_page(index, &page);
            self.memory.note_loaded(concord_mem::ram::RAM_BASE + index as u64 * PAGE_BYTES, PAGE_BYTES);
        }
    }
}

/// Reads a snapshot file, and of a file that does not begin as one only the beginning.
fn read(path: &Path) -> Result<Vec<u8>, SnapshotError> {
    let file = File::open(path).map_err(SnapshotError::Read)?;
    let mut bytes = Vec::new();
    (&file).take(MAGIC.len() as u64).read_to_end(&mut bytes).map_err(SnapshotError::Read)?;
    if bytes != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(SnapshotError::Read)?;
    Ok(bytes)
}

/// The zstd stream of a snapshot file whose digest is right.
fn check(bytes: &[u8]) -> Result<&[u8], SnapshotError> {
    if bytes.len() < HEADER_BYTES + blake3::OUT_LEN || !bytes.starts_with(MAGIC) {
        return Err(SnapshotError::NotASnapshot);
    }
    let (content, digest) = bytes.split_at(bytes.len() - blake3::OUT_LEN);
    let (header, stream) = content.split_at(HEADER_BYTES);
    let version = header.iter().skip(MAGIC.len()).rev().fold(0, |version, byte| version << 8 | u32::from(*byte));
    if version != VERSION {
        return Err(SnapshotError::Version { found: version });
    }
    if blake3::hash(content).as_bytes() != digest {
        return Err(SnapshotError::Digest);
    }
    Ok(stream)
}

/// Reads a snapshot from the bytes of its file as far as that goes without a digest, for fuzzing: everything behind the
/// digest must hold against any bytes.
pub fn read_unchecked(stream: &[u8]) -> Option<Machine> {
    Machine::from_stream(stream).ok()
}

enum ResumeError {
    Snapshot(SnapshotError),
    Machine(MachineError),
}

impl From<SnapshotError> for ResumeError {
    fn from(error: SnapshotError) -> ResumeError {
        ResumeError::Snapshot(error)
    }
}

impl From<MachineError> for ResumeError {
    fn from(error: MachineError) -> ResumeError {
        ResumeError::Machine(error)
    }
}

/// Hashes what it passes on.
struct HashingWriter<'a> {
    inner: &'a mut AtomicFile,
    hasher: blake3::Hasher,
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
