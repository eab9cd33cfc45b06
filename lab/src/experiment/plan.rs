//! The plan of an experiment: the product of its axes, as groups of cells that differ in their seed alone.

use super::cell::{BeginsAt, Cell, CellKey, Start};
use super::coordinate::{BOARD, Coordinate, HARTS, Parameter, SIZE, by_axis};
use super::files::Files;
use super::request::{Experiment, MEMBER, SystemOptions};
use super::variant::Variant;
use super::{Error, coordinate};
use crate::system::System;
use concord_machine::{Board, Configuration, MachineError};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The format of plan and run files, and the way in which runs are made; raised when either changes.
const FORMAT: u32 = 2;
/// The digest of the simulator's source code (build.rs).
const MACHINE_DIGEST: &str = env!("CONCORD_MACHINE_DIGEST");
/// The seed of the boot that all seeds of a group share. None of them has it, so that each draws its own numbers from the region's
/// begin on.
pub const BOOT_SEED: u64 = 0;
/// Digits of a digest that name a run or a folder.
pub const ID_DIGITS: usize = 12;

/// One combination of coordinates and a seed, as a system sees it.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    pub case: &'a str,
    pub variant: &'a Variant,
    /// None where the system has no sizes.
    pub size: Option<&'a str>,
    pub harts: usize,
    /// With this number of harts.
    pub board: Board,
    /// Coordinates on axes of the system's own.
    pub further: &'a [Coordinate],
    pub parameters: &'a [Coordinate],
    /// The seed of the machine from its reset on: the run's, or the boot's.
    pub seed: u64,
    pub experiment: &'a Experiment,
}

impl Point<'_> {
    /// A command line: the words given, those of the parameters, and those that the user appends.
    pub fn command_line(&self, words: &[&str]) -> String {
        let parameters = self.parameters.iter().map(|coordinate| format!("{}={}", coordinate.axis, coordinate.value));
        let parameters = parameters.collect::<Vec<_>>().join(" ");
        let all = words.iter().copied().chain([parameters.as_str(), self.experiment.append.as_str()]);
        all.map(str::trim).filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// The cells that differ in their seed alone. Those that begin at the region share a boot.
#[derive(Clone, Debug)]
pub struct Group {
    pub case: String,
    pub variant: String,
    pub harts: usize,
    /// On every axis but that of seeds, in the order of the axes.
    pub coordinates: Vec<Coordinate>,
    /// Those beside case, variant and harts on whose axes groups differ.
    pub distinguishing: Vec<Coordinate>,
    pub title: String,
    /// The group with the same coordinates on the first variant, by its place in the plan.
    pub baseline: usize,
    pub begins_at: BeginsAt,
    /// By seed.
    pub cells: Vec<Cell>,
}

impl Group {
    /// The coordinates, beside case, variant and harts, that tell groups of the same case apart: nothing, or `, size tiny` and the like.
    /// A system's own axes are left to the system's measurements.
    pub fn case_suffix(&self) -> String {
        let flags = |coordinate: &&Coordinate| !matches!(coordinate.value, coordinate::Value::Flag(_));
        self.distinguishing.iter().filter(flags).map(|coordinate| format!(", {}", coordinate.title())).collect()
    }

    /// The case, with the coordinates that tell groups of the same case apart.
    pub fn case_title(&self) -> String {
        format!("{}{}", self.case, self.case_suffix())
    }
}

/// The program that made an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramDescription {
    pub version: &'static str,
    pub machine: &'static str,
}

/// A variant, with the digests of its files.
#[derive(Clone, Debug, Serialize)]
pub struct VariantDescription {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub words: String,
    #[serde(flatten)]
    pub files: BTreeMap<String, String>,
}

/// Everything that decides an experiment, and nothing of where it is made.
#[derive(Clone, Debug)]
pub struct PlanDescription {
    pub program: ProgramDescription,
    pub cases: Vec<String>,
    pub variants: Vec<VariantDescription>,
    pub sizes: Vec<String>,
    pub harts: Vec<usize>,
    pub boards: Vec<Board>,
    pub parameters: Vec<Parameter>,
    pub seeds: u64,
    /// BLAKE3 of guests' files, each as `GUEST/ROLE`.
    pub guests: BTreeMap<String, String>,
    pub append: String,
    pub check_isolation: bool,
    pub instructions_max: Option<u64>,
    pub options: SystemOptions,
}

/// A whole experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    pub system: &'static dyn System,
    pub description: PlanDescription,
    /// By case, size, board, parameters, hart count, variant, and the system's own axes, each in the order asked for.
    pub groups: Vec<Group>,
}

impl Plan {
    /// Checks what is asked for, and lays it out.
    ///
    /// # Errors
    /// If a name is unknown or comes twice, if no machine or experiment can have a number, or if a file is missing.
    pub fn new(system: &'static dyn System, experiment: &Experiment, files: &Files) -> Result<Plan, Error> {
        experiment.check(system)?;
        let mut layout =
            Layout { system, experiment, files, varying: experiment.varying_axes(system), groups: Vec::new() };
        for case in &experiment.cases {
            layout.add_case(case)?;
        }
        let groups = layout.groups;
        let description = describe(system, experiment, &groups, files)?;
        Ok(Plan { system, description, groups })
    }

    /// Every cell with its group, by group and seed.
    pub fn cells(&self) -> impl Iterator<Item = (&Group, &Cell)> {
        self.groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, cell)))
    }

    /// Runs of all groups.
    pub fn runs_count(&self) -> usize {
        self.groups.iter().map(|group| group.cells.len()).sum()
    }

    /// What `plan.json` says. An axis has the name that the system gives it, in the singular where it has one value.
    pub fn document(&self) -> Value {
        let PlanDescription { program, cases, variants, sizes, harts, boards, parameters, seeds, .. } =
            &self.description;
        let nouns = self.system.nouns();
        let mut document = Map::new();
        let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
        put("format", FORMAT.into());
        put("system", self.system.name().into());
        put("program", json!(program));
        put(&format!("{}s", nouns.case_field), json!(cases));
        put(&format!("{}s", nouns.variant_field), json!(variants));
        put("harts", json!(harts));
        let mut put_axis = |name: &str, values: &[Value]| match values {
            [] => {}
            [value] => drop(put(name, value.clone())),
            values => drop(put(&format!("{name}s"), values.into())),
        };
        put_axis(SIZE, &sizes.iter().map(|size| json!(size)).collect::<Vec<_>>());
        put_axis(BOARD, &boards.iter().map(|board| json!(board)).collect::<Vec<_>>());
        if !parameters.is_empty() {
            put("parameters", json!(parameters));
        }
        put("seeds", json!(seeds));
        put("guests", json!(self.description.guests));
        put("append", json!(self.description.append));
        put("check_isolation", json!(self.description.check_isolation));
        put("instructions_max", json!(self.description.instructions_max));
        for (name, value) in &self.description.options {
            put(name, json!(value));
        }
        Value::Object(document)
    }

    /// A name for the folder of this experiment and of no other.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", self.system.nouns().command, &digest(&self.document())[..ID_DIGITS])
    }
}

/// The digest of plain data.
pub fn digest(value: &impl Serialize) -> String {
    blake3::hash(&serde_json::to_vec(value).expect("plain data")).to_hex().to_string()
}

/// What decides an experiment, from its request and its groups.
fn describe(
    system: &dyn System,
    experiment: &Experiment,
    groups: &[Group],
    files: &Files,
) -> Result<PlanDescription, Error> {
    let roles = system.definition_files().unwrap_or_default();
    let variant = |variant: &Variant| {
        let group = groups.iter().find(|group| group.variant == variant.name);
        let inputs = group.and_then(|group| group.cells.first()).into_iter().flat_map(|cell| &cell.start.files);
        let own = inputs.filter(|(role, _)| roles.contains(&role.as_str()));
        VariantDescription {
            name: variant.name.clone(),
            words: variant.words.clone(),
            files: own.map(|(role, input)| (role.clone(), input.blake3.clone())).collect(),
        }
    };
    let mut guests = BTreeMap::new();
    for file in system.guest_files(experiment)? {
        guests.insert(format!("{}/{}", file.guest, file.role), files.of_guest(&file)?.blake3.clone());
    }
    Ok(PlanDescription {
        program: ProgramDescription { version: env!("CARGO_PKG_VERSION"), machine: MACHINE_DIGEST },
        cases: experiment.cases.clone(),
        variants: experiment.variants.iter().map(variant).collect(),
        sizes: experiment.sizes.clone(),
        harts: experiment.harts.clone(),
        boards: experiment.boards.clone(),
        parameters: experiment.parameters.clone(),
        seeds: experiment.seeds,
        guests,
        append: experiment.append.clone(),
        check_isolation: experiment.check_isolation,
        instructions_max: experiment.instructions_max,
        options: experiment.options.clone(),
    })
}

/// Lays out the groups.
struct Layout<'a> {
    system: &'static dyn System,
    experiment: &'a Experiment,
    files: &'a Files,
    /// Names of the axes with more than one value.
    varying: Vec<String>,
    groups: Vec<Group>,
}

impl Layout<'_> {
    fn add_case(&mut self, case: &str) -> Result<(), Error> {
        let experiment = self.experiment;
        let all_harts = self.system.harts(case, experiment);
        let sizes: Vec<Option<&str>> = match experiment.sizes.as_slice() {
            [] => vec![None],
            sizes => sizes.iter().map(|size| Some(size.as_str())).collect(),
        };
        let combinations = Parameter::combinations(&experiment.parameters);
        for size in sizes {
            for board in &experiment.boards {
                for parameters in &combinations {
                    for harts in &all_harts {
                        let mut board = board.clone();
                        board.harts.count = *harts;
                        self.add_set(case, size, &board, parameters)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the groups that differ in the variant, and in coordinates of the system's own.
    fn add_set(
        &mut self,
        case: &str,
        size: Option<&str>,
        board: &Board,
        parameters: &[Coordinate],
    ) -> Result<(), Error> {
        let first = self.groups.len();
        for variant in &self.experiment.variants {
            for further in self.system.further(case, self.experiment) {
                let point = Point {
                    case,
                    variant,
                    size,
                    harts: board.harts.count,
                    board: board.clone(),
                    further: &further,
                    parameters,
                    seed: BOOT_SEED,
                    experiment: self.experiment,
                };
                let mut group = self.group(&point)?;
                let is_baseline = |other: &Group| other.distinguishing == group.distinguishing;
                group.baseline =
                    self.groups[first..].iter().position(is_baseline).map_or(self.groups.len(), |at| first + at);
                self.groups.push(group);
            }
        }
        Ok(())
    }

    fn group(&self, point: &Point) -> Result<Group, Error> {
        let nouns = self.system.nouns();
        let size = point.size.map(|size| Coordinate::new(SIZE, size));
        let beside: Vec<Coordinate> = size
            .into_iter()
            .chain([Coordinate::new(BOARD, point.board.name.as_str())])
            .chain(point.parameters.iter().cloned())
            .chain(point.further.iter().cloned())
            .collect();
        let distinguishes =
            |coordinate: &&Coordinate| self.varying.contains(&coordinate.axis) || point.further.contains(coordinate);
        let distinguishing: Vec<Coordinate> = beside.iter().filter(distinguishes).cloned().collect();
        let mut coordinates = vec![
            Coordinate::new(&nouns.case_field, point.case),
            Coordinate::new(HARTS, point.harts),
            Coordinate::new(&nouns.variant_field, point.variant.name.as_str()),
        ];
        coordinates.extend(beside);
        let of_title = |coordinate: &Coordinate| format!(", {}", coordinate.title());
        let more: String = distinguishing.iter().map(of_title).collect();
        let title = format!("{} {} {}, {} harts{more}", point.case, nouns.preposition, point.variant.name, point.harts);
        let mut group = Group {
            case: point.case.to_owned(),
            variant: point.variant.name.clone(),
            harts: point.harts,
            coordinates,
            distinguishing,
            title,
            baseline: 0,
            begins_at: BeginsAt::Reset,
            cells: Vec::new(),
        };
        for seed in 1..=self.experiment.seeds {
            let cell = self.cell(point, &group, seed)?;
            group.begins_at = cell.start.begins_at;
            group.cells.push(cell);
        }
        Ok(group)
    }

    fn cell(&self, point: &Point, group: &Group, seed: u64) -> Result<Cell, Error> {
        let mut start = self.system.start(point, self.files)?;
        if start.begins_at == BeginsAt::Reset {
            start = self.system.start(&Point { seed, ..point.clone() }, self.files)?;
        }
        start.assert_files_are_known();
        start.configuration.take_board_words().map_err(MachineError::from)?;
        if start.configuration.board.harts.count != point.harts {
            let title = &group.title;
            return Err(Error::Request(format!(
                "board.harts.count, in {title}: the number of harts is an axis of its own"
            )));
        }
        start.configuration.board.validate().map_err(MachineError::from)?;
        let key = key(&start, seed);
        let id = digest(&key)[..ID_DIGITS].to_owned();
        // Some programs take what stands before a colon for the name of a host.
        let case = group.case.replace(MEMBER, "-");
        let mut parts = vec![case, group.variant.clone(), group.harts.to_string(), seed.to_string()];
        parts.extend(point.further.iter().map(|coordinate| coordinate.title()));
        let file_name = format!("{}.{id}.json", parts.join("."));
        let title = format!("{}, seed {seed}", group.title);
        Ok(Cell { id, file_name, title, coordinates: by_axis(&group.coordinates), seed, key, start })
    }
}

/// What decides the run of a cell that starts in this way.
fn key(start: &Start, seed: u64) -> CellKey {
    let Configuration { board, gear, append, net, check_isolation, .. } = start.configuration.clone();
    CellKey {
        format: FORMAT,
        machine: MACHINE_DIGEST.to_owned(),
        files: start.files.iter().map(|(name, input)| (name.clone(), input.blake3.clone())).collect(),
        command_line: append,
        board,
        gear,
        net,
        begins_at: start.begins_at,
        boot_seed: (start.begins_at == BeginsAt::Region).then_some(start.configuration.seed),
        seed,
        check_isolation,
        instructions_max: start.instructions_max,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::files::{GuestFile, Input};
    use crate::system::check_programs::{COUNTS, GEAR, TASK, VALIDATE, VALIDATION, WORK};
    use crate::system::{self, named};
    use std::collections::BTreeSet;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn linux() -> &'static dyn System {
        named("linux").unwrap()
    }

    fn locks() -> &'static dyn System {
        system::locks::system()
    }

    fn input(path: &str, name: &str) -> Input {
        Input { path: format!("{path}/{name}").into(), blake3: format!("digest of {name}") }
    }

    fn files_in(path: &str) -> Files {
        let kernel = ["Image", "vmlinux"].map(|role| ("kernel", role));
        let programs = ["locks-benchmark", "locks-benchmark-counting", "locks-validate"].map(|role| ("tm", role));
        let roots = [("rootfs", "rootfs"), ("benchmarks", "rootfs")];
        let all = kernel.into_iter().chain(programs).chain(roots);
        all.fold(Files::default(), |files, (guest, role)| {
            files.with(GuestFile::new(guest, role), input(path, &format!("{guest}-{role}")))
        })
    }

    pub fn files() -> Files {
        files_in("/guests")
    }

    fn experiment(system: &dyn System, cases: &[&str], variants: &[&str], sizes: &[&str]) -> Experiment {
        let options = SystemOptions::new();
        Experiment {
            cases: texts(cases),
            variants: Variant::choose(system, &options, Some(&texts(variants)), &[]).unwrap(),
            sizes: texts(sizes),
            harts: vec![4, 8],
            boards: vec![Board::preset("metatm-2007").unwrap()],
            parameters: Vec::new(),
            seeds: 3,
            append: String::new(),
            check_isolation: false,
            instructions_max: None,
            options,
        }
    }

    pub fn kernels() -> Experiment {
        experiment(linux(), &["dpunish", "bonnie++"], &["linux", "txlinux-cx"], &["quick"])
    }

    fn programs() -> Experiment {
        let options = [(COUNTS.to_owned(), "yes".to_owned())].into();
        Experiment { options, ..experiment(locks(), &["uncontended", "loop"], &["byte", "unfair"], &[]) }
    }

    pub fn plan_of_kernels(experiment: &Experiment) -> Plan {
        Plan::new(linux(), experiment, &files()).unwrap()
    }

    fn ids_of(plan: &Plan) -> BTreeSet<String> {
        plan.cells().map(|(_, cell)| cell.id.clone()).collect()
    }

    fn ids(system: &'static dyn System, experiment: &Experiment) -> BTreeSet<String> {
        ids_of(&Plan::new(system, experiment, &files()).unwrap())
    }

    #[test]
    fn every_combination_is_a_group_and_every_run_has_a_name_of_its_own() {
        let plan = plan_of_kernels(&kernels());
        let titles: Vec<&str> = plan.groups.iter().map(|group| group.title.as_str()).collect();
        assert_eq!(titles[..2], ["dpunish on linux, 4 harts", "dpunish on txlinux-cx, 4 harts"]);
        assert_eq!((titles.len(), plan.runs_count(), ids_of(&plan).len()), (8, 24, 24));
        let baselines: Vec<usize> = plan.groups.iter().map(|group| group.baseline).collect();
        assert_eq!(baselines, [0, 0, 2, 2, 4, 4, 6, 6]);
        let cell = &plan.groups[0].cells[2];
        assert_eq!(
            cell.start.configuration.append,
            "console=ttyS0 root=/dev/vda concord.run=dpunish concord.size=quick cx=off"
        );
        assert_eq!((cell.seed, cell.start.configuration.seed, cell.key.boot_seed), (3, BOOT_SEED, Some(BOOT_SEED)));
        assert_eq!(cell.file_name, format!("dpunish.linux.4.3.{}.json", cell.id));
        assert_eq!(cell.title, "dpunish on linux, 4 harts, seed 3");
        let latency = |group: usize| plan.groups[group].cells[0].start.configuration.board.disk.latency_cycles;
        assert_eq!((latency(0), latency(7)), (5_500_000, 0));
    }

    #[test]
    fn words_of_the_board_set_its_keys_and_are_no_words_of_the_guest() {
        let define = |text| Variant::define(linux(), &SystemOptions::new(), text).unwrap();
        let finer =
            define("finer=cx=on board.transactions.granularity=line board.transactions.outside_reads=committed");
        let parameters = Parameter::from_definitions(&texts(&[
            "board.transactions.commit_cycles=0",
            "board.transactions.commit_cycles=40",
        ]));
        let mut experiment = Experiment { parameters: parameters.unwrap(), ..kernels() };
        experiment.variants.push(finer);
        let plan = plan_of_kernels(&experiment);
        let last = &plan.groups.last().unwrap().cells[0];
        let configuration = &last.start.configuration;
        let transactions = &configuration.board.transactions;
        assert_eq!((transactions.granularity.name(), transactions.outside_reads.name()), ("line", "committed"));
        assert_eq!(transactions.commit_cycles, 40);
        assert!(configuration.append.ends_with(" cx=on"), "{}", configuration.append);
        assert_eq!(last.title, "bonnie++ on finer, 8 harts, board.transactions.commit_cycles=40, seed 1");
        let first = &plan.groups[0].cells[0].start.configuration.board.transactions;
        assert_eq!((first.granularity.name(), first.commit_cycles), ("word32", 0));
        assert_eq!(ids_of(&plan).len(), plan.runs_count());
    }

    #[test]
    fn programs_begin_at_reset_with_the_seed() {
        let plan = Plan::new(locks(), &programs(), &files()).unwrap();
        // Without contention there is nothing to see on more than one hart, and nothing to count.
        assert_eq!((plan.runs_count(), ids_of(&plan).len()), (2 * 3 + 2 * 2 * 2 * 3, 30));
        let cells: Vec<&Cell> = plan.cells().map(|(_, cell)| cell).collect();
        assert_eq!(cells[0].title, "uncontended of byte, 1 harts, seed 1");
        assert_eq!(cells[6].key.files["program"], "digest of tm-locks-benchmark");
        let last = cells[29];
        assert_eq!(last.file_name, format!("loop.unfair.8.3.counted.{}.json", last.id));
        assert_eq!(last.title, "loop of unfair, 8 harts, counted, seed 3");
        assert_eq!(last.start.configuration.append, "locks=unfair tests=loop runs=1 threads=8 iterations=1000");
        assert_eq!((last.start.configuration.board.harts.count, last.start.configuration.seed), (8, 3));
        assert_eq!(last.key.files["program"], "digest of tm-locks-benchmark-counting");
        assert_eq!(last.key.boot_seed, None);
        let counted = plan.groups.last().unwrap();
        assert_eq!(plan.groups[counted.baseline].title, "loop of byte, 8 harts, counted");

        let options = [(TASK.to_owned(), VALIDATE.to_owned())].into();
        let plan = Plan::new(locks(), &Experiment { cases: texts(&[VALIDATION]), options, ..programs() }, &files());
        let plan = plan.unwrap();
        assert_eq!(plan.runs_count(), 2 * 2 * 3);
        assert_eq!(plan.groups[0].cells[1].start.configuration.append, "locks=byte seed=2 sections=1000");
    }

    /// Asserts that each change gives every run another name.
    #[track_caller]
    fn all_decide(system: &'static dyn System, base: &Experiment, changes: &[&dyn Fn(&mut Experiment)]) {
        let names = ids(system, base);
        for (index, change) in changes.iter().enumerate() {
            let mut other = base.clone();
            change(&mut other);
            assert!(names.is_disjoint(&ids(system, &other)), "{index}");
        }
    }

    /// A run is named by what decides it: anything that does changes every name, and nothing else does.
    #[test]
    fn what_decides_a_run_decides_its_name() {
        let of_any: [&dyn Fn(&mut Experiment); 6] = [
            &|experiment| experiment.append = "quiet".to_owned(),
            &|experiment| experiment.check_isolation = true,
            &|experiment| experiment.instructions_max = Some(7),
            &|experiment| experiment.boards[0].cache.memory_latency_cycles += 1,
            &|experiment| experiment.boards = vec![Board::preset("server-2024").unwrap()],
            &|experiment| {
                experiment.parameters = Parameter::from_definitions(&texts(&["cx.retries=4"])).unwrap();
            },
        ];
        all_decide(linux(), &kernels(), &of_any);
        all_decide(linux(), &kernels(), &[&|experiment| experiment.sizes = texts(&["tiny"])]);
        all_decide(locks(), &programs(), &of_any);
        let put = |experiment: &mut Experiment, name: &str, value: &str| {
            experiment.options.insert(name.to_owned(), value.to_owned());
        };
        let of_programs: [&dyn Fn(&mut Experiment); 2] =
            [&|experiment| put(experiment, WORK, "7"), &|experiment| put(experiment, GEAR, "functional")];
        all_decide(locks(), &programs(), &of_programs);

        let base = ids(linux(), &kernels());
        let other = Input { path: "/guests/rootfs-rootfs".into(), blake3: "other".to_owned() };
        let other = Plan::new(linux(), &kernels(), &files().with(GuestFile::new("rootfs", "rootfs"), other)).unwrap();
        assert!(base.is_disjoint(&ids_of(&other)));
    }

    #[test]
    fn nothing_else_decides_its_name() {
        // More seeds, fewer workloads and another place of the same files leave a run the one that it is.
        let base = ids(linux(), &kernels());
        let other = Experiment { seeds: 5, cases: texts(&["dpunish"]), ..kernels() };
        let other = Plan::new(linux(), &other, &files_in("/elsewhere")).unwrap();
        assert!(other.groups[3].cells[..3].iter().all(|cell| base.contains(&cell.id)));

        let base = ids(locks(), &programs());
        let other = ids(locks(), &Experiment { seeds: 5, harts: vec![8], ..programs() });
        assert_eq!(other.intersection(&base).count(), 6 + 12);
        let uncounted = ids(locks(), &Experiment { options: SystemOptions::new(), ..programs() });
        assert!(uncounted.is_subset(&base) && uncounted.len() == 18);
    }

    #[test]
    fn an_experiment_that_cannot_be_had_is_refused() {
        let refused = |change: &dyn Fn(&mut Experiment)| {
            let mut experiment = kernels();
            change(&mut experiment);
            let files = files().with_given(&experiment);
            files.and_then(|files| Plan::new(linux(), &experiment, &files)).unwrap_err().to_string()
        };
        let lines = [
            refused(&|experiment| experiment.cases.push("lmbench".to_owned())),
            refused(&|experiment| experiment.cases.push("dpunish".to_owned())),
            refused(&|experiment| experiment.cases.clear()),
            refused(&|experiment| experiment.harts.push(0)),
            refused(&|experiment| experiment.harts.push(65)),
            refused(&|experiment| experiment.harts.push(4)),
            refused(&|experiment| experiment.harts.clear()),
            refused(&|experiment| experiment.seeds = 0),
            refused(&|experiment| experiment.sizes.clear()),
            refused(&|experiment| experiment.sizes.push("huge".to_owned())),
            refused(&|experiment| experiment.boards.push(experiment.boards[0].clone())),
            refused(&|experiment| experiment.boards[0].cache.line_bytes = 32),
            refused(&|experiment| experiment.append = "board.transactions.granularity=word16".to_owned()),
            refused(&|experiment| experiment.append = "board.harts.count=2".to_owned()),
            refused(&|experiment| {
                experiment.variants[0].files.insert("image".to_owned(), "/nonexistent/Image".into());
            }),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        no workload is called "lmbench"; there are pmake, bonnie++, mab, configure, find, dpunish, files, contend:sigmask | timers | wait | self-signal | self-signal-threads | signal | faults | faults-processes | allocate | procfs | inodes | superblock | rename | dup | write | file-locks | file-locks-own | fork | futex | mutex | allocate-threads | page-wait | descriptors | open | eventfd | scm, hackbench:sockets | pipes, memcached, postmark, stress-ng:scheduler | memory | files | network, sysbench
        workload "dpunish" is named twice
        at least one workload is wanted
        0 harts: allowed is 1 to 64
        65 harts: allowed is 1 to 64
        hart count "4" is named twice
        at least one hart count is wanted
        at least one seed is wanted
        at least one size is wanted
        no size is called "huge"; there are tiny, quick, paper
        board "metatm-2007" is named twice
        board "metatm-2007": cache.line_bytes = 32: allowed is 64 only
        board.transactions.granularity=word16: unknown variant `word16`, expected one of `word`, `line`, `word32`
        board.harts.count, in dpunish on linux, 4 harts: the number of harts is an axis of its own
        cannot read /nonexistent/Image: No such file or directory (os error 2)
        "#);
        let stm = Plan::new(
            system::stm::system(),
            &experiment(system::stm::system(), &["bank"], &["plain-2pl"], &[]),
            &files(),
        );
        assert_eq!(stm.unwrap_err().to_string(), "guest tm has no file \"stm-bench-plain-2pl\"");
    }

    #[test]
    fn equal_experiments_have_equal_folders() {
        let name = |experiment: &Experiment| plan_of_kernels(experiment).folder_name();
        let base = name(&kernels());
        assert!(base.starts_with("compare-"), "{base}");
        assert_eq!(base, name(&kernels()));
        assert_ne!(base, name(&Experiment { seeds: 4, ..kernels() }));
    }

    #[test]
    fn a_cell_is_plain_data() {
        let plan = plan_of_kernels(&kernels());
        for (_, cell) in plan.cells() {
            let text = serde_json::to_string(cell).unwrap();
            assert_eq!(*cell, serde_json::from_str::<Cell>(&text).unwrap());
        }
    }

    #[test]
    fn members_of_plan_files_have_the_systems_names() {
        let document = plan_of_kernels(&kernels()).document();
        assert_eq!(document["workloads"], json!(["dpunish", "bonnie++"]));
        assert_eq!(document["kernels"][1]["words"], "cx=on");
        assert_eq!(document["kernels"][1]["image"], "digest of kernel-Image");
        assert_eq!((&document["size"], &document["harts"]), (&json!("quick"), &json!([4, 8])));
        assert_eq!(document["guests"]["rootfs/rootfs"], "digest of rootfs-rootfs");
        assert_eq!(document["board"]["name"], "metatm-2007");
    }
}
