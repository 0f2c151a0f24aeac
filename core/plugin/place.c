// SPDX-License-Identifier: MIT
#include "place.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <tenon/tenon.h>
#include <unistd.h>
#include "../base/fail.h"

#if !defined(TN_SYSTEM_PLUGIN_DIR) || !defined(TN_SYSTEM_TRUST_DIR)
#error                                                                                     \
    "TN_SYSTEM_PLUGIN_DIR and TN_SYSTEM_TRUST_DIR are where plugins and keys are installed"
#endif

static const char *const configured[NUM_PLACES] = {
    [PLACE_PLUGINS] = TN_SYSTEM_PLUGIN_DIR,
    [PLACE_KEYS] = TN_SYSTEM_TRUST_DIR,
};
static const char *const names[NUM_PLACES] = {
    [PLACE_PLUGINS] = "plugins",
    [PLACE_KEYS] = "trust",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char found[NUM_PLACES][PATH_MAX + 32];

// The dynamic linker's name of this code is taken only when it is absolute: the working
// directory, from which another one counts, may have changed, and is never trusted.
static bool own_folder(char folder[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(&once, &info) || !info.dli_fname || info.dli_fname[0] != '/' ||
        !realpath(info.dli_fname, folder))
        return false;
    *strrchr(folder, '/') = 0;
    return true;
}

static void find(void)
{
    char folder[PATH_MAX] = "";
    bool is_beside = own_folder(folder);
    for (int i = 0; i < NUM_PLACES; i++) {
        snprintf(found[i], sizeof(found[i]), "%s/tenon/%s", folder, names[i]);
        is_beside = is_beside && (i != PLACE_PLUGINS || access(found[i], F_OK) == 0);
    }
    for (int i = 0; i < NUM_PLACES && !is_beside; i++)
        snprintf(found[i], sizeof(found[i]), "%s", configured[i]);
}

const char *place_of(enum place place, bool is_elevated)
{
    if (is_elevated)
        return configured[place];
    pthread_once(&once, find);
    return found[place];
}

const char *tn_installed_folder(const char *name)
{
    for (int i = 0; name && i < NUM_PLACES; i++)
        if (strcmp(name, names[i]) == 0)
            return place_of((enum place)i, getauxval(AT_SECURE) != 0);
    fail(TN_ERR_NOT_FOUND, "the installation has no folder '%s'", name ? name : "NULL");
    return NULL;
}
