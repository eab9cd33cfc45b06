//! The board: everything about a machine that is chosen before it runs, read from a TOML file.
//!
//! A board is plain data. It is a whole description, so two runs with equal boards, kernels and
//! seeds are the same run; it is stored in snapshots and in result documents as it stands.

mod quantity;
mod validate;

use std::path::{Path, PathBuf};

use crate::input;
use concord_htm::policy::Policy;
use serde::{Deserialize, Serialize};

pub use concord_htm::manager::Manager;
pub use concord_htm::policy::{Backoff, Granularity, Mode, OutsideReads};
pub use quantity::{QuantityError, parse_duration_cycles, parse_size};

/// The longest board file. A choice: no board has more than a hundred lines.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Boards that are built in: name and text.
const PRESETS: &[(&str, &str)] = &[
    ("metatm-2007", include_str!("../boards/metatm-2007.toml")),
    ("server-2024", include_str!("../boards/server-2024.toml")),
    ("westmere-ex-2011", include_str!("../boards/westmere-ex-2011.toml")),
];

/// One machine, fully described. Public fields are plain data; code that changes them calls
/// [`Board::validate`] before use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The board's name in results.
    pub name: String,
    pub harts: HartsBoard,
    pub memory: MemoryBoard,
    pub order: OrderBoard,
    pub cache: CacheBoard,
    #[serde(default)]
    pub contention: ContentionBoard,
    pub translation: TranslationBoard,
    pub disk: DiskBoard,
    pub link: LinkBoard,
    #[serde(default)]
    pub transactions: TransactionBoard,
    #[serde(default)]
    pub clock: ClockBoard,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HartsBoard {
    /// Number of harts, 1 to 64.
    pub count: usize,
    /// What the `pause` instruction (Zihintpause) takes, its own cycle included.
    #[serde(default = "pause_cycles", deserialize_with = "quantity::cycles")]
    pub pause_cycles: u64,
}

/// Without a value, `pause` takes a cycle, as every instruction does.
fn pause_cycles() -> u64 {
    1
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryBoard {
    /// Size of RAM, a multiple of 4 KiB.
    #[serde(deserialize_with = "quantity::size")]
    pub size_bytes: u64,
}

/// How far a hart may run ahead of the others before the one furthest behind steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderBoard {
    /// Quantum of the timed gear.
    #[serde(deserialize_with = "quantity::cycles")]
    pub quantum_cycles: u64,
    /// Quantum of the functional gear.
    #[serde(deserialize_with = "quantity::cycles")]
    pub functional_quantum_cycles: u64,
}

/// Private L1 instruction, L1 data and unified second-level caches of each hart, kept coherent by
/// MESI snooping. A first-level hit costs nothing beyond the instruction's own cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheBoard {
    /// Line size of all levels; 64 is the only one modelled.
    #[serde(deserialize_with = "quantity::size")]
    pub line_bytes: u64,
    pub instruction: LevelBoard,
    pub data: LevelBoard,
    pub second: LevelBoard,
    /// Added when a first-level miss hits the second level.
    #[serde(deserialize_with = "quantity::cycles")]
    pub second_latency_cycles: u64,
    /// Added when a second-level miss is served by memory.
    #[serde(deserialize_with = "quantity::cycles")]
    pub memory_latency_cycles: u64,
    /// Added when a second-level miss is served by another hart's cache.
    #[serde(deserialize_with = "quantity::cycles")]
    pub transfer_latency_cycles: u64,
    /// Added when a store finds its line shared and must invalidate the other copies.
    #[serde(deserialize_with = "quantity::cycles")]
    pub upgrade_latency_cycles: u64,
    /// Each miss to memory takes 0 to this many cycles more, drawn from the seed (Alameldeen and
    /// Wood, "Variability in Architectural Simulations of Multi-threaded Workloads", HPCA 2003).
    #[serde(deserialize_with = "quantity::cycles")]
    pub perturbation_cycles_max: u64,
}

/// What requests for one line cost that come while it is busy with another hart's request
/// (`concord_mem::contention`). A request that finds its line idle costs what [`CacheBoard`] says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContentionBoard {
    pub model: ContentionKind,
    /// How long an owner may use its line before the next request takes it away: the part of a
    /// transfer's latency that passes before the owner answers. Drawn from the seed for each
    /// request, between a half and three halves of this.
    #[serde(deserialize_with = "quantity::cycles")]
    pub window_cycles: u64,
    /// How long a load that needs no owner's copy keeps its line busy.
    #[serde(deserialize_with = "quantity::cycles")]
    pub shared_busy_cycles: u64,
    /// How long each request keeps the bus busy for all others; 0 for a bus without a limit.
    #[serde(deserialize_with = "quantity::cycles")]
    pub bus_busy_cycles: u64,
}

/// What happens to a request that finds its line busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentionKind {
    /// It is served at once, side by side with the other.
    #[default]
    None,
    /// It waits for its turn, first come, first served.
    Queued,
}

/// Shape of one cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelBoard {
    #[serde(deserialize_with = "quantity::size")]
    pub size_bytes: u64,
    pub ways: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslationBoard {
    /// Entries of each hart's translation look-aside buffer, a power of two.
    pub entries: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskBoard {
    /// From a request to its completion, without the transfer.
    #[serde(deserialize_with = "quantity::cycles")]
    pub latency_cycles: u64,
    /// Rate of the transfer; without it the transfer takes no time.
    #[serde(default, deserialize_with = "quantity::size_if_given")]
    pub bandwidth_bytes_per_second: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkBoard {
    /// One way, from the guest's network device to its peer.
    #[serde(deserialize_with = "quantity::cycles")]
    pub latency_cycles: u64,
}

/// Hardware transactions: policies, and costs in the timed gear (MetaTM: Rossbach et al., "TxLinux", SOSP 2007,
/// sections 4.3 and 6.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransactionBoard {
    /// The rule that decides a conflict of two transactions.
    pub manager: Manager,
    /// The granule: the unit in which sets are kept and conflicts are found. Sizes are counted in words of four bytes
    /// under `word32`, and of eight bytes otherwise.
    pub granularity: Granularity,
    /// What a load outside transactions does to a transaction that wrote the granule.
    pub outside_reads: OutsideReads,
    /// The most additions whose result nobody reads (`amoadd` with `rd = x0`) that a transaction defers to its commit; 0 for
    /// none.
    pub deferred_adds: u32,
    /// Whether transactions outlive traps and the first-level cache.
    pub mode: Mode,
    /// Whether a loser backs off for a random time, or until the winner has committed or been dropped.
    pub backoff: Backoff,
    /// After its n-th lost conflict a transaction backs off for a random time below this times 2^n; 0 for no back-off.
    #[serde(deserialize_with = "quantity::cycles")]
    pub backoff_base_cycles: u64,
    /// The greatest n in that power.
    pub backoff_exponent_max: u32,
    /// Restarts of either party from which on the size-matters manager goes by age.
    pub restart_threshold: u32,
    /// Added to an outermost `xbegin`.
    #[serde(deserialize_with = "quantity::cycles")]
    pub begin_cycles: u64,
    /// Added to an `xend` that commits.
    #[serde(deserialize_with = "quantity::cycles")]
    pub commit_cycles: u64,
    /// Added to a restart for each word that is put back, as sizes count words.
    #[serde(deserialize_with = "quantity::cycles")]
    pub rollback_word_cycles: u64,
    /// Added when a line of a set leaves the first-level cache, and at commit or rollback for each line that did.
    #[serde(deserialize_with = "quantity::cycles")]
    pub overflow_cycles: u64,
    /// Added to an access that meets a line of another transaction that did.
    #[serde(deserialize_with = "quantity::cycles")]
    pub overflow_check_cycles: u64,
}

impl Default for TransactionBoard {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            manager: policy.manager,
            granularity: policy.granularity,
            outside_reads: policy.outside_reads,
            deferred_adds: policy.deferred_adds,
            mode: policy.mode,
            backoff: policy.backoff,
            backoff_base_cycles: policy.backoff_base_cycles,
            backoff_exponent_max: policy.backoff_exponent_max,
            restart_threshold: policy.restart_threshold,
            begin_cycles: 0,
            commit_cycles: 0,
            rollback_word_cycles: 1,
            overflow_cycles: 20,
            overflow_check_cycles: 20,
        }
    }
}

/// The two clocks. Every room of the machine counts one cycle as one nanosecond and one tick of
/// `time` as 100 cycles, so these are stated rather than chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockBoard {
    pub frequency_hertz: u64,
    pub timebase_hertz: u64,
}

impl Default for ClockBoard {
    fn default() -> Self {
        Self { frequency_hertz: 1_000_000_000, timebase_hertz: 10_000_000 }
    }
}

/// Why there is no board.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("board {name:?}: no such preset; there are {}", preset_list())]
    Preset { name: String },
    #[error("{}: cannot read the board file: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// Not TOML, an unknown or a missing key, or a value of the wrong type.
    #[error("{origin}:{line}:{column}: {key}{message}")]
    Parse {
        origin: String,
        line: usize,
        column: usize,
        /// The key's path and `": "`, or empty where no single key is at fault.
        key: String,
        message: String,
    },
    /// A word of a command line that sets no key.
    #[error("{word}: {message}")]
    Word { word: String, message: String },
    /// A value that no machine can have.
    #[error("{origin}: {key} = {value}: allowed is {allowed}")]
    Value { origin: String, key: String, value: String, allowed: String },
}

fn preset_list() -> String {
    Board::preset_names().collect::<Vec<_>>().join(", ")
}

impl Board {
    /// Names of the built-in boards.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// A built-in board.
    ///
    /// # Errors
    /// [`BoardError::Preset`] if there is none of this name.
    pub fn preset(name: &str) -> Result<Self, BoardError> {
        let (_, text) = PRESETS
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| BoardError::Preset { name: name.to_owned() })?;
        Self::from_toml(text, name)
    }

    /// The board in a file.
    ///
    /// # Errors
    /// [`BoardError`] names the file and, where there is one, the line, key and value.
    pub fn from_file(path: &Path) -> Result<Self, BoardError> {
        let text = input::read_text(path, FILE_BYTES_MAX)
            .map_err(|source| BoardError::Read { path: path.to_owned(), source })?;
        Self::from_toml(&text, &path.display().to_string())
    }

    /// The board in a text; `origin` says in errors where the text came from.
    ///
    /// # Errors
    /// As [`Board::from_file`].
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, BoardError> {
        let board: Self = toml::from_str(text).map_err(|error| parse_error(text, origin, &error))?;
        validate::validate(&board, origin)?;
        Ok(board)
    }

    /// Sets a key, such as `transactions.granularity`, to a value that is written as a word: a number, `true`, `false`, or a
    /// text without quotation marks. `word` stands for both in errors.
    ///
    /// # Errors
    /// [`BoardError::Word`] if there is no such key or the value is not of its type, and [`BoardError::Value`].
    pub fn set(&mut self, key: &str, value: &str, word: &str) -> Result<(), BoardError> {
        let wrong = |message: String| BoardError::Word { word: word.to_owned(), message: message.replace('\n', " ") };
        let mut root = toml::Value::try_from(&*self).map_err(|error| wrong(error.to_string()))?;
        let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut segments = path.split('.').filter(|segment| !segment.is_empty());
        let table = segments.try_fold(&mut root, |at, segment| at.get_mut(segment)).and_then(toml::Value::as_table_mut);
        let table = table.filter(|_| !name.is_empty()).ok_or_else(|| wrong("boards have no such key".to_owned()))?;
        let number = value.parse().map(toml::Value::Integer).ok();
        let flag = || value.parse().map(toml::Value::Boolean).ok();
        let typed = number.or_else(flag).unwrap_or_else(|| toml::Value::String(value.to_owned()));
        table.insert(name.to_owned(), typed);
        let changed: Board = root.try_into().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        validate::validate(&changed, word)?;
        *self = changed;
        Ok(())
    }

    /// Checks that a machine can have these values. [`Board::preset`], [`Board::from_file`] and
    /// [`Board::from_toml`] have done so already.
    ///
    /// # Errors
    /// [`BoardError::Value`] for the first one that it cannot have.
    pub fn validate(&self) -> Result<(), BoardError> {
        validate::validate(self, &format!("board {:?}", self.name))
    }
}

/// Reduces the TOML reader's error, a drawing of several lines, to one line with its place.
fn parse_error(text: &str, origin: &str, error: &toml::de::Error) -> BoardError {
    let offset = error.span().map_or(text.len(), |span| span.start);
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    BoardError::Parse {
        origin: origin.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        key: key_at(text, line_start).map_or_else(String::new, |key| format!("{key}: ")),
        message: error.message().replace('\n', " "),
    }
}

/// The path of the key that is set on the line that starts at `line_start`: the table header above
/// it and the text before the `=`.
fn key_at(text: &str, line_start: usize) -> Option<String> {
    let (above, rest) = text.split_at(line_start);
    let key = rest.lines().next()?.split_once('=')?.0.trim();
    let table =
        above.lines().rev().find_map(|line| line.trim().strip_prefix('[')).and_then(|header| header.split(']').next());
    Some(match table {
        Some(table) => format!("{}.{key}", table.trim()),
        None => key.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAPER: &str = PRESETS[0].1;

    #[test]
    fn the_paper_preset_has_the_papers_numbers() {
        let board = Board::preset("metatm-2007").expect("the preset is valid");
        insta::assert_debug_snapshot!(board);
    }

    #[test]
    fn presets_carry_their_own_names_and_are_valid() {
        for name in Board::preset_names() {
            let board = Board::preset(name).expect("the preset is valid");
            assert_eq!(board.name, name);
            board.validate().expect("the preset is valid");
        }
    }

    #[test]
    fn a_board_survives_toml_json_and_the_snapshot_format() {
        for name in Board::preset_names() {
            let board = Board::preset(name).expect("the preset is valid");
            let toml = toml::to_string(&board).expect("TOML");
            assert_eq!(Board::from_toml(&toml, "again").expect("TOML"), board);
            let json = serde_json::to_string(&board).expect("JSON");
            assert_eq!(serde_json::from_str::<Board>(&json).expect("JSON"), board);
            let bytes = postcard::to_allocvec(&board).expect("postcard");
            assert_eq!(postcard::from_bytes::<Board>(&bytes).expect("postcard"), board);
        }
    }

    #[test]
    fn what_cannot_be_read_says_where_and_why() {
        let mut lines = String::new();
        let mut note = |result: Result<Board, BoardError>| match result {
            Ok(board) => panic!("accepted {board:?}"),
            Err(error) => {
                let line = error.to_string();
                assert_eq!(line.lines().count(), 1, "{line}");
                lines.push_str(&line);
                lines.push('\n');
            }
        };
        note(Board::preset("metatm-2008"));
        note(Board::from_file(Path::new("no/such/board.toml")));
        for (from, to) in [
            ("count = 8", "count = 8\nsockets = 2"),
            ("count = 8", "count = \"8\""),
            ("count = 8", "count = -1"),
            ("count = 8", ""),
            ("count = 8", "count = 8 8"),
            ("size_bytes = \"1 GiB\"", "size_bytes = \"1 GB\""),
            ("size_bytes = \"1 GiB\"", "size_bytes = 1.5"),
            ("\"5.5 ms\"", "\"5.5 minutes\""),
            ("data = { size_bytes = \"16 KiB\"", "data = { size_bytes = -5"),
            ("[link]", "[links]"),
            ("\"size-matters\"", "\"size-maters\""),
            ("\"word32\"", "\"word16\""),
            ("mode =", "outside_reads = \"lose\"\nmode ="),
            ("mode =", "backoff = \"loser\"\nmode ="),
            ("mode =", "deferred_adds = -1\nmode ="),
            ("mode =", "deferred_adds = \"all\"\nmode ="),
            ("\"virtualized\"", "1"),
            ("restart_threshold = 8", "restart_threshold = -8"),
            ("begin_cycles = 0", "begin_cycles = \"soon\""),
            ("commit_cycles", "comit_cycles"),
            ("\"queued\"", "\"queue\""),
            ("window_cycles", "windows_cycles"),
            ("window_cycles = 100", "window_cycles = -1"),
            ("count = 8", "count = 8\npause_cycles = 0.5"),
        ] {
            let text = PAPER.replacen(from, to, 1);
            assert_ne!(text, PAPER, "{from} is not in the preset");
            note(Board::from_toml(&text, "my.toml"));
        }
        note(Board::from_toml("", "empty.toml"));
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn a_board_need_not_speak_of_transactions_and_gets_those_that_boards_always_had() {
        let (above, rest) = PAPER.split_once("[transactions]").expect("the table");
        let (_, below) = rest.split_once("[clock]").expect("the table after it");
        let default = Board::from_toml(&format!("{above}[clock]{below}"), "my.toml").expect("a board");
        assert_eq!(default.transactions, TransactionBoard::default());
        for name in Board::preset_names() {
            let granularity = if name == "server-2024" { Granularity::Word } else { Granularity::Word32 };
            let expected = TransactionBoard { granularity, ..default.transactions.clone() };
            assert_eq!(Board::preset(name).expect("the preset is valid").transactions, expected, "{name}");
        }
        let line =
            Board::from_toml(&format!("{above}[transactions]\ngranularity = \"line\"\n[clock]{below}"), "my.toml");
        let transactions = line.expect("a board").transactions;
        assert_eq!(transactions, TransactionBoard { granularity: Granularity::Line, ..TransactionBoard::default() });
    }

    #[test]
    fn a_board_without_the_table_has_no_queues() {
        let (above, rest) = PAPER.split_once("[contention]").expect("the table");
        let (_, below) = rest.split_once("[translation]").expect("the table after it");
        let board = Board::from_toml(&format!("{above}[translation]{below}"), "my.toml").expect("a board");
        assert_eq!(board.contention, ContentionBoard::default());
        assert_eq!(board.contention.model, ContentionKind::None);
        assert_eq!(board.harts.pause_cycles, 1);
    }

    #[test]
    fn a_word_sets_a_key_or_says_why_not() {
        let mut board = Board::preset("metatm-2007").expect("the preset is valid");
        for (key, value) in [
            ("transactions.granularity", "line"),
            ("transactions.commit_cycles", "10"),
            ("disk.latency_cycles", "0.5 ms"),
            ("disk.bandwidth_bytes_per_second", "1000"),
            ("cache.data.ways", "2"),
            ("name", "other"),
        ] {
            board.set(key, value, "word").expect(key);
        }
        let transactions = &board.transactions;
        assert_eq!((transactions.granularity, transactions.commit_cycles), (Granularity::Line, 10));
        assert_eq!((board.disk.latency_cycles, board.disk.bandwidth_bytes_per_second), (500_000, Some(1000)));
        assert_eq!((board.cache.data.ways, board.name.as_str()), (2, "other"));
        let before = board.clone();
        let mut lines = String::new();
        for (key, value) in [
            ("transactions.granularity", "word16"),
            ("transactions.granularity", "4"),
            ("transactions.outside_reads", "lose"),
            ("transactions.commit_cycles", "-1"),
            ("transactions.commit_cycles", "soon"),
            ("transactions.commit_cycle", "1"),
            ("transaction.commit_cycles", "1"),
            ("transactions", "1"),
            ("name.first", "1"),
            ("harts.", "1"),
            ("", "1"),
            ("harts.count", "65"),
        ] {
            let error = board.set(key, value, &format!("board.{key}={value}")).expect_err(key);
            lines.push_str(&format!("{error}\n"));
        }
        assert_eq!(board, before);
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn a_missing_clock_and_bandwidth_take_their_defaults() {
        let text = PAPER.split("[clock]").next().expect("text before it");
        let board = Board::from_toml(text, "my.toml").expect("a board");
        assert_eq!(board.clock, ClockBoard::default());
        assert_eq!(board.disk.bandwidth_bytes_per_second, None);
    }

    proptest! {
        #[test]
        fn mutilated_text_never_panics(
            place in 0usize..2048,
            length in 0usize..64,
            insert in "[\\[\\]={}\"a-z0-9 .\\n-é]{0,8}",
        ) {
            let mut text: Vec<char> = PAPER.chars().collect();
            let start = place.min(text.len());
            let end = (place + length).min(text.len());
            text.splice(start..end, insert.chars());
            let text: String = text.into_iter().collect();
            if let Err(error) = Board::from_toml(&text, "my.toml") {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
