//! The output folder of an experiment: `plan.json`, a file in `runs/` for each finished run, and the reports.
//!
//! Files appear whole or not at all, and none holds anything that differs from one making of it to the next: not the time that a
//! run took on the host. A run's file ends with the digest of everything before, so that an edited file is found out.

use super::Error;
use super::executor::Folders;
use super::seal;
use concord_machine::output::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const PLAN: &str = "plan.json";
/// The folder of runs, as links of reports name it.
pub const RUNS: &str = "runs";
/// Folders of boots are named after the process that writes them.
const BOOTS_PREFIX: &str = ".boots-";

/// The output folder, found to be this experiment's.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The file of a run, which says which one it is.
pub trait Identified: DeserializeOwned {
    /// The first digits of the digest of what decides the run.
    fn id(&self) -> &str;
}

/// What there is of a run.
#[derive(Debug)]
pub enum Kept<F> {
    Finished(Box<F>),
    Missing,
    /// A file that does not hold the whole run, and why.
    Damaged(String),
}

impl Store {
    /// Gives a folder to the experiment of this description, or goes on in the experiment's own.
    ///
    /// # Errors
    /// If the folder has other files, is another experiment's, or cannot be written to.
    pub fn open(folder: &Path, description: &impl Serialize) -> Result<Store, Error> {
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        let path = folder.join(PLAN);
        let description = serde_json::to_value(description).expect("plain data");
        if let Some(text) = read_if_there(&path)? {
            let other: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
            if let Some(difference) = difference(&other, &description) {
                return Err(Error::OtherComparison { folder: folder.to_owned(), difference });
            }
        } else if entries(folder)?.iter().any(|entry| !is_partial(entry)) {
            return Err(Error::ForeignFolder { folder: folder.to_owned() });
        }
        // Written even where it is there: a folder that cannot be written to is found before hours of runs, not after.
        write_atomically(&path, &pretty(&description))?;
        let runs = folder.join(RUNS);
        fs::create_dir_all(&runs).map_err(Error::file("create", &runs))?;
        let store = Store { folder: folder.to_owned() };
        store.sweep()?;
        Ok(store)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, file_name: &str) -> PathBuf {
        self.folder.join(RUNS).join(file_name)
    }

    /// Looks for the file of the run with this id.
    ///
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn load<F: Identified>(&self, file_name: &str, id: &str) -> Result<Kept<F>, Error> {
        let Some(text) = read_if_there(&self.path(file_name))? else { return Ok(Kept::Missing) };
        let content = match seal::opened(&text) {
            Ok(content) => content,
            Err(why) => return Ok(Kept::Damaged(why.to_owned())),
        };
        match serde_json::from_slice::<F>(&content) {
            Ok(file) if file.id() == id => Ok(Kept::Finished(Box::new(file))),
            Ok(file) => Ok(Kept::Damaged(format!("it says that it is run {:?}", file.id()))),
            Err(error) => Ok(Kept::Damaged(error.to_string())),
        }
    }

    /// The folders for an executor.
    pub fn folders(&self, boots: &Boots) -> Folders {
        Folders { boots: boots.path.clone(), runs: self.folder.join(RUNS) }
    }

    /// A folder for the snapshots of this process. Whoever finds it left behind removes it.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn boots(&self) -> Result<Boots, Error> {
        let path = self.folder.join(format!("{BOOTS_PREFIX}{}", std::process::id()));
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        Ok(Boots { path })
    }

    /// Writes a file of the report.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        write_atomically(&path, content)?;
        Ok(path)
    }

    /// Removes what processes that are gone left half done.
    fn sweep(&self) -> Result<(), Error> {
        for folder in [self.folder.clone(), self.folder.join(RUNS)] {
            for path in entries(&folder)?.into_iter().filter(|path| is_partial(path)) {
                // `.boots-PID`, or `.NAME.PID.ATTEMPT.partial` of an atomic file.
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let process = match name.strip_prefix(BOOTS_PREFIX) {
                    Some(process) => Some(process),
                    None => name.rsplit('.').nth(2),
                };
                let lives = process.is_some_and(|process| Path::new("/proc").join(process).exists());
                if !lives {
                    let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                    removed.map_err(Error::file("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

/// Snapshots of boots, for as long as this lives.
#[derive(Debug)]
pub struct Boots {
    path: PathBuf,
}

impl Drop for Boots {
    fn drop(&mut self) {
        // What stays is removed by the next one.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The names of the fields in which a plan found in a folder is not this one; none when it is.
fn difference(found: &Value, wanted: &Value) -> Option<String> {
    if found == wanted {
        return None;
    }
    let fields = wanted.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let other: Vec<String> = fields.into_iter().filter(|field| found.get(field) != wanted.get(field)).collect();
    Some(format!("its {} {}", other.join(", "), if other.len() == 1 { "differs" } else { "differ" }))
}

/// Keeps the file of a run, whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub fn keep(path: &Path, file: &impl Serialize) -> Result<(), Error> {
    Ok(write_atomically(path, &seal::sealed(&pretty(file)))?)
}

/// JSON for people and machines, with a line's end.
pub fn pretty(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data");
    text.push(b'\n');
    text
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let list = fs::read_dir(folder).and_then(|list| list.map(|entry| Ok(entry?.path())).collect());
    list.map_err(Error::file("read", folder))
}

/// Whether something is under a name that only this program gives to what is not finished.
fn is_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(BOOTS_PREFIX) || name.starts_with('.') && name.ends_with(".partial")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::experiment::cell::{Cell, CellFile};
    use crate::experiment::plan::tests::{kernels, plan_of_kernels};
    use concord_machine::result::ResultDocument;

    fn description() -> Value {
        plan_of_kernels(&kernels()).document()
    }

    #[test]
    fn a_folder_belongs_to_one_comparison() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder");
        Store::open(&path, &description()).unwrap();
        Store::open(&path, &description()).unwrap();
        let other = Experiment { seeds: 9, append: "quiet".to_owned(), ..kernels() };
        let error = Store::open(&path, &plan_of_kernels(&other).document()).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "/new/folder holds another comparison: its append, seeds differ; choose another folder with --output"
            ),
            "{error}"
        );
        std::fs::write(path.join("plan.json"), "{").unwrap();
        assert!(matches!(Store::open(&path, &description()), Err(Error::OtherComparison { .. })));
        std::fs::write(folder.path().join("thesis.tex"), "").unwrap();
        assert!(matches!(Store::open(folder.path(), &description()), Err(Error::ForeignFolder { .. })));
        assert!(matches!(Store::open(Path::new("/proc/none"), &description()), Err(Error::File { .. })));
    }

    /// A file with every kind of member.
    fn file(cell: &Cell) -> CellFile {
        let result: ResultDocument = serde_json::from_str(include_str!("../../tests/report/run.json")).unwrap();
        CellFile::new(cell, Some(vec!["a line".to_owned()]), result)
    }

    #[test]
    fn a_run_that_is_not_whole_is_told_from_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan_of_kernels(&kernels());
        let store = Store::open(folder.path(), &plan.document()).unwrap();
        let cell = &plan.groups[0].cells[0];
        let load = |cell: &Cell| store.load::<CellFile>(&cell.file_name, &cell.id).unwrap();
        assert!(matches!(load(cell), Kept::Missing));
        let path = store.path(&cell.file_name);
        keep(&path, &file(cell)).unwrap();
        let Kept::Finished(kept) = load(cell) else { panic!("it is whole") };
        assert_eq!(pretty(&kept), pretty(&file(cell)), "nothing is lost");
        let text = std::fs::read_to_string(&path).unwrap();
        for length in (0..text.len()).step_by(97) {
            std::fs::write(&path, &text[..length]).unwrap();
            assert!(matches!(load(cell), Kept::Damaged(_)), "{length}");
        }
        keep(&path, &CellFile { id: "0123".to_owned(), ..file(cell) }).unwrap();
        assert!(matches!(load(cell), Kept::Damaged(_)));
    }

    #[test]
    fn an_edited_run_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan_of_kernels(&kernels());
        let store = Store::open(folder.path(), &plan.document()).unwrap();
        let cell = &plan.groups[0].cells[0];
        let path = store.path(&cell.file_name);
        keep(&path, &file(cell)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let member = "\"region_cycles\": ";
        std::fs::write(&path, text.replacen(member, &format!("{member}1"), 1)).unwrap();
        match store.load::<CellFile>(&cell.file_name, &cell.id).unwrap() {
            Kept::Damaged(why) => assert_eq!(why, "its content is not the one that its digest was made of"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_dead_processes_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &description()).unwrap();
        // Process numbers end below 2^22 on Linux, so this one never lives.
        let dead = folder.path().join(".boots-99999999");
        std::fs::create_dir(&dead).unwrap();
        let partial = folder.path().join("runs/.a.json.99999999.0.partial");
        std::fs::write(&partial, "").unwrap();
        let boots = store.boots().unwrap();
        Store::open(folder.path(), &description()).unwrap();
        assert!(!dead.exists() && !partial.exists() && boots.path.exists());
        let mine = boots.path.clone();
        drop(boots);
        assert!(!mine.exists());
    }
}
