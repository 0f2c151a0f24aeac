// SPDX-License-Identifier: MIT
// A pack of foreign functions, as its manifest describes it (docs/ffi.md has the format).
// Reading the manifest fills these structs; rules and calls only read them. T is the dtype
// of the variant that an application of a function chooses.
//
// Threads. Constant once read, but for libraries and addresses of symbols, which are found
// at the first call (library.c), and the functions of callbacks (callback.c).
#ifndef FFI_PACK_H
#define FFI_PACK_H

#include <ffi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/plugin.h>
#include "arena.h"
#include "extent.h"

enum {
    MAX_INPUTS = 12,
    MAX_OUTPUTS = 8, // the core's limit
    MAX_WORK = 12,   // scratch arrays
    MAX_OPERANDS = MAX_INPUTS + MAX_OUTPUTS,
    MAX_ATTRS = 24,
    MAX_ARGS = 40,
    MAX_NAMES = 48, // extents, attributes in expressions, "size"
    MAX_LIBRARIES = 8,
    MAX_FUNCTIONS = 256,
    MAX_HANDLES = 4,
    MAX_SETUPS = 8,
    MAX_CONDITIONS = 16,
};

// A condition of "requires": "k >= 1" holds when the extents' comparison is in `accepted`.
struct ffi_condition {
    const char *text;
    struct extent left, right;
    uint32_t accepted; // bits: 1 less, 2 equal, 4 greater
};

// --- operands --------------------------------------------------------------------------

// The memory layout of an operand's own axes that a function takes.
enum layout {
    LAYOUT_CONTIGUOUS, // row-major without gaps
    LAYOUT_ROWS,       // two axes, the last with stride 1: has a leading dimension
    LAYOUT_COLUMNS,    // two axes, the first with stride 1, as in Fortran: likewise
    LAYOUT_STRIDED,    // one axis of any positive stride: has an increment
};

// Leading axes: those before an operand's own. They broadcast between inputs.
enum lead {
    LEAD_NONE,
    LEAD_BATCH, // "...": each index of the leading axes is an item, which is one call
    LEAD_WHOLE, // "*": one call takes all elements, without gaps
};

struct ffi_operand {
    const char *name, *doc;
    tn_dtype dtype; // NONE: T
    enum layout layout;
    enum lead lead;
    uint32_t rank; // number of the operand's own axes
    struct extent axes[TN_MAX_RANK];
    uint32_t overwrites; // outputs: 1 + number of the input that they overwrite, or 0
    bool is_destroyed;   // inputs: the function writes to its memory, so it gets a copy
    bool is_constant;    // inputs: no derivative
};

// Scratch memory of the function.
struct work_array {
    const char *name;
    tn_dtype dtype; // NONE: T
    struct extent count;
};

// --- arguments -------------------------------------------------------------------------

enum argument_kind {
    ARG_OPERAND, // input or output
    ARG_WORK,
    ARG_EXTENT,
    ARG_STRIDE,
    ARG_ATTRIBUTE,
    ARG_CONSTANT,
    ARG_CHARACTER,
    ARG_STATUS, // written by the function through a pointer
    ARG_USER,   // the `user` pointer of a callback
    ARG_HANDLE, // the pointer of a struct handle
};

struct argument {
    enum argument_kind kind;
    tn_dtype type;       // of the C argument; NONE: T
    bool by_pointer;     // passes the address of the value
    uint32_t index;      // of the operand (outputs behind inputs), work array, attribute or
                         // handle
    uint32_t axis;       // ARG_STRIDE
    struct extent value; // ARG_EXTENT
    int64_t integer;     // ARG_CONSTANT, ARG_CHARACTER
    double real;         // ARG_CONSTANT
    int64_t *by_choice;  // ARG_ATTRIBUTE, ARG_CHARACTER: the value of each choice, or NULL
};

enum returns { RETURNS_VOID, RETURNS_OUTPUT, RETURNS_STATUS, RETURNS_HANDLE };
enum failure { FAILS_NONZERO, FAILS_NEGATIVE, FAILS_POSITIVE }; // statuses that are errors

// Storage of one C argument, which libffi reads.
union argument_value {
    int64_t i;
    int32_t i32;
    int16_t i16;
    int8_t i8;
    double f64;
    float f32;
    void *pointer;
};

// Storage of what a C function returns. libffi widens integers to ffi_arg.
union result {
    ffi_arg integer;
    float f32;
    double f64;
    void *pointer;
    char bytes[16];
};

// --- auxiliary functions ---------------------------------------------------------------

// A C function that sets a library up, or that creates or destroys a handle. That of a
// handle has a symbol for each variant of the handle's function; that of a library has one
// symbol.
struct callee {
    const char **symbols;       // num_variants of these three
    _Atomic(void *) *addresses; // NULL until found (library.c)
    ffi_cif *cifs;
    struct argument *args;
    uint32_t num_args, num_variants;
    enum returns returns; // VOID, STATUS, HANDLE
    tn_dtype return_type; // of a status
    enum failure fails;
};

// An opaque pointer that is created before calls of a function and destroyed after them: a
// plan, a workspace.
struct handle {
    const char *name, *remedy; // `remedy` may be NULL
    struct callee create, destroy;
    bool is_serial;   // created and destroyed under the pack's lock
    bool is_per_item; // created for each item: `create` takes operands or work arrays
};

// --- names in expressions --------------------------------------------------------------

enum name_source {
    NAME_SHAPE,     // the extent of the first input axis that is just this name
    NAME_DEFINED,   // an expression of "extents"
    NAME_ATTRIBUTE, // the value of an attribute of kind i64 or bool
    NAME_SIZE,      // the number of elements of the leading axes "*"
};

struct ffi_name {
    const char *text;
    enum name_source source;
    uint32_t index;      // of the attribute
    struct extent value; // NAME_DEFINED
    int state;           // of order_name: 0 not visited, 1 being visited, 2 done
};

// --- functions -------------------------------------------------------------------------

// One symbol for one dtype.
struct variant {
    tn_dtype dtype;
    const char *symbol;
    _Atomic(void *) address; // NULL until found (library.c)
    ffi_cif cif;             // the call's form for libffi (bind.c)
};

struct library {
    const char *names[MAX_LIBRARIES + 1]; // tried in order; ended by NULL
    const char *remedy;                   // or NULL
    struct callee setups[MAX_SETUPS];     // called in order after opening
    uint32_t num_setups;
    void *handle; // under library.c's lock; NULL until opened and set up without failure
};

struct ffi_gradient; // gradient.h
struct rules;        // engine.h

struct ffi_pack;
struct ffi_function {
    struct ffi_pack *pack;
    const char *name, *id, *doc;
    struct library *library;                   // NULL: a callback
    struct variant *variants;                  // num_variants of them
    struct ffi_operand operands[MAX_OPERANDS]; // inputs, then outputs
    struct work_array work[MAX_WORK];
    struct ffi_name names[MAX_NAMES];
    uint32_t order[MAX_NAMES]; // the defined names in topological order
    struct argument args[MAX_ARGS];
    struct handle handles[MAX_HANDLES];
    struct ffi_condition conditions[MAX_CONDITIONS];
    uint32_t num_conditions;
    uint32_t num_variants, num_inputs, num_outputs, num_work, num_names, num_ordered,
        num_args, num_handles;
    enum lead lead; // of all operands that have leading axes
    bool is_serial; // not thread-safe: called under the pack's lock
    enum returns returns;
    tn_dtype return_type;    // NONE: T
    enum failure fails;      // of a returned or written status
    const char *remedies[2]; // meaning of a negative and of a positive status, or NULL
    void *user;              // ARG_USER; under the callback's lock

    tn_attr_field fields[MAX_ATTRS];
    int64_t least[MAX_ATTRS], most[MAX_ATTRS]; // limits of attributes of kind i64
    uint32_t num_fields;
    struct ffi_gradient **gradients; // by input, NULL where none is given; NULL: no vjp
    bool has_zero_gradient[MAX_INPUTS];

    // The core's tables of this function (bind.c).
    tn_primitive primitive;
    tn_kernel kernel;
    tn_cpu_kernel payload;
    tn_operand_rule rules[MAX_OPERANDS];
    tn_input_info input_infos[MAX_INPUTS];
    tn_output_info output_infos[MAX_OUTPUTS];
    tn_in_place pairs[MAX_OUTPUTS];

    struct callback *callback; // callback.c; NULL: a function of a library
    struct closure *closures;  // closures.c
};

struct ffi_pack {
    struct ffi_arena arena;
    pthread_mutex_t serial; // held during calls of code that is not thread-safe
    const char *id, *version, *vendor;
    struct ffi_function **functions;
    uint32_t num_functions;
    const struct rules *slots; // entry points by function; NULL: no function is called
    uint64_t num_slots;
    tn_ops ops; // of an open pack (engine.c)
};

// --- reading (manifest.c) --------------------------------------------------------------

enum { MANIFEST_MAX_SIZE = 1 << 20 };

// An empty pack. Keeps `slots`, which may be NULL.
void pack_init(struct ffi_pack *pack, const struct rules *slots, uint64_t num_slots);
void pack_finish(struct ffi_pack *pack);

// Reads a manifest of `size` bytes into an empty pack. Failures begin with `path`:
// "axpby.json:7: /functions/0/args/2/kind: ...". With `finds_symbols`, opens the libraries,
// and fails when a library or a symbol is missing.
tn_status pack_read(const char *text, size_t size, const char *path, bool finds_symbols,
                    struct ffi_pack *out, struct problem *problem);

// --- shapes (shape.c) ------------------------------------------------------------------

// Values that inputs' types and attributes determine in one application of a function.
struct bound {
    uint32_t variant;
    int32_t lead_rank; // leading axes, broadcast over all inputs
    int64_t lead[TN_MAX_RANK];
    int64_t values[MAX_NAMES]; // by number of the name
};

// Fills *out. Fails when the inputs' dtypes or shapes do not fit the function.
tn_status bind_types(const struct ffi_function *function, const tn_type *types,
                     const void *attrs, struct bound *out, struct problem *problem);
// The type of output `index`.
tn_status output_type(const struct ffi_function *function, const struct bound *bound,
                      uint32_t index, tn_type *out, struct problem *problem);
// Fails when an extent does not fit the C integer that it is passed as.
tn_status check_extents(const struct ffi_function *function, const struct bound *bound,
                        struct problem *problem);
// Fails when an attribute is outside of its limits.
tn_status check_attributes(const struct ffi_function *function, const void *attrs,
                           struct problem *problem);

// `dtype`, or T for NONE.
static inline tn_dtype dtype_or(tn_dtype dtype, const struct ffi_function *function,
                                uint32_t variant)
{
    return dtype != TN_DTYPE_NONE ? dtype : function->variants[variant].dtype;
}

// Whether a C argument of `type` can hold `value`.
bool fits(tn_dtype type, int64_t value);

// --- calls (call.c) --------------------------------------------------------------------

// Calls the function for all items of one launch.
tn_status function_call(struct ffi_function *function, const tn_cpu_call *call);
// Bytes of working memory that function_call needs.
uint64_t function_scratch(const struct ffi_function *function,
                          const tn_kernel_query *query);

// Likewise for a callback; fails when the callback was removed. (callback.c)
tn_status callback_call(struct ffi_function *function, const tn_cpu_call *call);

// Stores `real` as a C argument of `type` when that is a float, else `integer`.
void number_store(union argument_value *value, tn_dtype type, int64_t integer, double real);
// The integer of `type` at `value`.
int64_t integer_load(const void *value, tn_dtype type);
bool status_fails(enum failure fails, int64_t status);

// --- libraries (library.c) -------------------------------------------------------------

// Gives the address of a variant's symbol, and finds the symbols of its handles. Opens the
// library first.
tn_status variant_find(struct ffi_function *function, uint32_t variant, void **out_address,
                       struct problem *problem);

// --- tables for the core and for libffi (bind.c) ---------------------------------------

// Prepares the calls of a callee for libffi. `function` is the function whose handle the
// callee creates or destroys, or NULL.
tn_status callee_bind(struct callee *callee, struct ffi_arena *arena,
                      const struct ffi_function *function, struct problem *problem);
// Prepares the function's calls, and fills its tables for the core with entry points
// `rules`.
tn_status function_bind(struct ffi_function *function, const struct rules *rules,
                        struct problem *problem);

#endif // FFI_PACK_H
