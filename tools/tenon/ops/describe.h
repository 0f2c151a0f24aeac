// SPDX-License-Identifier: MIT
// A primitive's record as text for people.
#ifndef TOOLS_TENON_OPS_DESCRIBE_H
#define TOOLS_TENON_OPS_DESCRIBE_H

#include "base/tool.h"

// Field `i` of a table, whose records may be longer or shorter than tn_attr_field here.
tn_attr_field attr_field(const tn_attr_table *table, uint32_t i);
uint32_t num_outputs(const tn_primitive *primitive);
// Whether the number of outputs depends on the application.
bool counts_outputs(const tn_primitive *primitive);
// Output `i`; one named "out" when the record lists none.
tn_output_info output_info(const tn_primitive *primitive, uint32_t i);

// Name of a field's kind: "int", "float", "dtype", "word", ...
const char *attr_kind_name(const tn_attr_field *field);
// Writes the default value, or "required" when there is none. Returns `text`.
const char *attr_default(const tn_attr_field *field, char *text, size_t size);

// "base.sum(x, axes, keepdims=false) -> out". Free it; NULL when out of memory.
char *signature(const tn_primitive *primitive);

#endif // TOOLS_TENON_OPS_DESCRIBE_H
