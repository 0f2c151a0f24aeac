// SPDX-License-Identifier: MIT
// What the files of the front end share. Expressions are parsed into a tree, which knows
// its types and constants; statements and declarations are emitted at once.
#ifndef KERNELS_COMPILER_TRANSLATOR_H
#define KERNELS_COMPILER_TRANSLATOR_H

#include "../preprocess/keyword.h"
#include "../preprocess/token.h"
#include "needs.h"
#include "types.h"

enum {
    MOST_LEVELS = 256,  // of nesting in the source
    MOST_HEIGHT = 1000, // of an expression's tree
    MOST_PARAMETERS = 64,
};

enum spirv_storage {
    STORAGE_INPUT = 1,
    STORAGE_UNIFORM = 2,
    STORAGE_WORKGROUP = 4,
    STORAGE_PRIVATE = 6,
    STORAGE_FUNCTION = 7,
    STORAGE_PUSH_CONSTANT = 9,
    STORAGE_BUFFER = 12,
    STORAGE_PHYSICAL = 5349,
};

// --- symbols ---------------------------------------------------------------------------

enum symbol_kind {
    SYMBOL_VARIABLE,
    SYMBOL_VALUE,  // a constant, or a specialisation constant: `value`
    SYMBOL_MEMBER, // of a block without a name: `block`, `member`
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
    struct place at;
    const struct type *type;
    struct symbol *shadowed, *next_in_scope;
    // SYMBOL_VARIABLE
    uint32_t id; // 0: not made yet
    uint32_t storage;
    uint32_t layout;
    uint32_t initial; // id of a constant; 0: none
    uint64_t needs;
    const struct builtin_variable *builtin;
    uint32_t set, binding; // of a block
    struct expr *value;    // SYMBOL_VALUE
    struct symbol *block;  // SYMBOL_MEMBER
    uint32_t member;
    struct function *functions; // SYMBOL_FUNCTION
};

struct parameter {
    const struct name *name;
    const struct type *type;
    struct place at;
    bool is_in, is_out, is_const, is_precise;
    uint8_t memory;
};

struct call {
    struct call *next;
    struct function *callee;
    struct place at;
};

struct function {
    struct function *next;  // overload
    struct function *later; // in the order of declaration
    const struct name *name;
    struct place at;
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

struct expr {
    uint8_t kind; // enum expr_kind
    bool is_spec; // EXPR_VALUE: a specialisation constant
    bool has_effects;
    uint8_t num_swizzle, swizzle[4];
    uint16_t height; // of the tree
    uint32_t op;
    uint32_t number; // and number of arguments
    const struct type *type;
    struct place at;
    union {
        uint64_t *bits;
        struct symbol *symbol;
        const struct builtin *builtin;
        struct function *function;
        struct expr *left;
        uint32_t id;
    };
    union {
        struct expr *right;
        struct expr **arguments;
    };
    struct expr *third;
    const struct name *name; // of the constant that it is; NULL: none
};

// --- the translation -------------------------------------------------------------------

// Where `break` and `continue` go.
struct target {
    struct target *outer;
    struct ir_block *on_break, *on_continue; // NULL: a switch has none
    bool is_broken;                          // a `break` has gone there
};

struct initial {
    struct initial *next;
    struct symbol *symbol;
    struct expr *value;
};

struct translator {
    struct compiler *c;
    struct ir *ir;
    const struct token *first, *token; // of all; the next one
    uint64_t extensions;               // enum extension_bit
    struct type *numbers[NUM_SCALARS][5][5];
    struct type *tensors;                  // types of tensors\' layouts and views
    uint32_t level;                        // of nesting
    uint32_t depth;                        // of scopes
    struct symbol *scope[MOST_LEVELS + 4]; // innermost declarations by depth
    struct function *functions, *last_function;
    struct function *function; // being emitted; NULL: none
    struct function *main;
    struct initial *initials, **last_initial;
    struct target *target;
    struct precise *precise; // precise variables of the function
    uint64_t needs;          // of what is outside of functions
    uint64_t seen_needs;     // anywhere; the first places, for errors
    struct place need_places[NUM_NEEDS];
    struct {
        uint32_t value[3], id[3]; // local size; specialisation numbers, UINT32_MAX: none
        uint32_t made;            // id of gl_WorkGroupSize; 0: not made yet
        bool is_spec;
    } local_size;
    // Ids of specialisation constants by number, sorted by nothing: there are few.
    struct {
        uint32_t number, id;
    } * specs;
    uint32_t num_specs, capacity_specs;
    uint8_t default_layout[2]; // of uniform blocks, of buffers
    bool default_row_major[2];
    bool has_vulkan_model, has_push_constant;
    const struct name *name_length, *name_main;
};

_Noreturn void fail_at(struct translator *t, const struct place *at, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

// tokens (parse.c)
bool next_is(const struct translator *t, uint32_t punctuator);
bool next_is_keyword(const struct translator *t, enum keyword keyword);
bool accept(struct translator *t, uint32_t punctuator);
bool accept_keyword(struct translator *t, enum keyword keyword);
void expect(struct translator *t, uint32_t punctuator, const char *after);
const struct name *expect_identifier(struct translator *t, const char *what);
const char *token_text(struct translator *t, const struct token *token);
void enter_level(struct translator *t); // and `level--` when it ends

// symbols (symbols.c)
void scope_open(struct translator *t);
void scope_close(struct translator *t);
struct symbol *symbol_find(struct translator *t, const struct name *name); // NULL: none
struct symbol *symbol_declare(struct translator *t, enum symbol_kind kind,
                              const struct name *name, const struct type *type,
                              const struct place *at);
uint32_t symbol_id(struct translator *t, struct symbol *symbol); // of a variable
struct symbol *variable_local(struct translator *t, const struct name *name,
                              const struct type *type, const struct place *at);
void use_type(struct translator *t, const struct type *type); // in registers
void use_needs(struct translator *t, uint64_t needs);

// expressions: parsing (expression.c)
struct expr *parse_expression(struct translator *t);
struct expr *parse_assignment(struct translator *t); // without commas
struct expr *parse_conditional(struct translator *t);
struct expr *parse_additive(struct translator *t); // without comparisons and shifts
struct expr *parse_initialiser(struct translator *t, const struct type *type);
// A constant integer from 0 on, for a layout or an array.
uint32_t parse_constant_uint(struct translator *t, const char *what);

// building (build.c)
struct expr *expr_new(struct translator *t, enum expr_kind kind, const struct type *type,
                      const struct place *at);
void expr_child(struct translator *t, struct expr *parent, const struct expr *child);
struct expr *expr_constant(struct translator *t, const struct type *type,
                           const struct place *at);
struct expr *expr_uint(struct translator *t, enum base base, uint64_t bits,
                       const struct place *at);
struct expr *expr_spec(struct translator *t, const struct type *type, uint32_t id,
                       const struct place *at);
struct expr *expr_variable(struct translator *t, struct symbol *symbol,
                           const struct place *at);
struct expr *expr_unary(struct translator *t, uint32_t op, struct expr *e,
                        const struct place *at);
struct expr *expr_binary(struct translator *t, uint32_t op, struct expr *left,
                         struct expr *right, const struct place *at);
struct expr *expr_logical(struct translator *t, uint32_t op, struct expr *left,
                          struct expr *right, const struct place *at);
struct expr *expr_select(struct translator *t, struct expr *condition, struct expr *left,
                         struct expr *right, const struct place *at);
struct expr *expr_assign(struct translator *t, uint32_t op, struct expr *left,
                         struct expr *right, const struct place *at);
struct expr *expr_increment(struct translator *t, uint32_t op, struct expr *left,
                            bool is_post, const struct place *at);
struct expr *expr_index(struct translator *t, struct expr *left, struct expr *right,
                        const struct place *at);
struct expr *expr_field(struct translator *t, struct expr *left, const struct name *name,
                        const struct place *at);
struct expr *expr_length(struct translator *t, struct expr *left, const struct place *at);
struct expr *expr_construct(struct translator *t, const struct type *type,
                            struct expr **arguments, uint32_t count,
                            const struct place *at);
struct expr *expr_call(struct translator *t, const struct name *name,
                       struct expr **arguments, uint32_t count, const struct place *at);
// Fails unless it can be written to.
void expr_check_lvalue(struct translator *t, const struct expr *e, const char *what);
bool expr_is_lvalue(const struct expr *e);
bool expr_is_constant(const struct expr *e); // or a specialisation constant

// conversions (convert.c)
enum { RANK_EXACT, RANK_PROMOTION, RANK_CONVERSION, RANK_NONE = 255 };
uint32_t convert_rank(struct translator *t, const struct type *from, const struct type *to);
// Implicitly; fails where GLSL has no such conversion. `what` is of what.
struct expr *convert_to(struct translator *t, struct expr *e, const struct type *type,
                        const char *what);
struct expr *convert_base(struct translator *t, struct expr *e, enum base base);
uint32_t convert_emit(struct translator *t, uint32_t id, const struct type *from,
                      enum base to);
uint32_t convert_spec(struct translator *t, uint32_t id, const struct type *from,
                      enum base to); // 0: no such operation
enum base common_base(struct translator *t, enum base a, enum base b); // TYPE_VOID: none

// constants (fold.c)
uint64_t fold_wrap(enum base base, uint64_t bits);
uint64_t fold_convert(enum base from, enum base to, uint64_t bits);
double bits_double(uint64_t bits);
uint64_t double_bits(double value);
struct expr *fold_unary(struct translator *t, uint32_t op, const struct expr *e,
                        const struct place *at);
struct expr *fold_binary(struct translator *t, uint32_t op, const struct type *type,
                         const struct expr *left, const struct expr *right,
                         const struct place *at);
uint32_t constant_id(struct translator *t, const struct type *type, const uint64_t *bits);
uint32_t constant_scalar(struct translator *t, enum base base, uint64_t bits);
uint64_t constant_bits(enum base base, uint64_t bits); // as a scalar of SPIR-V
// All components of a type the same.
uint32_t constant_splat(struct translator *t, const struct type *type, double value);

// emission (emit.c, access.c)
struct access {
    uint32_t base, storage, layout;
    const struct type *type; // behind the indices, before the swizzle
    uint32_t indices[16];
    uint32_t num_indices;
    uint8_t num_swizzle, swizzle[4];
    uint8_t memory;
    uint32_t align; // bytes, of a reference
};
uint32_t emit(struct translator *t, uint32_t op, const struct type *type, uint32_t count,
              const uint32_t *operands);
#define EMIT(t, op, type, ...)                                                             \
    emit(t, op, type, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                \
         (uint32_t[]){__VA_ARGS__})
uint32_t emit_extended(struct translator *t, uint32_t number, const struct type *type,
                       uint32_t count, const uint32_t *operands);
uint32_t emit_value(struct translator *t, const struct expr *e);
void emit_effects(struct translator *t, const struct expr *e); // without a value
uint32_t emit_binary(struct translator *t, uint32_t op, const struct type *type,
                     const struct type *left_type, uint32_t left,
                     const struct type *right_type, uint32_t right);
uint32_t emit_splat(struct translator *t, const struct type *type, uint32_t id);
uint32_t emit_construct(struct translator *t, const struct expr *e); // binary.c
uint32_t emit_call(struct translator *t, const struct expr *e);
uint32_t emit_builtin(struct translator *t, const struct expr *e);
void access_of(struct translator *t, const struct expr *e, struct access *out);
uint32_t access_pointer(struct translator *t, struct access *access);
uint32_t access_load(struct translator *t, struct access *access);
void access_store(struct translator *t, struct access *access, uint32_t id);
uint32_t temporary(struct translator *t, const struct type *type); // a pointer
void decorate_pointer(struct translator *t, uint32_t id, const struct type *type);
void local_access(const struct type *type, uint32_t pointer, struct access *out);
void start_block(struct translator *t, struct ir_block *block);
void branch_to(struct translator *t, struct ir_block *block); // unless ended

// the memory model (memory.c)
bool memory_is_vulkan(const struct translator *t, const struct preprocessed *source);
uint8_t memory_join(uint8_t a, uint8_t b); // of two declarations, MEMORY_*
uint32_t memory_scope(struct translator *t, uint32_t scope); // its id
// Memory operands of a load or store, up to three: returns their count.
uint32_t memory_operands(struct translator *t, const struct access *a, bool is_store,
                         uint32_t *out);

// built-in functions and variables (builtins.c, builtin_variables.c)
bool builtin_exists(const struct name *name);
// The best one for arguments: converts them. NULL: none fits.
struct expr *builtin_call(struct translator *t, const struct name *name,
                          struct expr **arguments, uint32_t count, bool must_be_exact,
                          const struct place *at);
struct expr *builtin_fold(struct translator *t, const struct expr *call); // NULL: cannot
struct symbol *builtin_variable(struct translator *t, const struct name *name);
const char *builtin_candidates(struct translator *t, const struct name *name);
struct expr *workgroup_size(struct translator *t, const struct place *at);
// The specialisation constant of a number, made where there is none.
uint32_t spec_of_number(struct translator *t, uint32_t number, uint64_t bits,
                        uint32_t type);

// declarations, statements
void parse_declaration(struct translator *t); // declare.c; at the end of the tokens: none
bool declaration_is_next(struct translator *t);
const struct type *parse_type(struct translator *t);
bool type_is_next(struct translator *t);
const struct type *parse_array_suffix(struct translator *t, const struct type *type);
void parse_body(struct translator *t, struct function *f); // statement.c
void parse_statement(struct translator *t);
void function_declare(struct translator *t, const struct type *result,
                      const struct name *name, const struct place *at); // functions.c
struct function *function_find(struct translator *t, struct symbol *symbol,
                               struct expr **arguments, uint32_t count, bool must_be_exact,
                               const struct place *at);
// A function as an argument of a built-in one.
struct expr *function_value(struct translator *t, struct symbol *symbol,
                            const struct place *at);
void functions_finish(struct translator *t);
void precise_mark(struct translator *t, uint32_t variable); // precise.c
void precise_spread(struct translator *t, struct function *f);
void local_size_finish(struct translator *t);

#endif // KERNELS_COMPILER_TRANSLATOR_H
