// SPDX-License-Identifier: MIT
// Shared by the generator's files: its state, types and variables.
#ifndef TESTS_COMPILER_GENERATOR_H
#define TESTS_COMPILER_GENERATOR_H

#include "generate.h"

enum kind { BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, NUM_KINDS };

// A scalar or vector.
struct shape {
    enum kind kind;
    uint32_t width; // 1 .. 4
};

enum { MOST_VARIABLES = 48, MOST_HELPERS = 8, MOST_PARAMS = 4, NAME_BYTES = 24 };

struct variable {
    char name[NAME_BYTES]; // or an expression that can be assigned to: "s1.a"
    struct shape shape;    // of an element, where it is an array
    uint32_t elements;     // of an array: 2, 4 or 8; 0: it is none
    bool is_constant;
};

// A function that expressions and statements call.
struct helper {
    char name[NAME_BYTES];
    struct shape result;
    struct shape params[MOST_PARAMS];
    char modes[MOST_PARAMS]; // 'i'n, 'o'ut or in'b'oth
    uint32_t num_params;
    bool is_pure; // its parameters are all `in`
};

struct generator {
    uint64_t state;
    char *text;
    size_t size, capacity;
    uint32_t indent;
    struct variable variables[MOST_VARIABLES];
    uint32_t num_variables;
    struct helper helpers[MOST_HELPERS];
    uint32_t num_helpers;
    uint32_t next_name;
    uint32_t budget; // statements that a function may still have
    bool is_precise; // floats are rounded: all variables of floats are precise
    bool is_helper;  // writing a helper: no other helper is called, no barrier
};

uint32_t random_below(struct generator *g, uint32_t end);
static inline bool chance(struct generator *g, uint32_t percent)
{
    return random_below(g, 100) < percent;
}

__attribute__((format(printf, 2, 3))) void put(struct generator *g, const char *format,
                                               ...);
void begin_line(struct generator *g);
void open_block(struct generator *g);
void close_block(struct generator *g, const char *text);

static inline bool is_float(enum kind kind)
{
    return kind >= F32;
}
static inline bool is_signed(enum kind kind)
{
    return kind == I8 || kind == I16 || kind == I32 || kind == I64;
}
uint32_t kind_bits(enum kind kind);
const char *type_name(struct shape shape); // "i16vec3"; static text

struct shape random_shape(struct generator *g);
// A variable with this shape, or an array of it (want_array); NULL: there is none.
const struct variable *pick_variable(struct generator *g, struct shape shape,
                                     bool want_array, bool to_assign);

// An expression of this shape. Those of floats are within 2^15, and multiples of 1/64
// (exact ones).
void put_expression(struct generator *g, struct shape shape, uint32_t depth);
// A float expression that an assignment takes: brought back to multiples of 1/8 up to 64.
void put_value(struct generator *g, struct shape shape, uint32_t depth);
// A value for a parameter of a function.
void put_argument(struct generator *g, struct shape shape, uint32_t depth);
// A sum of at most two floats that need no rounding, of magnitude 128 at most.
void put_sum(struct generator *g, struct shape shape);
// A literal of the shape's scalar type.
void put_literal(struct generator *g, enum kind kind);

// NULL: there are enough.
struct variable *add_variable(struct generator *g, const char *name, struct shape shape,
                              uint32_t elements, bool is_constant);
const char *precision(const struct generator *g, enum kind kind); // "precise ", or ""

void statement(struct generator *g, uint32_t depth, bool in_loop);
void statements(struct generator *g, uint32_t count, uint32_t depth, bool in_loop);
// In uniform flow: what another invocation has stored; atomics, whose result is the same in
// each order; subgroup operations, whose result is the same for each size of subgroups.
void share(struct generator *g);
void share_atomically(struct generator *g);
void vote(struct generator *g);

#endif // TESTS_COMPILER_GENERATOR_H
