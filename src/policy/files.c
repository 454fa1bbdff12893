/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

void file_list_done(struct file_list *list)
{
        for (size_t i = 0; i < list->n_paths; i++)
                free(list->paths[i]);
        free(list->paths);
        *list = (struct file_list){ 0 };
}

/* Takes @path, also on failure. */
static int file_list_append(struct file_list *list, char *path)
{
        char **paths;

        if (!path)
                return -ENOMEM;
        paths = reallocarray(list->paths, list->n_paths + 1, sizeof(*paths));
        if (!paths) {
                free(path);
                return -ENOMEM;
        }
        list->paths = paths;
        paths[list->n_paths++] = path;
        return 0;
}

static bool name_is_yaml(const char *name)
{
        const char *dot = strrchr(name, '.');

        return name[0] != '.' && dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int directory_append(struct file_list *list, const char *path, const char *name)
{
        struct stat status;
        char *joined;

        if (asprintf(&joined, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name) < 0)
                return -ENOMEM;

        /* What cannot be looked at stays in the list: reading it says why. */
        if (stat(joined, &status) == 0 && !S_ISREG(status.st_mode)) {
                free(joined);
                return 0;
        }
        return file_list_append(list, joined);
}

static int compare_paths(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int directory_read(DIR *directory, const char *path, struct file_list *list)
{
        struct dirent *entry;
        int r;

        for (errno = 0; (entry = readdir(directory)); errno = 0) {
                if (!name_is_yaml(entry->d_name))
                        continue;
                r = directory_append(list, path, entry->d_name);
                if (r < 0)
                        return r;
        }
        if (errno)
                return -errno;

        if (list->n_paths)
                qsort(list->paths, list->n_paths, sizeof(*list->paths), compare_paths);
        return 0;
}

int file_list_read(const char *path, struct file_list *ret_list)
{
        _cleanup_(file_list_done) struct file_list list = { 0 };
        _cleanup_(closedirp) DIR *directory = opendir(path);
        int r;

        if (directory)
                r = directory_read(directory, path, &list);
        else if (errno == ENOTDIR)
                r = file_list_append(&list, strdup(path));
        else
                r = -errno;
        if (r < 0)
                return r;

        *ret_list = list;
        list = (struct file_list){ 0 };
        return 0;
}

int file_read(const char *path, char **ret_text, size_t *ret_length)
{
        _cleanup_(freep) char *text = malloc(FILE_BYTES_MAX + 1);
        _cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t length = 0;
        ssize_t n;

        if (fd < 0)
                return -errno;
        if (!text)
                return -ENOMEM;

        while ((n = read(fd, text + length, FILE_BYTES_MAX + 1 - length)) != 0) {
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0)
                        length += (size_t)n;
                if (length > FILE_BYTES_MAX)
                        return -EFBIG;
        }

        *ret_text = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}
