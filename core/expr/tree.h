// SPDX-License-Identifier: MIT
// Shared by the files of expr/: trees of expressions, the sets that intern them, and the
// tables of operations.
//
// A tree is immutable and hash-consed: equal subexpressions are one node, so pointers
// compare and common subexpressions are shared by construction. Depth is limited, and only
// the printer recurses over it.
#ifndef CORE_EXPR_TREE_H
#define CORE_EXPR_TREE_H

#include <pthread.h>
#include <stdatomic.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/lookup.h"
#include "expr.h"

// Operations that only trees have, numbered after the instructions of programs. TN_EXPR_DIV
// in a tree is true division.
enum {
    TREE_INPUT = TN_EXPR_NUM_OPS,
    TREE_ATTR,
    TREE_NUMBER,
    TREE_ALL,  // && of bools
    TREE_ANY,  // || of bools
    TREE_MEAN, // REDUCE_SUM over EXTENT
    TREE_NUM_OPS
};

#define TREE_MAX_NODES 4096 // of one expression
#define TREE_MAX_DEPTH 1500 // of one expression, derivatives included
#define PARSE_MAX_DEPTH 200 // of nested brackets and prefix operators
#define PARSE_MAX_TREE 300  // depth of a parsed tree: leaves room for its derivatives

struct expr_node {
    struct hash hash;
    uint16_t op;
    uint8_t num_args;
    uint8_t kind;     // NUMBER and ATTR: the dtype_kind by which the value promotes
    tn_dtype dtype;   // CAST
    uint32_t index;   // INPUT
    uint32_t depth;   // 0 for leaves
    uint64_t bits;    // NUMBER: a double for KIND_FLOAT and KIND_COMPLEX (the imaginary
                      // part; the real one is 0), else an integer
    const char *name; // ATTR; interned, so pointers compare
    const struct expr_node *args[3];
};

// Nodes, expressions and programs that are interned together and freed together. The
// permanent set holds the meanings of primitives and lives as long as the runtime. Texts of
// applications go to transient sets, filled one after the other up to EXPR_SET_LIMIT and
// reference-counted: scopes and plans in the making hold the sets that they use. Trees
// refer to nodes of their own set and of the permanent set.
struct expr_set {
    pthread_mutex_t lock; // for the arena and all insertions; lookups take no lock
    struct arena arena;
    struct expr_set *permanent; // searched first; NULL in the permanent set itself
    atomic_uint refs;           // of a transient set
    atomic_bool full;           // of a transient set: reached EXPR_SET_LIMIT
    struct expr_set *current;   // of the permanent set: the transient set being filled
    struct lookup names, nodes, exprs;
    struct lookup parsed;   // text, names of inputs and attribute table -> expr
    struct lookup derived;  // expr and transformation -> expr, or a mark for zero
    struct lookup compiled; // expr and dtypes -> program
    struct lookup programs; // contents -> program
    struct lookup inferred; // expr and dtypes -> dtypes of the outputs
};

// Every struct expr lies in one of these; see expr_set_of.
struct interned_expr {
    struct expr expr; // first, so that pointers convert
    struct expr_set *set;
    // The output's dtype by the dtype that all inputs share; 0: not known yet. One output
    // only.
    _Atomic uint8_t alike[TN_NUM_DTYPES];
};

// The set that interns an expression. Derived expressions go there, too, because their
// trees refer to its nodes.
static inline struct expr_set *expr_set_of(const struct expr *expr)
{
    return ((const struct interned_expr *)expr)->set;
}

// Marks a transient set as full when its arena exceeds EXPR_SET_LIMIT. The lock is held.
void expr_set_mark_full(struct expr_set *set);

// The lookup key of a result that depends on an expression and its inputs' dtypes. False
// when there are more inputs than TN_EXPR_MAX_INPUTS.
bool expr_dtypes_key(const struct expr *expr, const struct expr_input *inputs,
                     uint64_t seed, struct hash *out);

// --- building trees (tree.c) -----------------------------------------------------------

// A builder of nodes. The first failure stays in `status`; later calls give NULL, and NULL
// is accepted as an operand.
struct tree {
    struct expr_set *set;
    tn_status status;
    bool has_complex; // derivatives are of complex numbers, see derive.c
};

const struct expr_node *tree_number(struct tree *t, int kind, uint64_t bits);
const struct expr_node *tree_int(struct tree *t, int64_t value);
const struct expr_node *tree_float(struct tree *t, double value);
// `value` times the imaginary unit.
const struct expr_node *tree_imaginary(struct tree *t, double value);
const struct expr_node *tree_input(struct tree *t, uint32_t index);
const struct expr_node *tree_attr(struct tree *t, const char *name, int kind);
const struct expr_node *tree_cast(struct tree *t, tn_dtype dtype,
                                  const struct expr_node *a);
// Folds constants: an operation on numbers gives a number.
const struct expr_node *tree_op(struct tree *t, int op, const struct expr_node *a,
                                const struct expr_node *b, const struct expr_node *c);

// Interns the expression of these outputs. Copies the names.
const struct expr *tree_expr(struct tree *t, const struct expr_node *const *outputs,
                             uint32_t num_outputs, const char *const *input_names,
                             uint32_t num_inputs);

// --- walking (walk.c) ------------------------------------------------------------------

// The nodes of an expression, each once, in topological order (arguments first). The order
// depends on the structure alone.
struct walk {
    const struct expr_node **nodes;
    uint32_t count, capacity;
    uint32_t *table;     // hash table: position + 1 by node; 0: free
    uint32_t table_size; // a power of two
};
tn_status walk_init(struct walk *walk, const struct expr_node *const *outputs,
                    uint32_t num_outputs);
void walk_finish(struct walk *walk);
uint32_t walk_position(const struct walk *walk, const struct expr_node *node);
// Says which nodes are complex when these inputs are (bit i: input i); true when one is.
bool walk_complex(const struct walk *walk, uint64_t inputs, bool *is_complex);

// --- operations (ops.c) ----------------------------------------------------------------

struct op_info {
    const char *text; // as printed
    uint8_t class;    // TN_EXPR_CLASS_...
    uint8_t num_args;
};
extern const struct op_info op_table[TREE_NUM_OPS];

static inline bool op_reduces(int op)
{
    return op_table[op].class == TN_EXPR_CLASS_REDUCE;
}

// Higher binds tighter. 0: functions, and instructions that only programs have.
extern const uint8_t op_precedence[TREE_NUM_OPS];

enum {
    PREC_SELECT = 1,
    PREC_ANY,
    PREC_ALL,
    PREC_OR,
    PREC_XOR,
    PREC_AND,
    PREC_COMPARE,
    PREC_SHIFT,
    PREC_ADD,
    PREC_MUL,
    PREC_UNARY,
    PREC_POWER,
    PREC_ATOM
};

// --- types (types.c) -------------------------------------------------------------------

// The type of a node's value: a dtype, or weakly typed (a number without a dtype, NEP 50).
struct value_type {
    tn_dtype dtype; // TN_DTYPE_NONE: weakly typed
    int kind; // when weakly typed: KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT or KIND_COMPLEX
    uint32_t holders; // the dtypes that hold an integer number of known value; 0: not known
    uint64_t bits;    // this value
};
// The integer dtypes that hold the number `bits` of KIND_SIGNED or KIND_UNSIGNED, as bits.
uint32_t number_holders(int kind, uint64_t bits);
// Whether a number is below every unsigned one.
static inline bool number_is_negative(struct value_type number)
{
    return number.kind == KIND_SIGNED && (int64_t)number.bits < 0;
}
tn_status node_type(const struct expr_node *node, const struct expr_input *inputs,
                    const struct value_type *args, struct value_type *out);
struct value_type type_promote(struct value_type a, struct value_type b);
// The dtype in which `arg` is compared with `other`, exactly for integers: of u64 beside a
// signed dtype u64, and of the signed one i64. TN_DTYPE_NONE: one is a number that the
// dtype of the other does not hold, so its sign alone decides.
tn_dtype type_compared(struct value_type arg, struct value_type other);
// The dtype of the type; i64, u64 or f64 when weakly typed.
tn_dtype type_to_dtype(struct value_type type);
// type_to_dtype, but f32 for half floats, which are computed in f32.
tn_dtype type_computed(struct value_type type);
tn_status walk_types(const struct walk *walk, const struct expr_input *inputs,
                     struct value_type **out_types);

// --- arithmetic (scalar.c, fold.c) -----------------------------------------------------

// Operation `op` of integer numbers: kinds and 64 bits each, room for two. *out_kind is 0
// when it is not folded. An error when the result fits neither i64 nor u64.
tn_status fold_integers(int op, const int *kinds, const uint64_t *values, int *out_kind,
                        uint64_t *out_bits);

// One instruction on values of 64 bits, as in params. `from` is the operands' dtype.
uint64_t scalar_op(int op, tn_dtype dtype, tn_dtype from, uint64_t a, uint64_t b,
                   uint64_t c);
static inline double bits_to_double(uint64_t bits)
{
    union {
        uint64_t u;
        double d;
    } v = {bits};
    return v.d;
}
static inline uint64_t double_to_bits(double value)
{
    union {
        double d;
        uint64_t u;
    } v = {value};
    return v.u;
}

// Whether `op` of real numbers alone may be computed beforehand, in f64 (tree.c).
bool op_folds(int op);

// --- scalars (scalars.c) ---------------------------------------------------------------

// Fills the scalars of an expression whose attributes are known.
tn_status scalars_collect(struct expr *expr, struct arena *arena, const struct walk *walk);
// The position of a node among the scalars; -1: it is none.
int scalars_position(const struct expr *expr, const struct expr_node *node);

// --- texts -----------------------------------------------------------------------------

// Prints the outputs, with shared subexpressions as definitions in front; mem_free the
// text.
char *tree_print(const struct expr_node *const *outputs, uint32_t num_outputs,
                 const char *const *input_names, uint32_t num_inputs);

// --- derivatives (derive.c, derivation.c) ----------------------------------------------

// The chain rule of an operation that is no reduction: g * d(node)/d(argument k). NULL
// stands for zero, as g and as the result.
const struct expr_node *derive_chain(struct tree *t, const struct expr_node *node,
                                     uint32_t k, const struct expr_node *g);
// The tangent of a reduction, from the tangent g of its argument; and the cotangent of its
// argument at each element, from what each element of the row gives to the reduction's own.
const struct expr_node *derive_reduced(struct tree *t, const struct expr_node *node,
                                       const struct expr_node *g);
const struct expr_node *derive_spread(struct tree *t, const struct expr_node *node,
                                      const struct expr_node *g);
// The real or imaginary part (TN_EXPR_REAL, TN_EXPR_IMAG) or the conjugate (TN_EXPR_CONJ)
// of a, which may be real; NULL stands for zero.
const struct expr_node *derive_part(struct tree *t, int op, const struct expr_node *a);
// a * b; NULL stands for zero.
const struct expr_node *derive_product(struct tree *t, const struct expr_node *a,
                                       const struct expr_node *b);
// a + b; NULL stands for zero.
const struct expr_node *derive_add(struct tree *t, const struct expr_node *a,
                                   const struct expr_node *b);

#endif // CORE_EXPR_TREE_H
