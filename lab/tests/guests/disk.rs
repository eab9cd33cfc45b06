//! What the guest's writes do to disk images, and what a changed image does to a snapshot.

use crate::support::{Typist, boot, boot_and_type, host_tool, ours, resume, run, snapshot_at};
use concord_dev::DiskMode;
use concord_machine::run::{Options, SnapshotEvent};
use concord_machine::{Configuration, DiskImage, Gear, Machine};
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The configuration with its root on a copy of the image. The image is mostly holes, and the copy keeps them.
pub fn on_a_copy(configuration: Configuration, mode: DiskMode, directory: &Path) -> Configuration {
    let path = directory.join("root.ext4");
    host_tool("cp", &["--sparse=always", text(&configuration.disks[0].path), text(&path)]);
    Configuration { disks: vec![DiskImage { path, mode }], ..configuration }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn digest(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(path).unwrap()).unwrap();
    hasher.finalize()
}

/// Checks the file system without the journal's help: nothing to replay and nothing to repair.
pub fn is_clean(image: &Path) {
    host_tool("e2fsck", &["-f", "-n", text(image)]);
    let header = host_tool("dumpe2fs", &["-h", text(image)]);
    assert!(header.lines().any(|line| line.starts_with("Filesystem state:") && line.ends_with(" clean")), "{header}");
    assert!(!header.contains("needs_recovery"), "{header}");
}

/// `seq 1 20000`, as the host makes it.
fn numbers() -> String {
    (1..=20_000).map(|number| format!("{number}\n")).collect()
}

#[test]
fn what_the_guest_writes_is_in_the_image_and_the_file_system_is_clean() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(ours("", 2, Gear::Functional), DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    let commands = ["mkdir /root/deep", "seq 1 20000 >/root/deep/numbers", "ln -s deep/numbers /root/link", "exit"];
    let run = boot_and_type(configuration, &commands).healthy();
    assert!(run.document.devices.disks[0].writes > 0);
    assert_eq!(run.document.devices.disks[0].errors, 0);
    is_clean(&image);
    assert_eq!(host_tool("debugfs", &["-R", "cat /root/deep/numbers", text(&image)]), numbers());
    assert!(host_tool("debugfs", &["-R", "stat /root/link", text(&image)]).contains("deep/numbers"));
}

/// Many writers, then a second boot from what they left.
#[test]
fn a_file_system_workload_leaves_a_clean_disk_that_boots_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = ours("concord.run=files concord.size=2", 4, Gear::Functional);
    let configuration = on_a_copy(files, DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    boot(configuration.clone()).healthy();
    is_clean(&image);
    let again = Configuration { append: configuration.append.replace("files", "hello"), ..configuration };
    boot(again).healthy().says("concord: workload hello finished");
    is_clean(&image);
}

#[test]
#[ignore = "long"]
fn the_check_leaves_a_clean_disk() {
    let directory = tempfile::tempdir().unwrap();
    let check = ours("concord.run=check", 8, Gear::Functional);
    let configuration = on_a_copy(check, DiskMode::Write, directory.path());
    let image = configuration.disks[0].path.clone();
    boot(configuration).healthy().says("check: passed");
    is_clean(&image);
}

#[test]
fn an_overlay_leaves_the_image_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(ours("", 2, Gear::Functional), DiskMode::Overlay, directory.path());
    let image = configuration.disks[0].path.clone();
    let before = digest(&image);
    let read_back = "echo 3 >/proc/sys/vm/drop_caches; wc -l </root/numbers";
    let run = boot_and_type(configuration, &["seq 1 20000 >/root/numbers; sync", read_back, "exit"]).healthy();
    run.says("\n20000\r\n");
    assert!(run.document.devices.disks[0].writes > 0);
    assert_eq!(digest(&image), before);
}

#[test]
fn where_an_image_lies_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let here = ours("concord.run=hello", 1, Gear::Functional);
    let there = on_a_copy(here.clone(), DiskMode::Overlay, directory.path());
    assert_eq!(boot(here).healthy().document.digest, boot(there).healthy().document.digest);
}

#[test]
fn a_read_only_disk_can_be_read_and_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, numbers().into_bytes().into_iter().take(65_536).collect::<Vec<_>>()).unwrap();
    let before = digest(&path);
    let mut configuration = ours("", 2, Gear::Functional);
    configuration.disks.push(DiskImage { path: path.clone(), mode: DiskMode::ReadOnly });
    let commands = [
        "echo \"read-only: $(cat /sys/block/vdb/ro)\"",
        "head -n 2 /dev/vdb",
        "head -c 512 /dev/zero >/dev/vdb || echo \"refused: $?\"",
        "exit",
    ];
    let run = boot_and_type(configuration, &commands).healthy();
    run.says("\nread-only: 1\r\n");
    run.says("\n1\r\n2\r\n");
    run.says("\nrefused: 1\r\n");
    assert!(!run.console.contains("findfs"), "init says something about a disk that holds no modules");
    assert_eq!(digest(&path), before);
    assert_eq!(run.document.devices.disks[1].writes, 0);
}

#[test]
fn a_file_system_on_a_second_disk_mounts_on_mnt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    host_tool("mke2fs", &["-q", "-t", "ext4", text(&path), "8M"]);
    let mut configuration = ours("", 2, Gear::Functional);
    configuration.disks.push(DiskImage { path: path.clone(), mode: DiskMode::Write });
    let commands = [
        "mount /dev/vdb /mnt && seq 1 20000 >/mnt/numbers && mount | grep -c 'on /mnt type ext4'",
        "umount /mnt && echo \"left: $(ls /mnt | wc -l)\"",
        "exit",
    ];
    let run = boot_and_type(configuration, &commands).healthy();
    run.says("\n1\r\n");
    run.says("\nleft: 0\r\n");
    assert!(!run.console.contains("findfs"), "init says something about a disk that holds no modules");
    is_clean(&path);
    assert_eq!(host_tool("debugfs", &["-R", "cat /numbers", text(&path)]), numbers());
}

#[test]
fn a_snapshot_does_not_resume_on_a_changed_image() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(ours("concord.run=hello", 2, Gear::Functional), DiskMode::Overlay, directory.path());
    let image = configuration.disks[0].path.clone();
    let snapshot = directory.path().join("snapshot");
    let options = snapshot_at(SnapshotEvent::Instructions(20_000_000), &snapshot);
    let whole = run(Machine::new(configuration).unwrap(), options, Typist::default()).healthy();

    // One byte in the middle of the image.
    let mut file = fs::File::options().read(true).write(true).open(&image).unwrap();
    let middle = SeekFrom::Start(file.metadata().unwrap().len() / 2);
    let mut byte = [0];
    file.seek(middle).unwrap();
    file.read_exact(&mut byte).unwrap();
    let mut replace = |byte: u8| {
        file.seek(middle).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    let refusal = || Machine::resume(&snapshot).err().expect("refused").to_string();
    replace(byte[0] ^ 1);
    let line = refusal();
    assert!(
        line.contains(text(&image)) && line.contains("its content has changed since the state was saved"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);

    replace(byte[0]);
    assert_eq!(resume(&snapshot, Options::default()).document.digest, whole.document.digest);

    let file = fs::File::options().write(true).open(&image).unwrap();
    file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
    let line = refusal();
    assert!(line.contains(text(&image)) && line.contains("when the state was saved"), "{line}");
    fs::remove_file(&image).unwrap();
    assert!(refusal().contains("cannot open"), "{}", refusal());
}

/// The image changes as the guest writes it, so the snapshot's disk is gone when the run goes on.
#[test]
fn a_snapshot_with_a_written_image_does_not_resume_after_the_guest_wrote_more() {
    let directory = tempfile::tempdir().unwrap();
    let configuration = on_a_copy(ours("concord.run=hello", 2, Gear::Functional), DiskMode::Write, directory.path());
    let snapshot = directory.path().join("snapshot");
    let options = snapshot_at(SnapshotEvent::Instructions(20_000_000), &snapshot);
    run(Machine::new(configuration).unwrap(), options, Typist::default()).healthy();
    let line = Machine::resume(&snapshot).err().expect("refused").to_string();
    assert!(line.contains("its content has changed since the state was saved"), "{line}");
}
