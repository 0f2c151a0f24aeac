// SPDX-License-Identifier: MIT
// Symbols, which are the meanings of names, and the nodes of expressions.
#ifndef KERNELS_COMPILER_EXPR_H
#define KERNELS_COMPILER_EXPR_H

#include "../types/translator.h"

enum {
    MOST_HEIGHT = 1000, // of an expression's tree
    MOST_PARAMETERS = 64,
};

// --- what names stand for ----------------------------------------------------------------

enum symbol_kind {
    SYMBOL_VARIABLE,
    SYMBOL_VALUE,  // a constant, or a specialisation constant: `value`
    SYMBOL_MEMBER, // of a block without a name: `block`, `type_member`
    SYMBOL_TYPE,
    SYMBOL_FUNCTION, // overloads: `functions`
};

struct symbol {
    uint8_t kind;     // enum symbol_kind
    bool is_readonly; // const, or a variable that only the device writes
    bool is_precise;
    uint8_t memory;
    uint32_t depth; // of its scope; 0: the whole shader
    const struct name *name;
    struct position at;
    const struct type *type;
    struct symbol *shadowed, *next_in_scope;
    // SYMBOL_VARIABLE
    uint32_t id; // 0: not made yet
    uint32_t storage;
    uint32_t layout;
    uint32_t initial; // id of a constant; 0: none
    uint64_t needs;
    const struct builtin_variable *builtin;
    uint32_t set, binding;   // of a block
    struct tree_expr *value; // SYMBOL_VALUE
    struct symbol *block;    // SYMBOL_MEMBER
    uint32_t member;
    struct function *functions; // SYMBOL_FUNCTION
};

struct parameter {
    const struct name *name;
    const struct type *type;
    struct position at;
    bool is_in, is_out, is_const, is_precise;
    uint8_t memory;
};

// Whether the parameter gets a value, not a pointer to a variable.
static inline bool parameter_is_by_value(const struct parameter *p)
{
    return !p->is_out && p->is_const;
}

struct call {
    struct call *next;
    struct function *callee;
    struct position at;
};

struct function {
    struct function *next;  // overload
    struct function *later; // in the order of declaration
    const struct name *name;
    struct position at;
    const struct type *result;
    struct parameter *parameters;
    uint32_t num_parameters;
    bool is_defined, has_precise, returns_value;
    uint8_t mark; // 0: not visited; 1: on the way; 2: reached
    struct ir_function *ir;
    uint32_t *ids;  // of its parameters
    uint64_t needs; // of its own code
    struct call *calls;
};

// --- symbols ---------------------------------------------------------------------------

void scope_open(struct translator *t);
void scope_close(struct translator *t);
struct symbol *symbol_find(struct translator *t, const struct name *name); // NULL: none
struct symbol *symbol_declare(struct translator *t, enum symbol_kind kind,
                              const struct name *name, const struct type *type,
                              const struct position *at);
// A variable that the device gives. NULL: none has the name.
struct symbol *builtin_variable(struct translator *t, const struct name *name);

// --- expressions -----------------------------------------------------------------------

enum expr_kind {
    EXPR_CONSTANT,  // `bits`, one for each component; of floats the bits of a double
    EXPR_VALUE,     // `id`: a specialisation constant, or what was emitted before
    EXPR_VARIABLE,  // `symbol`
    EXPR_MEMBER,    // `left`, `number`
    EXPR_INDEX,     // `left`, `right`
    EXPR_SWIZZLE,   // `left`, `swizzle`
    EXPR_UNARY,     // `op`, `left`
    EXPR_BINARY,    // `op`, `left`, `right`
    EXPR_LOGICAL,   // `op`: '&', '|' or '^' written twice, `left`, `right`
    EXPR_ASSIGN,    // `op`: 0 or that of op=, `left`, `right` (of the operation's type)
    EXPR_INCREMENT, // `op`: '+' or '-', `left`, `number`: 1 where the result is the old
                    // value
    EXPR_CONVERT,   // `left` to another base
    EXPR_CONSTRUCT, // `arguments`: exactly the parts of `type`
    EXPR_FLATTEN,   // `arguments`: a vector or matrix of their components
    EXPR_SPLAT,     // `left`, a scalar, in all components
    EXPR_DIAGONAL,  // `left`, a scalar, on a matrix's diagonal
    EXPR_RESIZE,    // `left`, a matrix of another size
    EXPR_CALL,      // `function`, `arguments`
    EXPR_BUILTIN,   // `builtin`, `arguments`
    EXPR_SELECT,    // `left` ? `right` : `third`
    EXPR_COMMA,     // `left`, `right`
    EXPR_LENGTH,    // of the array `left`
    EXPR_FUNCTION,  // `function`, for a built-in function that calls it
};

struct tree_expr {
    uint8_t kind; // enum expr_kind
    bool is_spec; // EXPR_VALUE: a specialisation constant
    bool has_effects;
    uint8_t num_swizzle, swizzle[4];
    uint16_t height; // of the tree
    uint32_t op;
    uint32_t number; // and number of arguments
    const struct type *type;
    struct position at;
    union {
        uint64_t *bits;
        struct symbol *symbol;
        const struct builtin *builtin;
        struct function *function;
        struct tree_expr *left;
        uint32_t id;
    };
    union {
        struct tree_expr *right;
        struct tree_expr **arguments;
    };
    struct tree_expr *third;
    const struct name *name; // of the constant that it is; NULL: none
};

struct tree_expr *expr_new(struct translator *t, enum expr_kind kind,
                           const struct type *type, const struct position *at);
void expr_child(struct translator *t, struct tree_expr *parent,
                const struct tree_expr *child);
struct tree_expr *expr_constant(struct translator *t, const struct type *type,
                                const struct position *at);
struct tree_expr *expr_uint(struct translator *t, enum base base, uint64_t bits,
                            const struct position *at);
struct tree_expr *expr_spec(struct translator *t, const struct type *type, uint32_t id,
                            const struct position *at);
struct tree_expr *expr_variable(struct translator *t, struct symbol *symbol,
                                const struct position *at);
// Fails unless the expression can be written to.
void expr_check_lvalue(struct translator *t, const struct tree_expr *e, const char *what);
bool expr_is_lvalue(const struct tree_expr *e);
bool expr_is_constant(const struct tree_expr *e); // or a specialisation constant

#endif // KERNELS_COMPILER_EXPR_H
