//! The kernel stacks of tasks.

use super::kernel::Kernel;
use concord_mem::ram::PAGE_BYTES;
use std::collections::BTreeMap;

/// Steps along the list of processes, and along those of their threads together. A choice above any number of threads that a guest here has; it ends a list that is a loop.
const STEPS_MAX: usize = 1 << 16;

/// The longest name of a task in bytes (`TASK_COMM_LEN`, with its zero).
const NAME_BYTES_MAX: u64 = 15;

/// The longest stack. A choice above every architecture's.
const STACK_BYTES_MAX: u64 = 1 << 18;

impl Kernel<'_> {
    /// The name of the task on whose kernel stack a physical address lies.
    pub(super) fn stack(&self, address: u64) -> Option<&str> {
        let stacks = self.stacks.get_or_init(|| self.find_stacks().unwrap_or_default());
        stacks.get(&(address / PAGE_BYTES * PAGE_BYTES)).map(String::as_str)
    }

    fn find_stacks(&self) -> Option<BTreeMap<u64, String>> {
        let mut stacks = BTreeMap::new();
        let size_bytes = self.types.size_bytes("thread_union")?.min(STACK_BYTES_MAX);
        for task in self.tasks()? {
            let Some(begin) = self.read_field(task, "task_struct", "stack") else { continue };
            let name = self.types.field("task_struct", "comm").map(|field| task.wrapping_add(field.offset_bytes));
            let name =
                name.and_then(|name| self.read_text(name, NAME_BYTES_MAX)).unwrap_or_else(|| "a task".to_owned());
            for offset in (0..size_bytes).step_by(PAGE_BYTES as usize) {
                if let Some(page) = self.physical(begin.wrapping_add(offset)) {
                    stacks.insert(page / PAGE_BYTES * PAGE_BYTES, name.clone());
                }
            }
        }
        Some(stacks)
    }

    /// The tasks of the kernel, all threads of each.
    fn tasks(&self) -> Option<Vec<u64>> {
        let offset = |structure, member| Some(self.types.field(structure, member)?.offset_bytes);
        let (tasks, thread_node) = (offset("task_struct", "tasks")?, offset("task_struct", "thread_node")?);
        let thread_head = offset("signal_struct", "thread_head")?;
        let first = self.types.root("init_task")?;
        let mut steps = STEPS_MAX;
        let mut found = vec![first];
        for leader in self.list(first.wrapping_add(tasks), &mut { STEPS_MAX }) {
            let leader = leader.wrapping_sub(tasks);
            let Some(signal) = self.read_field(leader, "task_struct", "signal") else { continue };
            let threads = self.list(signal.wrapping_add(thread_head), &mut steps);
            found.extend(threads.into_iter().map(|thread| thread.wrapping_sub(thread_node)));
        }
        Some(found)
    }

    /// The entries of a list after its head, as far as it can be followed.
    fn list(&self, head: u64, steps: &mut usize) -> Vec<u64> {
        let mut entries = Vec::new();
        let mut entry = self.read(head, 8);
        while let Some(address) = entry.filter(|address| *address != head && *steps > 0) {
            *steps -= 1;
            entries.push(address);
            entry = self.read(address, 8);
        }
        entries
    }
}
