//! How a run ends, as the exit code of the `concord` command and as a name in the result document.

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Exit {
    /// The guest powered the machine off.
    PoweredOff,
    /// The guest reported failure (hint, test finisher, or a system reset with the reason "system failure").
    Failed,
    /// The user's input cannot be used. Only the command ends with this code; a run never does.
    BadInput,
    /// The guest kernel panicked.
    Panicked,
    /// Every hart is idle and no event is left that could wake one.
    Deadlocked,
    /// A limit on instructions or cycles was reached.
    LimitReached,
    /// A person ended the run: by a signal, by a key, or from the debugger.
    Stopped,
    /// The guest asked for a reset.
    Reset,
    /// The isolation checker found a transaction that was not isolated, not serializable or not undone.
    IsolationViolated,
}

impl Exit {
    /// Every end, in the order of the exit codes.
    pub const ALL: [Exit; 9] = [
        Exit::PoweredOff,
        Exit::Failed,
        Exit::BadInput,
        Exit::Panicked,
        Exit::Deadlocked,
        Exit::LimitReached,
        Exit::Stopped,
        Exit::Reset,
        Exit::IsolationViolated,
    ];

    /// The exit code of the process. [`Exit::LimitReached`] and [`Exit::Stopped`] share a code, because both cut a run
    /// off.
    pub fn code(self) -> u8 {
        match self {
            Exit::PoweredOff => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Panicked => 3,
            Exit::Deadlocked => 4,
            Exit::LimitReached | Exit::Stopped => 5,
            Exit::Reset => 6,
            Exit::IsolationViolated => 7,
        }
    }

    /// The name that the result document carries.
    pub fn name(self) -> &'static str {
        match self {
            Exit::PoweredOff => "powered-off",
            Exit::Failed => "failed",
            Exit::BadInput => "bad-input",
            Exit::Panicked => "panicked",
            Exit::Deadlocked => "deadlocked",
            Exit::LimitReached => "limit-reached",
            Exit::Stopped => "stopped",
            Exit::Reset => "reset",
            Exit::IsolationViolated => "isolation-violated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_the_documented_ones_and_names_differ() {
        assert_eq!(Exit::ALL.map(Exit::code), [0, 1, 2, 3, 4, 5, 5, 6, 7]);
        let mut names: Vec<_> = Exit::ALL.iter().map(|exit| exit.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Exit::ALL.len());
    }
}
