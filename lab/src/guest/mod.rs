//! Builds the guests: kernels, initial RAM disks and root file systems that the machine boots.
//!
//! Each guest is built once, into a cache named after a digest of everything it was made of, so that a run's guest can be told from
//! any other. [`list`] says what there is, [`build`] makes it, [`open`] finds what has been made.

mod apt;
mod cache;
mod cpio;
mod digest;
mod elf;
mod error;
mod ext4;
mod files;
mod kernel;
mod kernel_files;
mod kernel_headers;
mod module_disk;
mod modules;
mod own_files;
mod process;
pub mod progress;
mod rootfs;
mod sources;
mod stock;
mod stock_amd64;
mod symbols;
mod texts;
mod tm;
mod tm_module;

pub(crate) use apt::{AMD64_KEY, SUITE_KEY};
pub use cache::{Artifact, Cache, Guest, Manifest};
pub use error::Error;
pub(crate) use process::system_path;
pub use symbols::symbols_of;

use apt::Archive;
use cache::Staging;
use digest::Inputs;
use process::Runner;
use progress::{Progress, Silent};
use std::path::PathBuf;
use std::time::Instant;

/// When the index of Debian's packages is fetched. It decides which versions the guests are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    /// Take the one that is there, or do without.
    Cached,
    /// Fetch it when there is none.
    WhenMissing,
    /// Fetch it.
    Newest,
}

/// What a recipe works with.
struct Kitchen<'a> {
    cache: &'a Cache,
    runner: &'a Runner<'a>,
    index: Index,
    jobs: usize,
}

impl Kitchen<'_> {
    fn archive(&self) -> Result<Archive<'_>, Error> {
        self.archive_of(&apt::RISCV64)
    }

    fn archive_of(&self, release: &'static apt::Release) -> Result<Archive<'_>, Error> {
        Archive::open(release, self.cache, self.runner, self.index)
    }

    fn step(&self, text: &str) {
        self.runner.progress().step(text);
    }

    /// The built guest of another recipe, one that this recipe [needs](Recipe::needs).
    fn guest(&self, recipe: &dyn Recipe) -> Result<Guest, Error> {
        let digest = recipe.inputs(self)?.digest();
        self.cache.find(recipe.name(), &digest)?.ok_or(Error::NotBuilt { name: recipe.name() })
    }
}

/// The files of a guest: their roles, and their paths relative to the guest's folder.
type Artifacts = Vec<(&'static str, String)>;

/// How one guest is made.
trait Recipe: Sync {
    fn name(&self) -> &'static str;
    fn description(&self) -> &'static str;
    /// The number of times [`Recipe::cook`] calls [`Kitchen::step`].
    fn steps_count(&self) -> usize;
    /// The guests that this one is made of, which are built first.
    fn needs(&self) -> Vec<&'static dyn Recipe> {
        Vec::new()
    }
    /// Everything that decides what the guest will be.
    fn inputs(&self, kitchen: &Kitchen) -> Result<Inputs, Error>;
    /// Makes the guest in `staging.out()`.
    fn cook(&self, kitchen: &Kitchen, staging: &Staging) -> Result<Artifacts, Error>;
}

static RECIPES: [&dyn Recipe; 11] = [
    &kernel::TXLINUX,
    &kernel::TICKET,
    &stock::Stock,
    &module_disk::TXLINUX_MODULES,
    &rootfs::ROOTFS,
    &rootfs::BENCHMARKS_ROOTFS,
    &tm::Tm,
    &kernel_headers::TXLINUX_HEADERS,
    &stock_amd64::StockAmd64,
    &tm_module::RISCV64,
    &tm_module::AMD64,
];

/// How guests are to be built.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fetch the package index even when there is one: newer packages make new guests.
    pub refresh: bool,
    /// Compilers to run at once.
    pub jobs: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { refresh: false, jobs: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// A guest that can be had.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// The built guest; `None` when `concord build` would have to make it.
    pub built: Option<Guest>,
    /// What is wrong with a guest that was built and is damaged.
    pub damage: Option<String>,
}

/// Every guest there is, and whether it is built. Does not use the network and builds nothing.
pub fn list() -> Result<Vec<Listed>, Error> {
    let cache = Cache::of_user()?;
    let look = |recipe: &&dyn Recipe| {
        let (built, damage) = match find(*recipe, &cache) {
            Ok(built) => (built, None),
            Err(error @ Error::Damaged { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(Listed { name: recipe.name(), description: recipe.description(), built, damage })
    };
    RECIPES.iter().map(look).collect()
}

/// The built guest called `name`; an error when there is no such guest or it is not built. Does not use the network.
pub fn open(name: &str) -> Result<Guest, Error> {
    let recipe = recipe(name)?;
    find(recipe, &Cache::of_user()?)?.ok_or(Error::NotBuilt { name: recipe.name() })
}

/// Builds the guests called `names`, or all of them when there is no name, and returns them in that order. A guest that is in the
/// cache is taken from there.
///
/// # Errors
/// Names are checked before anything is built. When a build fails nothing of it stays but its log.
pub fn build(names: &[String], options: &Options, progress: &dyn Progress) -> Result<Vec<Guest>, Error> {
    let wanted: Vec<&dyn Recipe> = match names {
        [] => RECIPES.to_vec(),
        names => names.iter().map(|name| recipe(name)).collect::<Result<_, _>>()?,
    };
    let cache = Cache::of_user()?;
    let mut index = if options.refresh { Index::Newest } else { Index::WhenMissing };
    let mut guests = Vec::new();
    for recipe in wanted {
        for step in with_needs(recipe) {
            let guest = build_one(step, &cache, index, options.jobs.max(1), progress)?;
            // One fetch serves every guest of this call.
            index = Index::WhenMissing;
            if step.name() == recipe.name() {
                guests.push(guest);
            }
        }
    }
    Ok(guests)
}

/// A recipe after those whose guests it is made of, each once.
fn with_needs(recipe: &'static dyn Recipe) -> Vec<&'static dyn Recipe> {
    let mut steps: Vec<&'static dyn Recipe> = Vec::new();
    for needed in recipe.needs().into_iter().flat_map(with_needs).chain([recipe]) {
        if steps.iter().all(|step| step.name() != needed.name()) {
            steps.push(needed);
        }
    }
    steps
}

/// Takes a guest from the cache, or makes it when it is not there or damaged. Waits while another process makes it.
fn build_one(
    recipe: &dyn Recipe,
    cache: &Cache,
    index: Index,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Guest, Error> {
    let name = recipe.name();
    let runner = Runner::new(log_path(cache, &format!("{name}-inputs"))?, progress)?;
    let inputs = recipe.inputs(&Kitchen { cache, runner: &runner, index, jobs })?;
    let digest = inputs.digest();
    let take = || {
        let found = cache.find(name, &digest);
        if let Ok(Some(guest)) = &found {
            progress.finish(name, &guest.directory, None);
        }
        found
    };
    if let Ok(Some(guest)) = take() {
        return Ok(guest);
    }
    let _lock =
        cache.lock(name, || progress.note(&format!("{name}: another build is at work on it; waiting for it")))?;
    let started = Instant::now();
    match take() {
        Ok(Some(guest)) => return Ok(guest),
        Ok(None) => {}
        Err(Error::Damaged { path, reason, .. }) => {
            progress.note(&format!("{name}: {} is damaged ({reason}) and is built again", path.display()));
            cache.remove(name, &digest)?;
        }
        Err(error) => return Err(error),
    }
    progress.begin(name, recipe.steps_count());
    let runner = Runner::new(log_path(cache, name)?, progress)?;
    // Between digest and download the index must not change.
    let kitchen = Kitchen { cache, runner: &runner, index: Index::WhenMissing, jobs };
    let staging = cache.stage(name)?;
    let artifacts = recipe.cook(&kitchen, &staging)?;
    let guest = staging.complete(cache, name, &inputs, &artifacts)?;
    progress.finish(name, &guest.directory, Some(started.elapsed().as_secs_f64()));
    Ok(guest)
}

fn recipe(name: &str) -> Result<&'static dyn Recipe, Error> {
    RECIPES.iter().copied().find(|recipe| recipe.name() == name).ok_or_else(|| {
        let known = RECIPES.iter().map(|recipe| recipe.name()).collect::<Vec<_>>().join(", ");
        Error::UnknownGuest { name: name.to_owned(), known }
    })
}

fn find(recipe: &dyn Recipe, cache: &Cache) -> Result<Option<Guest>, Error> {
    let runner = Runner::new(log_path(cache, "list")?, &Silent)?;
    let kitchen = Kitchen { cache, runner: &runner, index: Index::Cached, jobs: 1 };
    match recipe.inputs(&kitchen) {
        Ok(inputs) => cache.find(recipe.name(), &inputs.digest()),
        // Without the tools or the index nobody can say which guest would be the current one, and none was built here.
        Err(Error::NoIndex | Error::NoKey { .. } | Error::Start { .. } | Error::MissingInput { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn log_path(cache: &Cache, name: &str) -> Result<PathBuf, Error> {
    Ok(cache.folder("log")?.join(format!("{name}.log")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recipe that only says what it needs.
    struct Dish(&'static str, &'static [&'static dyn Recipe]);

    /// Keeps the lines.
    #[derive(Default)]
    struct Notes(std::sync::Mutex<Vec<String>>);

    impl Progress for Notes {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }

        fn finish(&self, guest: &str, _: &std::path::Path, seconds: Option<f64>) {
            let how = if seconds.is_some() { "built" } else { "taken" };
            self.0.lock().unwrap().push(format!("{guest} {how}"));
        }
    }

    impl Recipe for Dish {
        fn name(&self) -> &'static str {
            self.0
        }

        fn description(&self) -> &'static str {
            ""
        }

        fn steps_count(&self) -> usize {
            0
        }

        fn needs(&self) -> Vec<&'static dyn Recipe> {
            self.1.to_vec()
        }

        fn inputs(&self, _: &Kitchen) -> Result<Inputs, Error> {
            Ok(Inputs::default())
        }

        fn cook(&self, _: &Kitchen, staging: &Staging) -> Result<Artifacts, Error> {
            std::fs::write(staging.out().join("Image"), self.0).unwrap();
            Ok(vec![("Image", String::from("Image"))])
        }
    }

    #[test]
    fn a_damaged_guest_is_said_to_be_and_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let notes = Notes::default();
        let build = || build_one(&Dish("toy", &[]), &cache, Index::Cached, 1, &notes).unwrap();
        let image = build().artifact("Image").unwrap();
        build();
        std::fs::write(&image, b"damage").unwrap();
        build();
        assert_eq!(std::fs::read(&image).unwrap(), b"toy");
        let notes = notes.0.lock().unwrap();
        assert_eq!([&notes[0], &notes[1], &notes[3]], ["toy built", "toy taken", "toy built"], "{notes:?}");
        assert!(notes[2].contains("Image has 6 bytes, not 3") && notes[2].ends_with("is built again"), "{notes:?}");
    }

    #[test]
    fn two_builds_at_once_make_a_guest_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let notes = Notes::default();
        let lock = cache.lock("toy", || {}).unwrap();
        let build = || build_one(&Dish("toy", &[]), &cache, Index::Cached, 1, &notes).unwrap();
        std::thread::scope(|scope| {
            let builds = [scope.spawn(build), scope.spawn(build)];
            // Both have said that they wait.
            while notes.0.lock().unwrap().len() < 2 {
                std::thread::yield_now();
            }
            drop(lock);
            let [first, second] = builds.map(|build| build.join().unwrap());
            assert_eq!(first, second);
        });
        let mut notes = notes.0.into_inner().unwrap();
        notes[2..].sort();
        assert_eq!(notes[2..], ["toy built", "toy taken"], "{notes:?}");
    }

    #[test]
    fn a_guest_comes_once_and_after_all_that_it_needs() {
        static KERNEL: Dish = Dish("kernel", &[]);
        static HEADERS: Dish = Dish("headers", &[&KERNEL]);
        static MODULES: Dish = Dish("modules", &[&KERNEL]);
        static DISK: Dish = Dish("disk", &[&MODULES, &HEADERS]);
        let names: Vec<_> = with_needs(&DISK).iter().map(|recipe| recipe.name()).collect();
        assert_eq!(names, ["kernel", "modules", "headers", "disk"]);
    }

    #[test]
    fn an_unknown_guest_is_refused_before_anything_is_built() {
        let names = [String::from("kernel"), String::from("kernle")];
        let error = build(&names, &Options::default(), &Silent).unwrap_err().to_string();
        assert_eq!(
            error,
            "no guest is called \"kernle\"; there are kernel, kernel-ticket, stock, modules, rootfs, benchmarks, tm, \
             kernel-headers, stock-amd64, tm-module, tm-module-amd64"
        );
        assert_eq!(
            open("../x").unwrap_err().to_string(),
            "no guest is called \"../x\"; there are kernel, kernel-ticket, stock, modules, rootfs, benchmarks, tm, \
             kernel-headers, stock-amd64, tm-module, tm-module-amd64"
        );
    }
}
