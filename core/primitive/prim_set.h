// SPDX-License-Identifier: MIT
// The registry of primitives and kernels, and what is derived from attribute tables.
//
// Threads. Any. Entries never move and live until the runtime closes.
#ifndef CORE_PRIMITIVE_PRIM_SET_H
#define CORE_PRIMITIVE_PRIM_SET_H

#include <tenon/kernel.h>
#include <tenon/primitive.h>
#include "../base/hash.h"
#include "../runtime.h"

// How many inputs a primitive may name, and how many outputs it may have.
#define MAX_INPUTS 64
#define MAX_OUTPUTS 8

// The most bytes of a struct that crosses the ABI, of this version or a later one; and the
// most entries of a list that ends with NULL. A larger one is damaged: reading it would
// leave the plugin's memory.
#define MAX_RECORD 1024
#define MAX_NAMES 256

struct plugin;
struct expr;

struct kernel_entry {
    tn_kernel kernel;      // a copy as this core knows the struct
    const char *plugin_id; // borrowed
    uint32_t specificity;  // number of dtypes accepted, summed over operands: fewer is more
    struct kernel_entry *next; // of the same primitive, in the order of choice within a
                               // family: priority, specificity, plugin id, name
};

// The id of the plugin that a registered kernel is from.
static inline const char *kernel_plugin(const tn_kernel *kernel)
{
    return ((const struct kernel_entry *)kernel)->plugin_id; // its first field
}

struct prim {
    tn_primitive record; // a copy as this core knows the struct; num_outputs >= 1
    struct hash id_hash;
    struct plugin *plugin;   // NULL for the core's own and for tests
    const tn_host *host;     // of its plugin
    const struct expr *expr; // parsed record.expr, or NULL
    struct kernel_entry *kernels;
    bool kernels_loaded; // plugin_load_kernels has run (set by the scheduler)
    // By output: number + 1 of the input that it may take over, or 0.
    uint32_t in_place_of[MAX_OUTPUTS];
};

// Checks a record (id, names, tables, one meaning at least, expr parses) and adds it.
// Errors name the plugin, the primitive and the field.
tn_status prim_register(tn_runtime *runtime, struct plugin *plugin, const tn_host *host,
                        const tn_primitive *record);
tn_status kernel_register(tn_runtime *runtime, struct plugin *plugin, const char *plugin_id,
                          const tn_kernel *record);

// Takes back all primitives and kernels of a plugin that is refused after all. Entries that
// somebody found meanwhile stay in memory.
void prims_forget(tn_runtime *runtime, const struct plugin *plugin);

// By id with or without revision or by name alone; loads its pack if need be.
tn_status prim_find(tn_runtime *runtime, const char *name, const struct prim **out_prim);

// tn.copy/1, the core's own: the elements of its input, in order.
const struct prim *prim_copy(const tn_runtime *runtime);

// The primitive with this role (TN_ROLE_...); loads packs by their manifests if need be:
// the manifest's primitive named base.<role's name>, then any registered one.
tn_status prim_find_role(tn_runtime *runtime, const char *role,
                         const struct prim **out_prim);

// --- attributes (attrs.c) --------------------------------------------------------------

// Fills `out` (table->size bytes) with defaults and the given values. Errors name the
// field, what was got and what was expected, and for unknown names the nearest one.
tn_status attrs_fill(const tn_attr_table *table, tn_attr_list list, void *out);

// Content only, never padding; fields at their default are left out; NaNs are one value.
struct hash attrs_hash(struct hash h, const tn_attr_table *table, const void *attrs);
bool attrs_equal(const tn_attr_table *table, const void *a, const void *b);

// "alpha=4, beta=2" (attrs_parse reads it back); mem_free the text.
char *attrs_print(const tn_attr_table *table, const void *attrs, bool all);
tn_status attrs_parse(const tn_attr_table *table, const char *text, void *out);

// Named fields in byte order, little-endian, defaults left out; mem_free the bytes.
tn_status attrs_serialise(const tn_attr_table *table, const void *attrs, void **out_bytes,
                          size_t *out_size);
tn_status attrs_deserialise(const tn_attr_table *table, const void *bytes, size_t size,
                            void *out);

// The value of a field as the bits of a param: a double for F64, an integer for others.
const tn_attr_field *attrs_field(const tn_attr_table *table, uint32_t index);
int attrs_field_index(const tn_attr_table *table, const char *name); // -1: none

#endif // CORE_PRIMITIVE_PRIM_SET_H
