// SPDX-License-Identifier: MIT
// Finds the ops.json that describes an operator.
#include "described.h"
#include "plugins/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One plugin's file, by the plugin's number in the runtime.
struct described {
    tn_runtime *runtime;
    struct ops_file **files; // NULL: not read, or there is none
    uint64_t count;
};

int described_create(tn_runtime *runtime, struct described **out)
{
    uint64_t count = tn_plugin_count(runtime);
    struct described *made = calloc(1, sizeof(*made));
    if (made)
        made->files = calloc(count + 1, sizeof(struct ops_file *));
    if (!made || !made->files) {
        free(made);
        return oops_memory();
    }
    made->runtime = runtime;
    made->count = count;
    *out = made;
    return 0;
}

void described_free(struct described *described)
{
    if (!described)
        return;
    for (uint64_t i = 0; i < described->count; i++)
        ops_file_free(described->files[i]);
    free(described->files);
    free(described);
}

static bool lists_operator(const tn_plugin_info *info, const char *id)
{
    for (const char *const *listed = info->primitives; listed && *listed; listed++)
        if (strcmp(*listed, id) == 0)
            return true;
    return false;
}

// Reads the plugin's file; *out is NULL where its manifest lists none.
static int read_ops_file(tn_runtime *runtime, const tn_plugin_info *info,
                         struct ops_file **out)
{
    char *text = NULL, *path = NULL;
    uint64_t size = 0;
    tn_status status = tn_plugin_read(runtime, info->id, OPS_FILE, OPS_MOST, &text, &size);
    if (status == TN_ERR_NOT_FOUND)
        return 0;
    if (status)
        return oops_library();
    int failed = asprintf(&path, "%s/" OPS_FILE, info->directory) < 0
                     ? oops_memory()
                     : ops_file_parse(text, size, path, out);
    free(path);
    tn_text_free(text);
    return failed;
}

static int find_in_file(struct ops_file *file, const tn_plugin_info *info, const char *id,
                        const tn_primitive **out)
{
    for (uint32_t i = 0; i < ops_file_count(file); i++)
        if (strcmp(ops_file_at(file, i)->id, id) == 0) {
            *out = ops_file_at(file, i);
            return 0;
        }
    return oops("%s/" OPS_FILE " says nothing of '%s', which plugin.json lists: install "
                "the plugin again",
                info->directory, id);
}

int described_find(struct described *described, const char *id,
                   const tn_primitive **out_primitive)
{
    tn_plugin_info info = {.struct_size = sizeof(info)};
    uint64_t i = 0;
    for (; i < described->count; i++)
        if (tn_plugin_get(described->runtime, i, &info) == TN_OK &&
            plugin_is_in_use(&info) && lists_operator(&info, id))
            break;
    if (i < described->count && !described->files[i]) {
        int failed = read_ops_file(described->runtime, &info, &described->files[i]);
        if (failed)
            return failed;
    }
    if (i < described->count && described->files[i])
        return find_in_file(described->files[i], &info, id, out_primitive);
    *out_primitive = tn_primitive_find(described->runtime, id);
    return *out_primitive ? 0 : oops_library();
}

// --- names -----------------------------------------------------------------------------

// How well `name` means `id` ("base.add/1"): 3 the whole, 2 without the revision, 1 without
// the pack; 0: not at all.
static int ops_described_fit(const char *id, const char *name)
{
    size_t bare = strcspn(id, "/"), length = strlen(name);
    const char *dot = memrchr(id, '.', bare);
    if (strcmp(id, name) == 0)
        return 3;
    if (length == bare && strncmp(id, name, bare) == 0)
        return 2;
    return dot && length == bare - (size_t)(dot + 1 - id) &&
           strncmp(dot + 1, name, length) == 0;
}

static bool is_newer(const char *id, const char *than)
{
    return atol(strchr(id, '/') + 1) > atol(strchr(than, '/') + 1);
}

const char *described_id(const tn_runtime *runtime, const char *name)
{
    const char *found = NULL;
    int best = 0;
    for (const char *const *id = tn_primitive_names((tn_runtime *)(uintptr_t)runtime);
         id && *id; id++) {
        int fits = strchr(*id, '/') ? ops_described_fit(*id, name) : 0;
        bool is_other = found && strncmp(found, *id, strcspn(found, "/") + 1) != 0;
        if (fits == 0 || fits < best)
            continue;
        if (fits == best && is_other)
            return NULL; // of several packs the library chooses
        if (fits > best || is_newer(*id, found))
            found = *id;
        best = fits;
    }
    return found;
}
