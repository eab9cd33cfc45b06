/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Cases of contend about files, descriptors and messages. */
#define _GNU_SOURCE
#include "contend.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for a path of two numbers. */
#define PATH_BYTES 32

static void *checked(void *memory, const struct worker *worker)
{
	if (!memory)
		die("worker %u", worker->number);
	return memory;
}

static int checked_file(int file, const struct worker *worker)
{
	if (file < 0)
		die("worker %u", worker->number);
	return file;
}

/* Descriptors: one table of all threads. Its lock is file_lock. */

/* Bits of a word of the table's maps. */
#define WORD_BITS 64

static void allow_descriptors(struct worker *workers)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("the limit of descriptors");
	limit.rlim_cur = WORD_BITS * (workers->workers + 2);
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_max = limit.rlim_cur;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("%lu descriptors", (unsigned long)limit.rlim_cur);
}

/* Opens a file of the worker's own, so that workers do not share its count of references. */
static void open_own(struct worker *worker)
{
	worker->file = checked_file(open("/dev/null", O_RDWR), worker);
}

/* Fills and empties an entry of the table. Entries of two workers have their bits in different words. */
static int duplicate_to_own(struct worker *worker, unsigned round)
{
	int wanted = WORD_BITS * ((int)worker->number + 1);

	(void)round;
	return dup2(worker->file, wanted) == wanted && close(wanted) == 0;
}

/* Takes and returns the lowest free entry of the table, which all workers look for. */
static int duplicate_to_lowest(struct worker *worker, unsigned round)
{
	int found = dup(worker->file);

	(void)round;
	return found >= 0 && close(found) == 0;
}

/* Names: a directory of the worker's own. */

static void enter_own_directory(struct worker *worker)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%u", worker->number);
	if (mkdir(path, 0755) || chdir(path))
		die("directory %s", path);
}

static void enter_with_a_file(struct worker *worker)
{
	enter_own_directory(worker);
	worker->file = checked_file(open("0", O_WRONLY | O_CREAT | O_EXCL, 0644), worker);
}

/* Creates and removes a file. The locks are the file system's list of inodes, and in ext4 the journal's. */
static int create_file(struct worker *worker, unsigned round)
{
	int file = open("file", O_WRONLY | O_CREAT | O_EXCL, 0644);

	(void)worker, (void)round;
	return file >= 0 && close(file) == 0 && unlink("file") == 0;
}

/* rmdir fails unless the directory is empty. */
static int directories_are_empty(struct worker *workers)
{
	for (unsigned number = 0; number < workers->workers; number++) {
		char path[PATH_BYTES];

		snprintf(path, sizeof path, "%u", number);
		if (rmdir(path))
			return 0;
	}
	return 1;
}

/* Renames a file in its directory. The lock is that of all renames (rename_lock). */
static int rename_file(struct worker *worker, unsigned round)
{
	(void)worker;
	return rename(round % 2 ? "1" : "0", round % 2 ? "0" : "1") == 0;
}

static int files_have_their_last_names(struct worker *workers)
{
	for (unsigned number = 0; number < workers->workers; number++) {
		char path[PATH_BYTES];

		snprintf(path, sizeof path, "%u/%u", number, workers->rounds % 2);
		if (unlink(path))
			return 0;
	}
	return directories_are_empty(workers);
}

static unsigned directories_seen, directory_wanted;
static char *directory_found;

static int see_directory(const char *path, const struct stat *state, int type, struct FTW *place)
{
	(void)state;
	/* The directories of processes and of system controls have other locks. */
	if (place->level == 1 && (isdigit((unsigned char)path[place->base]) || !strcmp(path, "/proc/sys")))
		return FTW_SKIP_SUBTREE;
	if (type == FTW_D && place->level > 0 && directories_seen++ == directory_wanted)
		directory_found = strdup(path);
	return FTW_CONTINUE;
}

static void see_directories(unsigned wanted)
{
	directories_seen = 0;
	directory_wanted = wanted;
	if (nftw("/proc", see_directory, 16, FTW_PHYS | FTW_ACTIONRETVAL) || !directories_seen)
		die("/proc");
}

/* Opens a directory of /proc, another one for each worker as long as there are enough. */
static void open_proc(struct worker *worker)
{
	see_directories(~0u);
	see_directories(worker->number % directories_seen);
	worker->file = checked_file(open(checked(directory_found, worker), O_RDONLY | O_DIRECTORY), worker);
}

/* Looks up a name that is not there. The lock is that of the tree of /proc, taken to read (proc_subdir_lock). */
static int look_up(struct worker *worker, unsigned round)
{
	struct stat state;

	(void)round;
	return fstatat(worker->file, "contend", &state, 0) == -1 && errno == ENOENT;
}

/* Contents. */

#define RECORDS 512

/* Opens a file of the worker's own, with space for all records. */
static void open_records(struct worker *worker)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%u", worker->number);
	worker->file = checked_file(open(path, O_RDWR | O_CREAT | O_EXCL, 0644), worker);
}

/* Writes eight bytes to the worker's own file. */
static int write_record(struct worker *worker, unsigned round)
{
	uint64_t record = round + 1ul;

	return pwrite(worker->file, &record, sizeof record, round % RECORDS * sizeof record) == sizeof record;
}

static int last_records_are_there(struct worker *workers)
{
	uint64_t records[RECORDS + 1];
	unsigned rounds = workers->rounds;
	size_t count = rounds < RECORDS ? rounds : RECORDS;

	for (unsigned number = 0; number < workers->workers; number++) {
		char path[PATH_BYTES];
		int file;

		snprintf(path, sizeof path, "%u", number);
		file = checked_file(open(path, O_RDONLY), &workers[number]);
		if (read(file, records, sizeof records) != (ssize_t)(count * sizeof *records))
			return 0;
		for (unsigned round = rounds - (unsigned)count; round < rounds; round++) {
			if (records[round % RECORDS] != round + 1ul)
				return 0;
		}
		close(file);
		unlink(path);
	}
	return 1;
}

static void make_file(struct worker *workers)
{
	close(checked_file(open("file", O_RDWR | O_CREAT | O_EXCL, 0644), workers));
}

static void open_file(struct worker *worker)
{
	worker->file = checked_file(open("file", O_RDWR), worker);
}

static int remove_file(struct worker *workers)
{
	(void)workers;
	return unlink("file") == 0;
}

/* Opens and closes one file of all workers. The lock is in its directory entry's count of references. */
static int open_one(struct worker *worker, unsigned round)
{
	int file = open("file", O_RDONLY);

	(void)worker, (void)round;
	return file >= 0 && close(file) == 0;
}

static int set_lock(const struct worker *worker, int file, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = worker->number, .l_len = 1};

	return fcntl(file, F_SETLK, &lock) == 0;
}

/* Locks and unlocks a byte of the worker's own in one file. The spinlock is that of the file's locks (flc_lock). */
static int lock_byte(struct worker *worker, unsigned round)
{
	(void)round;
	return set_lock(worker, worker->file, F_WRLCK) && set_lock(worker, worker->file, F_UNLCK);
}

/* The same in a file of the worker's own: only the locks of all files' locks are everybody's. */
static void open_own_file(struct worker *worker)
{
	enter_own_directory(worker);
	worker->file = checked_file(open("file", O_RDWR | O_CREAT | O_EXCL, 0644), worker);
	unlink("file");
}

/* Messages. */

static int counter;

static void make_counter(struct worker *workers)
{
	counter = checked_file(eventfd(0, EFD_NONBLOCK), workers);
}

/* Adds to one counter of all threads. The lock is that of its waiters. */
static int add_one(struct worker *worker, unsigned round)
{
	uint64_t one = 1;

	(void)worker, (void)round;
	return write(counter, &one, sizeof one) == sizeof one;
}

static int counter_has_all(struct worker *workers)
{
	uint64_t sum;

	return read(counter, &sum, sizeof sum) == sizeof sum && sum == (uint64_t)workers->workers * workers->rounds;
}

/* A pair of sockets of the worker's own, and a socket to send. */
struct sockets {
	int pair[2];
	int sent;
	ino_t inode;
};

static void make_sockets(struct worker *worker)
{
	struct sockets *sockets = checked(malloc(sizeof *sockets), worker);
	struct stat state;

	checked_file(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets->pair), worker);
	sockets->sent = checked_file(socket(AF_UNIX, SOCK_DGRAM, 0), worker);
	checked_file(fstat(sockets->sent, &state), worker);
	sockets->inode = state.st_ino;
	worker->bytes = (char *)sockets;
}

/* Sends a socket through another and receives it. The lock is that of all sockets under way (unix_gc_lock). */
static int send_socket(struct worker *worker, unsigned round)
{
	const struct sockets *sockets = (struct sockets *)worker->bytes;
	char byte = (char)round;
	struct iovec vector = {&byte, 1};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {0};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof control};
	struct stat state;
	int received;

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &sockets->sent, sizeof(int));
	if (sendmsg(sockets->pair[0], &message, 0) != 1)
		return 0;
	byte = (char)(round + 1);
	if (recvmsg(sockets->pair[1], &message, 0) != 1 || byte != (char)round || !CMSG_FIRSTHDR(&message))
		return 0;
	memcpy(&received, CMSG_DATA(&control.header), sizeof received);
	return fstat(received, &state) == 0 && state.st_ino == sockets->inode && close(received) == 0;
}

const struct contention file_cases[] = {
	/* Disjoint data. */
	{.name = "procfs", .kind = PROCESSES, .rounds = 1000, .prepare = open_proc, .operate = look_up},
	{.name = "inodes", .kind = PROCESSES, .rounds = 100, .prepare = enter_own_directory, .operate = create_file,
	 .check = directories_are_empty},
	{.name = "superblock", .kind = PROCESSES, .rounds = 300, .prepare = enter_own_directory, .operate = create_file,
	 .check = directories_are_empty},
	{.name = "rename", .kind = PROCESSES, .rounds = 500, .prepare = enter_with_a_file, .operate = rename_file,
	 .check = files_have_their_last_names},
	{.name = "dup", .kind = THREADS, .rounds = 1000, .set_up = allow_descriptors, .prepare = open_own,
	 .operate = duplicate_to_own},
	{.name = "write", .kind = PROCESSES, .rounds = 3000, .prepare = open_records, .operate = write_record,
	 .check = last_records_are_there},
	{.name = "file-locks", .kind = PROCESSES, .rounds = 500, .set_up = make_file, .prepare = open_file,
	 .operate = lock_byte, .check = remove_file},
	{.name = "file-locks-own", .kind = PROCESSES, .rounds = 1000, .prepare = open_own_file, .operate = lock_byte,
	 .check = directories_are_empty},
	/* Shared data. */
	{.name = "descriptors", .kind = THREADS, .rounds = 1000, .prepare = open_own, .operate = duplicate_to_lowest},
	{.name = "open", .kind = PROCESSES, .rounds = 500, .set_up = make_file, .operate = open_one, .check = remove_file},
	{.name = "eventfd", .kind = THREADS, .rounds = 1000, .set_up = make_counter, .operate = add_one,
	 .check = counter_has_all},
	{.name = "scm", .kind = PROCESSES, .rounds = 300, .prepare = make_sockets, .operate = send_socket},
	{.name = NULL},
};
