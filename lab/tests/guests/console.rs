//! A person at the console.

use crate::support::{boot_and_type, ours, stock};
use concord_machine::{Configuration, Gear};

fn a_session(configuration: Configuration) {
    let run = boot_and_type(configuration, &["echo concord-$((40+2))", "exit"]).healthy();
    run.says("concord:/# echo concord-$((40+2))\r\n");
    run.says("\nconcord-42\r\n");
    run.says("# exit\r\n");
}

#[test]
fn a_shell_answers_and_is_left() {
    a_session(ours("", 2, Gear::Functional));
}

#[test]
fn a_shell_answers_in_the_timed_gear() {
    a_session(ours("", 2, Gear::Timed));
}

/// The firmware's console instead of the UART.
#[test]
fn a_shell_answers_on_the_firmware_console() {
    let uart = ours("", 2, Gear::Functional);
    a_session(Configuration { append: uart.append.replace("ttyS0", "hvc0"), ..uart });
}

#[test]
fn job_control_works() {
    // Ctrl-C ends the sleep long before it would end by itself, and only the sleep.
    let run = boot_and_type(ours("", 2, Gear::Functional), &["sleep 100000", "\x03", "echo status=$?", "exit"]);
    run.healthy().says("\nstatus=130\r\n");
}

#[test]
#[ignore = "long"]
fn the_stock_kernels_shell_answers_and_is_left() {
    a_session(stock("", 2));
}

/// Without a root the initial RAM disk has a shell of its own.
#[test]
#[ignore = "long"]
fn the_initial_ram_disks_shell_answers_and_is_left() {
    let stock = stock("concord.rescue", 2);
    let run = boot_and_type(stock, &["echo concord-$((40+2)) $(cat /proc/modules | grep -c virtio)", "exit"]).healthy();
    run.says("\nconcord-42 ");
}
