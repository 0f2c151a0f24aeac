// SPDX-License-Identifier: MIT
// Primitives: named operations with an attribute schema and rules, and no device code.
//
// A primitive says its inputs, outputs and attributes, how types follow from types
// (infer), and what it means: by an expression, by a decomposition into other primitives,
// or by a reference kernel in C. One of the three is required: it is the fallback on every
// device and the oracle of every test. Rules for derivatives and batching are optional.
//
// Threads. Records are static and constant until the plugin's deinit. Each function may be
// called from any thread, by several at once; it keeps nothing between calls.
#ifndef TENON_PRIMITIVE_H
#define TENON_PRIMITIVE_H

#include <tenon/attr.h>
#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

struct tn_cpu_call; // <tenon/kernel.h>

// --- inputs and outputs ----------------------------------------------------------------

enum {
    TN_INPUT_OPTIONAL = 1, // may be left out; only after all required ones
    TN_INPUT_VARIADIC = 2, // stands for one or more arrays; only the last
    TN_INPUT_CONSTANT = 4, // never has a derivative (indices, keys)
};

// One input of a primitive.
typedef struct tn_input_info {
    const char *name;
    const char *doc; // one sentence, no full stop
    uint32_t flags;
    uint32_t reserved; // 0
} tn_input_info;

// One output of a primitive.
typedef struct tn_output_info {
    const char *name;
    const char *doc;
    uint32_t flags;    // 0
    uint32_t reserved; // 0
} tn_output_info;

// Output `output` may take over the memory of input `input` when nobody else needs it.
typedef struct tn_in_place {
    int32_t input;
    int32_t output;
} tn_in_place;

// --- types -----------------------------------------------------------------------------

// What infer is asked: the types of the inputs, and the attributes. Borrowed for the call.
typedef struct tn_infer {
    uint32_t struct_size;
    uint32_t flags;       // 0
    const tn_host *host;  // for fail
    const tn_type *types; // num_inputs of them; dtype NONE: not given
    const void *attrs;    // the attribute struct, defaults filled in
    uint32_t num_inputs;
    uint32_t num_outputs;
} tn_infer;

// A view asks: where do the output's elements lie in the input's memory?
typedef struct tn_view {
    uint32_t struct_size;
    uint32_t flags;         // 0
    const tn_layout *input; // of input 0
    const tn_type *output;  // as inferred
    const void *attrs;
} tn_view;

// --- building graph: what rules are written with ---------------------------------------

// Valid during one rule call. Every slot returns NULL after a failure, and every slot
// accepts NULL arrays and then returns NULL: a rule is written as mathematics and checked
// once, by the core. Arrays belong to the graph: nothing is freed.
typedef struct tn_build tn_build;
struct tn_build {
    uint32_t struct_size;
    uint32_t flags;      // 0
    const tn_host *host; // for fail and log
    tn_scope *scope;

    // Applies a primitive ("base.sum/1", or "base.sum": the newest revision) that has one
    // output, and gives it.
    tn_array *(*op)(const tn_build *build, const char *primitive,
                    const tn_array *const *inputs, uint64_t num_inputs, tn_attr_list attrs);

    // The same for several outputs, into outputs[0 .. num_outputs).
    tn_status (*op_n)(const tn_build *build, const char *primitive,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs);

    // Applies an expression: "g, x -> g / x". The names before the arrow stand for the
    // inputs in order; other names are attributes, given in `attrs`. One output.
    tn_array *(*expr)(const tn_build *build, const char *text,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs);

    // A scalar (rank 0) of this value, converted to `dtype`.
    tn_array *(*scalar)(const tn_build *build, tn_dtype dtype, double value);

    // The type of an array; NULL for NULL. Borrowed as long as the array lives.
    const tn_type *(*type)(const tn_array *array);
};

// The application of a primitive that a rule is asked about.
typedef struct tn_rule {
    uint32_t struct_size;
    uint32_t flags; // 0
    const void *attrs;
    tn_array *const *inputs;  // NULL: an optional input that was not given
    tn_array *const *outputs; // NULL in decompose; in vmap those of one slice: their types
    uint32_t num_inputs;
    uint32_t num_outputs;
} tn_rule;

// --- the record ------------------------------------------------------------------------

enum {
    // The output's memory is the input's, seen through another layout. `view` is set.
    TN_PRIM_VIEW = 1,
    // Never evaluated twice into one result and never removed: it has an effect.
    TN_PRIM_EFFECT = 2,
    // With expr: shape and dtype do not come from the inputs but from infer.
    TN_PRIM_OWN_TYPE = 4,
};

// Roles: how the core finds the few primitives it must apply by itself. A primitive that
// has one declares the attribute named with it.
#define TN_ROLE_SUM_TO "tn.sum_to/1"             // ints `shape`: undoes a broadcast
#define TN_ROLE_BROADCAST_TO "tn.broadcast_to/1" // ints `shape`
#define TN_ROLE_RESHAPE "tn.reshape/1"           // ints `shape`; here without a -1
#define TN_ROLE_TRANSPOSE "tn.transpose/1"       // ints `axes`: which stands at each place

// A named operation: its inputs, outputs and attributes, what it means, and its rules. It
// has no device code. Constant for as long as its plugin is loaded.
typedef struct tn_primitive {
    uint32_t struct_size;
    uint32_t flags;
    const char *id;   // "nn.softmax/1": pack, name, revision
    const char *doc;  // a sentence or two
    const char *role; // TN_ROLE_..., or NULL

    const tn_input_info *inputs;
    const tn_output_info *outputs; // NULL: one output named "out"
    uint32_t num_inputs;
    uint32_t num_outputs; // 0 means 1
    tn_attr_table attrs;
    const tn_in_place *in_place; // may be NULL
    uint32_t num_in_place;
    uint32_t reserved; // 0

    // What it means, one way or more; of a view, `view` says it.
    //
    // An expression over the inputs' and attributes' names: "alpha * x + beta * y". May
    // start with definitions, and give several outputs:
    // "m1 = b * m + g; p - lr * m1, m1". docs/expressions.md has the grammar. Inputs
    // broadcast against each other; dtypes promote. The core derives infer, vjp, jvp and
    // vmap of such a primitive when it brings none.
    const char *expr;

    // Builds the outputs from other primitives. On failure nothing needs undoing.
    tn_status (*decompose)(const tn_build *build, const tn_rule *rule, tn_array **outputs);

    // Computes on the CPU, in the plainest way. Takes any layout of its inputs and of its
    // outputs, and any dtype that infer accepts. Runs on one thread.
    tn_status (*reference)(const struct tn_cpu_call *call);

    // Fills types[0 .. num_outputs). Pure; allocates nothing; overflow of extents is the
    // core's to check. NULL only with expr.
    tn_status (*infer)(const tn_infer *infer, tn_type *types);

    // For TN_PRIM_VIEW: fills *out, with the dtype and extents that infer said, and
    // elements among those from the lowest to the highest one that the input reaches in
    // memory: the core refuses others. TN_ERR_UNSUPPORTED, recording no failure, when no
    // strides can say it: the core then copies the input to a contiguous one and asks
    // again, and this time it must succeed.
    tn_status (*view)(const tn_view *view, tn_layout *out);

    // Reverse mode: given d(loss)/d(output) for each output (NULL: zero), builds
    // d(loss)/d(input) into gradients[0 .. num_inputs). Bit i of wanted[i / 64] says that
    // input i's is needed; others may stay NULL. A wanted one left NULL means zero. The
    // core sums a gradient down to its input's shape and casts it to its dtype.
    tn_status (*vjp)(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients);

    // Forward mode: given d(input)/dt for each input (NULL: zero), builds d(output)/dt.
    tn_status (*jvp)(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                     tn_array **out_tangents);

    // Batching: input i carries an extra axis at axes[i] (-1: none), of extent `size`, 0
    // included. Builds the outputs, and says in out_axes where each carries it (-1: it does
    // not; 0 is filled in). The core derives it from an expression or a decomposition: a
    // rule is needed where there is neither, or where more is known.
    tn_status (*vmap)(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes);
} tn_primitive;

// --- macros for calling tn_build and tn_op ---------------------------------------------

#ifndef __cplusplus

// The inputs of an application: expands to two arguments, the arrays and their number.
#define TN_IN(...)                                                                         \
    ((const tn_array *const[]){__VA_ARGS__}),                                              \
        (sizeof((const tn_array *const[]){__VA_ARGS__}) / sizeof(const tn_array *))

// One attribute, by the C type of its value: an integer, a floating-point number, a string
// (parsed as on the command line) or a `const tn_ints *`.
#define TN_ATTR_INIT(key, v)                                                                 \
    {                                                                                        \
        .name = (key),                                                                     \
        .kind = _Generic((v),                                                              \
            float: TN_ATTR_F64,                                                            \
            double: TN_ATTR_F64,                                                           \
            char *: TN_ATTR_TEXT,                                                          \
            const char *: TN_ATTR_TEXT,                                                    \
            tn_ints *: TN_ATTR_INTS,                                                       \
            const tn_ints *: TN_ATTR_INTS,                                                 \
            default: TN_ATTR_I64),                                                         \
        .i = _Generic((v),                                                                 \
            float: 0,                                                                      \
            double: 0,                                                                     \
            char *: 0,                                                                     \
            const char *: 0,                                                               \
            tn_ints *: 0,                                                                  \
            const tn_ints *: 0,                                                            \
            default: (v)),                                                                 \
        .f = _Generic((v),                                                                 \
            char *: 0,                                                                     \
            const char *: 0,                                                               \
            tn_ints *: 0,                                                                  \
            const tn_ints *: 0,                                                            \
            default: (v)),                                                                 \
        .ints = _Generic((v), tn_ints *: (v), const tn_ints *: (v), default: NULL),        \
        .text = _Generic((v), char *: (v), const char *: (v), default: NULL), \
    }

// A list of attributes: tn_attrs("alpha", 4.0, "beta", 2.0). Up to eight pairs.
#define tn_attrs(...)                                                                      \
    ((tn_attr_list){(const tn_attr[]){TN_ATTR_PAIRS(__VA_ARGS__)},                         \
                    sizeof((const tn_attr[]){TN_ATTR_PAIRS(__VA_ARGS__)}) /                \
                        sizeof(tn_attr)})
#define TN_NO_ATTRS ((tn_attr_list){NULL, 0})

#define TN_ATTR_PAIRS(...)                                                                 \
    TN_ATTR_PICK(__VA_ARGS__, TN_ATTR_8, TN_ATTR_ODD, TN_ATTR_7, TN_ATTR_ODD, TN_ATTR_6,   \
                 TN_ATTR_ODD, TN_ATTR_5, TN_ATTR_ODD, TN_ATTR_4, TN_ATTR_ODD, TN_ATTR_3,   \
                 TN_ATTR_ODD, TN_ATTR_2, TN_ATTR_ODD, TN_ATTR_1, TN_ATTR_ODD, unused)      \
    (__VA_ARGS__)
#define TN_ATTR_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, pick, ...) pick
#define TN_ATTR_1(n, v) TN_ATTR_INIT(n, v)
#define TN_ATTR_2(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_1(__VA_ARGS__)
#define TN_ATTR_3(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_2(__VA_ARGS__)
#define TN_ATTR_4(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_3(__VA_ARGS__)
#define TN_ATTR_5(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_4(__VA_ARGS__)
#define TN_ATTR_6(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_5(__VA_ARGS__)
#define TN_ATTR_7(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_6(__VA_ARGS__)
#define TN_ATTR_8(n, v, ...) TN_ATTR_INIT(n, v), TN_ATTR_7(__VA_ARGS__)

// An integer list: TN_INTS(0, 2) is a `const tn_ints *`. TN_INTS_OF copies `n` values.
#define TN_INTS(...)                                                                       \
    (&(const tn_ints){                                                                     \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), 1, {__VA_ARGS__}})

#endif // __cplusplus

#endif // TENON_PRIMITIVE_H
