//! The workloads of the TxLinux paper at their smallest size: each checks its own result, and leaves a clean file system.

use crate::disk::{is_clean, on_a_copy};
use crate::support::{Run, artifact, boot, boot_and_type, ours};
use concord_abi::exit::Exit;
use concord_dev::DiskMode;
use concord_lab::experiment::request::SystemOptions;
use concord_lab::system::linux;
use concord_machine::{Configuration, DiskImage, Gear};

/// The workload on the root file system that has everything, with its region of interest in `gear`.
pub fn workload(name: &str, harts: usize, gear: &str) -> Configuration {
    let words = format!("concord.run={name} concord.size=tiny concord.gear={gear}");
    let root = DiskImage { path: artifact("benchmarks", "rootfs"), mode: DiskMode::Overlay };
    Configuration { disks: vec![root], ..ours(&words, harts, Gear::Functional) }
}

/// Checks that the workload's region was marked and that it found its result to be right; `result` begins what it says of it.
#[track_caller]
fn finished(run: Run, name: &str, result: &str) -> Run {
    let run = run.healthy();
    run.says(&format!("\n{name}: {result}"));
    run.says(&format!("concord: workload {name}"));
    assert!(run.document.region);
    assert!(run.document.region_cycles > 0 && run.document.region_cycles < run.document.clock_cycles);
    run
}

/// Runs the workload on a disk that keeps what is written, and checks the disk.
fn runs_and_leaves_a_clean_disk(name: &str, harts: usize, result: &str) {
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(workload(name, harts, "functional"), DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    finished(boot(configuration), name, result);
    is_clean(&image);
}

#[test]
fn pmake() {
    runs_and_leaves_a_clean_disk("pmake", 4, "1 files compiled at -O0 by 8 jobs");
}

#[test]
fn bonnie() {
    runs_and_leaves_a_clean_disk("bonnie++", 2, "2 instances created and deleted 2048 files each");
}

#[test]
fn mab() {
    runs_and_leaves_a_clean_disk("mab", 4, "2 instances of 1 rounds copied, listed and read 7 files each");
}

#[test]
fn configure() {
    runs_and_leaves_a_clean_disk("configure", 2, "1 instances came to the same ");
}

#[test]
fn find() {
    runs_and_leaves_a_clean_disk("find", 8, "4 instances found the text in 18 files");
}

#[test]
fn dpunish() {
    let result = "32 instances renamed 60 times each; 0 failed, 0 of 512 files are wrong";
    runs_and_leaves_a_clean_disk("dpunish", 8, result);
}

#[test]
fn hackbench() {
    runs_and_leaves_a_clean_disk("hackbench", 4, "1 groups of 40 processes exchanged 800 messages by sockets");
    let run = boot(workload("hackbench:pipes", 4, "functional"));
    finished(run, "hackbench", "1 groups of 40 processes exchanged 800 messages by pipes");
}

#[test]
fn memcached() {
    runs_and_leaves_a_clean_disk("memcached", 2, "2 clients set 5 keys each");
}

#[test]
fn postmark() {
    runs_and_leaves_a_clean_disk("postmark", 2, "2 instances did 10 transactions each");
}

#[test]
fn stress_ng() {
    for class in ["scheduler", "memory", "files", "network"] {
        let run = boot(workload(&format!("stress-ng:{class}"), 5, "functional"));
        finished(run, "stress-ng", "5 processes did 1% of the operations of ");
    }
}

#[test]
fn sysbench() {
    runs_and_leaves_a_clean_disk("sysbench", 2, "4 threads did 2 events each");
}

/// Two workers a case, on the small root file system, which has the workload too.
#[test]
fn every_case_of_contend() {
    let words = "cx=on concord.run=contend concord.size=tiny concord.gear=functional";
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(ours(words, 2, Gear::Functional), DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    let run = boot(configuration).healthy();
    let cases = linux::system().cases(&SystemOptions::new());
    let cases: Vec<&str> = cases.iter().filter_map(|case| case.strip_prefix("contend:")).collect();
    assert!(cases.len() > 20);
    for case in cases {
        run.says(&format!("\ncontend: {case}: 2 "));
    }
    run.says("concord: workload contend finished");
    is_clean(&image);
}

#[test]
fn one_case_of_contend() {
    let run = boot(ours("concord.run=contend:eventfd concord.size=100 concord.jobs=3 cx=on", 4, Gear::Functional));
    let run = finished(run, "contend", "eventfd: 3 threads did 100 rounds each");
    assert!(run.document.harts[..3].iter().all(|hart| hart.counters.data_misses > 0));
}

#[test]
fn a_case_that_is_none_is_refused() {
    for (words, message) in [
        ("concord.run=contend:opens", "contend: no case is called opens; there are: sigmask timers "),
        (
            "concord.run=stress-ng:disks",
            "stress-ng: no case is called disks; there are: scheduler memory files network",
        ),
        ("concord.run=contend:open concord.jobs=3", "WORKERS 3: a whole number from 1 to 2 is wanted"),
    ] {
        let run = boot(ours(words, 2, Gear::Functional));
        assert_eq!((run.outcome.end.exit, run.document.guest_code), (Exit::Failed, 2), "{}", run.console);
        run.says(message);
    }
}

/// The caches are modelled in the region, and nowhere else unless the run began so.
#[test]
fn a_timed_region_is_the_same_each_time() {
    let timed = || finished(boot(workload("dpunish", 8, "timed")), "dpunish", "32 instances");
    let run = timed();
    run.equals(&timed(), "the second run");
    assert!(run.document.harts.iter().all(|hart| hart.counters.data_misses > 0));
    assert_eq!(run.document.gear, Gear::Functional);
}

#[test]
fn a_timed_search_from_a_cold_disk() {
    let run = finished(boot(workload("find", 4, "timed")), "find", "4 instances found the text in 18 files");
    assert!(run.document.devices.disks[0].reads > 0);
    // The disk takes 5.5 ms for each of them, which is most of the time of so small a search.
    let idle_cycles: u64 = run.document.harts.iter().map(|hart| hart.idle_cycles).sum();
    assert!(idle_cycles > run.document.region_cycles);
}

#[test]
fn a_failing_instance_is_named_and_fails_the_whole() {
    let fails = "concord-instances -o /tmp 3 sh -c 'echo said %i; exit %i' || echo \"status $?\"";
    let run = boot_and_type(ours("", 2, Gear::Functional), &[fails, "cat /tmp/0 /tmp/2", "exit"]).healthy();
    run.says("\ninstance 1 failed with status 1\r\ninstance 2 failed with status 2\r\nstatus 1\r\n");
    run.says("\nsaid 0\r\nsaid 2\r\n");
}

#[test]
fn a_size_that_is_none_is_refused() {
    for (word, message) in [
        ("concord.size=huge", "concord.size=huge: tiny, quick, paper or a whole number from 1 is wanted"),
        ("concord.jobs=0", "concord.jobs=0: a whole number from 1 is wanted"),
        ("concord.gear=first", "concord.gear=first: timed or functional is wanted"),
    ] {
        let run = boot(ours(&format!("concord.run=dpunish {word}"), 1, Gear::Functional));
        assert_eq!((run.outcome.end.exit, run.document.guest_code), (Exit::Failed, 2), "{}", run.console);
        run.says(message);
    }
}
