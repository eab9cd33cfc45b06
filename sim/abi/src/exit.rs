//! How a run ends, as the exit code of the `concord` command and as a name in the result document.

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Exit {
    /// The guest powered the machine off.
    PoweredOff = 0,
    /// The guest reported failure (hint, test finisher, or a system reset with the reason "system failure").
    Failed = 1,
    /// The user's input cannot be used. Only the command itself ends like this; no run does.
    BadInput = 2,
    /// The guest kernel panicked.
    Panicked = 3,
    /// Every hart is idle and no event is left that could wake one.
    Deadlocked = 4,
    /// A limit on instructions or cycles was reached.
    LimitReached = 5,
    /// The guest asked for a reset.
    Reset = 6,
    /// The isolation checker found a transaction that was not isolated, not serializable or not undone.
    IsolationViolated = 7,
}

impl Exit {
    /// Every end, in the order of its code.
    pub const ALL: [Exit; 8] = [
        Exit::PoweredOff,
        Exit::Failed,
        Exit::BadInput,
        Exit::Panicked,
        Exit::Deadlocked,
        Exit::LimitReached,
        Exit::Reset,
        Exit::IsolationViolated,
    ];

    /// The exit code of the process.
    pub fn code(self) -> u8 {
        self as u8
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
        for (code, exit) in Exit::ALL.iter().enumerate() {
            assert_eq!(usize::from(exit.code()), code);
        }
        let mut names: Vec<_> = Exit::ALL.iter().map(|exit| exit.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Exit::ALL.len());
    }
}
