//! What a page of memory is for, as its descriptor (`struct page`) says, and the slab object that an address lies in
//! (`mm/slub.c`).
//!
//! Descriptors are found in kernels whose memory is one range (`CONFIG_FLATMEM`) and that keep the use of a page in its
//! `page_type` (Linux 6.11 and later).

use super::caches;
use super::kernel::Kernel;
use concord_mem::ram::PAGE_BYTES;

/// Enumerations whose values the look-up needs.
pub(super) const ENUMERATIONS: &[&str] = &["pagetype"];

/// The uses of pages in the upper bits of `page_type`.
const TYPE_SHIFT: u64 = 24;

/// The longest name of a cache that is believed. A choice.
const NAME_BYTES_MAX: u64 = 63;

/// `page.mapping` of an anonymous page has this bit set (`PAGE_MAPPING_ANON`); with the other one alone it is neither.
const MAPPING_ANONYMOUS: u64 = 1;
const MAPPING_MOVABLE: u64 = 2;

/// A page, or the first one of several that were allocated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its physical address.
    begin: u64,
    /// The kernel's address of its descriptor.
    descriptor: u64,
    usage: Usage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Usage {
    Slab(Cache),
    PageTable,
    Anonymous,
    PageCache,
    Free,
    /// The kernel's, for a purpose of which the descriptor says nothing.
    Other,
}

/// A slab cache.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cache {
    name: String,
    /// From one object to the next.
    stride_bytes: u64,
    object_bytes: u64,
    /// What lies before each object.
    pad_bytes: u64,
}

impl Page {
    pub fn is_free(&self) -> bool {
        self.usage == Usage::Free
    }

    /// In brackets, as it stands in names.
    fn usage_name(&self) -> Option<String> {
        Some(match &self.usage {
            Usage::Slab(cache) => format!("[slab {}]", cache.name),
            Usage::PageTable => "[page table]".to_owned(),
            Usage::Anonymous => "[anonymous page]".to_owned(),
            Usage::PageCache => "[page cache]".to_owned(),
            Usage::Free => "[free page]".to_owned(),
            Usage::Other => return None,
        })
    }
}

/// The array of descriptors.
struct Descriptors {
    /// The kernel's address of the first one.
    begin: u64,
    /// The physical address of the page that it describes.
    memory: u64,
    size_bytes: u64,
    count: u64,
}

impl Kernel<'_> {
    fn descriptors(&self) -> Option<Descriptors> {
        let size_bytes = self.types.size_bytes("page").filter(|size| *size != 0)?;
        let (begin, memory) = (self.read_root("mem_map", 8)?, self.read_root("phys_ram_base", 8)?);
        Some(Descriptors { begin, memory, size_bytes, count: self.memory_bytes() / PAGE_BYTES })
    }

    /// The page that a physical address lies in.
    pub(super) fn page(&self, address: u64) -> Option<Page> {
        let all = self.descriptors()?;
        let index = address.checked_sub(all.memory)? / PAGE_BYTES;
        if index >= all.count {
            return None;
        }
        let head = self.head_of(&all, index)?;
        let descriptor = all.begin.wrapping_add(head * all.size_bytes);
        let usage = self.usage(descriptor).unwrap_or(Usage::Other);
        Some(Page { begin: all.memory + head * PAGE_BYTES, descriptor, usage })
    }

    /// The index of the first page of those that were allocated together with a page.
    fn head_of(&self, all: &Descriptors, index: u64) -> Option<u64> {
        let own = all.begin.wrapping_add(index * all.size_bytes);
        let link = self.read_field(own, "page", "compound_head")?;
        if link & 1 == 0 {
            return Some(index);
        }
        let offset = (link - 1).checked_sub(all.begin)?;
        (offset % all.size_bytes == 0).then_some(offset / all.size_bytes).filter(|head| *head <= index)
    }

    fn usage(&self, descriptor: u64) -> Option<Usage> {
        let page_type = self.read_field(descriptor, "page", "page_type")? >> TYPE_SHIFT;
        let has_type = |name| self.types.constant(name) == Some(page_type);
        if has_type("PGTY_slab") {
            return self.cache(self.read_field(descriptor, "slab", "slab_cache")?).map(Usage::Slab);
        }
        if has_type("PGTY_table") {
            return Some(Usage::PageTable);
        }
        if self.read_field(descriptor, "page", "_refcount")? == 0 {
            return Some(Usage::Free);
        }
        let mapping = self.read_field(descriptor, "page", "mapping")?;
        if mapping & MAPPING_ANONYMOUS != 0 {
            return Some(Usage::Anonymous);
        }
        let is_file = mapping & MAPPING_MOVABLE == 0 && self.physical(mapping).is_some();
        Some(if is_file { Usage::PageCache } else { Usage::Other })
    }

    fn cache(&self, address: u64) -> Option<Cache> {
        let field = |member| self.read_field(address, "kmem_cache", member);
        Some(Cache {
            name: self.read_text(field("name")?, NAME_BYTES_MAX)?,
            stride_bytes: field("size").filter(|size| *size != 0)?,
            object_bytes: field("object_size")?,
            pad_bytes: field("red_left_pad").unwrap_or(0),
        })
    }

    /// The structure that the objects of a cache are. Caches of objects of one size may be one cache with the name of the
    /// first, so the size must fit, too.
    fn structure(&self, cache: &Cache) -> Option<&'static str> {
        let structure = caches::structure_of(&cache.name)?;
        let size_bytes = self.types.size_bytes(structure)?;
        let words = |bytes: u64| bytes.div_ceil(8);
        let fits = words(size_bytes) == words(cache.object_bytes)
            || size_bytes <= cache.object_bytes && self.types.is_open_ended(structure);
        fits.then_some(structure)
    }
}

/// The name of the data at a physical address by the page that it lies in, if that says what they are.
pub(super) fn object_name(kernel: &Kernel, page: &Page, address: u64) -> Option<String> {
    let Usage::Slab(cache) = &page.usage else {
        return page.usage_name().filter(|_| !page.is_free());
    };
    let offset = (address - page.begin) % cache.stride_bytes;
    let named = offset.checked_sub(cache.pad_bytes).and_then(|offset| {
        let structure = kernel.structure(cache)?;
        Some(format!("struct {structure}{}", kernel.types.member_of_structure(structure, offset)?))
    });
    named.or_else(|| Some(format!("[slab {}]+{:#x}", cache.name, offset.saturating_sub(cache.pad_bytes))))
}

/// The name of the data at a physical address in the array of descriptors.
pub(super) fn descriptor_name(kernel: &Kernel, address: u64) -> Option<String> {
    let all = kernel.descriptors()?;
    let offset = address.checked_sub(kernel.physical(all.begin)?)?;
    let (index, offset) = (offset / all.size_bytes, offset % all.size_bytes);
    if index >= all.count {
        return None;
    }
    let page = kernel.page(all.memory + index * PAGE_BYTES);
    let usage = page.as_ref().and_then(Page::usage_name);
    let is_head = page.as_ref().is_some_and(|page| page.descriptor == all.begin.wrapping_add(index * all.size_bytes));
    let structure = match page.as_ref().map(|page| &page.usage) {
        Some(Usage::Slab(_)) if is_head => "slab",
        Some(Usage::PageTable) if is_head => "ptdesc",
        _ => "page",
    };
    let member = kernel.types.member_of_structure(structure, offset)?;
    Some(format!("struct {structure}{member}{}", usage.map_or_else(String::new, |usage| format!(" {usage}"))))
}
