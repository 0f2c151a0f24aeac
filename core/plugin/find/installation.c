// SPDX-License-Identifier: MIT
// Finds the installation by the path of the loaded libtenon.
#include "installation.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <tenon/tenon.h>
#include <unistd.h>
#include "../../base/fail.h"

#if !defined(TN_SYSTEM_PLUGIN_DIR) || !defined(TN_SYSTEM_TRUST_DIR)
#error                                                                                     \
    "TN_SYSTEM_PLUGIN_DIR and TN_SYSTEM_TRUST_DIR are where plugins and keys are installed"
#endif

static const char *const configured[NUM_INSTALLED] = {
    [INSTALLED_PLUGINS] = TN_SYSTEM_PLUGIN_DIR,
    [INSTALLED_KEYS] = TN_SYSTEM_TRUST_DIR,
};
static const char *const names[NUM_INSTALLED] = {
    [INSTALLED_PLUGINS] = "plugins",
    [INSTALLED_KEYS] = "trust",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char found[NUM_INSTALLED][PATH_MAX + 32];

// The directory of libtenon's file. A relative name from the dynamic linker is not used:
// the working directory may have changed since, and is never trusted.
static bool own_directory(char directory[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(&once, &info) || !info.dli_fname || info.dli_fname[0] != '/' ||
        !realpath(info.dli_fname, directory))
        return false;
    *strrchr(directory, '/') = 0;
    return true;
}

const char *installed_relative(void)
{
    Dl_info info;
    char beside[PATH_MAX];
    struct stat there, ours;
    const char *path = dladdr(&once, &info) ? info.dli_fname : NULL;
    const char *slash = path && path[0] != '/' ? strrchr(path, '/') : NULL;
    if (!slash)
        return NULL;
    snprintf(beside, sizeof(beside), "%.*s/tenon/%s", (int)(slash - path), path,
             names[INSTALLED_PLUGINS]);
    bool has_own = stat(beside, &there) == 0;
    bool has_other = stat(configured[INSTALLED_PLUGINS], &ours) == 0;
    bool is_same =
        has_own && has_other && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
    return (has_own || has_other) && !is_same ? path : NULL;
}

// All directories lie beside libtenon, or none: the plugins' directory decides.
static void installation_find(void)
{
    char directory[PATH_MAX] = "";
    bool is_beside = own_directory(directory);
    for (int i = 0; i < NUM_INSTALLED; i++) {
        snprintf(found[i], sizeof(found[i]), "%s/tenon/%s", directory, names[i]);
        is_beside = is_beside && (i != INSTALLED_PLUGINS || access(found[i], F_OK) == 0);
    }
    for (int i = 0; i < NUM_INSTALLED && !is_beside; i++)
        snprintf(found[i], sizeof(found[i]), "%s", configured[i]);
}

const char *installed_directory(enum installed_kind kind, bool is_elevated)
{
    if (is_elevated)
        return configured[kind];
    pthread_once(&once, installation_find);
    return found[kind];
}

const char *tn_installed_folder(const char *name)
{
    for (int i = 0; name && i < NUM_INSTALLED; i++)
        if (strcmp(name, names[i]) == 0)
            return installed_directory((enum installed_kind)i, getauxval(AT_SECURE) != 0);
    fail(TN_ERR_NOT_FOUND, "the installation has no folder '%s'", name ? name : "NULL");
    return NULL;
}
