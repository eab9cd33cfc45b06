//! The library of locks and transactions as a module: for our kernel on the machine, and for Debian's amd64 kernel in another simulator. It tests
//! itself while it loads, with threads and interrupts.

mod machine_run;

use concord_abi::exit::Exit;
use concord_lab::guest::{self, Guest, progress};
use concord_machine::{Board, Configuration, Gear, Net};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const MODULES: [&str; 2] = ["concord-tm-2pl.ko", "concord-tm-tl2.ko"];

/// Far more than any run here takes that ends.
const CYCLES_MAX: u64 = 20_000_000_000;
/// A broken variant often hangs. One that does not is through with the first module by then.
const BROKEN_CYCLES_MAX: u64 = 600_000_000;
const SECONDS_MAX: &str = "240";

/// A guest, built when it is not in the cache.
fn built(name: &str) -> Guest {
    let built = guest::build(&[name.to_owned()], &guest::Options::default(), &progress::Console::new());
    built.unwrap_or_else(|error| panic!("guest {name}: {error}")).remove(0)
}

fn artifact(guest: &Guest, role: &str) -> PathBuf {
    guest.artifact(role).unwrap_or_else(|| panic!("guest {} has no {role}", guest.manifest.name))
}

/// Our kernel with an initial RAM disk: how it ends, and what it prints.
fn machine(initrd: &Path, harts: usize, gear: Gear, seed: u64, cycles_max: u64) -> (Exit, String) {
    let mut board = Board::preset("metatm-2007").unwrap();
    board.harts.count = harts;
    let configuration = Configuration {
        board,
        seed,
        gear,
        kernel: artifact(&built("kernel"), "Image"),
        initrd: Some(initrd.to_owned()),
        append: format!("console=ttyS0 panic=-1 -- test_iterations=20 test_seed={seed}"),
        disks: Vec::new(),
        net: Net::None,
        check_isolation: false,
    };
    let (outcome, printed) = machine_run::to_the_end(configuration, cycles_max);
    (outcome.end.exit, printed)
}

/// Every module was loaded, tested and unloaded.
#[track_caller]
fn all_passed(printed: &str) {
    for module in MODULES {
        assert!(printed.contains(&format!("init: {module}: passed")), "{module}:\n{printed}");
        let name = module.trim_end_matches(".ko").replace('-', "_");
        let is_tested = |line: &str| line.contains(&format!("{name}: ")) && line.ends_with("passed every test");
        assert!(printed.lines().any(is_tested), "{module} was not tested:\n{printed}");
    }
    assert!(printed.contains("init: done") && !printed.contains("BUG"), "{printed}");
}

#[test]
fn the_module_passes_its_test_in_our_kernel() {
    let initrd = artifact(&built("tm-module"), "initrd");
    for (harts, gear, seed) in [(4, Gear::Functional, 1), (8, Gear::Functional, 2), (2, Gear::Timed, 3)] {
        let (exit, printed) = machine(&initrd, harts, gear, seed, CYCLES_MAX);
        all_passed(&printed);
        assert!(printed.contains("hardware transactions: xmetatm"), "{printed}");
        assert_eq!(exit, Exit::PoweredOff, "{printed}");
    }
}

#[test]
fn the_module_passes_its_test_in_debians_kernel() {
    let mut simulator = Command::new("timeout");
    simulator.args([SECONDS_MAX, "qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"]);
    simulator.args(["-smp", "4", "-m", "512", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    simulator.arg("-kernel").arg(artifact(&built("stock-amd64"), "vmlinuz"));
    simulator.arg("-initrd").arg(artifact(&built("tm-module-amd64"), "initrd"));
    simulator.args(["-append", "console=ttyS0 panic=-1 -- test_iterations=10 test_misuse=1"]);
    let output = simulator.stdin(Stdio::null()).output().expect("it starts: `concord doctor` says what is missing");
    let printed = String::from_utf8_lossy(&output.stdout);
    all_passed(&printed);
    // Mistakes of callers warn, once for each place, and nothing else.
    for text in
        ["misuse: passed", "tm: an irrevocable transaction was cancelled", "tm: an irrevocable transaction was aborted"]
    {
        assert_eq!(printed.matches(text).count(), MODULES.len(), "{text}:\n{printed}");
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The words of a text that could be C identifiers.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The public headers' names, but for those with which a host enters handlers and ends contexts.
fn declared_names(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.append(&mut declared_names(&path));
        } else if !path.ends_with("tm/interrupt.h") && !path.ends_with("tm/arch/common.h") {
            names.extend(identifiers(&fs::read_to_string(&path).unwrap()).map(str::to_owned));
        }
    }
    names
}

/// A module that uses the library must find all that its headers declare.
#[test]
fn what_the_headers_declare_is_exported() {
    let declared = declared_names(&Path::new(REPOSITORY).join("tm/include"));
    for guest in ["tm-module", "tm-module-amd64"] {
        for role in ["module-2pl", "module-tl2"] {
            let bytes = fs::read(artifact(&built(guest), role)).unwrap();
            let file = object::File::parse(&*bytes).unwrap();
            let defined: BTreeSet<&str> = file
                .symbols()
                .filter(|symbol| symbol.is_definition() && symbol.is_global())
                .filter_map(|symbol| symbol.name().ok())
                .collect();
            let exported: BTreeSet<&str> =
                file.symbols().filter_map(|symbol| symbol.name().ok()?.strip_prefix("__ksymtab_")).collect();
            let missing: Vec<_> =
                defined.iter().filter(|name| declared.contains(**name) && !exported.contains(**name)).collect();
            assert!(missing.is_empty() && exported.len() > 40, "{guest}, {role}: {missing:?} are not exported");
        }
    }
}

/// The variants that this test is to find: `Caught-by: linux`.
fn broken_variants() -> Vec<PathBuf> {
    let patches = fs::read_dir(Path::new(REPOSITORY).join("tm/check/broken")).unwrap();
    let is_ours = |patch: &PathBuf| fs::read_to_string(patch).is_ok_and(|text| text.contains("\nCaught-by: linux"));
    patches.map(|entry| entry.unwrap().path()).filter(is_ours).collect()
}

/// In an empty folder: the module with two-phase locking of the repository's sources and a patch, and an initial RAM disk with it. What
/// comes later in one replaces what came before.
const BUILD_BROKEN: &str = r#"
mkdir tm workloads
for part in arch htm include lock port stm; do cp -r "$REPOSITORY/tm/$part" tm; done
cp -r "$REPOSITORY/workloads/include" workloads
patch --silent --strip=1 --input "$PATCH"
make --directory=tm/port/linux STM=2pl SELF_TEST=y ARCH=riscv CROSS_COMPILE=riscv64-linux-gnu- KERNEL="$HEADERS" BUILD="$PWD/modules"
echo modules/concord-tm-2pl.ko | cpio --quiet --create --format newc | gzip | cat "$INITRD" - >initrd
"#;

#[test]
fn broken_variants_do_not_load() {
    let variants = broken_variants();
    assert!(!variants.is_empty(), "the patches are missing");
    let headers = built("kernel-headers").directory.join("headers");
    let initrd = artifact(&built("tm-module"), "initrd");
    for patch in variants {
        let folder = tempfile::tempdir().unwrap();
        let mut build = Command::new("sh");
        build.args(["-e", "-c", BUILD_BROKEN]).current_dir(&folder).env("REPOSITORY", REPOSITORY);
        let output = build.env("PATCH", &patch).env("HEADERS", &headers).env("INITRD", &initrd).output().unwrap();
        assert!(output.status.success(), "{}: {}", patch.display(), String::from_utf8_lossy(&output.stderr));
        let (_, printed) = machine(&folder.path().join("initrd"), 4, Gear::Functional, 1, BROKEN_CYCLES_MAX);
        assert!(!printed.contains("init: concord-tm-2pl.ko: passed"), "{}:\n{printed}", patch.display());
        assert!(printed.contains("concord_tm_2pl: byte: passed"), "{}:\n{printed}", patch.display());
    }
}
