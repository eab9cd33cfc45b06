//! Which structure the objects of a slab cache are.

/// Every structure that names of data need: those of caches, and those that say what a page is for.
pub(super) const STRUCTURES: &[&str] = &structures();

/// Structures that the look-up itself reads, or that pages are described by.
const DESCRIPTIONS: [&str; 5] = ["page", "slab", "ptdesc", "list_head", "thread_union"];

/// Names of caches in Linux 6.12, and the structures that their objects are.
const CACHES: [(&str, &str); 92] = [
    ("PACKET", "packet_sock"),
    ("RAW", "raw_sock"),
    ("TCP", "tcp_sock"),
    ("UDP", "udp_sock"),
    ("UNIX", "unix_sock"),
    ("UNIX-STREAM", "unix_sock"),
    ("aio_kiocb", "aio_kiocb"),
    ("anon_vma", "anon_vma"),
    ("anon_vma_chain", "anon_vma_chain"),
    ("bdev_cache", "bdev_inode"),
    ("bio-136", "bio"),
    ("blkdev_ioc", "io_context"),
    ("buffer_head", "buffer_head"),
    ("cred_jar", "cred"),
    ("debugfs_inode_cache", "debugfs_inode_info"),
    ("dentry", "dentry"),
    ("dio", "dio"),
    ("eventpoll_epi", "epitem"),
    ("eventpoll_pwq", "eppoll_entry"),
    ("ext4_allocation_context", "ext4_allocation_context"),
    ("ext4_extent_status", "extent_status"),
    ("ext4_fc_dentry_update", "ext4_fc_dentry_update"),
    ("ext4_free_data", "ext4_free_data"),
    ("ext4_groupinfo_1k", "ext4_group_info"),
    ("ext4_groupinfo_4k", "ext4_group_info"),
    ("ext4_inode_cache", "ext4_inode_info"),
    ("ext4_io_end", "ext4_io_end"),
    ("ext4_io_end_vec", "ext4_io_end_vec"),
    ("ext4_pending_reservation", "pending_reservation"),
    ("ext4_prealloc_space", "ext4_prealloc_space"),
    ("ext4_system_zone", "ext4_system_zone"),
    ("fasync_cache", "fasync_struct"),
    ("file_lock_cache", "file_lock"),
    ("file_lock_ctx", "file_lock_context"),
    ("files_cache", "files_struct"),
    ("filp", "file"),
    ("fs_cache", "fs_struct"),
    ("fsnotify_mark_connector", "fsnotify_mark_connector"),
    ("fuse_inode", "fuse_inode"),
    ("fuse_request", "fuse_req"),
    ("inode_cache", "inode"),
    ("inotify_inode_mark", "inotify_inode_mark"),
    ("io_kiocb", "io_kiocb"),
    ("iommu_iova", "iova"),
    ("ip_dst_cache", "rtable"),
    ("ip_fib_alias", "fib_alias"),
    ("ip_fib_trie", "key_vector"),
    ("jbd2_inode", "jbd2_inode"),
    ("jbd2_journal_handle", "jbd2_journal_handle"),
    ("jbd2_journal_head", "journal_head"),
    ("jbd2_revoke_record_s", "jbd2_revoke_record_s"),
    ("jbd2_revoke_table_s", "jbd2_revoke_table_s"),
    ("jbd2_transaction_s", "transaction_s"),
    ("kernfs_iattrs_cache", "kernfs_iattrs"),
    ("kernfs_node_cache", "kernfs_node"),
    ("kioctx", "kioctx"),
    ("kmem_cache", "kmem_cache"),
    ("kmem_cache_node", "kmem_cache_node"),
    ("maple_node", "maple_node"),
    ("mm_struct", "mm_struct"),
    ("mnt_cache", "mount"),
    ("mqueue_inode_cache", "mqueue_inode_info"),
    ("net_namespace", "net"),
    ("nsproxy", "nsproxy"),
    ("pde_opener", "pde_opener"),
    ("pid", "pid"),
    ("pid_namespace", "pid_namespace"),
    ("pool_workqueue", "pool_workqueue"),
    ("posix_timers_cache", "k_itimer"),
    ("proc_dir_entry", "proc_dir_entry"),
    ("proc_inode_cache", "proc_inode"),
    ("radix_tree_node", "xa_node"),
    ("request_queue", "request_queue"),
    ("request_sock_TCP", "tcp_request_sock"),
    ("seq_file", "seq_file"),
    ("shmem_inode_cache", "shmem_inode_info"),
    ("sighand_cache", "sighand_struct"),
    ("signal_cache", "signal_struct"),
    ("sigqueue", "sigqueue"),
    ("skbuff_ext_cache", "skb_ext"),
    ("skbuff_fclone_cache", "sk_buff_fclones"),
    ("skbuff_head_cache", "sk_buff"),
    ("sock_inode_cache", "socket_alloc"),
    ("task_delay_info", "task_delay_info"),
    ("task_group", "task_group"),
    ("task_struct", "task_struct"),
    ("tcp_bind_bucket", "inet_bind_bucket"),
    ("trace_event_file", "trace_event_file"),
    ("tw_sock_TCP", "tcp_timewait_sock"),
    ("user_namespace", "user_namespace"),
    ("uts_namespace", "uts_namespace"),
    ("vm_area_struct", "vm_area_struct"),
];

const fn structures() -> [&'static str; CACHES.len() + DESCRIPTIONS.len()] {
    let mut structures = [""; CACHES.len() + DESCRIPTIONS.len()];
    let mut index = 0;
    while index < CACHES.len() {
        structures[index] = CACHES[index].1;
        index += 1;
    }
    while index < structures.len() {
        structures[index] = DESCRIPTIONS[index - CACHES.len()];
        index += 1;
    }
    structures
}

/// The structure that a cache's objects are, without `struct`.
pub(super) fn structure_of(cache: &str) -> Option<&'static str> {
    CACHES.iter().find(|(name, _)| *name == cache).map(|(_, structure)| *structure)
}
