// SPDX-License-Identifier: MIT
// Attributes of primitives: plain C structs, which the core fills, hashes and prints by
// their tables of fields (tenon/attr.h).
//
// Threads. Any.
#ifndef CORE_ATTR_ATTRS_H
#define CORE_ATTR_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/attr.h>
#include "../base/hash.h"
#include "intern.h"

// The most fields of a table.
#define MAX_ATTR_FIELDS 32

// Fills `out` (table->size bytes) with defaults and the given values. Errors name the
// field, what was got and what was expected, and for unknown names the nearest one. Texts
// and lists in `out` live as long as `refs`. Gives arrays[i], the array for runtime
// attribute i of the table, where one is given; `arrays` may be NULL: none may be.
tn_status attrs_fill(struct intern_refs *refs, const tn_attr_table *table,
                     tn_attr_list list, void *out, const tn_array **arrays);

// Sets a field to its default.
void attrs_reset(const tn_attr_table *table, uint32_t index, void *attrs);

// TN_ERR_ARGUMENT unless items are as long as those of the first release, or longer.
tn_status attr_list_check(tn_attr_list list);

// Item `i`, as this core's version of the struct: in the list, or copied to `room`.
const tn_attr *attr_list_item(tn_attr_list list, uint64_t i, tn_attr *room);

// Hashes values, never padding. Fields at their default are left out; all NaNs are equal.
struct hash attrs_hash(struct hash h, const tn_attr_table *table, const void *attrs);

// "alpha=4, beta=2", values that attrs_fill and `tenon eval` read back; mem_free the text.
// A STRING stands in quotes, with escapes (\" \\ \n \t \r \xHH). Without `all`, optional
// fields at their default are left out.
char *attrs_print(const tn_attr_table *table, const void *attrs, bool all);

const tn_attr_field *attrs_field(const tn_attr_table *table, uint32_t index);
int attrs_field_index(const tn_attr_table *table, const char *name); // -1: none

#endif // CORE_ATTR_ATTRS_H
