//! A kernel's memory of a few pages, whole and damaged.

use super::*;
use concord_mem::ram::Ram;
use proptest::prelude::*;

const RAM: u64 = 0x8000_0000;
const RAM_BYTES: u64 = 8 << 20;
/// Where the kernel is linked, and where that is in memory.
const LINKED: u64 = 0xffff_ffff_8000_0000;
const KERNEL: u64 = 0x8020_0000;
/// Where the kernel has all of memory.
const LINEAR: u64 = 0xffff_ffd6_0000_0000;
const SATP_SV39: u64 = 8 << 60;

const TABLE: u64 = KERNEL;
const TABLE_OF_KERNEL: u64 = KERNEL + 0x1000;
const VARIABLES: u64 = KERNEL + 0x3000;
const INIT_TASK: u64 = KERNEL + 0x4000;
const CACHE: u64 = KERNEL + 0x5000;
const CACHE_NAME: u64 = KERNEL + 0x5800;
const PER_CPU: u64 = KERNEL + 0x6000;
const DESCRIPTORS: u64 = 0x8030_0000;
const DESCRIPTOR_BYTES: u64 = 64;
/// Two pages allocated together.
const SLAB: u64 = 0x8040_0000;
const PAGE_TABLE: u64 = 0x8041_0000;
const ANONYMOUS: u64 = 0x8041_1000;
const FILE: u64 = 0x8041_2000;
const FREE: u64 = 0x8041_3000;
const OTHER: u64 = 0x8041_4000;
const STACK: u64 = 0x8042_0000;
const TASK: u64 = 0x8043_0000;
const SIGNAL: u64 = 0x8043_0800;
const FIRST_AREA: u64 = 0x8050_0000;
const AREA_BYTES: u64 = 0x4000;

fn linear(physical: u64) -> u64 {
    physical - RAM + LINEAR
}

fn linked(physical: u64) -> u64 {
    physical - KERNEL + LINKED
}

fn descriptor(page: u64) -> u64 {
    DESCRIPTORS + (page - RAM) / 4096 * DESCRIPTOR_BYTES
}

fn types() -> Types {
    let types = Types::default()
        .with_structure("page", 64, &[("flags", 0, 8), ("compound_head", 8, 8), ("mapping", 24, 8)])
        .with_structure("slab", 64, &[("__page_flags", 0, 8), ("slab_cache", 8, 8), ("counters", 40, 8)])
        .with_structure("ptdesc", 64, &[("ptl", 40, 4)])
        .with_structure(
            "kmem_cache",
            256,
            &[("size", 24, 4), ("object_size", 28, 4), ("red_left_pad", 88, 4), ("name", 96, 8)],
        )
        .with_structure("dentry", 192, &[("d_flags", 0, 4), ("d_lockref", 88, 8)])
        .with_structure("mm_struct", 128, &[("mmap_lock", 64, 8)])
        .with_structure("thread_union", 0x2000, &[])
        .with_structure("signal_struct", 64, &[("thread_head", 16, 16)])
        .with_structure("rq", 64, &[("nr_running", 16, 4)]);
    let task =
        [("stack", 0x20, 8), ("tasks", 0x40, 16), ("thread_node", 0x60, 16), ("signal", 0x70, 8), ("comm", 0x80, 16)];
    let page =
        [("flags", 0, 8), ("compound_head", 8, 8), ("mapping", 24, 8), ("page_type", 48, 4), ("_refcount", 52, 4)];
    types
        .with_structure("task_struct", 0x100, &task)
        .with_structure("page", DESCRIPTOR_BYTES, &page)
        .with_open_end("mm_struct")
        .with_constant("PGTY_slab", 0xf5)
        .with_constant("PGTY_table", 0xf2)
        .with_root("swapper_pg_dir", linked(TABLE))
        .with_root("mem_map", linked(VARIABLES))
        .with_root("phys_ram_base", linked(VARIABLES + 8))
        .with_root("nr_cpu_ids", linked(VARIABLES + 16))
        .with_root("pcpu_unit_size", linked(VARIABLES + 20))
        .with_root("__per_cpu_offset", linked(VARIABLES + 24))
        .with_root("__per_cpu_start", linked(PER_CPU))
        .with_root("__per_cpu_end", linked(PER_CPU + 0x1000))
        .with_root("init_task", linked(INIT_TASK))
        .with_variable(linked(PER_CPU + 0x100), "rq")
        .with_variable(linked(KERNEL + 0x8000), "rq")
}

fn symbols() -> SymbolTable {
    let map = format!(
        "{:x} T _start\n{:x} d runqueues\n{:x} d after\n{:x} b zone\n{:x} b count\n{:x} B _end\n",
        LINKED + 0x2000,
        linked(PER_CPU + 0x100),
        linked(PER_CPU + 0x140),
        linked(KERNEL + 0x8000),
        linked(KERNEL + 0x8040),
        linked(KERNEL + 0x8048),
    );
    SymbolTable::from_system_map(&map, Path::new("System.map")).expect("symbols")
}

/// A kernel's memory.
struct Memory {
    ram: Ram,
}

impl Memory {
    fn new() -> Memory {
        let memory = Memory { ram: Ram::new(RAM_BYTES).expect("memory") };
        memory.put_page_tables();
        let mut numbers = vec![
            (VARIABLES, linear(DESCRIPTORS)),
            (VARIABLES + 8, RAM),
            (VARIABLES + 16, AREA_BYTES << 32 | 2),
            (CACHE + 24, 192 << 32 | 192),
            (CACHE + 96, linked(CACHE_NAME)),
            (descriptor(SLAB) + 8, linear(CACHE)),
            (descriptor(SLAB + 0x1000) + 8, linear(descriptor(SLAB)) + 1),
            (descriptor(ANONYMOUS) + 24, linear(SIGNAL) + 1),
            (descriptor(FILE) + 24, linear(SIGNAL)),
        ];
        for processor in 0..2 {
            let offset = linear(FIRST_AREA + processor * AREA_BYTES).wrapping_sub(linked(PER_CPU));
            numbers.push((VARIABLES + 24 + processor * 8, offset));
        }
        // The list of tasks has one, and the task one thread.
        numbers.extend([
            (INIT_TASK + 0x40, linear(TASK + 0x40)),
            (TASK + 0x40, linked(INIT_TASK + 0x40)),
            (TASK + 0x20, linear(STACK)),
            (TASK + 0x70, linear(SIGNAL)),
            (SIGNAL + 16, linear(TASK + 0x60)),
            (TASK + 0x60, linear(SIGNAL + 16)),
        ]);
        for (address, number) in numbers {
            memory.ram.write(address, 8, number);
        }
        memory.put_text(TASK + 0x80, "find");
        memory.put_text(CACHE_NAME, "dentry");
        for page in [SLAB, PAGE_TABLE, ANONYMOUS, FILE, FREE, OTHER, STACK, TASK] {
            memory.ram.write(descriptor(page) + 48, 4, 0xffff_ffff);
            memory.ram.write(descriptor(page) + 52, 4, u64::from(page != FREE));
        }
        memory.ram.write(descriptor(SLAB) + 48, 4, 0xf500_0000);
        memory.ram.write(descriptor(PAGE_TABLE) + 48, 4, 0xf200_0000);
        // The descriptors, the areas and the kernel are the kernel's, without a type.
        let own = [(KERNEL, 16), (DESCRIPTORS, 32), (FIRST_AREA, 8), (STACK + 0x1000, 1)];
        for page in own.iter().flat_map(|(begin, count)| (0..*count).map(move |index| begin + index * 4096)) {
            memory.ram.write(descriptor(page) + 48, 8, 0x1_ffff_ffff);
        }
        memory
    }

    /// The kernel by large pages at the address that it is linked for, and all memory by one at [`LINEAR`].
    fn put_page_tables(&self) {
        let leaf = |physical: u64| physical >> 12 << 10 | 0xcf;
        self.ram.write(TABLE + (LINEAR >> 30 & 511) * 8, 8, leaf(RAM));
        self.ram.write(TABLE + (LINKED >> 30 & 511) * 8, 8, TABLE_OF_KERNEL >> 12 << 10 | 1);
        self.ram.write(TABLE_OF_KERNEL, 8, leaf(KERNEL));
    }

    fn put_text(&self, address: u64, text: &str) {
        for (index, byte) in text.bytes().chain([0]).enumerate() {
            self.ram.write(address + index as u64, 1, u64::from(byte));
        }
    }

    /// The name of the word at a physical address.
    fn name(&self, address: u64) -> String {
        let (types, symbols) = (types(), symbols());
        namer(&self.ram, &types, &symbols).word(address)
    }
}

fn namer<'a>(ram: &'a Ram, types: &'a Types, symbols: &'a SymbolTable) -> DataNamer<'a> {
    let kernel = Kernel::new(ram, types, [0, SATP_SV39 | 0x12345]);
    DataNamer { symbols: Some(symbols), types: Some(types), kernel }
}

#[test]
fn an_object_of_a_slab_has_the_member_of_its_type() {
    let memory = Memory::new();
    assert_eq!(memory.name(SLAB + 88), "struct dentry.d_lockref");
    assert_eq!(memory.name(SLAB + 192 * 3 + 92), "struct dentry.d_lockref+0x4");
    // In the second page, whose descriptor leads to the first one's.
    assert_eq!(memory.name(SLAB + 192 * 22), "struct dentry.d_flags");
    assert_eq!(memory.name(SLAB + 192 * 22 + 8), "struct dentry+0x8");
}

#[test]
fn an_object_of_no_known_type_has_the_name_of_its_cache() {
    let memory = Memory::new();
    memory.put_text(CACHE_NAME, "kmalloc-192");
    assert_eq!(memory.name(SLAB + 192 + 16), "[slab kmalloc-192]+0x10");
    // A cache that has the name of another one which it was merged with.
    memory.put_text(CACHE_NAME, "dentry");
    memory.ram.write(CACHE + 28, 4, 176);
    assert_eq!(memory.name(SLAB + 88), "[slab dentry]+0x58");
}

#[test]
fn an_object_may_be_longer_than_a_structure_with_an_open_end() {
    let memory = Memory::new();
    memory.put_text(CACHE_NAME, "mm_struct");
    assert_eq!(memory.name(SLAB + 64), "struct mm_struct.mmap_lock");
    assert_eq!(memory.name(SLAB + 160), "[slab mm_struct]+0xa0");
}

#[test]
fn what_lies_before_an_object_is_no_part_of_it() {
    let memory = Memory::new();
    memory.ram.write(CACHE + 24, 4, 256);
    memory.ram.write(CACHE + 88, 4, 64);
    assert_eq!(memory.name(SLAB + 64), "struct dentry.d_flags");
    assert_eq!(memory.name(SLAB + 256 + 64 + 88), "struct dentry.d_lockref");
    assert_eq!(memory.name(SLAB + 256 + 8), "[slab dentry]+0x0");
}

#[test]
fn a_page_has_the_name_of_its_use() {
    let memory = Memory::new();
    let names = [PAGE_TABLE, ANONYMOUS, FILE, FREE].map(|page| memory.name(page + 0x18));
    assert_eq!(names, ["[page table]", "[anonymous page]", "[page cache]", "[free page]"]);
    assert_eq!(memory.name(OTHER + 0x18), "0x80414018");
}

#[test]
fn a_descriptor_has_the_use_of_its_page() {
    let memory = Memory::new();
    assert_eq!(memory.name(descriptor(SLAB) + 40), "struct slab.counters [slab dentry]");
    assert_eq!(memory.name(descriptor(SLAB + 0x1000) + 8), "struct page.compound_head [slab dentry]");
    assert_eq!(memory.name(descriptor(PAGE_TABLE) + 40), "struct ptdesc.ptl [page table]");
    assert_eq!(memory.name(descriptor(FREE)), "struct page.flags [free page]");
    assert_eq!(memory.name(descriptor(OTHER) + 24), "struct page.mapping");
}

#[test]
fn data_of_a_processor_have_their_variable_and_the_processor() {
    let memory = Memory::new();
    assert_eq!(memory.name(FIRST_AREA + 0x110), "runqueues.nr_running [cpu 0]");
    assert_eq!(memory.name(FIRST_AREA + AREA_BYTES + 0x110), "runqueues.nr_running [cpu 1]");
    assert_eq!(memory.name(FIRST_AREA + AREA_BYTES + 0x2000), "[per-cpu allocation] [cpu 1]");
}

#[test]
fn variables_have_their_members_and_stacks_their_tasks() {
    let memory = Memory::new();
    assert_eq!(memory.name(KERNEL + 0x8010), "zone.nr_running");
    assert_eq!(memory.name(KERNEL + 0x8040), "count");
    assert_eq!(memory.name(STACK + 0x1ff8), "[stack of find]");
}

#[test]
fn a_lock_is_named_as_the_word_at_its_address() {
    let (memory, types, symbols) = (Memory::new(), types(), symbols());
    let namer = namer(&memory.ram, &types, &symbols);
    let names = namer.names([SLAB + 88], [linear(SLAB + 192 + 88), linked(KERNEL + 0x8040), 0x1234]);
    assert_eq!(names.word(SLAB + 88), "struct dentry.d_lockref");
    assert_eq!(names.lock(linear(SLAB + 192 + 88)), "struct dentry.d_lockref");
    assert_eq!(names.lock(linked(KERNEL + 0x8040)), "count");
    assert_eq!(names.lock(0x1234), "0x1234");
}

#[test]
fn without_types_or_translation_only_symbols_name_data() {
    let (memory, types, symbols) = (Memory::new(), types(), symbols());
    assert!(Kernel::new(&memory.ram, &Types::default(), [SATP_SV39]).is_none(), "no page table");
    assert!(Kernel::new(&memory.ram, &types, [0, 0]).is_none(), "no hart translates");
    let namer = DataNamer { symbols: Some(&symbols), types: None, kernel: None };
    assert_eq!(namer.word(KERNEL + 0x8010), "zone+0x10");
    assert_eq!(namer.word(SLAB + 88), "0x80400058");
    assert_eq!(namer.lock(linear(SLAB)), format!("{:#x}", linear(SLAB)));
}

#[test]
fn a_damaged_slab_is_not_named() {
    let plain = format!("{:#x}", SLAB + 0x1058);
    let damages: [(&str, u64, u64); 6] = [
        ("the cache lies nowhere", descriptor(SLAB) + 8, 0xdead_0000_0000_0000),
        ("the cache is not aligned", descriptor(SLAB) + 8, linear(CACHE) + 3),
        ("objects have no size", CACHE + 24, 0),
        ("the name is no text", CACHE_NAME, 0x0102_0304),
        ("the head lies behind", descriptor(SLAB + 0x1000) + 8, linear(descriptor(OTHER)) + 1),
        ("the head is inside a descriptor", descriptor(SLAB + 0x1000) + 8, linear(descriptor(SLAB)) + 9),
    ];
    for (what, address, number) in damages {
        let memory = Memory::new();
        memory.ram.write(address, 8, number);
        assert_eq!(memory.name(SLAB + 0x1058), plain, "{what}");
    }
    let memory = Memory::new();
    memory.put_text(CACHE_NAME, &"x".repeat(3000));
    assert_eq!(memory.name(SLAB + 0x1058), plain, "the name does not end");
}

#[test]
fn a_list_of_tasks_that_is_a_loop_ends() {
    let memory = Memory::new();
    memory.ram.write(TASK + 0x40, 8, linear(TASK + 0x40));
    assert_eq!(memory.name(STACK), "[stack of find]");
    memory.ram.write(TASK + 0x60, 8, linear(TASK + 0x60));
    assert_eq!(memory.name(STACK), "[stack of find]");
    assert_eq!(memory.name(OTHER), format!("{OTHER:#x}"));
}

proptest! {
    /// Damages structures that look-ups read, by random numbers and by numbers that look like pointers.
    #[test]
    fn no_memory_makes_a_look_up_fail(
        damages in prop::collection::vec((0..8usize, 0..512u64, any::<u64>(), 0..3u8), 1..40),
        address in RAM..RAM + RAM_BYTES,
    ) {
        let (memory, types, symbols) = (Memory::new(), types(), symbols());
        let pages = [TABLE, TABLE_OF_KERNEL, VARIABLES, INIT_TASK, CACHE, TASK, descriptor(SLAB) & !0xfff, DESCRIPTORS];
        for (page, word, number, kind) in damages {
            let number = match kind {
                0 => number,
                1 => LINEAR + number % (2 * RAM_BYTES),
                _ => number % 256,
            };
            memory.ram.write(pages[page] + word * 8, 8, number);
        }
        let namer = namer(&memory.ram, &types, &symbols);
        for address in [address, SLAB + 0x1058, descriptor(SLAB), STACK, FIRST_AREA + 0x110, KERNEL + 0x8010] {
            prop_assert!(!namer.word(address).is_empty());
            prop_assert!(!namer.lock(linear(address)).is_empty());
        }
    }
}
