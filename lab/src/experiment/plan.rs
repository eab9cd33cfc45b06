//! What a comparison runs: every workload on every kernel and hart count, once for each seed.

use super::kernel::KernelChoice;
use super::workload::{Size, Workload};
use super::{Error, refuse_repeated};
use crate::guest;
use concord_dev::DiskMode;
use concord_machine::{Board, Configuration, DiskImage, Gear, Net};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The format of plan and run files, and the way in which runs are made; raised when either changes.
const FORMAT: u32 = 1;
/// The digest of the machine's source code (build.rs).
pub(crate) const MACHINE_DIGEST: &str = env!("CONCORD_MACHINE_DIGEST");
/// The seed of the boot that all seeds of a group share. None of them has it, so that each draws its own numbers from the region's
/// begin on.
const BOOT_SEED: u64 = 0;
/// Digits of a run's digest that names it in tables and file names.
pub(crate) const ID_DIGITS: usize = 12;

/// What the user asks for.
#[derive(Clone, Debug)]
pub struct Request {
    pub workloads: Vec<String>,
    /// The first is what the others are compared with.
    pub kernels: Vec<KernelChoice>,
    pub harts: Vec<usize>,
    /// Seeds 1 to this number.
    pub seeds: u64,
    pub size: Size,
    pub board: Board,
    /// Words for every kernel's command line.
    pub append: String,
    pub check_isolation: bool,
    /// Instead of the size's own limit.
    pub instructions_max: Option<u64>,
}

/// A file and the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub path: PathBuf,
    pub blake3: String,
}

/// The built guests that comparisons use.
#[derive(Clone, Debug)]
pub struct Guests {
    /// Image and symbols of our kernel, where one of the kernels is that.
    pub kernel: Option<(Input, Input)>,
    /// The root file systems by the names of their guests.
    pub roots: BTreeMap<&'static str, Input>,
}

impl Guests {
    /// Those guests of the user's cache that some workloads and kernels need.
    ///
    /// # Errors
    /// If a workload is unknown, or a guest is not built.
    pub fn open(workloads: &[String], kernels: &[KernelChoice]) -> Result<Guests, Error> {
        let input = |guest: &guest::Guest, role: &str| {
            let artifact = guest.manifest.artifacts.get(role);
            let blake3 = artifact.map(|artifact| artifact.blake3.clone());
            let missing = || Error::Request(format!("guest {} has no file {role:?}", guest.manifest.name));
            guest.artifact(role).zip(blake3).map(|(path, blake3)| Input { path, blake3 }).ok_or_else(missing)
        };
        let mut roots = BTreeMap::new();
        for name in workloads {
            let name = Workload::named(name)?.guest;
            roots.insert(name, input(&guest::open(name)?, "rootfs")?);
        }
        let ours = || {
            let guest = guest::open("kernel")?;
            Ok::<_, Error>((input(&guest, "Image")?, input(&guest, "vmlinux")?))
        };
        let is_ours = |kernel: &KernelChoice| kernel.image.is_none();
        Ok(Guests { kernel: kernels.iter().any(is_ours).then(ours).transpose()?, roots })
    }
}

/// A kernel with the files it is made of.
#[derive(Clone, Debug)]
struct Kernel {
    name: String,
    words: String,
    image: Input,
    symbols: Option<Input>,
}

impl Kernel {
    fn new(choice: &KernelChoice, guests: &Guests) -> Result<Kernel, Error> {
        let given = |path: &Path| {
            let hash = || {
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(std::fs::File::open(path)?)?;
                Ok(hasher.finalize().to_hex().to_string())
            };
            // Snapshots and results name it, wherever the command is next given.
            let absolute = std::path::absolute(path).map_err(Error::file("find", path))?;
            Ok::<_, Error>(Input { path: absolute, blake3: hash().map_err(Error::file("read", path))? })
        };
        let (image, own_symbols) = match &choice.image {
            Some(image) => (given(image)?, None),
            None => {
                let (image, symbols) = guests.kernel.clone().expect("guests are opened for the kernels");
                (image, Some(symbols))
            }
        };
        let symbols = choice.symbols.as_deref().map(given).transpose()?.or(own_symbols);
        Ok(Kernel { name: choice.name.clone(), words: choice.words.clone(), image, symbols })
    }
}

/// What `plan.json` says: everything that decides the comparison, and nothing of where it was made.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub format: u32,
    /// The version of the program, and the digest of its machine's source code.
    pub program: ProgramDescription,
    pub workloads: Vec<String>,
    pub kernels: Vec<KernelDescription>,
    pub harts: Vec<usize>,
    pub seeds: u64,
    pub size: Size,
    /// BLAKE3 of the root file systems, by the names of their guests.
    pub roots: BTreeMap<&'static str, String>,
    pub append: String,
    pub board: Board,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

/// The program that made a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramDescription {
    pub version: &'static str,
    pub machine: &'static str,
}

/// A kernel in `plan.json`.
#[derive(Clone, Debug, Serialize)]
pub struct KernelDescription {
    pub name: String,
    pub words: String,
    /// BLAKE3 of the Image.
    pub image: String,
    /// BLAKE3 of the symbol file.
    pub symbols: Option<String>,
}

/// Everything that decides one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunKey {
    pub format: u32,
    pub machine: &'static str,
    pub image: String,
    pub symbols: Option<String>,
    pub root: String,
    pub command_line: String,
    pub board: Board,
    pub boot_seed: u64,
    pub seed: u64,
    pub check_isolation: bool,
    pub instructions_max: u64,
}

/// One run of a group.
#[derive(Clone, Debug)]
pub struct Run {
    pub seed: u64,
    /// The first digits of the digest of its key.
    pub id: String,
    pub key: RunKey,
    /// The name of its file in the folder of runs.
    pub file_name: String,
}

/// The runs that share a boot: they differ in their seed alone.
#[derive(Clone, Debug)]
pub struct Group {
    pub workload: String,
    pub kernel: String,
    pub harts: usize,
    /// The boot up to the region of interest.
    pub configuration: Configuration,
    pub symbols: Option<PathBuf>,
    pub instructions_max: u64,
    pub runs: Vec<Run>,
}

impl Group {
    /// What a person calls it.
    pub fn title(&self) -> String {
        format!("{} on {}, {} harts", self.workload, self.kernel, self.harts)
    }
}

/// A whole comparison.
#[derive(Clone, Debug)]
pub struct Plan {
    pub description: Description,
    /// By workload, then hart count, then kernel, in the order asked for.
    pub groups: Vec<Group>,
}

impl Plan {
    /// Checks what is asked for, and lays it out.
    ///
    /// # Errors
    /// If a name is unknown or comes twice, if a number is one that no machine or comparison can have, or if a file cannot be read.
    pub fn new(request: &Request, guests: &Guests) -> Result<Plan, Error> {
        refuse_repeated("workload", request.workloads.iter().map(String::as_str))?;
        let workloads = request.workloads.iter().map(|name| Workload::named(name)).collect::<Result<Vec<_>, _>>()?;
        let harts: Vec<String> = request.harts.iter().map(usize::to_string).collect();
        refuse_repeated("hart count", harts.iter().map(String::as_str))?;
        if let Some(wrong) = request.harts.iter().find(|harts| !(1..=64).contains(*harts)) {
            return Err(Error::Request(format!("{wrong} harts: allowed is 1 to 64")));
        }
        for (count, what) in [
            (workloads.len(), "workload"),
            (request.kernels.len(), "kernel"),
            (request.harts.len(), "hart count"),
            (request.seeds as usize, "seed"),
        ] {
            if count == 0 {
                return Err(Error::Request(format!("at least one {what} is wanted")));
            }
        }
        let kernels =
            request.kernels.iter().map(|choice| Kernel::new(choice, guests)).collect::<Result<Vec<_>, _>>()?;
        let instructions_max = request.instructions_max.unwrap_or(request.size.instructions_max());
        let mut groups = Vec::new();
        for workload in &workloads {
            for harts in &request.harts {
                for kernel in &kernels {
                    groups.push(group(request, guests, instructions_max, workload, *harts, kernel)?);
                }
            }
        }
        let describe = |kernel: &Kernel| KernelDescription {
            name: kernel.name.clone(),
            words: kernel.words.clone(),
            image: kernel.image.blake3.clone(),
            symbols: kernel.symbols.as_ref().map(|symbols| symbols.blake3.clone()),
        };
        let description = Description {
            format: FORMAT,
            program: ProgramDescription { version: env!("CARGO_PKG_VERSION"), machine: MACHINE_DIGEST },
            workloads: request.workloads.clone(),
            kernels: kernels.iter().map(describe).collect(),
            harts: request.harts.clone(),
            seeds: request.seeds,
            size: request.size,
            roots: guests.roots.iter().map(|(name, root)| (*name, root.blake3.clone())).collect(),
            append: request.append.clone(),
            board: request.board.clone(),
            check_isolation: request.check_isolation,
            instructions_max,
        };
        Ok(Plan { description, groups })
    }

    /// A name for the folder of this comparison and of no other.
    pub fn folder_name(&self) -> String {
        format!("compare-{}", &digest(&self.description)[..ID_DIGITS])
    }

    /// Runs of all groups.
    pub fn runs_count(&self) -> usize {
        self.groups.iter().map(|group| group.runs.len()).sum()
    }
}

fn group(
    request: &Request,
    guests: &Guests,
    instructions_max: u64,
    workload: &Workload,
    harts: usize,
    kernel: &Kernel,
) -> Result<Group, Error> {
    let mut board = workload.board(request.board.clone());
    board.harts.count = harts;
    board.validate().map_err(concord_machine::MachineError::from)?;
    let root = guests.roots.get(workload.guest).expect("guests are opened for the workloads");
    let fixed =
        format!("console=ttyS0 root=/dev/vda concord.run={} concord.size={}", workload.name, request.size.name());
    let words = [fixed.as_str(), &kernel.words, request.append.trim()];
    let append = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
    let run = |seed| {
        let key = RunKey {
            format: FORMAT,
            machine: MACHINE_DIGEST,
            image: kernel.image.blake3.clone(),
            symbols: kernel.symbols.as_ref().map(|symbols| symbols.blake3.clone()),
            root: root.blake3.clone(),
            command_line: append.clone(),
            board: board.clone(),
            boot_seed: BOOT_SEED,
            seed,
            check_isolation: request.check_isolation,
            instructions_max,
        };
        let id = digest(&key)[..ID_DIGITS].to_owned();
        let file_name = format!("{}.{}.{harts}.{seed}.{id}.json", workload.name, kernel.name);
        Run { seed, id, key, file_name }
    };
    Ok(Group {
        workload: workload.name.to_owned(),
        kernel: kernel.name.clone(),
        harts,
        runs: (1..=request.seeds).map(run).collect(),
        symbols: kernel.symbols.as_ref().map(|symbols| symbols.path.clone()),
        instructions_max,
        configuration: Configuration {
            board,
            seed: BOOT_SEED,
            gear: Gear::Functional,
            kernel: kernel.image.path.clone(),
            initrd: None,
            append,
            disks: vec![DiskImage { path: root.path.clone(), mode: DiskMode::Overlay }],
            net: Net::None,
            check_isolation: request.check_isolation,
        },
    })
}

/// The digest of a value's JSON, whose fields come in the order of their declaration.
pub(crate) fn digest(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).expect("plain data");
    blake3::hash(&text).to_hex().to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    pub fn guests() -> Guests {
        let input = |name: &str| Input { path: format!("/guests/{name}").into(), blake3: name.repeat(4) };
        Guests { kernel: Some((input("Image"), input("vmlinux"))), roots: [("rootfs", input("rootfs"))].into() }
    }

    pub fn request() -> Request {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Request {
            workloads: names(&["dpunish", "bonnie++"]),
            kernels: KernelChoice::choose(Some(&names(&["linux", "txlinux-cx"])), &[]).unwrap(),
            harts: vec![4, 8],
            seeds: 3,
            size: Size::Quick,
            board: Board::preset("metatm-2007").unwrap(),
            append: String::new(),
            check_isolation: false,
            instructions_max: None,
        }
    }

    fn ids(request: &Request) -> BTreeSet<String> {
        let plan = Plan::new(request, &guests()).unwrap();
        plan.groups.iter().flat_map(|group| group.runs.iter().map(|run| run.id.clone())).collect()
    }

    #[test]
    fn every_combination_is_a_group_and_every_run_has_a_name_of_its_own() {
        let plan = Plan::new(&request(), &guests()).unwrap();
        let titles: Vec<String> = plan.groups.iter().map(Group::title).collect();
        assert_eq!(titles[..2], ["dpunish on linux, 4 harts", "dpunish on txlinux-cx, 4 harts"]);
        assert_eq!((titles.len(), plan.runs_count(), ids(&request()).len()), (8, 24, 24));
        let first = &plan.groups[0];
        assert_eq!(
            first.configuration.append,
            "console=ttyS0 root=/dev/vda concord.run=dpunish concord.size=quick cx=off"
        );
        assert_eq!(first.runs[2].seed, 3);
        assert_eq!(first.runs[2].file_name, format!("dpunish.linux.4.3.{}.json", first.runs[2].id));
        assert_eq!(plan.groups[0].configuration.board.disk.latency_cycles, 5_500_000);
        assert_eq!(plan.groups[7].configuration.board.disk.latency_cycles, 0);
    }

    /// A run is named by what decides it: anything that does changes every name, and nothing else does.
    #[test]
    fn what_decides_a_run_decides_its_name() {
        let base = ids(&request());
        let changes: [&dyn Fn(&mut Request); 5] = [
            &|request| request.append = "quiet".to_owned(),
            &|request| request.size = Size::Tiny,
            &|request| request.check_isolation = true,
            &|request| request.instructions_max = Some(7),
            &|request| request.board.cache.memory_latency_cycles += 1,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut other = request();
            change(&mut other);
            assert!(base.is_disjoint(&ids(&other)), "{index}");
        }
        let mut other_guests = guests();
        other_guests.roots.get_mut("rootfs").unwrap().blake3 = "other".to_owned();
        let other = Plan::new(&request(), &other_guests).unwrap();
        assert!(other.groups.iter().flat_map(|group| &group.runs).all(|run| !base.contains(&run.id)));
        // More seeds, fewer workloads and another place of the same files leave a run what it is.
        let mut other = request();
        (other.seeds, other.workloads) = (5, vec!["dpunish".to_owned()]);
        let mut moved = guests();
        moved.roots.get_mut("rootfs").unwrap().path = "/elsewhere".into();
        let other = Plan::new(&other, &moved).unwrap();
        assert!(other.groups[3].runs[..3].iter().all(|run| base.contains(&run.id)));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let refused = |change: &dyn Fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            Plan::new(&request, &guests()).unwrap_err().to_string()
        };
        let lines = [
            refused(&|request| request.workloads.push("dbench".to_owned())),
            refused(&|request| request.workloads.push("dpunish".to_owned())),
            refused(&|request| request.workloads.clear()),
            refused(&|request| request.harts.push(0)),
            refused(&|request| request.harts.push(65)),
            refused(&|request| request.harts.push(4)),
            refused(&|request| request.seeds = 0),
            refused(&|request| request.kernels[0].image = Some("/nonexistent/Image".into())),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        no workload is called "dbench"; there are pmake, bonnie++, mab, configure, find, dpunish, files
        workload "dpunish" is named twice
        at least one workload is wanted
        0 harts: allowed is 1 to 64
        65 harts: allowed is 1 to 64
        hart count "4" is named twice
        at least one seed is wanted
        cannot read /nonexistent/Image: No such file or directory (os error 2)
        "#);
    }

    #[test]
    fn equal_requests_have_equal_folders() {
        let name = |request: &Request| Plan::new(request, &guests()).unwrap().folder_name();
        let mut other = request();
        assert_eq!(name(&request()), name(&other));
        other.seeds = 4;
        assert_ne!(name(&request()), name(&other));
    }
}
