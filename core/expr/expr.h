// SPDX-License-Identifier: MIT
// Expressions: parsed, checked, printed, derived; and compiled to typed programs.
//
//   text  --expr_parse-->  struct expr (untyped tree, immutable, interned)
//         --expr_infer-->  dtypes of the outputs for dtypes of the inputs
//         --expr_compile-> tn_expr_program + params (what a backend runs)
//         --expr_derive--> struct expr of a derivative
//
// Threads. Any: sets are locked; expressions and programs are immutable and live as long as
// the set that they are in.
#ifndef CORE_EXPR_EXPR_H
#define CORE_EXPR_EXPR_H

#include <tenon/attr.h>
#include <tenon/expr.h>
#include "../base/hash.h"
#include "../base/memory.h"
#include "../runtime.h"

struct expr_node; // internal

struct expr {
    struct hash hash; // of the tree
    const char *text; // printed
    uint32_t num_inputs;
    uint32_t num_outputs;
    const char *const *input_names;
    uint32_t num_attrs; // attributes it mentions
    const char *const *attr_names;
    const struct expr_node *const *outputs;
    uint64_t inputs_used; // bit i: input i is mentioned
    bool uses_index;      // the element's number is mentioned
};

// How an input takes part in promotion.
struct expr_input {
    tn_dtype dtype;
    int weak_kind; // 0: as its dtype says; else KIND_SIGNED or KIND_FLOAT: a number
};

// Parses with known input names (num_inputs of them); all other names are attributes, which
// must be in `attrs` when that is not NULL. Gives an interned expression (borrowed). Errors
// say line and column with the text.
tn_status expr_parse(tn_runtime *runtime, const char *text, const char *const *input_names,
                     uint32_t num_inputs, const tn_attr_table *attrs,
                     const struct expr **out_expr);

// The same for "x, y -> alpha * x + y", into a set that the caller holds.
tn_status expr_parse_arrow_into(struct expr_set *set, const char *text,
                                const struct expr **out_expr);
// Into the runtime's own: for the core's few texts.
tn_status expr_parse_arrow(tn_runtime *runtime, const char *text,
                           const struct expr **out_expr);

// --- passing sets ----------------------------------------------------------------------

// Bytes that a passing set takes before the next one begins. About as much again are
// tables.
#define EXPR_SET_LIMIT ((size_t)2 << 20)

// The set that texts of applications go to at present, with a reference; NULL when out of
// memory. What is in a set lives until the last reference is released.
struct expr_set *expr_set_hold(tn_runtime *runtime);
void expr_set_release(struct expr_set *set);
// Whether a held set is still the one to fill.
bool expr_set_has_room(const struct expr_set *set);

// Output dtypes. Literals and attributes are numbers without a dtype of their own.
tn_status expr_infer(const struct expr *expr, const struct expr_input *inputs,
                     tn_dtype *out_dtypes);

// d(output `output`)/d(input `input`), as an expression over the same inputs followed by
// nothing else. *out_expr is NULL when it is zero everywhere.
tn_status expr_derive(const struct expr *expr, uint32_t output, uint32_t input,
                      const struct expr **out_expr);

// The vector-Jacobian product with respect to `input`: an expression over the inputs and
// then one cotangent per output ("ct0", "ct1", ...): sum over outputs of ct * derivative.
// NULL when zero. And the Jacobian-vector product of `output`: over the inputs and then one
// tangent per input ("t0", ...), of which only those in `given` (bits) are used.
tn_status expr_vjp(const struct expr *expr, uint32_t input, uint64_t cotangents_given,
                   const struct expr **out_expr);
tn_status expr_jvp(const struct expr *expr, uint32_t output, uint64_t tangents_given,
                   const struct expr **out_expr);

// The same expression over only the inputs that it mentions: input i of *out_expr is input
// kept[i] (room for 64).
tn_status expr_prune(const struct expr *expr, const struct expr **out_expr, uint32_t *kept);

// The same expression with attributes of the kinds that the table says: parsed without one,
// they are taken for floats, and 2 * k would make integers f64.
tn_status expr_bind(const struct expr *expr, const tn_attr_table *attrs,
                    const struct expr **out_expr);

// The same expression where the element's number starts again every `count` elements: over
// a batch whose slices have as many. The same one when it does not use the number. Into
// `set` when the expression is in the runtime's own.
tn_status expr_repeat(struct expr_set *set, const struct expr *expr, int64_t count,
                      const struct expr **out_expr);

// The input that an expression of one output is, unchanged; -1 for all others.
int expr_is_input(const struct expr *expr);

// Compiles for these dtypes (output dtypes: NULL for those inferred). Gives an interned
// program (borrowed). Params are not in it: program->num_params values, and param i is
// attribute attr_names[i] of the expression. When an attribute is needed both as a float
// and as an integer there are twice as many: the second half has the integers. See
// expr_params. An input that is a number is loaded as its dtype says, and cast to what it
// meets.
tn_status expr_compile(const struct expr *expr, const struct expr_input *inputs,
                       const tn_dtype *output_dtypes, const tn_expr_program **out_program);

// Fills params (program->num_params) from an attribute struct.
tn_status expr_params(const tn_expr_program *program, const struct expr *expr,
                      const tn_attr_table *table, const void *attrs, uint64_t *params);

// Interns a program put together elsewhere (fusion). Copies it. Fills hash.
tn_status program_intern(struct expr_set *set, const tn_expr_program *program,
                         const tn_expr_program **out_program);

// A copy in an arena, for plans, which outlive sets. NULL when out of memory.
const tn_expr_program *program_copy(struct arena *arena, const tn_expr_program *program);

// The identity of one input, compiled: copies, casts, broadcasts.
tn_status program_cast(tn_runtime *runtime, tn_dtype from, tn_dtype to,
                       const tn_expr_program **out_program);

// Prints a program, a line an instruction; mem_free.
char *program_print(const tn_expr_program *program);

// Runs a program for one element, in plain C: the oracle. Values as in params.
void program_run_scalar(const tn_expr_program *program, const uint64_t *inputs,
                        const uint64_t *params, int64_t index, uint64_t *outputs);

// A value converted as CAST does.
uint64_t scalar_cast(tn_dtype from, tn_dtype to, uint64_t bits);

#endif // CORE_EXPR_EXPR_H
