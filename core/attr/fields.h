// SPDX-License-Identifier: MIT
// Access to single fields of an attribute struct, shared by the files of attr/.
#ifndef CORE_ATTR_FIELDS_H
#define CORE_ATTR_FIELDS_H

#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "attrs.h"
#include "intern.h"

// The 64 bits of a field of any kind but INTS: a double for F64, a pointer for texts and
// lists of any length, else an integer.
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
// The interned value of a field; NULL: not given.
static inline const void *field_pointer(const tn_attr_field *field, const void *attrs)
{
    const void *value;
    memcpy(&value, (const char *)attrs + field->offset, sizeof(value));
    return value;
}
static inline void field_set(const tn_attr_field *field, void *attrs, uint64_t bits)
{
    memcpy((char *)attrs + field->offset, &bits, sizeof(bits));
}
bool field_is_default(const tn_attr_field *field, const void *attrs);

// Checks a value against the field's kind and stores it. TN_ERR_ARGUMENT names the field,
// the value and what the field expects.
tn_status field_store_int(const tn_attr_field *field, void *out, int64_t value);
tn_status field_store_double(const tn_attr_field *field, void *out, double value);
tn_status field_store_ints(const tn_attr_field *field, void *out, const tn_ints *ints);

// A value as it is given: `count` numbers, in `floats` unless that is NULL, else in `ints`.
struct number_list {
    uint64_t count;
    const int64_t *ints;
    const double *floats;
};

// As above for fields of texts and lists; they are interned.
tn_status field_store_list(struct intern_refs *refs, const tn_attr_field *field, void *out,
                           const struct number_list *list);
tn_status field_store_text(struct intern_refs *refs, const tn_attr_field *field, void *out,
                           const char *text);
tn_status field_store_graph(struct intern_refs *refs, const tn_attr_field *field, void *out,
                            const tn_graph *graph);

// Parses the text as one value of the field's kind and stores it.
tn_status field_parse(struct intern_refs *refs, const tn_attr_field *field,
                      const char *text, void *out);

// "an integer", "true or false", "one of 'a', 'b'". Valid until the thread's next call.
const char *field_expects(const tn_attr_field *field);

#endif // CORE_ATTR_FIELDS_H
