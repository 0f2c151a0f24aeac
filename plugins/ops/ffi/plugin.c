// SPDX-License-Identifier: MIT
// org.tenon.ffi: C functions as primitives. Registers callbacks and makes packs for
// applications, and runs the functions of all packs (engine.h).
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/ffi.h>
#include "callback.h"
#include "make.h"
#include "rules.h"

// Writes DIRECTORY/ID/ID.so; without a directory only checks the manifest.
static tn_status ffi_make_in(const char *manifest, const char *directory, char *id,
                             struct problem *problem)
{
    char path[4096];
    tn_status status = pack_write(manifest, NULL, !directory, id, problem);
    if (status != TN_OK || !directory)
        return status;
    if (snprintf(path, sizeof(path) - 80, "%s/%s", directory, id) >= (int)sizeof(path) - 80)
        return problem_set(problem, TN_ERR_ARGUMENT, "the directory's name is too long");
    if (mkdir(path, 0755)) {
        struct stat info;
        if (stat(path, &info) || !S_ISDIR(info.st_mode))
            return problem_set(problem, TN_ERR_IO, "%s cannot be made", path);
    }
    size_t length = strlen(path);
    snprintf(path + length, sizeof(path) - length, "/%s.so", id);
    return pack_write(manifest, path, false, id, problem);
}

static tn_status ffi_pack_make(const tn_host *host, const char *manifest,
                               const char *directory, char *out_id)
{
    struct problem problem = {0};
    tn_status status = ffi_make_in(manifest, directory, out_id, &problem);
    return status == TN_OK ? TN_OK : host->fail(host, status, "%s", problem.text);
}

static const tn_ffi interface = {
    .struct_size = sizeof(interface),
    .callback_add = callback_add,
    .callback_remove = callback_remove,
    .pack_make = ffi_pack_make,
};

static const void *ffi_query(const char *id)
{
    static const char *const own[] = {FFI_IFACE_ENGINE, TN_IFACE_FFI, NULL};
    if (strcmp(id, FFI_IFACE_ENGINE) == 0)
        return &ffi_engine;
    if (strcmp(id, TN_IFACE_FFI) == 0)
        return &interface;
    return strcmp(id, TN_IFACE_LIST) == 0 ? own : NULL;
}

TN_PLUGIN("org.tenon.ffi", "0.1.0", "Tenon", .init = callbacks_open,
          .deinit = callbacks_close, .query = ffi_query);
