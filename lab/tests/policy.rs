//! The accounts by which TxLinux decides between transactions and locks: the kernel's own file, driven with random programs by
//! `linux/model/account.c`; and broken copies of it, which the driver must catch.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LINUX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../linux");
const ACCOUNT: &str = "overlay/kernel/locking/cx_account.h";
const DRIVER: &str = "model/account.c";

/// Drives a copy of the account in which one text stands in the place of another.
fn drive(replaced: &str, by: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let copy = |path: &str, change: &dyn Fn(String) -> String| {
        let to = folder.path().join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, change(fs::read_to_string(Path::new(LINUX).join(path)).unwrap())).unwrap();
    };
    copy(DRIVER, &|text| text);
    copy(ACCOUNT, &|text| {
        assert!(text.contains(replaced), "{ACCOUNT} has no {replaced:?}");
        text.replace(replaced, by)
    });
    let program = folder.path().join("account");
    let compiled = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(folder.path().join(DRIVER))
        .output()
        .unwrap_or_else(|error| panic!("gcc: {error}; `concord doctor` says what is missing"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Command::new(program).args(["1", "300"]).output().unwrap()
}

#[test]
fn the_regret_of_random_programs_is_bounded() {
    let output = drive("", "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn an_account_that_never_gives_transactions_up_is_found() {
    let output = drive("account->mode = other;", "account->mode = CX_ELIDE;");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("a hostile site elides"));
}

#[test]
fn an_account_that_never_returns_from_the_lock_is_found() {
    let output = drive("account->mode = other;", "account->mode = CX_LOCK;");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("a friendly site stays a lock"));
}

#[test]
fn an_account_that_measures_too_often_is_found() {
    let output = drive("account->quiet_windows_min *= 4;", "account->mean_cycles[other] = 0;");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("regret"));
}

#[test]
fn an_account_that_overlooks_the_stores_of_programs_is_found() {
    let output = drive("account->disturbed += is_disturbed;", "(void)is_disturbed;");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("a site that programs disturb elides"));
}
