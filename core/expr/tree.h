// SPDX-License-Identifier: MIT
// What the parts of expr/ share: trees of expressions, the set that interns them, and the
// tables of what an operation is.
//
// A tree is immutable and hash-consed: the same subexpression is the same node, so common
// subexpressions are shared by construction. Nothing here recurses over a tree's depth but
// the printer, and depth is limited.
#ifndef CORE_EXPR_TREE_H
#define CORE_EXPR_TREE_H

#include <pthread.h>
#include <stdatomic.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../primitive/lookup.h"
#include "expr.h"

// Operations of trees that programs do not have, numbered after those that both have. DIV
// of a tree is true division.
enum {
    TREE_INPUT = TN_EXPR_NUM_OPS,
    TREE_ATTR,
    TREE_NUMBER,
    TREE_FLOOR_DIV,
    TREE_ALL, // &&
    TREE_ANY, // ||
    TREE_NUM_OPS
};

#define TREE_MAX_NODES 4096 // of one expression
#define TREE_MAX_DEPTH 1500 // of one expression; derivatives are deeper than their origin
#define PARSE_MAX_DEPTH 200 // of brackets and prefixes within each other
#define PARSE_MAX_TREE 300  // of a parsed expression

struct expr_node {
    struct hash hash;
    uint16_t op;
    uint8_t num_args;
    uint8_t kind;   // NUMBER and ATTR: a dtype_kind, how it takes part in promotion
    tn_dtype dtype; // CAST
    uint32_t index; // INPUT
    uint32_t depth;
    uint64_t bits;    // NUMBER: of a double for KIND_FLOAT, else of an integer
    const char *name; // ATTR; interned, so pointers compare
    const struct expr_node *args[3];
};

// What is interned together, and goes together. The runtime's own set holds what primitives
// mean, and lives as long as it. Texts of applications go to passing sets: one at a time
// is filled, up to EXPR_SET_LIMIT; whoever uses what is in a set holds it.
struct expr_set {
    pthread_mutex_t lock; // of all that adds
    struct arena arena;
    struct expr_set *own; // the runtime's own set, looked into first; NULL: this one is it
    atomic_uint refs;     // of a passing set
    atomic_bool full;
    struct expr_set *filling; // of the own set: the passing set at hand, or NULL. Lock
    struct lookup names, nodes, exprs;
    struct lookup parsed;   // text, names and table -> expr
    struct lookup derived;  // expr and what of it -> struct derivation
    struct lookup compiled; // expr and dtypes -> program
    struct lookup programs; // structure -> program
    struct lookup inferred; // expr and dtypes -> dtypes of the outputs
};

// What stands behind every expression that the set gives out.
struct expr_record {
    struct expr expr; // first
    struct expr_set *set;
};

// Where derivations of an expression go: trees refer to nodes of their own set and of the
// runtime's alone.
static inline struct expr_set *expr_set_of(const struct expr *expr)
{
    return ((const struct expr_record *)expr)->set;
}

// Notes that a set has had its share. Its lock is held.
void expr_set_weigh(struct expr_set *set);

// A key for what depends on the dtypes of an expression's inputs. False when there are more
// inputs than programs have.
bool expr_dtypes_key(const struct expr *expr, const struct expr_input *inputs,
                     uint64_t seed, struct hash *out);

// --- building trees (tree.c) -----------------------------------------------------------

// The first failure stays in `status`; functions then give NULL, and take NULL arguments.
struct tree {
    struct expr_set *set;
    tn_status status;
};

const struct expr_node *tree_number(struct tree *t, int kind, uint64_t bits);
const struct expr_node *tree_int(struct tree *t, int64_t value);
const struct expr_node *tree_float(struct tree *t, double value);
const struct expr_node *tree_input(struct tree *t, uint32_t index);
const struct expr_node *tree_attr(struct tree *t, const char *name, int kind);
const struct expr_node *tree_cast(struct tree *t, tn_dtype dtype,
                                  const struct expr_node *a);
// Numbers are computed at once: the result of numbers is a number.
const struct expr_node *tree_op(struct tree *t, int op, const struct expr_node *a,
                                const struct expr_node *b, const struct expr_node *c);

// An interned expression of these outputs. Names are copied.
const struct expr *tree_expr(struct tree *t, const struct expr_node *const *outputs,
                             uint32_t num_outputs, const char *const *input_names,
                             uint32_t num_inputs);

// --- walking (walk.c) ------------------------------------------------------------------

// Nodes of an expression, arguments before users, in an order that depends on the structure
// alone.
struct walk {
    const struct expr_node **nodes;
    uint32_t count, capacity;
    uint32_t *table; // positions + 1 by node; 2^k of them
    uint32_t table_size;
};
tn_status walk_init(struct walk *walk, const struct expr_node *const *outputs,
                    uint32_t num_outputs);
void walk_finish(struct walk *walk);
uint32_t walk_position(const struct walk *walk, const struct expr_node *node);

// --- facts (ops.c) ---------------------------------------------------------------------

enum op_class {
    OP_LEAF,
    OP_CAST,
    OP_SIGN,    // - abs sign: numbers; keeps the dtype
    OP_ROUND,   // keeps the dtype; integers are already whole
    OP_MATH,    // floats; integers become floats
    OP_TEST,    // a float's nature; bool
    OP_ARITH,   // numbers, promoted; bool with bool stays bool
    OP_WHOLE,   // numbers, promoted; bool becomes i8
    OP_DIVIDE,  // true division
    OP_BITS,    // integers and bool
    OP_COMPARE, // bool
    OP_LOGIC,   // bool of anything
    OP_SELECT,
};

struct op_info {
    const char *text; // as printed
    uint8_t class;
    uint8_t num_args;
    uint8_t precedence; // 0: a function; higher binds tighter
    bool zero_derivative;
};
extern const struct op_info op_table[TREE_NUM_OPS];

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

// A value's dtype, or that it is a number without one.
struct value_type {
    tn_dtype dtype; // TN_DTYPE_NONE: a number
    int kind;       // of a number: KIND_SIGNED, KIND_UNSIGNED or KIND_FLOAT
};
tn_status node_type(const struct expr_node *node, const struct expr_input *inputs,
                    const struct value_type *args, struct value_type *out);
struct value_type type_promote(struct value_type a, struct value_type b);
tn_dtype type_alone(struct value_type type);    // i64, u64, f64 for numbers
tn_dtype type_computed(struct value_type type); // the same; F32 for half floats
tn_status walk_types(const struct walk *walk, const struct expr_input *inputs,
                     struct value_type **out_types);

// --- arithmetic (scalar.c) -------------------------------------------------------------

// One instruction on values as in params. `from` is the operands' dtype.
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

// --- texts -----------------------------------------------------------------------------

// Prints the outputs, subexpressions that occur twice as definitions first; mem_free.
char *tree_print(const struct expr_node *const *outputs, uint32_t num_outputs,
                 const char *const *input_names, uint32_t num_inputs);

// --- derivatives (derive.c, derivation.c) ----------------------------------------------

// g * d(node)/d(argument k), or NULL when that is zero everywhere. g NULL gives NULL.
const struct expr_node *derive_chain(struct tree *t, const struct expr_node *node,
                                     uint32_t k, const struct expr_node *g);
const struct expr_node *derive_add(struct tree *t, const struct expr_node *a,
                                   const struct expr_node *b);

#endif // CORE_EXPR_TREE_H
