//! A comparison with invented runs: every kind of number that reports show, small enough to be read.

use concord_abi::exit::Exit;
use concord_lab::experiment::Experiment;
use concord_lab::experiment::cell::{Cell, CellFile};
use concord_lab::experiment::files::{Files, Input};
use concord_lab::experiment::plan::{Group, Plan};
use concord_lab::experiment::request::SystemOptions;
use concord_lab::experiment::schedule::CellOutcome;
use concord_lab::experiment::variant::Variant;
use concord_lab::system::linux;
use concord_machine::Board;
use serde_json::{Value, json};

/// Call sites: function, kind, lock, how contended, whether I/O is done inside.
const SITES: [(&str, &str, Option<&str>, u64, bool); 9] = [
    ("d_move+0x1e", "spin", Some("rename_lock"), 9, false),
    ("dput+0x62", "spin", None, 7, false),
    ("rmqueue_bulk+0x40", "spin", None, 4, false),
    ("__slab_free+0x9a", "spin", Some("slab_lock<&>\"x\""), 3, false),
    ("try_to_wake_up+0x54", "raw", None, 5, false),
    ("virtqueue_add_sgs+0x30", "spin", None, 2, true),
    ("uart_write+0x28", "spin", Some("port_lock"), 1, true),
    ("ktime_get+0x12", "seqlock", Some("tk_core"), 6, false),
    ("sleepers+0x8", "read", None, 0, false),
];

/// A generator of numbers (Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// About `number`: up to `percent` more or less.
    fn about(&mut self, number: u64, percent: u64) -> u64 {
        let span = number * percent / 100;
        number - span + self.next() % (2 * span + 1)
    }
}

pub fn plan(workloads: &[&str], kernels: &[&str], harts: &[usize], seeds: u64) -> Plan {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let definitions = ["no-ipi=cx=on cx.safe=counter,wake", "linux-other=cx=off quiet"];
    let is_wanted = |definition: &&str| kernels.iter().any(|kernel| definition.starts_with(&format!("{kernel}=")));
    let defined = names(&definitions.into_iter().filter(is_wanted).collect::<Vec<_>>());
    let (system, options) = (linux::system(), SystemOptions::new());
    let experiment = Experiment {
        cases: names(workloads),
        variants: Variant::choose(system, &options, Some(&names(kernels)), &defined).unwrap(),
        sizes: names(&["quick"]),
        harts: harts.to_vec(),
        boards: vec![Board::preset("metatm-2007").unwrap()],
        parameters: Vec::new(),
        seeds,
        append: String::new(),
        check_isolation: false,
        instructions_max: None,
        options,
    };
    let files = system.guest_files(&experiment).unwrap().into_iter().fold(Files::default(), |files, file| {
        let name = format!("{}/{}", file.guest, file.role);
        files.with(file, Input { path: format!("/guests/{name}").into(), blake3: format!("digest of {name}") })
    });
    Plan::new(system, &experiment, &files).unwrap()
}

/// A result for every run.
pub fn outcomes(plan: &Plan) -> Vec<Vec<CellOutcome>> {
    let of_run = |group: &Group, run: &Cell| {
        let result = serde_json::from_value(result(plan, group, run)).unwrap();
        CellOutcome::Made(Box::new(CellFile::new(run, None, result)))
    };
    plan.groups.iter().map(|group| group.cells.iter().map(|run| of_run(group, run)).collect()).collect()
}

/// One run that the guest failed and one that never booted, with words that a page must not take for its own.
pub fn fail_some(outcomes: &mut [Vec<CellOutcome>]) {
    let console = vec!["[    1.0] Oops <script>alert(1)</script>".to_owned(), "---[ end trace ]---".to_owned()];
    if let CellOutcome::Made(file) = &mut outcomes[1][0] {
        file.result.exit = Exit::Failed;
        (file.result.exit_code, file.result.guest_code) = (1, 2);
        file.result.console.clone_from(&console);
    }
    let last = outcomes.last_mut().unwrap();
    let why = "panicked, before the workload's region of interest began".to_owned();
    last.fill(CellOutcome::NotBooted { why, console });
}

fn result(plan: &Plan, group: &Group, run: &Cell) -> Value {
    let place = |names: Vec<&String>, name: &String| names.iter().position(|known| *known == name).unwrap() as u64;
    let kernel = place(plan.description.variants.iter().map(|kernel| &kernel.name).collect(), &group.variant);
    let workload = place(plan.description.cases.iter().collect(), &group.case);
    let harts = group.harts as u64;
    // What the seed changes is small beside what workload and kernel change.
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ run.seed << 20 ^ workload << 12 ^ kernel << 8 ^ harts);
    numbers.next();
    let kernel_time =
        (400 + 90 * workload) * 1_000_000 * (100 + 2 * workload - 3 * kernel.min(2) * (workload % 3)) / 100;
    let hart = |numbers: &mut Numbers| {
        let transactions: Value = serde_json::from_str::<Value>(RECORDED).unwrap()["harts"][0].take();
        let counted = json!({
            "instructions": 80_000_000,
            "user_cycles": numbers.about(60_000_000 * (1 + workload % 4), 2),
            "supervisor_cycles": numbers.about(kernel_time / harts, 2),
            "idle_cycles": 120_000_000,
            "io_wait_cycles": 30_000_000 * (workload % 3),
            "queued_requests": 40_000 * harts, "queued_cycles": 900_000 * harts * (2 - kernel.min(1)),
            "sections_count": numbers.about(90_000, 20),
        });
        with(transactions, counted)
    };
    let harts_list: Vec<Value> = (0..harts).map(|_| hart(&mut numbers)).collect();
    let sections: Vec<Value> =
        (0..SITES.len()).map(|site| section(&mut numbers, site, group, kernel, workload)).collect();
    let conflicts = if kernel == 0 { 0 } else { numbers.about(900 * harts, 20) };
    let result = json!({
        "exit": "powered-off", "exit_code": 0, "guest_code": 0, "message": null,
        "digest": format!("{:016x}", numbers.next()), "instructions": 900_000_000 + numbers.next() % 1000,
        "conflicts": pairs(conflicts), "region": true, "region_cycles": numbers.about(kernel_time / harts + 200_000_000, 1),
        "harts": harts_list, "sections": sections,
        "section_locks": [{
            "lock": "rename_lock", "locked": 100, "transactional": 20 * kernel, "spin_cycles": 5000, "restart_cycles": 700,
            "acquire_cycles": 9000, "concurrency_max": harts,
        }],
        "conflict_kinds": kinds(conflicts), "transaction_sizes": sizes(&mut numbers, kernel),
        "conflict_totals": {
            "count": conflicts, "lost_cycles": conflicts * 300, "lost_words": conflicts * 9, "inversions": conflicts / 11,
        },
        "console": ["done"],
    });
    with(serde_json::from_str(RECORDED).unwrap(), result)
}

/// Of five conflicts three are of two transactions, and of these one in 33 inverts priorities.
fn kinds(conflicts: u64) -> Value {
    let kind = |count: u64, inversions: u64| {
        json!({
            "count": count, "lost_cycles": 300 * count, "backoff_cycles": 200 * count, "inversions": inversions,
            "policy_inversions": inversions / 9,
        })
    };
    json!({
        "transactions": kind(conflicts * 3 / 5, conflicts / 55), "asymmetric": kind(conflicts / 5, 0), "granted": kind(0, 0),
        "refused": kind(conflicts / 5, 0),
    })
}

/// Sizes of committed transactions, which the first kernel has none of.
fn sizes(numbers: &mut Numbers, kernel: u64) -> Value {
    let mut distribution = |mean: u64| {
        let mean = if kernel == 0 { 0 } else { numbers.about(mean, 5) };
        json!({
            "count": 400_000 * kernel.min(1), "mean": mean as f64, "median": mean / 2, "percentile_99": mean * 9, "max": mean * 50,
        })
    };
    json!({
        "instructions": distribution(51), "cycles": distribution(449), "granules": distribution(20), "depth": distribution(1),
    })
}

/// The result document of a run of the program `contended`, as version 0.1.0 wrote it.
pub const RECORDED: &str = include_str!("run.json");

/// An object with some of its members replaced, and so those of its members that are objects.
fn with(mut object: Value, members: Value) -> Value {
    let Value::Object(members) = members else { return members };
    for (name, value) in members {
        let member = &mut object[&name];
        *member = if name == "restarts" { value } else { with(member.take(), value) };
    }
    object
}

/// The conflicts of a run by the call sites that met; a word without a symbol lies elsewhere in each run.
fn pairs(count: u64) -> Vec<Value> {
    let words = [Some("rename_lock"), None, Some("slab_lock<&>\"x\""), Some("tk_core+0x8"), None, Some("jiffies")];
    let pair = |(index, word): (u64, &Option<&str>)| {
        let count = count >> (index + 1);
        json!({
            "requester": SITES[index as usize].0, "holder": SITES[index as usize + 1].0,
            "address": word.map_or_else(|| format!("{:#x}", 0x8000_0000 + 64 * count), str::to_owned),
            "requester_is_transactional": index != 3, "requester_writes": true,
            "winner": if index % 2 == 0 { "requester" } else { "holder" },
            "rule": if index == 3 { "nontransactional" } else { "size" },
            "count": count, "lost_cycles": 300 * count, "lost_words": 9 * count, "inversions": 0,
            "holder_writes": count / 3, "backoff_cycles": 200 * count,
        })
    };
    if count == 0 { Vec::new() } else { (0..).zip(&words).map(pair).collect() }
}

fn section(numbers: &mut Numbers, index: usize, group: &Group, kernel: u64, workload: u64) -> Value {
    let harts = group.harts as u64;
    let (site, kind, lock, contention, does_io) = SITES[index];
    let executions = numbers.about(20_000 * (1 + index as u64), 5);
    let is_transactional = kernel > 0 && kind != "raw" && !(group.variant == "txlinux-ss" && index % 2 == 1);
    let io = if does_io && is_transactional { executions * (1 + 6 * (index as u64 % 2)) / 10 } else { 0 };
    let (transactional, locked) = if is_transactional { (executions - io, io) } else { (0, executions) };
    let spinning = locked * contention * harts * (1 + workload) / 20;
    let conflicts = if is_transactional { numbers.about(executions * contention / 100, 10) } else { 0 };
    let concurrency_max = if is_transactional { 1 + contention * harts / 10 } else { 1 };
    let mut concurrency = vec![0; concurrency_max as usize];
    concurrency[0] = executions;
    json!({
        "site": site, "kind": kind, "lock": lock, "locks": if lock.is_some() { 1 } else { 150 },
        "locked": locked, "contended": spinning / 90, "spin_cycles": spinning * 12,
        "acquire_cycles": spinning * 12 + locked * 9, "subscribe_cycles": transactional * 5, "test_loops": spinning * 2,
        "test_and_set_loops": spinning / 5, "hold_cycles": locked * 90,
        "transactional": transactional, "transactional_cycles": transactional * 100, "wait_cycles": 0,
        "restarts": { "conflict": conflicts, "need-exclusive": io },
        "restart_cycles": { "conflict": conflicts * 420, "need-exclusive": io * 150 },
        "exclusive_after": { "need-exclusive": io },
        "io_restarts_by_depth": [io * 3 / 4, io / 4],
        "io_restarts_by_origin": { "system-call": io / 2, "interrupt": io / 3, "kernel": io - io / 2 - io / 3 },
        "io_restarts_at": { "virtio_notify": io },
        "concurrency_max": concurrency_max, "concurrency": concurrency,
    })
}
