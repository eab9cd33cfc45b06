//! Declarations of experiments: files of `experiments/comparisons`, one for each set of figures that is stated somewhere.

use super::Error;
use super::coordinate::Parameter;
use super::files::read_text;
use super::request::{Experiment, SystemOptions};
use super::variant::Variant;
use crate::system::{self, System};
use concord_machine::board::Manager;
use concord_machine::{Board, MachineError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most that is read of a file.
const BYTES_MAX: u64 = 1 << 20;

/// One value of an axis, or a list of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn values(&self) -> &[String] {
        match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        }
    }
}

/// The content of a file; the options of the command that it does not name have their defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Content {
    #[serde(default = "default_system")]
    system: String,
    /// All of the system's where none is named.
    #[serde(default, alias = "workloads", alias = "tests")]
    cases: Option<Vec<String>>,
    /// The first is what the others are compared with. Names that the system does not have are those of `definitions`.
    #[serde(default, alias = "kernels", alias = "locks", alias = "libraries")]
    variants: Option<Vec<String>>,
    /// Words by the variant's name.
    #[serde(default)]
    definitions: BTreeMap<String, String>,
    harts: Vec<usize>,
    seeds: u64,
    #[serde(default)]
    size: Option<OneOrMany>,
    #[serde(default)]
    board: Option<OneOrMany>,
    /// Words of command lines by their names, `cx.retries = ["4", "16"]`: each value is a cell.
    #[serde(default)]
    parameters: toml::Table,
    #[serde(default)]
    contention_manager: Option<Manager>,
    #[serde(default)]
    append: String,
    #[serde(default)]
    check_isolation: bool,
    /// What only the system knows.
    #[serde(default)]
    options: SystemOptions,
}

/// A declared experiment.
#[derive(Clone, Debug)]
pub struct Declaration {
    path: PathBuf,
    content: Content,
}

fn default_system() -> String {
    "linux".to_owned()
}

/// The board of experiments that name none.
const DEFAULT_BOARD: &str = "metatm-2007";

/// Parameters of a table, in which a dot in a name makes a table of its own.
fn parameters(table: &toml::Table, prefix: &str) -> Result<Vec<Parameter>, Error> {
    let mut all = Vec::new();
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        let wrong = || Error::Request(format!("parameter {name:?}: a list of texts is wanted"));
        match value {
            toml::Value::Table(table) => all.extend(parameters(table, &format!("{name}."))?),
            toml::Value::Array(values) => {
                let texts = values.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong));
                all.push(Parameter { values: texts.collect::<Result<_, _>>()?, name });
            }
            _ => return Err(wrong()),
        }
    }
    Ok(all)
}

impl Declaration {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn from_file(path: &Path) -> Result<Declaration, Error> {
        let text = read_text(path, BYTES_MAX)?;
        let content = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::Request(format!("{}:{line}: {}", path.display(), error.message().replace('\n', " ")))
        })?;
        Ok(Declaration { path: path.to_owned(), content })
    }

    /// The system, and what the file asks of it.
    ///
    /// # Errors
    /// If there is no such system, board or variant, or the system does not have what is asked of it.
    pub fn experiment(&self) -> Result<(&'static dyn System, Experiment), Error> {
        let experiment = self.content.experiment();
        experiment.map_err(|error| Error::Request(format!("{}: {error}", self.path.display())))
    }
}

impl Content {
    fn experiment(&self) -> Result<(&'static dyn System, Experiment), Error> {
        let system = system::named(&self.system)?;
        let boards = match &self.board {
            None => vec![Board::preset(DEFAULT_BOARD)],
            Some(names) => names.values().iter().map(|name| Board::preset(name)).collect(),
        };
        let mut boards = boards.into_iter().collect::<Result<Vec<_>, _>>().map_err(MachineError::from)?;
        for board in &mut boards {
            board.transactions.manager = self.contention_manager.unwrap_or(board.transactions.manager);
        }
        let definitions: Vec<String> = self.definitions.iter().map(|(name, words)| format!("{name}={words}")).collect();
        let experiment = Experiment {
            cases: self.cases.clone().unwrap_or_else(|| system.cases(&self.options)),
            variants: Variant::choose(system, &self.options, self.variants.as_deref(), &definitions)?,
            sizes: self.size.as_ref().map_or_else(Vec::new, |size| size.values().to_vec()),
            harts: self.harts.clone(),
            boards,
            parameters: parameters(&self.parameters, "")?,
            seeds: self.seeds,
            append: self.append.clone(),
            check_isolation: self.check_isolation,
            instructions_max: None,
            options: self.options.clone(),
        };
        experiment.check(system)?;
        Ok((system, experiment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::files::{Files, Input};
    use crate::experiment::plan::Plan;

    /// Every guest file that an experiment needs, with an invented digest.
    fn files(system: &dyn System, experiment: &Experiment) -> Files {
        system.guest_files(experiment).unwrap().into_iter().fold(Files::default(), |files, file| {
            let input =
                Input { path: format!("/guests/{}/{}", file.guest, file.role).into(), blake3: file.role.clone() };
            files.with(file, input)
        })
    }

    #[test]
    fn every_declaration_of_ours_can_be_laid_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/comparisons");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let (system, experiment) = Declaration::from_file(&path).unwrap().experiment().unwrap();
            let plan = Plan::new(system, &experiment, &files(system, &experiment)).unwrap();
            assert!(plan.runs_count() > 0, "{}", path.display());
            count += 1;
        }
        assert!(count >= 3);
    }

    fn written(text: &str) -> Result<(&'static dyn System, Experiment), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, text).unwrap();
        let experiment = Declaration::from_file(&path).and_then(|declaration| declaration.experiment());
        experiment.map_err(|error| error.to_string().replace(&folder.path().display().to_string(), "DIR"))
    }

    #[test]
    fn every_axis_may_have_several_values() {
        let (system, experiment) = written(
            r#"
            workloads = ["find"]
            kernels = ["linux", "txlinux-cx"]
            harts = [4, 8]
            seeds = 2
            size = ["tiny", "quick"]
            board = ["metatm-2007", "server-2024"]
            [parameters]
            cx.retries = ["4", "16"]
            quiet = ["1"]
            "#,
        )
        .unwrap();
        let plan = Plan::new(system, &experiment, &files(system, &experiment)).unwrap();
        assert_eq!((plan.groups.len(), plan.runs_count()), (2 * 2 * 2 * 2 * 2, 64));
        let last = plan.groups.last().unwrap();
        assert_eq!(last.title, "find on txlinux-cx, 8 harts, size quick, board server-2024, cx.retries=16");
        assert!(last.cells[0].start.configuration.append.ends_with("concord.size=quick cx=on cx.retries=16 quiet=1"));
        assert_eq!(last.baseline, plan.groups.len() - 2);
    }

    #[test]
    fn a_declaration_names_any_system() {
        let text = "system = \"locks\"\nlocks = [\"unfair\", \"byte\"]\ntests = [\"loop\"]\nharts = [4]\nseeds = 1\n";
        let (system, experiment) = written(&format!("{text}[options]\nwork = \"10\"\n")).unwrap();
        let plan = Plan::new(system, &experiment, &files(system, &experiment)).unwrap();
        assert_eq!(plan.groups[1].title, "loop of byte, 4 harts");
        assert!(plan.groups[1].cells[0].key.command_line.ends_with("iterations=10"));
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let refused = |text: &str| written(text).unwrap_err();
        let fine = "workloads = [\"find\"]\nkernels = [\"linux\"]\nharts = [8]\nseeds = 1\nsize = \"tiny\"\n";
        let lines = [
            refused(&fine.replace("tiny", "huge")),
            refused(&fine.replace("size = \"tiny\"\n", "")),
            refused(&format!("{fine}seed = 1\n")),
            refused(&fine.replace("harts = [8]\n", "")),
            refused(&format!("{fine}board = \"pdp-11\"\n")),
            refused(&fine.replace("\"linux\"", "\"bsd\"")),
            refused(&format!("{fine}system = \"bsd\"\n")),
            refused(&format!("{fine}[options]\nwork = \"1\"\n")),
            refused(&format!("{fine}[parameters]\ncx.retries = 4\n")),
            refused(&format!("{fine}[parameters]\ncx.retries = [\"4 5\"]\n")),
        ];
        insta::assert_snapshot!(lines.join("\n"));
        assert!(Declaration::from_file(Path::new("/nonexistent")).is_err());
        let error = Declaration::from_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: longer than the 1 MiB that are read");
    }
}
