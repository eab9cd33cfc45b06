//! The constants of Xmetatm that guests use, in one list for both languages.

use crate::htm::{
    CSRS, Cause, CompareAndSwap, DEPTH_MAX, FRAMES_MAX, FRAMES_USER_MAX, PRIORITY_MAX, RESTARTS_MAX, STATUS_CODE_SHIFT,
    XENABLE_USER, XSTATUS_ACTIVE, XSTATUS_DEPTH_SHIFT, XSTATUS_DOOMED, XSTATUS_OVERFLOWED, XSTATUS_STALLED,
    XSTATUS_STATUS_SHIFT, XSTATUS_SUSPENDED, XTRAP_PREVIOUS,
};

/// Constants that share a comment.
pub(super) struct Group {
    pub about: &'static str,
    pub constants: Vec<(String, u64)>,
}

impl Group {
    fn new(about: &'static str, constants: &[(&str, u64)]) -> Group {
        Group { about, constants: constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect() }
    }
}

/// The prefix of the names of register numbers, which have a type of their own in the Rust module.
pub(super) const REGISTER_PREFIX: &str = "CSR_";

pub(super) fn groups() -> Vec<Group> {
    let registers = CSRS
        .iter()
        .map(|(number, name)| (format!("{REGISTER_PREFIX}{}", name.to_uppercase()), u64::from(*number)))
        .collect();
    let mut causes = vec![("XMETATM_CAUSE_NONE".to_owned(), Cause::None as u64)];
    causes
        .extend(Cause::RESTARTS.iter().map(|(cause, name)| (format!("XMETATM_CAUSE_{name}"), u64::from(*cause as u8))));
    vec![
        Group { about: "Control and status registers.", constants: registers },
        Group {
            about: "Causes: bits 7 to 0 of the status word that xbegin returns, and of the operand of xrestart.",
            constants: causes,
        },
        Group::new(
            "The status word: the cause, and above it eight bits of the program's own, which xrestart takes.",
            &[
                ("XMETATM_CAUSE_MASK", 0xff),
                ("XMETATM_CODE_SHIFT", u64::from(STATUS_CODE_SHIFT)),
                ("XMETATM_CODE_MASK", 0xff << STATUS_CODE_SHIFT),
            ],
        ),
        Group::new(
            "What xcas returns.",
            &[
                ("XCAS_SWAPPED", CompareAndSwap::Swapped as u64),
                ("XCAS_DIFFERED", CompareAndSwap::Differed as u64),
                ("XCAS_REFUSED", CompareAndSwap::Refused as u64),
            ],
        ),
        Group::new(
            "Fields of xstatus.",
            &[
                ("XSTATUS_ACTIVE", XSTATUS_ACTIVE),
                ("XSTATUS_SUSPENDED", XSTATUS_SUSPENDED),
                ("XSTATUS_STALLED", XSTATUS_STALLED),
                ("XSTATUS_OVERFLOWED", XSTATUS_OVERFLOWED),
                ("XSTATUS_DOOMED", XSTATUS_DOOMED),
                ("XSTATUS_DEPTH_SHIFT", u64::from(XSTATUS_DEPTH_SHIFT)),
                ("XSTATUS_DEPTH_MASK", 0xff << XSTATUS_DEPTH_SHIFT),
                ("XSTATUS_STATUS_SHIFT", u64::from(XSTATUS_STATUS_SHIFT)),
                ("XSTATUS_STATUS_MASK", 0xffff << XSTATUS_STATUS_SHIFT),
            ],
        ),
        Group::new("Fields of xtrap and xenable.", &[("XTRAP_PT", XTRAP_PREVIOUS), ("XENABLE_U", XENABLE_USER)]),
        Group::new(
            "Limits.",
            &[
                ("XMETATM_DEPTH_MAX", u64::from(DEPTH_MAX)),
                ("XMETATM_FRAMES_MAX", FRAMES_MAX as u64),
                ("XMETATM_FRAMES_USER_MAX", FRAMES_USER_MAX as u64),
                ("XMETATM_PRIORITY_MAX", PRIORITY_MAX),
                ("XMETATM_RESTARTS_MAX", RESTARTS_MAX),
            ],
        ),
    ]
}
