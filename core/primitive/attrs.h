// SPDX-License-Identifier: MIT
// What the files about attributes share.
#ifndef CORE_PRIMITIVE_ATTRS_H
#define CORE_PRIMITIVE_ATTRS_H

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "prim_set.h"

#define MAX_ATTR_FIELDS 32

// The bits of a field; not for INTS.
static inline uint64_t field_bits(const tn_attr_field *field, const void *attrs)
{
    uint64_t bits;
    memcpy(&bits, (const char *)attrs + field->offset, sizeof(bits));
    return bits;
}
static inline const tn_ints *field_ints(const tn_attr_field *field, const void *attrs)
{
    return (const tn_ints *)((const char *)attrs + field->offset);
}
static inline void field_set(const tn_attr_field *field, void *attrs, uint64_t bits)
{
    memcpy((char *)attrs + field->offset, &bits, sizeof(bits));
}
uint64_t field_default(const tn_attr_field *field);
bool field_is_default(const tn_attr_field *field, const void *attrs);

// Clears the struct and writes the defaults.
void attrs_defaults(const tn_attr_table *table, void *out);

// All required fields are in `given` (bits), or an error.
tn_status attrs_check_given(const tn_attr_table *table, uint64_t given);

// Stores a value after checking it against the field's kind.
tn_status field_store_int(const tn_attr_field *field, void *out, int64_t value);
tn_status field_store_double(const tn_attr_field *field, void *out, double value);
tn_status field_store_ints(const tn_attr_field *field, void *out, const tn_ints *ints);

// Reads one value, the whole of text[0 .. size).
tn_status field_parse(const tn_attr_field *field, const char *text, size_t size, void *out);

// "an integer", "true or false", "one of 'a', 'b'"; in a buffer of the thread.
const char *field_expects(const tn_attr_field *field);
tn_status attrs_unknown(const tn_attr_table *table, const char *name);

#endif // CORE_PRIMITIVE_ATTRS_H
