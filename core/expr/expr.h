// SPDX-License-Identifier: MIT
// Expressions: parsed, checked, printed, derived; and compiled to typed programs.
//
// An expression that reduces is applied along one axis of its operands' common extents: the
// attribute "axis", an integer, and -1 when the attribute table has none.
//
//   text  --expr_parse-->  struct expr (untyped tree, immutable, interned)
//         --expr_infer-->  dtypes of the outputs for dtypes of the inputs
//         --expr_compile-> tn_expr_program + params (what a backend runs)
//         --expr_derive--> struct expr of a derivative
//
// Threads. Any: sets are locked; expressions and programs are immutable and live as long as
// the set that interns them.
#ifndef CORE_EXPR_EXPR_H
#define CORE_EXPR_EXPR_H

#include <tenon/attr.h>
#include <tenon/expr.h>
#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/runtime.h"

struct expr_node; // see tree.h

struct expr {
    struct hash hash; // of the outputs' trees, without the names of inputs
    const char *text; // as printed; parses back to the same trees
    uint32_t num_inputs;
    uint32_t num_outputs;
    const char *const *input_names;
    uint32_t num_attrs; // attributes in the trees, in the order of first appearance
    const char *const *attr_names;
    uint32_t num_operations, num_reductions; // in the trees, leaves left out
    uint32_t num_scalars;                    // operations on attributes and numbers alone
    const struct expr_node **scalars;
    const struct expr_node *const *outputs;
    uint64_t inputs_used; // bit i: input i is in a tree; i < 64
    bool uses_index;      // `index`, the element's row-major number, is in a tree
    bool reduces;         // a reduction over a row is in a tree
    bool makes_complex;   // a tree has complex numbers, whatever the inputs are
};

// How an input takes part in promotion.
struct expr_input {
    tn_dtype dtype;
    // 0: promotes by its dtype. Else a weakly typed number, which promotes as a literal
    // does (NEP 50): KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT or KIND_COMPLEX.
    int weak_kind;
    bool is_known; // `bits` is the value of a weakly typed number
    uint64_t bits;
};

// Parses `text` into the runtime's permanent set, and gives an interned expression
// (borrowed). Names that are neither inputs nor constants are attributes, and must be in
// `attrs` when that is not NULL. Errors show the line with a caret.
tn_status expr_parse(tn_runtime *runtime, const char *text, const char *const *input_names,
                     uint32_t num_inputs, const tn_attr_table *attrs,
                     const struct expr **out_expr);

// Parses "x, y -> alpha * x + y" into a set that the caller holds. Every attribute counts
// as a float; see expr_bind.
tn_status expr_parse_arrow_into(struct expr_set *set, const char *text,
                                const struct expr **out_expr);
// expr_parse_arrow_into the runtime's permanent set, for the few texts of the core itself.
tn_status expr_parse_arrow(tn_runtime *runtime, const char *text,
                           const struct expr **out_expr);

// --- transient sets --------------------------------------------------------------------

// Bytes in the arena of a transient set before the next set begins. The set's lookup tables
// take about as much again.
#define EXPR_SET_LIMIT ((size_t)2 << 20)

// The transient set being filled, with a reference; NULL when out of memory. Expressions
// from applications go there, and live until the last reference to their set is released.
struct expr_set *expr_set_hold(tn_runtime *runtime);
void expr_set_release(struct expr_set *set);
// The set of an expression, with a reference; NULL: the permanent one.
struct expr_set *expr_set_share(const struct expr *expr);
// False once a held set has reached EXPR_SET_LIMIT: hold the next one.
bool expr_set_has_room(const struct expr_set *set);

// The dtypes of the outputs by NumPy's promotion. Literals and attributes are weakly typed.
// An integer number whose value is known and that the other operand's dtype does not hold
// is an error in arithmetic, and compares as it is.
tn_status expr_infer(const struct expr *expr, const struct expr_input *inputs,
                     tn_dtype *out_dtypes);

// The derivative of output `output` by input `input`, as an expression over the same
// inputs. *out_expr is NULL when the derivative is zero everywhere.
tn_status expr_derive(const struct expr *expr, uint32_t output, uint32_t input,
                      const struct expr **out_expr);

// expr_vjp: the vector-Jacobian product by `input`, the sum over outputs of cotangent times
// derivative, as an expression over the inputs and then one cotangent per output ("ct0",
// ...). expr_jvp: the Jacobian-vector product of `output`, over the inputs and then one
// tangent per input ("t0", ...). Bit i of `cotangents_given` or `tangents_given` says
// whether cotangent or tangent i is used; the others count as zero. *out_expr is NULL when
// the product is zero everywhere.
//
// `complex_inputs`: bit i for input i that is complex. Then cotangents are as in PyTorch:
// of a holomorphic function the cotangent times the conjugate of its derivative. That of a
// real input is real.
tn_status expr_vjp(const struct expr *expr, uint32_t input, uint64_t cotangents_given,
                   uint64_t complex_inputs, const struct expr **out_expr);
tn_status expr_jvp(const struct expr *expr, uint32_t output, uint64_t tangents_given,
                   uint64_t complex_inputs, const struct expr **out_expr);

// Drops the inputs that are in no tree: input i of *out_expr is input kept[i] of `expr`
// (room for 64).
tn_status expr_prune(const struct expr *expr, const struct expr **out_expr, uint32_t *kept);

// The same expression with the attribute kinds of the table. Parsed without a table, every
// attribute counts as a float, so 2 * k would turn integers into f64.
tn_status expr_bind(const struct expr *expr, const tn_attr_table *attrs,
                    const struct expr **out_expr);

// For vmap: the same expression, but `index` starts again every `count` elements, the size
// of a slice of the batch. Gives `expr` itself when it does not use `index`. The result
// goes to the expression's set; to `set` when the expression is in the permanent set.
tn_status expr_repeat(struct expr_set *set, const struct expr *expr, int64_t count,
                      const struct expr **out_expr);

// The axis, from the front, of the attribute "axis" for operands of this rank; -1: out of
// range. `table` may be NULL.
int32_t expr_axis(const tn_attr_table *table, const void *attrs, int32_t rank);

// For programs, whose rows are along the last axis: the same expression for operands that
// had the extents of `type` before axis `axis` was moved behind the others. `index` still
// gives the number in the operands' own order.
tn_status expr_row_last(const struct expr *expr, const tn_type *type, int32_t axis,
                        const struct expr **out_expr);

// Splits an expression that reduces into elementwise expressions. Part i of the first
// *out_reductions is the argument of reduction i, a TN_EXPR_REDUCE_ or EXPR_MEAN; the part
// behind them has the outputs. The inputs of a part are those of `expr`, then the results
// of the reductions before it ("r0", ...).
enum { EXPR_MEAN = -1 };
#define EXPR_MAX_REDUCTIONS 32
tn_status expr_count_parts(const struct expr *expr, int32_t reductions[EXPR_MAX_REDUCTIONS],
                           uint32_t *out_reductions);
tn_status expr_part(const struct expr *expr, uint32_t part, const struct expr **out_expr);

// An operation of an expression, as one over at most three operands: results of earlier
// ones, by number, or inputs of the whole, input i as -1 - i.
struct expr_step {
    const struct expr *expr;
    uint32_t num_inputs;
    int32_t from[3];
};

// Gives the operations in order, in new memory (mem_free), and where the outputs come from.
tn_status expr_unfold(const struct expr *expr, struct expr_step **out_steps,
                      uint32_t *out_count, int32_t *outputs);

// The number of the input that is the expression's only output, unchanged; else -1.
int expr_is_input(const struct expr *expr);
// Whether the expression's only output is the product of its two inputs.
bool expr_is_product(const struct expr *expr);

// Compiles for these dtypes (output_dtypes NULL: as inferred) and gives an interned program
// (borrowed). The values of params come from expr_params: param i is attribute
// attr_names[i]. When some attribute is needed as a float and as an integer, there are
// twice num_attrs and the second half has the integers. Behind them are the scalars. A
// weakly typed input is loaded in its dtype and cast to the dtype of the other operand.
// Integers compare exactly: where no dtype holds both operands (u64 and i64), and where a
// number is too large for the other's.
tn_status expr_compile(const struct expr *expr, const struct expr_input *inputs,
                       const tn_dtype *output_dtypes, const tn_expr_program **out_program);

// Dtypes of the operands of one application of an expression.
struct expr_types {
    struct expr_input inputs[TN_EXPR_MAX_INPUTS];
    tn_dtype outputs[TN_EXPR_MAX_OUTPUTS];
};

// The value of an expression whose inputs are all known integer numbers, when it is an
// integer number, too. *out_kind is KIND_SIGNED or KIND_UNSIGNED (above INT64_MAX), or 0
// when the value is no such number, or is computed by operations that are not folded. An
// error when it fits neither i64 nor u64.
tn_status expr_fold(const struct expr *expr, const struct expr_input *inputs, int *out_kind,
                    uint64_t *out_bits);

// Fills program->num_params params from an attribute struct.
tn_status expr_params(const tn_expr_program *program, const struct expr *expr,
                      const tn_attr_table *table, const void *attrs, uint64_t *params);

// expr_params into memory of `arena`. *out_params is NULL when there are none.
tn_status expr_params_in(struct arena *arena, const tn_expr_program *program,
                         const struct expr *expr, const tn_attr_table *table,
                         const void *attrs, const uint64_t **out_params);

// Checks a program, compiled or made by fusion, against the limits and interns a copy with
// its hash.
tn_status program_intern(struct expr_set *set, const tn_expr_program *program,
                         const tn_expr_program **out_program);

// The set of complex dtypes in the instructions of an interned program.
uint32_t program_complex(const tn_expr_program *program);

// A copy in `arena`, because plans outlive transient sets. NULL when out of memory.
const tn_expr_program *program_copy(struct arena *arena, const tn_expr_program *program);

// The compiled identity of one input: runs copies, casts and broadcasts.
tn_status program_cast(tn_runtime *runtime, tn_dtype from, tn_dtype to,
                       const tn_expr_program **out_program);

// Runs a program on one element in plain C, for constants. Inputs, params and outputs are
// 64 bits: floats as a double, integers extended. No output is complex, and no input has an
// imaginary part.
void program_run_scalar(const tn_expr_program *program, const uint64_t *inputs,
                        const uint64_t *params, int64_t index, uint64_t *outputs);

// Runs a program, or row program, on host memory in plain C: the reference for every
// backend. The layouts are those of a tn_step.
void program_run(const tn_expr_program *program, const uint64_t *params,
                 const tn_tensor *inputs, const tn_tensor *outputs);

// Converts a value as the instruction CAST does.
uint64_t scalar_cast(tn_dtype from, tn_dtype to, uint64_t bits);

// Creates and destroys runtime->exprs, the permanent set.
tn_status expr_set_create(tn_runtime *runtime);
void expr_set_destroy(tn_runtime *runtime);

#endif // CORE_EXPR_EXPR_H
