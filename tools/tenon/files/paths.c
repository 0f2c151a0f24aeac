// SPDX-License-Identifier: MIT
// Folders of the user and of the installation, and temporary folders.
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool user_folder(const char *xdg, const char *below, const char *name, char **out_path)
{
    const char *value = getenv(xdg), *home = getenv("HOME");
    *out_path = NULL;
    if (value && value[0] == '/')
        *out_path = path_join(value, name);
    else if (!home || home[0] != '/')
        return false;
    else if (asprintf(out_path, "%s/%s/%s", home, below, name) < 0)
        *out_path = NULL;
    return true;
}

bool user_data(const char *name, char **out_path)
{
    return user_folder("XDG_DATA_HOME", ".local/share", name, out_path);
}

bool user_cache(char **out_path)
{
    const char *given = secure_getenv("TENON_CACHE_DIR");
    if (!given || given[0] != '/') // the library says that it ignores others
        return user_folder("XDG_CACHE_HOME", ".cache", "tenon", out_path);
    *out_path = strdup(given);
    return true;
}

int temporary_folder(struct folder *out)
{
    const char *given = getenv("TMPDIR"), *name = given && *given ? given : "/tmp";
    char *whole = realpath(name, NULL);
    if (!whole)
        return oops("cannot make a folder in %s: %s", name, strerror(errno));
    struct folder parent;
    int failed = folder_open(whole, &parent);
    if (!failed) {
        failed = folder_stage(&parent, "tenon-", out);
        folder_close(&parent);
    }
    free(whole);
    return failed;
}

bool own_path(char path[PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = '\0';
    return path[0] == '/';
}

bool find_beside(const char *const *folders, size_t num_folders, const char *name,
                 char path[PATH_MAX])
{
    char own[PATH_MAX];
    if (!own_path(own))
        return false;
    int size = (int)(strrchr(own, '/') - own);
    for (size_t i = 0; i < num_folders; i++) {
        int n = snprintf(path, PATH_MAX, "%.*s/%s/%s", size, own, folders[i], name);
        if (n < PATH_MAX && access(path, F_OK) == 0)
            return true;
    }
    return false;
}
