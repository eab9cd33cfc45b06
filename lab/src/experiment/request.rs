//! What a user asks for: a system and the values on each axis.

use super::coordinate::Parameter;
use super::variant::Variant;
use super::{Error, refuse_repeated};
use crate::system::System;
use concord_machine::Board;
use std::collections::BTreeMap;

/// Settings that only one system knows, by their names.
pub type SystemOptions = BTreeMap<String, String>;

/// The values on each axis, and what all cells share.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Workloads or tests.
    pub cases: Vec<String>,
    /// Kernels, locks or libraries; the others are compared with the first.
    pub variants: Vec<Variant>,
    /// Empty for a system that has no sizes.
    pub sizes: Vec<String>,
    pub harts: Vec<usize>,
    /// Boards, whatever their number of harts.
    pub boards: Vec<Board>,
    pub parameters: Vec<Parameter>,
    /// Seeds 1 to this number.
    pub seeds: u64,
    /// Words for every command line.
    pub append: String,
    pub check_isolation: bool,
    /// Instead of the system's own limit.
    pub instructions_max: Option<u64>,
    pub options: SystemOptions,
}

impl Experiment {
    /// Checks that the system knows the values, and that a machine can have them.
    ///
    /// # Errors
    /// Names the first value that is unknown, comes twice, or that no machine or experiment can have.
    pub fn check(&self, system: &dyn System) -> Result<(), Error> {
        let nouns = system.nouns();
        self.check_options(system)?;
        choose(&nouns.case, &system.cases(&self.options), &self.cases)?;
        refuse_repeated(&nouns.variant, self.variants.iter().map(|variant| variant.name.as_str()))?;
        let sizes = system.sizes();
        if sizes.is_empty() && !self.sizes.is_empty() {
            return Err(Error::Request(format!("system {} has no sizes", system.name())));
        }
        choose("size", &sizes, &self.sizes)?;
        self.check_harts()?;
        refuse_repeated("board", self.boards.iter().map(|board| board.name.as_str()))?;
        refuse_repeated("parameter", self.parameters.iter().map(|parameter| parameter.name.as_str()))?;
        for parameter in &self.parameters {
            parameter.check(&[&nouns.case_field, &nouns.variant_field])?;
        }
        for (count, what) in [
            (self.cases.len() as u64, nouns.case.as_str()),
            (self.variants.len() as u64, nouns.variant.as_str()),
            (if sizes.is_empty() { 1 } else { self.sizes.len() as u64 }, "size"),
            (self.harts.len() as u64, "hart count"),
            (self.boards.len() as u64, "board"),
            (self.seeds, "seed"),
        ] {
            if count == 0 {
                return Err(Error::Request(format!("at least one {what} is wanted")));
            }
        }
        Ok(())
    }

    fn check_options(&self, system: &dyn System) -> Result<(), Error> {
        let known = system.options();
        match self.options.keys().find(|name| !known.contains(&name.as_str())) {
            None => system.check_options(&self.options),
            Some(name) => {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(Error::Request(format!("system {} has no option {name:?}; there are {known}", system.name())))
            }
        }
    }

    fn check_harts(&self) -> Result<(), Error> {
        let harts: Vec<String> = self.harts.iter().map(usize::to_string).collect();
        refuse_repeated("hart count", harts.iter().map(String::as_str))?;
        match self.harts.iter().find(|harts| !(1..=64).contains(*harts)) {
            Some(wrong) => Err(Error::Request(format!("{wrong} harts: allowed is 1 to 64"))),
            None => Ok(()),
        }
    }

    /// The most memory that a cell's guest has.
    pub fn memory_bytes_max(&self) -> u64 {
        self.boards.iter().map(|board| board.memory.size_bytes).max().unwrap_or(0)
    }

    /// Names of the axes, beside those of seeds, on which there is more than one value.
    pub fn varying_axes(&self, system: &dyn System) -> Vec<String> {
        let nouns = system.nouns();
        let axes = [
            (nouns.case_field.as_str(), self.cases.len()),
            (super::coordinate::SIZE, self.sizes.len()),
            (super::coordinate::BOARD, self.boards.len()),
            (super::coordinate::HARTS, self.harts.len()),
            (nouns.variant_field.as_str(), self.variants.len()),
        ];
        let parameters = self.parameters.iter().map(|parameter| (parameter.name.as_str(), parameter.values.len()));
        axes.into_iter().chain(parameters).filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()).collect()
    }
}

/// Checks that every name is known and none comes twice.
///
/// # Errors
/// Names the first that is not, and the names there are: those of its own group where it begins like one.
pub fn choose(noun: &str, known: &[String], names: &[String]) -> Result<(), Error> {
    refuse_repeated(noun, names.iter().map(String::as_str))?;
    let Some(name) = names.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let group = name.split_once(MEMBER).map_or(name.as_str(), |(group, _)| group);
    let is_member = |known: &&String| known.split_once(MEMBER).is_some_and(|(of, _)| of == group);
    let members: Vec<String> = known.iter().filter(is_member).cloned().collect();
    let candidates = listed(if members.is_empty() { known } else { &members });
    Err(Error::Request(format!("no {noun} is called {name:?}; there are {candidates}")))
}

/// Separates the name of a group from that of its member, as in `contend:futex`.
pub const MEMBER: char = ':';

/// Names for a message: `find, contend:futex | open`, so that a group is named once.
pub fn listed(names: &[String]) -> String {
    let mut list = String::new();
    let mut group_before = None;
    for name in names {
        let group = name.split_once(MEMBER);
        match group {
            Some((of, member)) if group_before == Some(of) => list.extend([" | ", member]),
            _ if list.is_empty() => list.push_str(name),
            _ => list.extend([", ", name]),
        }
        group_before = group.map(|(of, _)| of);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_member_is_told_those_of_its_group() {
        let known = ["find", "contend:futex", "contend:open", "files"].map(str::to_owned);
        let refused = |name: &str| choose("workload", &known, &[name.to_owned()]).unwrap_err().to_string();
        assert!(choose("workload", &known, &known).is_ok());
        for name in ["contend", "contend:", "contend:opens", "contend:open:open"] {
            let expected = format!("no workload is called {name:?}; there are contend:futex | open");
            assert_eq!(refused(name), expected);
        }
        let all = "there are find, contend:futex | open, files";
        for name in ["", ":", "open", "find:open", "pmake"] {
            assert_eq!(refused(name), format!("no workload is called {name:?}; {all}"));
        }
    }
}
