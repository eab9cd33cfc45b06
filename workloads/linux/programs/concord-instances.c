/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * concord-instances: runs a command in many processes that start together, in the machine's region of
 * interest (instances.h).
 *
 *	concord-instances [-d DIRECTORY] [-o DIRECTORY] COUNT COMMAND [ARGUMENT...]
 *
 * The process's number, from 0, replaces every "%i" in an argument or a directory. The command runs in
 * the directory of -d. With -o its standard output goes into a file of that directory, named by the
 * number. concord-instances fails if any process fails.
 */
#define _GNU_SOURCE
#include "instances.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
	char **words;
	int words_count;
	const char *directory;
	const char *output_directory;
};

static __attribute__((noreturn)) void usage(void)
{
	fputs("usage: concord-instances [-d DIRECTORY] [-o DIRECTORY] COUNT COMMAND [ARGUMENT...]\n", stderr);
	exit(2);
}

/* Returns `text` with every "%i" replaced, in newly allocated memory. */
static char *numbered(const char *text, unsigned number)
{
	char *result = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&result, &bytes);

	if (!stream)
		die("%s", text);
	while (*text) {
		if (text[0] == '%' && text[1] == 'i') {
			fprintf(stream, "%u", number);
			text += 2;
		} else {
			putc(*text++, stream);
		}
	}
	if (fclose(stream))
		die("%s", text);
	return result;
}

static void redirect(const char *directory, unsigned number)
{
	char path[4096];
	int file;

	snprintf(path, sizeof path, "%s/%u", directory, number);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (file < 0 || dup2(file, STDOUT_FILENO) < 0)
		die("%s", path);
	close(file);
}

static int run(unsigned number, void *context)
{
	const struct command *command = context;
	char **words = calloc((size_t)command->words_count + 1, sizeof *words);

	if (!words)
		die("instance %u", number);
	for (int word = 0; word < command->words_count; word++)
		words[word] = numbered(command->words[word], number);
	if (command->output_directory)
		redirect(command->output_directory, number);
	if (command->directory && chdir(numbered(command->directory, number)))
		die("%s", numbered(command->directory, number));
	execvp(words[0], words);
	die("%s", words[0]);
}

int main(int count, char **words)
{
	struct command command = {0};
	unsigned instances;
	int option;

	/* Options end at the first other word; the options after it belong to the command. */
	while ((option = getopt(count, words, "+d:o:")) != -1) {
		if (option == 'd')
			command.directory = optarg;
		else if (option == 'o')
			command.output_directory = optarg;
		else
			usage();
	}
	if (count - optind < 2)
		usage();
	instances = (unsigned)number_of("COUNT", words[optind], 1, INSTANCES_MAX);
	command.words = words + optind + 1;
	command.words_count = count - optind - 1;
	return instances_run(instances, run, &command) != 0;
}
