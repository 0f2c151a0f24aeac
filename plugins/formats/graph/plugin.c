// SPDX-License-Identifier: MIT
// Files of graphs: safetensors files with a further text in JSON. The constants are the
// file's arrays, so readers of weights read these, too. See docs/graph-files.md.
#include <string.h>
#include <tenon/plugin.h>
#include "document.h"

const char *const attr_kinds[TN_ATTR_GRAPH + 1] = {
    [TN_ATTR_BOOL] = "bool",         [TN_ATTR_I64] = "i64",
    [TN_ATTR_F64] = "f64",           [TN_ATTR_DTYPE] = "dtype",
    [TN_ATTR_CHOICE] = "choice",     [TN_ATTR_INTS] = "ints",
    [TN_ATTR_BITS] = "bits",         [TN_ATTR_STRING] = "string",
    [TN_ATTR_INT_LIST] = "int_list", [TN_ATTR_FLOAT_LIST] = "float_list",
    [TN_ATTR_GRAPH] = "graph",
};

tn_type stored_type(const tn_type *type)
{
    tn_type stored = *type;
    if (!is_paired(type->dtype))
        return stored;
    stored = (tn_type){.dtype = TN_F64, .rank = 2, .extent = {1, 2}};
    for (int32_t i = 0; i < type->rank; i++)
        stored.extent[0] *= type->extent[i];
    return stored;
}

tn_status read_struct(const tn_host *host, void *own, uint64_t own_size, const void *given,
                      uint64_t size, const char *what)
{
    const unsigned char *bytes = given;
    memset(own, 0, own_size);
    if (!given)
        return TN_OK;
    size = size ? size : own_size;
    memcpy(own, given, size < own_size ? size : own_size);
    for (uint64_t i = own_size; i < size; i++)
        if (bytes[i])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "%s: byte %u is not 0, which this version does not know",
                              what, (unsigned)i);
    return TN_OK;
}

static const tn_graph_format format = {
    .struct_size = sizeof(format),
    .save = graph_save,
    .load = graph_load,
    .unload = graph_unload,
    .describe = graph_describe,
};

static const void *graph_format_query(const char *id)
{
    static const char *const interfaces[] = {TN_IFACE_GRAPH_FORMAT, NULL};
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return interfaces;
    return strcmp(id, TN_IFACE_GRAPH_FORMAT) == 0 ? &format : NULL;
}

TN_PLUGIN("org.tenon.graph", "0.1.0", "Tenon", .query = graph_format_query);
