/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The first program of a small guest that tests kernel modules: it loads each file of /modules in the order of their
 * names, unloads it again, reports the result, and powers off. The words after "--" on the kernel's command line are
 * the modules' parameters.
 *
 * A host that reads the console finds one line for each module, "init: NAME: passed" or "init: NAME: REASON", and at
 * the end "init: done".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER "/modules"
#define PARAMETERS_BYTES_MAX 1024
#define NAME_BYTES_MAX 64

static int is_module(const struct dirent *entry)
{
    const char *suffix = strrchr(entry->d_name, '.');
    return suffix && !strcmp(suffix, ".ko");
}

/* The kernel's name of a module: the file's name with `_` for `-`. */
static void name_module(const char *file, char name[NAME_BYTES_MAX])
{
    snprintf(name, NAME_BYTES_MAX, "%.*s", (int)strcspn(file, "."), file);
    for (char *hyphen = name; (hyphen = strchr(hyphen, '-'));)
        *hyphen = '_';
}

/* Loads and unloads a module. Returns the reason of a failure, or null. */
static const char *test(const char *file, const char *parameters)
{
    char path[sizeof(FOLDER) + 256], name[NAME_BYTES_MAX];

    snprintf(path, sizeof(path), FOLDER "/%s", file);
    name_module(file, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return strerror(errno);
    long failed = syscall(SYS_finit_module, descriptor, parameters, 0);
    if (!failed)
        failed = syscall(SYS_delete_module, name, 0);
    int error = errno;
    close(descriptor);
    return failed ? strerror(error) : NULL;
}

int main(int count, char **words)
{
    char parameters[PARAMETERS_BYTES_MAX] = "";
    struct dirent **entries;

    setvbuf(stdout, NULL, _IONBF, 0);
    for (int index = 1; index < count; index++) {
        size_t length = strlen(parameters);
        snprintf(parameters + length, sizeof(parameters) - length, "%s%s", index > 1 ? " " : "", words[index]);
    }
    int modules = scandir(FOLDER, &entries, is_module, alphasort);
    if (modules < 0)
        printf("init: " FOLDER ": %s\n", strerror(errno));
    for (int index = 0; index < modules; index++) {
        const char *reason = test(entries[index]->d_name, parameters);
        printf("init: %s: %s\n", entries[index]->d_name, reason ? reason : "passed");
    }
    printf("init: done\n");
    reboot(RB_POWER_OFF);
    /* Powering off has failed. The first program must not end. */
    for (;;)
        pause();
}
