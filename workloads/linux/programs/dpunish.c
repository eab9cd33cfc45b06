/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * dpunish: stresses the directory entry cache by parallel renames across directories. It follows the
 * microbenchmark of that name in "TxLinux", SOSP 2007, Table 5, whose source is not public.
 *
 *	dpunish INSTANCES DIRECTORIES FILES RENAMES FILE-SYSTEM...
 *
 * Each file system (given as the absolute path of an empty directory) gets DIRECTORIES directories. The
 * INSTANCES processes are assigned to the file systems in turn. Each process spreads FILES files over
 * the directories of its file system. Then, RENAMES times, it moves one of its files to another
 * directory under the same name and checks that the file is there and no longer at its old place.
 * After each rename it also looks up a file of a neighbour, which may or may not exist at that place.
 *
 * Linux admits one rename across directories at a time in each file system, so the renames are
 * parallel only because there are several file systems. All of them share the directory entry cache,
 * its hash and its rename lock.
 *
 * At the end every file must be in exactly one directory and have its original inode number.
 */
#define _GNU_SOURCE
#include "instances.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough for the longest path below a file system: "DIRECTORY/INSTANCE.FILE", all three numbers. */
#define PATH_BYTES 48

struct plan {
	unsigned instances, directories, files, renames;
	unsigned file_systems_count;
	char **file_systems;
	/* Inode number by instance and file. Shared by all processes. */
	ino_t *inodes;
	/* How often the last check found each file. */
	unsigned *found;
};

static void name(char *path, unsigned directory, unsigned instance, unsigned file)
{
	snprintf(path, PATH_BYTES, "%u/%u.%u", directory, instance, file);
}

/* Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003): the triple 13, 7, 17. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int is_there(const char *path, ino_t inode)
{
	struct stat state;

	return stat(path, &state) == 0 && state.st_ino == inode;
}

static int is_gone(const char *path)
{
	struct stat state;

	return stat(path, &state) != 0 && errno == ENOENT;
}

static int look_for_neighbour(const struct plan *plan, unsigned number, uint64_t *random)
{
	unsigned neighbour = (number + plan->file_systems_count) % plan->instances;
	char path[PATH_BYTES];
	struct stat state;

	name(path, (unsigned)(next_random(random) % plan->directories), neighbour, (unsigned)(next_random(random) % plan->files));
	return stat(path, &state) == 0 || errno == ENOENT;
}

static int rename_files(unsigned number, void *context)
{
	const struct plan *plan = context;
	/* An odd multiple of a large constant: not 0, and far from the states of other instances. */
	uint64_t random = (2 * (uint64_t)number + 1) * 0x9e3779b97f4a7c15;
	unsigned *places = calloc(plan->files, sizeof *places);

	if (!places || chdir(plan->file_systems[number % plan->file_systems_count]))
		die("instance %u", number);
	for (unsigned file = 0; file < plan->files; file++)
		places[file] = (number + file) % plan->directories;
	for (unsigned turn = 0; turn < plan->renames; turn++) {
		unsigned file = (unsigned)(next_random(&random) % plan->files);
		unsigned step = 1 + (unsigned)(next_random(&random) % (plan->directories - 1));
		unsigned place = (places[file] + step) % plan->directories;
		ino_t inode = plan->inodes[number * plan->files + file];
		char from[PATH_BYTES], to[PATH_BYTES];

		name(from, places[file], number, file);
		name(to, place, number, file);
		if (rename(from, to))
			die("instance %u: rename %s to %s", number, from, to);
		places[file] = place;
		if (!is_there(to, inode) || !is_gone(from)) {
			fprintf(stderr, "instance %u: %s is not what was renamed to it, or still %s\n", number, to, from);
			return 1;
		}
		if (!look_for_neighbour(plan, number, &random))
			die("instance %u looks for its neighbour's file", number);
	}
	return 0;
}

static void make_files(struct plan *plan)
{
	char path[PATH_BYTES];
	struct stat state;

	for (unsigned system = 0; system < plan->file_systems_count; system++) {
		if (chdir(plan->file_systems[system]))
			die("%s", plan->file_systems[system]);
		for (unsigned directory = 0; directory < plan->directories; directory++) {
			snprintf(path, sizeof path, "%u", directory);
			if (mkdir(path, 0755))
				die("%s/%s", plan->file_systems[system], path);
		}
		for (unsigned number = system; number < plan->instances; number += plan->file_systems_count) {
			for (unsigned file = 0; file < plan->files; file++) {
				name(path, (number + file) % plan->directories, number, file);
				int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

				if (descriptor < 0 || fstat(descriptor, &state) || close(descriptor))
					die("%s/%s", plan->file_systems[system], path);
				plan->inodes[number * plan->files + file] = state.st_ino;
			}
		}
	}
}

/* Counts the files of one directory in plan->found. Returns the number of unexpected names and wrong inodes. */
static unsigned count_directory(struct plan *plan, unsigned system, const char *directory)
{
	DIR *entries = opendir(directory);
	unsigned wrong = 0;

	if (!entries)
		die("%s", directory);
	for (struct dirent *entry; (entry = readdir(entries));) {
		unsigned number, file;
		char rest;

		if (entry->d_name[0] == '.')
			continue;
		if (sscanf(entry->d_name, "%u.%u%c", &number, &file, &rest) != 2 || number >= plan->instances ||
		    file >= plan->files || number % plan->file_systems_count != system ||
		    plan->inodes[number * plan->files + file] != entry->d_ino) {
			fprintf(stderr, "%s/%s is not what was made\n", directory, entry->d_name);
			wrong++;
			continue;
		}
		plan->found[number * plan->files + file]++;
	}
	closedir(entries);
	return wrong;
}

/* Returns the number of files that are not in exactly one directory, and of unexpected names. */
static unsigned count_files(struct plan *plan)
{
	char path[PATH_BYTES];
	unsigned wrong = 0;

	for (unsigned system = 0; system < plan->file_systems_count; system++) {
		if (chdir(plan->file_systems[system]))
			die("%s", plan->file_systems[system]);
		for (unsigned directory = 0; directory < plan->directories; directory++) {
			snprintf(path, sizeof path, "%u", directory);
			wrong += count_directory(plan, system, path);
		}
	}
	for (unsigned index = 0; index < plan->instances * plan->files; index++) {
		if (plan->found[index] != 1) {
			fprintf(stderr, "%u.%u is there %u times\n", index / plan->files, index % plan->files, plan->found[index]);
			wrong++;
		}
	}
	return wrong;
}

int main(int count, char **words)
{
	struct plan plan;
	size_t files;
	unsigned failed, wrong;

	if (count < 6) {
		fputs("usage: dpunish INSTANCES DIRECTORIES FILES RENAMES FILE-SYSTEM...\n", stderr);
		return 2;
	}
	plan.instances = (unsigned)number_of("INSTANCES", words[1], 1, INSTANCES_MAX);
	plan.directories = (unsigned)number_of("DIRECTORIES", words[2], 2, 1000);
	plan.files = (unsigned)number_of("FILES", words[3], 1, 1000);
	plan.renames = (unsigned)number_of("RENAMES", words[4], 1, 1000000000);
	plan.file_systems = words + 5;
	plan.file_systems_count = (unsigned)count - 5;
	files = (size_t)plan.instances * plan.files;
	plan.inodes = mmap(NULL, files * sizeof *plan.inodes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	plan.found = calloc(files, sizeof *plan.found);
	if (plan.inodes == MAP_FAILED || !plan.found)
		die("%zu files", files);

	make_files(&plan);
	failed = instances_run(plan.instances, rename_files, &plan);
	wrong = count_files(&plan);
	printf("dpunish: %u instances renamed %u times each; %u failed, %u of %zu files are wrong\n", plan.instances, plan.renames,
	       failed, wrong, files);
	return failed || wrong;
}
