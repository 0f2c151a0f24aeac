// SPDX-License-Identifier: MIT
// Files of graphs: what is loaded is saved, and loaded again as the same graphs.
#include "fuzz.h"
#include <jansson.h>
#include <tenon/graph_format.h>

enum { RUNTIME_LASTS = 2000 }; // inputs: a runtime keeps what it has read

static tn_runtime *runtime;
static unsigned used;

static void fresh_runtime(void)
{
    static const char *const variables[] = {"TENON_LOG=off", "TENON_BACKEND=null", NULL};
    if (runtime && used++ < RUNTIME_LASTS)
        return;
    FUZZ_CHECK(tn_runtime_close(runtime) == TN_OK, "%s", tn_last_error());
    used = 0;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    FUZZ_CHECK(tn_runtime_open(&options, &runtime) == TN_OK, "%s", tn_last_error());
}

// The bytes as the text of a file, with one array that it may name; NULL: no UTF-8.
static const char *write_file(const uint8_t *data, size_t size)
{
    json_t *text = json_stringn((const char *)data, size);
    json_t *all = text ? json_pack("{s:{s:o}, s:{s:s, s:[i], s:[i, i]}}", "__metadata__",
                                   "tenon.graph", text, "c0", "dtype", "F32", "shape", 2,
                                   "data_offsets", 0, 8)
                       : NULL;
    char *header = all ? json_dumps(all, JSON_COMPACT) : NULL;
    uint64_t length = header ? strlen(header) : 0;
    uint8_t *file = malloc(length + 16);
    const char *path = NULL;
    if (header && file) {
        memset(file, 0, length + 16);
        memcpy(file, &length, 8);
        memcpy(file + 8, header, length);
        path = fuzz_path(file, length + 16);
    }
    free(file);
    free(header);
    json_decref(all);
    return path;
}

static void check_again(const tn_graph_file *file)
{
    char path[96];
    const tn_graph_file *again = NULL;
    tn_scope *s = tn_scope_open(runtime);
    tn_graph_signature list[64];
    uint64_t count = file->num_signatures < 64 ? file->num_signatures : 64;
    snprintf(path, sizeof(path), "%s/out.graph", fuzz_folder());
    for (uint64_t i = 0; i < count; i++)
        list[i] = *file->signatures[i];
    FUZZ_CHECK(tn_graph_save(s, path, list, count, NULL) == TN_OK, "%s", tn_scope_error(s));
    FUZZ_CHECK(tn_graph_load(runtime, path, NULL, &again) == TN_OK, "%s", tn_last_error());
    FUZZ_CHECK(again->num_signatures == count, "signatures");
    for (uint64_t i = 0; i < count; i++)
        FUZZ_CHECK(again->signatures[i]->graph == list[i].graph, "graph %d is another one",
                   (int)i);
    tn_graph_unload(runtime, again);
    tn_scope_close(s);
}

static void check_description(const char *path)
{
    const void *table = NULL;
    const tn_host *host = NULL;
    char *text = NULL;
    FUZZ_CHECK(tn_interface_find(runtime, TN_IFACE_GRAPH_FORMAT, &table, &host) == TN_OK,
               "%s", tn_last_error());
    const tn_graph_format *format = table;
    tn_scope *s = tn_scope_open(runtime);
    FUZZ_CHECK(format->describe(host, s, path, &text) == TN_OK, "%s", tn_last_error());
    json_t *json = json_loads(text, 0, NULL);
    FUZZ_CHECK(json, "%s", text);
    json_decref(json);
    host->free(host, text);
    tn_scope_close(s);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    fresh_runtime();
    const tn_graph_file *file = NULL;
    const char *path = write_file(data, size);
    if (!path)
        return;
    if (tn_graph_load(runtime, path, NULL, &file) != TN_OK) {
        FUZZ_CHECK(tn_last_error()[0] && !file, "a failure has a text and gives nothing");
        return;
    }
    check_description(path);
    check_again(file);
    tn_graph_unload(runtime, file);
}
