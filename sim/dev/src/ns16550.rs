//! ns16550A UART, register for register as QEMU's `serial-mm` with a register shift of 0.
//!
//! vm-superio's `Serial` was weighed and left: it clears every pending interrupt when IIR is read, ignores
//! FCR, and signals edges, where the interrupt controller needs a level and the driver a FIFO it can reset.
//!
//! The line is infinitely fast. A byte written to THR is sent at once, and the character timeout of a FIFO
//! filled below its trigger level elapses at once, so no register depends on time. Input waits in an
//! unbounded queue on the host's side and moves to the receiver when there is room; an overrun cannot happen.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::statistics::UartStatistics;

/// Number of byte registers.
pub const REGISTER_COUNT: u64 = 8;

/// Offset of the register that takes a byte received when read, and sends one when written.
pub const DATA: u64 = 0;

/// Receive FIFO depth of a 16550A.
const FIFO_DEPTH_BYTES: usize = 16;

const IER_RECEIVE: u8 = 1 << 0;
const IER_TRANSMIT: u8 = 1 << 1;
const IER_MASK: u8 = 0x0f;

const IIR_NONE: u8 = 0x01;
const IIR_TRANSMIT: u8 = 0x02;
const IIR_RECEIVE: u8 = 0x04;
const IIR_TIMEOUT: u8 = 0x0c;
const IIR_FIFO_ENABLED: u8 = 0xc0;

const FCR_ENABLE: u8 = 1 << 0;
const FCR_RESET_RECEIVE: u8 = 1 << 1;
const FCR_RESET_TRANSMIT: u8 = 1 << 2;
/// Enable bit and trigger level; the reset bits clear themselves.
const FCR_KEPT: u8 = 0xc1;

const LCR_DIVISOR_LATCH: u8 = 1 << 7;

const MCR_MASK: u8 = 0x1f;
const MCR_DATA_TERMINAL_READY: u8 = 1 << 0;
const MCR_REQUEST_TO_SEND: u8 = 1 << 1;
const MCR_OUTPUTS: u8 = 0x0c;
const MCR_OUTPUT_2: u8 = 1 << 3;
const MCR_LOOPBACK: u8 = 1 << 4;

const LSR_DATA_READY: u8 = 1 << 0;
const LSR_TRANSMIT_EMPTY: u8 = 0x60;

/// Carrier, data set ready, clear to send: a terminal is there.
const MSR_CONNECTED: u8 = 0xb0;

/// The whole state of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ns16550 {
    divisor: u16,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    /// The transmitter became empty and the driver has not been told since.
    transmit_interrupt: bool,
    /// Receive FIFO, or the one receive buffer register while the FIFO is off.
    receiver: VecDeque<u8>,
    /// Typed on the host, not yet on the line.
    input: VecDeque<u8>,
    /// Sent, not yet taken by the host.
    output: Vec<u8>,
    pub statistics: UartStatistics,
}

impl Ns16550 {
    pub fn new() -> Ns16550 {
        Ns16550 {
            divisor: 0x0c,
            interrupt_enable: 0,
            fifo_control: 0,
            line_control: 0,
            modem_control: MCR_OUTPUT_2,
            scratch: 0,
            transmit_interrupt: false,
            receiver: VecDeque::new(),
            input: VecDeque::new(),
            output: Vec::new(),
            statistics: UartStatistics::default(),
        }
    }

    /// Level of the interrupt line.
    pub fn interrupt_level(&self) -> bool {
        self.interrupt_identification() != IIR_NONE
    }

    /// Reads the register at `offset`, 0 to 7.
    pub fn read(&mut self, offset: u64) -> u8 {
        let divisor_latch = self.line_control & LCR_DIVISOR_LATCH != 0;
        match offset {
            0 if divisor_latch => self.divisor as u8,
            1 if divisor_latch => (self.divisor >> 8) as u8,
            0 => self.read_receiver(),
            1 => self.interrupt_enable,
            2 => self.read_interrupt_identification(),
            3 => self.line_control,
            4 => self.modem_control,
            5 => self.line_status(),
            6 => self.modem_status(),
            7 => self.scratch,
            _ => 0,
        }
    }

    /// Writes the register at `offset`, 0 to 7. LSR and MSR ignore writes.
    pub fn write(&mut self, offset: u64, value: u8) {
        let divisor_latch = self.line_control & LCR_DIVISOR_LATCH != 0;
        match offset {
            0 if divisor_latch => self.divisor = (self.divisor & 0xff00) | u16::from(value),
            1 if divisor_latch => self.divisor = (self.divisor & 0xff) | (u16::from(value) << 8),
            0 => self.transmit(value),
            1 => self.write_interrupt_enable(value),
            2 => self.write_fifo_control(value),
            3 => self.line_control = value,
            4 => {
                self.modem_control = value & MCR_MASK;
                self.fill_receiver();
            }
            7 => self.scratch = value,
            _ => {}
        }
    }

    /// Queues bytes typed on the host.
    pub fn queue_input(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
        self.fill_receiver();
    }

    /// Takes one byte of input past the registers, for the firmware's console.
    pub fn take_input(&mut self) -> Option<u8> {
        // In loopback the receiver holds the guest's own bytes.
        let waiting = !self.loopback() && !self.receiver.is_empty();
        let source = if waiting { &mut self.receiver } else { &mut self.input };
        let byte = source.pop_front()?;
        self.statistics.received_bytes += 1;
        self.fill_receiver();
        Some(byte)
    }

    /// Appends to the output past the registers, for the firmware's console.
    pub fn append_output(&mut self, bytes: &[u8]) {
        self.statistics.transmitted_bytes += bytes.len() as u64;
        self.output.extend_from_slice(bytes);
    }

    /// Takes the bytes that the guest sent since the last call.
    pub fn drain_output(&mut self) -> std::vec::Drain<'_, u8> {
        self.output.drain(..)
    }

    fn loopback(&self) -> bool {
        self.modem_control & MCR_LOOPBACK != 0
    }

    fn receiver_capacity_bytes(&self) -> usize {
        if self.fifo_control & FCR_ENABLE != 0 { FIFO_DEPTH_BYTES } else { 1 }
    }

    /// Fill of the receiver at which the driver gets the receive interrupt instead of the timeout's.
    fn trigger_bytes(&self) -> usize {
        if self.fifo_control & FCR_ENABLE == 0 {
            return 1;
        }
        match self.fifo_control >> 6 {
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 14,
        }
    }

    fn fill_receiver(&mut self) {
        if self.loopback() {
            return;
        }
        let room = self.receiver_capacity_bytes().saturating_sub(self.receiver.len());
        let count = room.min(self.input.len());
        self.receiver.extend(self.input.drain(..count));
    }

    /// Pending interrupt of the highest priority; the modem status never changes, so it has none.
    fn interrupt_identification(&self) -> u8 {
        if self.interrupt_enable & IER_RECEIVE != 0 && !self.receiver.is_empty() {
            if self.receiver.len() >= self.trigger_bytes() { IIR_RECEIVE } else { IIR_TIMEOUT }
        } else if self.interrupt_enable & IER_TRANSMIT != 0 && self.transmit_interrupt {
            IIR_TRANSMIT
        } else {
            IIR_NONE
        }
    }

    fn read_receiver(&mut self) -> u8 {
        let Some(byte) = self.receiver.pop_front() else {
            return 0;
        };
        if !self.loopback() {
            self.statistics.received_bytes += 1;
        }
        self.fill_receiver();
        byte
    }

    /// Reading the identification of the transmit interrupt acknowledges it.
    fn read_interrupt_identification(&mut self) -> u8 {
        let identification = self.interrupt_identification();
        if identification == IIR_TRANSMIT {
            self.transmit_interrupt = false;
        }
        let fifo = if self.fifo_control & FCR_ENABLE != 0 { IIR_FIFO_ENABLED } else { 0 };
        identification | fifo
    }

    fn line_status(&self) -> u8 {
        let ready = if self.receiver.is_empty() { 0 } else { LSR_DATA_READY };
        LSR_TRANSMIT_EMPTY | ready
    }

    /// In loopback the four inputs follow the four outputs; drivers probe for that.
    fn modem_status(&self) -> u8 {
        if !self.loopback() {
            return MSR_CONNECTED;
        }
        (self.modem_control & MCR_OUTPUTS) << 4
            | (self.modem_control & MCR_REQUEST_TO_SEND) << 3
            | (self.modem_control & MCR_DATA_TERMINAL_READY) << 5
    }

    fn transmit(&mut self, value: u8) {
        if !self.loopback() {
            self.append_output(&[value]);
        } else if self.receiver.len() < self.receiver_capacity_bytes() {
            self.receiver.push_back(value);
        }
        self.transmit_interrupt = true;
    }

    /// Enabling the transmit interrupt while the transmitter is empty raises it.
    fn write_interrupt_enable(&mut self, value: u8) {
        let value = value & IER_MASK;
        if (self.interrupt_enable ^ value) & IER_TRANSMIT != 0 {
            self.transmit_interrupt = value & IER_TRANSMIT != 0;
        }
        self.interrupt_enable = value;
    }

    /// Changing the enable bit resets both FIFOs.
    fn write_fifo_control(&mut self, value: u8) {
        let toggled = (self.fifo_control ^ value) & FCR_ENABLE != 0;
        if toggled || value & FCR_RESET_RECEIVE != 0 {
            self.receiver.clear();
        }
        if toggled || value & FCR_RESET_TRANSMIT != 0 {
            self.transmit_interrupt = true;
        }
        self.fifo_control = value & FCR_KEPT;
        self.fill_receiver();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IER: u64 = 1;
    const IIR: u64 = 2;
    const FCR: u64 = 2;
    const LCR: u64 = 3;
    const MCR: u64 = 4;
    const LSR: u64 = 5;
    const MSR: u64 = 6;

    #[test]
    fn reset_values() {
        let mut uart = Ns16550::new();
        let read: Vec<u8> = (1..8).map(|offset| uart.read(offset)).collect();
        assert_eq!(read, [0, 0x01, 0, 0x08, 0x60, 0xb0, 0]);
        assert!(!uart.interrupt_level());
    }

    /// The probe of Linux's 8250 driver: four interrupt enables, loopback of RTS and OUT2, a 16550A's FIFO.
    #[test]
    fn probe_finds_a_16550a() {
        let mut uart = Ns16550::new();
        uart.write(IER, 0);
        assert_eq!(uart.read(IER), 0);
        uart.write(IER, 0xff);
        assert_eq!(uart.read(IER), 0x0f);
        uart.write(IER, 0);
        uart.write(MCR, 0x1a);
        assert_eq!(uart.read(MSR) & 0xf0, 0x90);
        uart.write(MCR, 0x15);
        assert_eq!(uart.read(MSR) & 0xf0, 0x60);
        uart.write(MCR, 0x08);
        assert_eq!(uart.read(MSR) & 0xf0, 0xb0);
        assert_eq!(uart.read(IIR) >> 6, 0);
        uart.write(FCR, 1);
        assert_eq!(uart.read(IIR) >> 6, 3);
        uart.write(7, 0x5a);
        assert_eq!(uart.read(7), 0x5a);
    }

    /// The start-up test of the same driver: enabling the transmit interrupt raises it each time.
    #[test]
    fn transmit_interrupt_rises_on_enable_and_falls_on_identification() {
        let mut uart = Ns16550::new();
        for _ in 0..2 {
            uart.write(IER, 0x02);
            assert!(uart.interrupt_level());
            assert_eq!(uart.read(IIR), 0x02);
            assert!(!uart.interrupt_level());
            assert_eq!(uart.read(IIR), 0x01);
            uart.write(IER, 0);
        }
        uart.write(IER, 0x02);
        uart.read(IIR);
        uart.write(0, b'x');
        assert!(uart.interrupt_level(), "sent: empty again");
        assert_eq!(uart.drain_output().collect::<Vec<_>>(), b"x");
    }

    #[test]
    fn divisor_latch_hides_data_and_enables() {
        let mut uart = Ns16550::new();
        uart.write(LCR, 0x83);
        uart.write(0, 0x34);
        uart.write(1, 0x12);
        assert_eq!((uart.read(0), uart.read(1)), (0x34, 0x12));
        uart.write(LCR, 0x03);
        assert_eq!((uart.read(0), uart.read(IER)), (0, 0));
        assert_eq!(uart.drain_output().count(), 0);
    }

    #[test]
    fn polled_input_arrives_in_order_without_a_fifo() {
        let mut uart = Ns16550::new();
        assert_eq!(uart.read(LSR), 0x60);
        uart.queue_input(b"abc");
        let mut taken = Vec::new();
        while uart.read(LSR) & 1 != 0 {
            taken.push(uart.read(0));
        }
        assert_eq!(taken, b"abc");
        assert_eq!(uart.statistics.received_bytes, 3);
    }

    #[test]
    fn fifo_interrupts_tell_trigger_from_timeout() {
        let mut uart = Ns16550::new();
        uart.write(FCR, 0x81);
        uart.write(IER, 0x01);
        uart.queue_input(&[7; 7]);
        assert_eq!(uart.read(IIR), 0xcc, "below the trigger level of 8");
        uart.queue_input(&[9; 20]);
        assert_eq!(uart.read(IIR), 0xc4);
        let taken: Vec<u8> = (0..27).map(|_| uart.read(0)).collect();
        assert_eq!(taken, [vec![7; 7], vec![9; 20]].concat());
        assert!(!uart.interrupt_level());
        assert_eq!(uart.read(IIR), 0xc1);
    }

    #[test]
    fn receive_outranks_transmit() {
        let mut uart = Ns16550::new();
        uart.write(IER, 0x03);
        uart.queue_input(b"a");
        assert_eq!(uart.read(IIR), 0x04);
        uart.read(0);
        assert_eq!(uart.read(IIR), 0x02);
    }

    #[test]
    fn fifo_reset_drops_what_was_received_and_no_more() {
        let mut uart = Ns16550::new();
        uart.write(FCR, 0x01);
        uart.queue_input(b"0123456789abcdefXY");
        uart.write(FCR, 0x03);
        assert_eq!((uart.read(0), uart.read(0)), (b'X', b'Y'));
        assert_eq!(uart.read(LSR), 0x60);
    }

    #[test]
    fn loopback_returns_what_is_sent_and_keeps_the_line_out() {
        let mut uart = Ns16550::new();
        uart.write(MCR, 0x10);
        uart.queue_input(b"typed");
        uart.write(0, b'L');
        assert_eq!(uart.take_input(), Some(b't'), "not what was looped back");
        assert_eq!(uart.read(0), b'L');
        assert_eq!(uart.drain_output().count(), 0);
        uart.write(MCR, 0);
        assert_eq!(uart.read(0), b'y');
        assert_eq!(uart.statistics.received_bytes, 2);
    }
}
