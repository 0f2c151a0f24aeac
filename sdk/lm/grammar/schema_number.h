// SPDX-License-Identifier: MIT
// Shared by the files that read numbers of JSON schemas.
#ifndef LM_SCHEMA_NUMBER_H
#define LM_SCHEMA_NUMBER_H

#include "schema.h"

struct schema_bounds {
    double low, high; // infinite: none
    bool low_open, high_open;
};

// 10 to the power of an exponent from 0 to 18.
int64_t schema_power(int exponent);

// Decimal places of a number; -1: more than 6.
int schema_decimals(double value);

// Multiples of `of` within bounds; `where` begins messages.
grammar_node schema_multiples(struct grammar_builder *b, const json_t *of,
                              const struct schema_bounds *given, bool is_integer,
                              const char *where);

#endif // LM_SCHEMA_NUMBER_H
