//! Declarations of comparisons: files of `experiments/comparisons`, one for each set of figures that is stated somewhere.

use super::Error;
use super::kernel::KernelChoice;
use super::plan::Request;
use super::workload::Size;
use concord_machine::Board;
use concord_machine::board::Manager;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a file declares; the options of the command that it does not name are its defaults.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Declaration {
    pub workloads: Vec<String>,
    /// The first is what the others are compared with. Names that are not built in are those of `definitions`.
    pub kernels: Vec<String>,
    /// Words by the kernel's name.
    #[serde(default)]
    pub definitions: BTreeMap<String, String>,
    pub harts: Vec<usize>,
    pub seeds: u64,
    pub size: Size,
    #[serde(default = "default_board")]
    pub board: String,
    #[serde(default)]
    pub contention_manager: Option<Manager>,
    #[serde(default)]
    pub append: String,
    #[serde(default)]
    pub check_isolation: bool,
}

fn default_board() -> String {
    "metatm-2007".to_owned()
}

impl Declaration {
    /// Reads a file.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn from_file(path: &Path) -> Result<Declaration, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::Request(format!("{}:{line}: {}", path.display(), error.message().replace('\n', " ")))
        })
    }

    /// What it asks for.
    ///
    /// # Errors
    /// If there is no such board or kernel.
    pub fn request(&self) -> Result<Request, Error> {
        let mut board = Board::preset(&self.board).map_err(concord_machine::MachineError::from)?;
        board.transactions.manager = self.contention_manager.unwrap_or(board.transactions.manager);
        let definitions: Vec<String> = self.definitions.iter().map(|(name, words)| format!("{name}={words}")).collect();
        Ok(Request {
            workloads: self.workloads.clone(),
            kernels: KernelChoice::choose(Some(&self.kernels), &definitions)?,
            harts: self.harts.clone(),
            seeds: self.seeds,
            size: self.size,
            board,
            append: self.append.clone(),
            check_isolation: self.check_isolation,
            instructions_max: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{Guests, Input, Plan};

    #[test]
    fn every_declaration_of_ours_can_be_laid_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/comparisons");
        let input = |name: &str| Input { path: name.into(), blake3: name.to_owned() };
        let roots = [("rootfs", input("rootfs")), ("benchmarks", input("benchmarks"))].into();
        let guests = Guests { kernel: Some((input("Image"), input("vmlinux"))), roots };
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let request = Declaration::from_file(&path).and_then(|declaration| declaration.request());
            let plan = request.and_then(|request| Plan::new(&request, &guests));
            assert!(plan.is_ok_and(|plan| plan.runs_count() > 0), "{}", path.display());
            count += 1;
        }
        assert!(count >= 3);
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let error = Declaration::from_file(&path).and_then(|declaration| declaration.request()).unwrap_err();
            error.to_string().replace(&folder.path().display().to_string(), "DIR")
        };
        let fine = "workloads = [\"find\"]\nkernels = [\"linux\"]\nharts = [8]\nseeds = 1\nsize = \"tiny\"\n";
        let lines = [
            refused(&fine.replace("tiny", "huge")),
            refused(&format!("{fine}seed = 1\n")),
            refused(&fine.replace("harts = [8]\n", "")),
            refused(&format!("{fine}board = \"pdp-11\"\n")),
            refused(&fine.replace("linux", "bsd")),
        ];
        insta::assert_snapshot!(lines.join("\n"));
        assert!(Declaration::from_file(&folder.path().join("missing")).is_err());
    }
}
