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

static RECIPES: [&dyn Recipe; 10] = [
    &kernel::TXLINUX,
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
}

/// Every guest there is, and whether it is built. Does not use the network and builds nothing.
pub fn list() -> Result<Vec<Listed>, Error> {
    let cache = Cache::of_user()?;
    let look = |recipe: &&dyn Recipe| {
        let built = find(*recipe, &cache)?;
        Ok(Listed { name: recipe.name(), description: recipe.description(), built })
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
            let runner = Runner::new(log_path(&cache, step.name())?, progress)?;
            let kitchen = Kitchen { cache: &cache, runner: &runner, index, jobs: options.jobs.max(1) };
            let guest = build_one(step, kitchen)?;
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

/// Takes a guest from the cache, or makes it when it is not there.
fn build_one(recipe: &dyn Recipe, kitchen: Kitchen) -> Result<Guest, Error> {
    let started = Instant::now();
    let name = recipe.name();
    let inputs = recipe.inputs(&kitchen)?;
    // Between digest and download the index must not change.
    let kitchen = Kitchen { index: Index::WhenMissing, ..kitchen };
    let progress = kitchen.runner.progress();
    if let Some(guest) = kitchen.cache.find(name, &inputs.digest())? {
        progress.finish(name, &guest.directory, None);
        return Ok(guest);
    }
    progress.begin(name, recipe.steps_count());
    let staging = kitchen.cache.stage(name)?;
    let artifacts = recipe.cook(&kitchen, &staging)?;
    let guest = staging.complete(kitchen.cache, name, &inputs, &artifacts)?;
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

        fn cook(&self, _: &Kitchen, _: &Staging) -> Result<Artifacts, Error> {
            Ok(Artifacts::new())
        }
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
            "no guest is called \"kernle\"; there are kernel, stock, modules, rootfs, benchmarks, tm, \
             kernel-headers, stock-amd64, tm-module, tm-module-amd64"
        );
        assert_eq!(
            open("../x").unwrap_err().to_string(),
            "no guest is called \"../x\"; there are kernel, stock, modules, rootfs, benchmarks, tm, \
             kernel-headers, stock-amd64, tm-module, tm-module-amd64"
        );
    }
}
