// SPDX-License-Identifier: MIT
// A pack of foreign functions as its manifest describes it: what reading fills, and what
// rules and calls read. docs/ffi.md has the manifest's format.
//
// Threads. Constant once read, but for the libraries, which have a lock.
#ifndef FFI_PACK_H
#define FFI_PACK_H

#include <ffi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <tenon/kernel.h>
#include <tenon/primitive.h>
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
};

// --- operands --------------------------------------------------------------------------

// What memory a function takes. The number of axes is that of its own shape.
enum layout {
    LAYOUT_CONTIGUOUS, // row-major without gaps
    LAYOUT_ROWS,       // two axes, the last with stride 1: a leading dimension is passed
    LAYOUT_COLUMNS,    // two axes, the first with stride 1: as Fortran has it
    LAYOUT_STRIDED,    // one axis of any positive stride: an increment is passed
};

// Axes before an operand's own.
enum lead {
    LEAD_NONE,
    LEAD_BATCH, // "...": one call for each element of them; they broadcast
    LEAD_WHOLE, // "*": all of them are passed as one run of elements; they broadcast
};

struct operand {
    const char *name, *doc;
    tn_dtype dtype; // NONE: the function's own, of its symbol
    enum layout layout;
    enum lead lead;
    uint32_t rank; // axes after `lead`
    struct extent axes[TN_MAX_RANK];
    uint32_t overwrites; // outputs: input number + 1 whose elements they start with, or 0
    bool is_destroyed;   // inputs: the function writes to it: it gets a copy
    bool is_constant;    // inputs: no derivative
};

struct work_array {
    const char *name;
    tn_dtype dtype; // NONE: the function's own
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
    ARG_USER,   // a pointer that was given with a callback
    ARG_HANDLE, // what another function of the library made
};

struct argument {
    enum argument_kind kind;
    tn_dtype type;       // of the C argument; NONE: the function's own
    bool by_pointer;     // not the value but its address is passed
    uint32_t index;      // of the operand (outputs after inputs), work array, attribute or
                         // handle
    uint32_t axis;       // ARG_STRIDE
    struct extent value; // ARG_EXTENT
    int64_t integer;     // ARG_CONSTANT, ARG_CHARACTER
    double real;         // ARG_CONSTANT
    int64_t *by_choice;  // ARG_ATTRIBUTE, ARG_CHARACTER of a choice: the values, or NULL
};

enum returns { RETURNS_VOID, RETURNS_OUTPUT, RETURNS_STATUS, RETURNS_HANDLE };
enum failure { FAILS_NONZERO, FAILS_NEGATIVE, FAILS_POSITIVE };

// A C argument as libffi takes it.
union value {
    int64_t i;
    int32_t i32;
    int16_t i16;
    int8_t i8;
    double f64;
    float f32;
    void *pointer;
};

union result {
    ffi_arg integer;
    float f32;
    double f64;
    void *pointer;
    char bytes[16];
};

// --- functions beside the one that computes --------------------------------------------

// One that sets a library up, or that makes or frees a handle: a symbol for each variant of
// the function it belongs to, or one for a library.
struct callee {
    const char **symbols; // num_variants of each
    _Atomic(void *) *addresses;
    ffi_cif *cifs;
    struct argument *args;
    uint32_t num_args, num_variants;
    enum returns returns; // VOID, STATUS, HANDLE
    tn_dtype return_type; // of a status
    enum failure fails;
};

// An opaque pointer that lives around calls: a plan, a workspace.
struct handle {
    const char *name, *remedy; // no remedy: NULL
    struct callee create, destroy;
    bool is_serial;   // creating and destroying come one at a time
    bool is_per_item; // `create` is given operands or working memory
};

// --- names in expressions --------------------------------------------------------------

enum name_source {
    NAME_SHAPE,     // bound by the first input's axis that is just this name
    NAME_DEFINED,   // "extents"
    NAME_ATTRIBUTE, // of kind i64 or bool
    NAME_SIZE,      // elements of the axes "*"
};

struct name {
    const char *text;
    enum name_source source;
    uint32_t index; // of the attribute
    struct extent value;
    int state; // of ordering: 0 not seen, 1 at it, 2 done
};

// --- functions -------------------------------------------------------------------------

// One symbol for one dtype.
struct variant {
    tn_dtype dtype;
    const char *symbol;
    _Atomic(void *) address; // once found
    ffi_cif cif;             // how it is called (bind.c)
};

struct library {
    const char *names[MAX_LIBRARIES + 1]; // tried in order; ended by NULL
    const char *remedy;                   // or NULL
    struct callee setups[MAX_SETUPS];     // called in order, once it was opened
    uint32_t num_setups;
    void *handle; // under the lock of library.c; set when the set-up calls have succeeded
};

struct gradient; // gradient.h
struct rules;    // rules.h

struct pack;
struct function {
    struct pack *pack;
    const char *name, *id, *doc;
    struct library *library;               // NULL: a callback
    struct variant *variants;              // num_variants of them
    struct operand operands[MAX_OPERANDS]; // inputs, then outputs
    struct work_array work[MAX_WORK];
    struct name names[MAX_NAMES];
    uint32_t order[MAX_NAMES]; // of the defined names: each after what it needs
    struct argument args[MAX_ARGS];
    struct handle handles[MAX_HANDLES];
    uint32_t num_variants, num_inputs, num_outputs, num_work, num_names, num_ordered,
        num_args, num_handles;
    enum lead lead; // of the operands that have one
    bool is_serial; // calls come one at a time
    enum returns returns;
    tn_dtype return_type;    // NONE: the function's own
    enum failure fails;      // with a status
    const char *remedies[2]; // what a negative and a positive status mean, or NULL
    void *user;              // ARG_USER

    tn_attr_field fields[MAX_ATTRS];
    int64_t least[MAX_ATTRS], most[MAX_ATTRS]; // of those of kind i64
    uint32_t num_fields;
    struct gradient **gradients; // by input; NULL: none of them has one
    bool has_zero_gradient[MAX_INPUTS];

    // What the core sees (bind.c).
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

struct pack {
    struct arena arena;
    pthread_mutex_t serial; // held in functions that are not thread-safe
    const char *id, *version, *vendor;
    struct function **functions;
    uint32_t num_functions;
};

// --- reading (manifest.c) --------------------------------------------------------------

enum { MANIFEST_MAX_SIZE = 1 << 20 };

// An empty pack; `room` as in struct arena, or NULL.
void pack_init(struct pack *pack, unsigned char *room);
void pack_finish(struct pack *pack);

// Reads `size` bytes into an empty pack; `path` is for messages: "axpby.json:7:
// /functions/0/args/2/kind: ...". With `tries` the libraries and symbols have to be there.
tn_status pack_read(const char *text, size_t size, const char *path, bool tries,
                    struct pack *out, struct problem *problem);

// --- shapes (shape.c) ------------------------------------------------------------------

// What follows from the inputs' types.
struct bound {
    uint32_t variant;
    int32_t lead_rank;
    int64_t lead[TN_MAX_RANK];
    int64_t values[MAX_NAMES];
};

tn_status bind_types(const struct function *function, const tn_type *types,
                     const void *attrs, struct bound *out, struct problem *problem);
// The type of output `index`.
tn_status output_type(const struct function *function, const struct bound *bound,
                      uint32_t index, tn_type *out, struct problem *problem);
// Fails when an extent does not fit the integer it is passed as.
tn_status check_extents(const struct function *function, const struct bound *bound,
                        struct problem *problem);
// Fails when an attribute is outside of its limits.
tn_status check_attributes(const struct function *function, const void *attrs,
                           struct problem *problem);

static inline tn_dtype dtype_or(tn_dtype dtype, const struct function *function,
                                uint32_t variant)
{
    return dtype != TN_DTYPE_NONE ? dtype : function->variants[variant].dtype;
}

const char *dtype_text(tn_dtype dtype);
bool fits(tn_dtype type, int64_t value);

// --- calls (call.c) --------------------------------------------------------------------

tn_status function_call(struct function *function, const tn_cpu_call *call);
uint64_t function_scratch(const struct function *function, const tn_kernel_query *query);

// The same for a callback, unless it was removed. (callback.c)
tn_status callback_call(struct function *function, const tn_cpu_call *call);

// Stores a number as `type`, which says how much of it counts.
void number_store(union value *value, tn_dtype type, int64_t integer, double real);
int64_t integer_load(const void *value, tn_dtype type);
bool status_fails(enum failure fails, int64_t status);

// --- libraries (library.c) -------------------------------------------------------------

// The address of a variant's symbol; opens its library first.
tn_status variant_find(struct function *function, uint32_t variant, void **out_address,
                       struct problem *problem);

// --- records for the core (bind.c) -----------------------------------------------------

// How a callee is called; `function` is whose variants it has, or NULL.
tn_status callee_bind(struct callee *callee, struct arena *arena,
                      const struct function *function, struct problem *problem);
tn_status function_bind(struct function *function, const struct rules *rules,
                        struct problem *problem);

#endif // FFI_PACK_H
