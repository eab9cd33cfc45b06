//! What a run is made of, besides the board: kernel, devices, seed, gear. Two runs with equal configurations and equal files
//! are the same run.

use crate::board::{Board, BoardError, ContentionKind};
use concord_dev::{BusConfiguration, DiskConfiguration, DiskLatency, DiskMode, NetConfiguration};
use concord_htm::policy::Policy;
use concord_mem::contention::ContentionModel;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// How much of the machine is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gear {
    /// One cycle an instruction, no caches: for getting somewhere.
    #[default]
    Functional,
    /// One cycle an instruction plus what coherent caches cost.
    Timed,
}

impl Gear {
    pub fn name(self) -> &'static str {
        match self {
            Gear::Functional => "functional",
            Gear::Timed => "timed",
        }
    }
}

/// A disk image and where its writes go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskImage {
    pub path: PathBuf,
    pub mode: DiskMode,
}

/// What is at the other end of the network link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Net {
    /// There is no network device.
    #[default]
    None,
    /// The built-in peer.
    Peer,
}

/// One run, fully described.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    pub board: Board,
    pub seed: u64,
    /// The gear that the run starts in.
    pub gear: Gear,
    pub kernel: PathBuf,
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    pub append: String,
    pub disks: Vec<DiskImage>,
    pub net: Net,
    /// Follows every access and ends the run where a transaction is not isolated. It changes nothing that the guest can see.
    pub check_isolation: bool,
}

/// What transactions cost beyond their instructions' own cycles, in the timed gear; the board says when each is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionCosts {
    pub begin_cycles: u64,
    pub commit_cycles: u64,
    pub rollback_word_cycles: u64,
    pub overflow_cycles: u64,
    pub overflow_check_cycles: u64,
}

impl Configuration {
    pub(crate) fn bus(&self) -> BusConfiguration {
        let latency = DiskLatency {
            fixed_cycles: self.board.disk.latency_cycles,
            bandwidth_bytes_per_second: self.board.disk.bandwidth_bytes_per_second.and_then(NonZeroU64::new),
        };
        let disk = |image: &DiskImage| DiskConfiguration { path: image.path.clone(), mode: image.mode, latency };
        BusConfiguration {
            harts: self.board.harts.count,
            seed: self.seed,
            disks: self.disks.iter().map(disk).collect(),
            net: (self.net == Net::Peer).then(|| NetConfiguration {
                latency_cycles: self.board.link.latency_cycles,
                ..NetConfiguration::default()
            }),
            entropy: true,
        }
    }

    /// Takes the words `board.KEY=VALUE` from the command line and sets these keys of the board. The guest does not see
    /// them.
    ///
    /// # Errors
    /// [`Board::set`]'s.
    pub fn take_board_words(&mut self) -> Result<(), BoardError> {
        let is_setting = |word: &&str| word.starts_with("board.") && word.contains('=');
        if !self.append.split_ascii_whitespace().any(|word| is_setting(&word)) {
            return Ok(());
        }
        let append = std::mem::take(&mut self.append);
        let (settings, kept): (Vec<&str>, Vec<&str>) = append.split_ascii_whitespace().partition(is_setting);
        self.append = kept.join(" ");
        for word in settings {
            let setting = word.strip_prefix("board.").and_then(|setting| setting.split_once('='));
            let (key, value) = setting.expect("a setting has a key and a value");
            self.board.set(key, value, word)?;
        }
        Ok(())
    }

    /// The policies of the board's transactions.
    pub fn policy(&self) -> Policy {
        let transactions = &self.board.transactions;
        Policy {
            manager: transactions.manager,
            granularity: transactions.granularity,
            mode: transactions.mode,
            backoff_base_cycles: transactions.backoff_base_cycles,
            backoff_exponent_max: transactions.backoff_exponent_max,
            restart_threshold: transactions.restart_threshold,
            outside_reads: transactions.outside_reads,
            deferred_adds: transactions.deferred_adds,
            backoff: transactions.backoff,
        }
    }

    /// What the board's transactions cost.
    pub fn costs(&self) -> TransactionCosts {
        let transactions = &self.board.transactions;
        TransactionCosts {
            begin_cycles: transactions.begin_cycles,
            commit_cycles: transactions.commit_cycles,
            rollback_word_cycles: transactions.rollback_word_cycles,
            overflow_cycles: transactions.overflow_cycles,
            overflow_check_cycles: transactions.overflow_check_cycles,
        }
    }

    pub(crate) fn model(&self) -> concord_mem::system::Model {
        let (cache, contention) = (&self.board.cache, &self.board.contention);
        let geometry = |level: &crate::board::LevelBoard| concord_mem::cache::Geometry {
            sets: (level.size_bytes / cache.line_bytes) as usize / level.ways,
            ways: level.ways,
        };
        concord_mem::system::Model {
            instruction: geometry(&cache.instruction),
            data: geometry(&cache.data),
            second: geometry(&cache.second),
            second_latency_cycles: cache.second_latency_cycles,
            memory_latency_cycles: cache.memory_latency_cycles,
            transfer_latency_cycles: cache.transfer_latency_cycles,
            upgrade_latency_cycles: cache.upgrade_latency_cycles,
            perturbation_cycles_max: cache.perturbation_cycles_max,
            contention: (contention.model == ContentionKind::Queued).then_some(ContentionModel {
                window_cycles: contention.window_cycles,
                shared_busy_cycles: contention.shared_busy_cycles,
                bus_busy_cycles: contention.bus_busy_cycles,
            }),
            translation_entries: self.board.translation.entries,
        }
    }
}
