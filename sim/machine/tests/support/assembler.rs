//! Instruction encodings (The RISC-V Instruction Set Manual, Volume I, "RV32/64G Instruction Set Listings") and a code
//! buffer with labels.

pub const LOAD: u32 = 0x03;
pub const LOAD_FP: u32 = 0x07;
pub const MISC_MEM: u32 = 0x0f;
pub const OP_IMM: u32 = 0x13;
pub const AUIPC: u32 = 0x17;
pub const OP_IMM_32: u32 = 0x1b;
pub const STORE: u32 = 0x23;
pub const STORE_FP: u32 = 0x27;
pub const AMO: u32 = 0x2f;
pub const OP: u32 = 0x33;
pub const LUI: u32 = 0x37;
pub const OP_32: u32 = 0x3b;
pub const OP_FP: u32 = 0x53;
pub const BRANCH: u32 = 0x63;
pub const JALR: u32 = 0x67;
pub const JAL: u32 = 0x6f;
pub const SYSTEM: u32 = 0x73;

pub const EBREAK: u32 = 0x0010_0073;
pub const ECALL: u32 = 0x0000_0073;
pub const SRET: u32 = 0x1020_0073;
pub const MRET: u32 = 0x3020_0073;
pub const WFI: u32 = 0x1050_0073;
pub const FENCE_I: u32 = 0x0000_100f;
pub const SFENCE_VMA_ALL: u32 = 0x1200_0073;

pub const CSRRW: u32 = 1;
pub const CSRRS: u32 = 2;
pub const CSRRC: u32 = 3;

pub const CSR_FFLAGS: u32 = 0x001;
pub const CSR_FRM: u32 = 0x002;
pub const CSR_FCSR: u32 = 0x003;
pub const CSR_SSTATUS: u32 = 0x100;
pub const CSR_SIE: u32 = 0x104;
pub const CSR_STVEC: u32 = 0x105;
pub const CSR_SCOUNTEREN: u32 = 0x106;
pub const CSR_SSCRATCH: u32 = 0x140;
pub const CSR_SEPC: u32 = 0x141;
pub const CSR_SCAUSE: u32 = 0x142;
pub const CSR_STVAL: u32 = 0x143;
pub const CSR_SIP: u32 = 0x144;
pub const CSR_SATP: u32 = 0x180;

pub fn r_type(opcode: u32, rd: u32, funct3: u32, rs1: u32, rs2: u32, funct7: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// `immediate` is the low 12 bits of anything.
pub fn i_type(opcode: u32, rd: u32, funct3: u32, rs1: u32, immediate: i64) -> u32 {
    (immediate as u32 & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

pub fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, immediate: i64) -> u32 {
    let bits = immediate as u32;
    (bits >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (bits & 0x1f) << 7 | opcode
}

pub fn b_type(funct3: u32, rs1: u32, rs2: u32, offset: i64) -> u32 {
    let bits = offset as u32;
    (bits >> 12 & 1) << 31
        | (bits >> 5 & 0x3f) << 25
        | rs2 << 20
        | rs1 << 15
        | funct3 << 12
        | (bits >> 1 & 0xf) << 8
        | (bits >> 11 & 1) << 7
        | BRANCH
}

/// `immediate` is the value of the upper 20 bits, not shifted.
pub fn u_type(opcode: u32, rd: u32, immediate: i64) -> u32 {
    (immediate as u32 & 0xf_ffff) << 12 | rd << 7 | opcode
}

pub fn j_type(rd: u32, offset: i64) -> u32 {
    let bits = offset as u32;
    (bits >> 20 & 1) << 31
        | (bits >> 1 & 0x3ff) << 21
        | (bits >> 11 & 1) << 20
        | (bits >> 12 & 0xff) << 12
        | rd << 7
        | JAL
}

/// CSRRW, CSRRS, CSRRC by `funct3` 1 to 3, with a register; 5 to 7, with a 5-bit immediate in `rs1`.
pub fn csr(funct3: u32, rd: u32, number: u32, rs1: u32) -> u32 {
    number << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | SYSTEM
}

pub fn addi(rd: u32, rs1: u32, immediate: i64) -> u32 {
    i_type(OP_IMM, rd, 0, rs1, immediate)
}

pub fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(OP, rd, 0, rs1, rs2, 0)
}

pub fn ld(rd: u32, rs1: u32, offset: i64) -> u32 {
    i_type(LOAD, rd, 3, rs1, offset)
}

pub fn sd(rs2: u32, rs1: u32, offset: i64) -> u32 {
    s_type(STORE, 3, rs1, rs2, offset)
}

/// A place in the code, bound once.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

/// Code at a fixed address.
#[derive(Clone, Debug)]
pub struct Code {
    base: u64,
    bytes: Vec<u8>,
    labels: Vec<Option<u64>>,
    fixups: Vec<(usize, Label)>,
}

impl Code {
    pub fn new(base: u64) -> Self {
        Self { base, bytes: Vec::new(), labels: Vec::new(), fixups: Vec::new() }
    }

    /// The address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, instruction: u32) {
        self.bytes.extend(instruction.to_le_bytes());
    }

    pub fn push_compressed(&mut self, instruction: u16) {
        self.bytes.extend(instruction.to_le_bytes());
    }

    /// Replaces the instruction at `position`, which [`Code::len_bytes`] gave before it was pushed.
    pub fn patch(&mut self, position: usize, instruction: u32) {
        self.bytes[position..position + 4].copy_from_slice(&instruction.to_le_bytes());
    }

    pub fn patch_compressed(&mut self, position: usize, instruction: u16) {
        self.bytes[position..position + 2].copy_from_slice(&instruction.to_le_bytes());
    }

    /// Loads any 64-bit constant.
    pub fn load_immediate(&mut self, rd: u32, value: u64) {
        let signed = value as i64;
        if signed == i64::from(signed as i32) {
            let low = signed << 52 >> 52;
            let high = (signed - low) >> 12;
            if high & 0xf_ffff != 0 {
                self.push(u_type(LUI, rd, high));
                // ADDIW wraps at 32 bits, which 0x7fff_f800 and above need.
                self.push(i_type(OP_IMM_32, rd, 0, rd, low));
            } else {
                self.push(addi(rd, 0, low));
            }
            return;
        }
        let low = signed << 52 >> 52;
        let high = signed.wrapping_sub(low) >> 12;
        self.load_immediate(rd, high as u64);
        self.push(i_type(OP_IMM, rd, 1, rd, 12));
        if low != 0 {
            self.push(addi(rd, rd, low));
        }
    }

    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.pc());
    }

    /// A label at the next instruction.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// A conditional branch; `funct3` is 0 EQ, 1 NE, 4 LT, 5 GE, 6 LTU, 7 GEU.
    pub fn branch(&mut self, funct3: u32, rs1: u32, rs2: u32, target: Label) {
        self.fixups.push((self.bytes.len(), target));
        self.push(b_type(funct3, rs1, rs2, 0));
    }

    pub fn jump(&mut self, rd: u32, target: Label) {
        self.fixups.push((self.bytes.len(), target));
        self.push(j_type(rd, 0));
    }

    pub fn address(&self, label: Label) -> u64 {
        self.labels[label.0].expect("the label is bound")
    }

    /// The machine code, with every branch pointing at its label.
    pub fn finish(mut self) -> Vec<u8> {
        for (position, label) in std::mem::take(&mut self.fixups) {
            let offset = self.address(label) as i64 - (self.base as i64 + position as i64);
            let old = u32::from_le_bytes(self.bytes[position..position + 4].try_into().expect("four bytes"));
            let new = match old & 0x7f {
                BRANCH => {
                    assert!((-4096..4096).contains(&offset), "branch offset {offset}");
                    b_type(old >> 12 & 7, old >> 15 & 31, old >> 20 & 31, offset)
                }
                _ => j_type(old >> 7 & 31, offset),
            };
            self.bytes[position..position + 4].copy_from_slice(&new.to_le_bytes());
        }
        self.bytes
    }
}
