//! The Rust module for guests has the constants of `sim/abi`. This test compiles it for the host.

#[path = "../../../workloads/include/xmetatm.rs"]
mod guest;

use concord_abi::htm::{self, Cause};

#[test]
fn constants_are_those_of_the_machine() {
    assert_eq!(guest::EXTENSION, htm::EXTENSION);
    assert_eq!(u32::from(guest::CSR_XCONTEXT), htm::CSR_CONTEXT);
    assert_eq!(u32::from(guest::CSR_XWINNER), htm::CSR_WINNER);
    assert_eq!(guest::XMETATM_CAUSE_DEPTH, Cause::Depth as u64);
    assert_eq!(guest::XSTATUS_DOOMED, htm::XSTATUS_DOOMED);
    assert_eq!(guest::XTRAP_PT, htm::XTRAP_PREVIOUS);
}

#[test]
fn status_words_are_taken_apart_as_the_machine_makes_them() {
    let word = Cause::NeedExclusive.status(0x7b);
    assert_eq!(guest::status(guest::XMETATM_CAUSE_NEED_EXCLUSIVE, 0x7b), word);
    assert_eq!((guest::cause(word), guest::code(word)), (guest::XMETATM_CAUSE_NEED_EXCLUSIVE, 0x7b));
    let xstatus = 17 << htm::XSTATUS_DEPTH_SHIFT | word << htm::XSTATUS_STATUS_SHIFT | htm::XSTATUS_ACTIVE;
    assert_eq!((guest::depth(xstatus), guest::last_status(xstatus)), (17, word));
}
