// SPDX-License-Identifier: MIT
// Primitives: named operations with an attribute schema and rules, and no device code.
//
// A primitive states its inputs, outputs and attributes, how the types of outputs follow
// from those of inputs (infer), and its meaning: an expression, a decomposition into other
// primitives, or a reference kernel in C. One of the three is required (a view needs none):
// it is the fallback on every device and the oracle of every test. Rules for derivatives
// and batching are optional.
//
//   static const tn_input_info inputs[] = {{"x", "the array", 0, 0}};
//   const tn_primitive square = {
//       .struct_size = sizeof(tn_primitive),
//       .id = "acme.square/1",
//       .doc = "x times x.",
//       TN_INPUTS(inputs),
//       .expr = "x * x", // infer, vjp, jvp and vmap follow from it
//   };
//
// <tenon/pack.h> has macros that write such records.
//
// Failures. A function of a record reports a failure through host->fail(), once, where it
// finds it, and returns the status. The core puts the primitive's id in front of the
// message. Outputs count on TN_OK only. An answer that breaks the contract (a type that
// infer did not promise, an array of another scope) is TN_ERR_INTERNAL, and the message
// names the plugin.
//
// Threads. Records are static and constant until the plugin's deinit. Each function may be
// called from any thread, by several at once, and keeps nothing between calls: no global
// state, no pointer to its arguments.
#ifndef TENON_PRIMITIVE_H
#define TENON_PRIMITIVE_H

#include <tenon/attr.h>
#include <tenon/graph.h>
#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

struct tn_cpu_call; // <tenon/kernel.h>
struct tn_kernel_query;

// --- inputs and outputs ----------------------------------------------------------------

// Flags of an input. A primitive with `expr` has no optional and no variadic input.
enum {
    TN_INPUT_OPTIONAL = 1, // may be left out; only after all required inputs
    TN_INPUT_VARIADIC = 2, // stands for one or more arrays; only the last input
    TN_INPUT_CONSTANT = 4, // never has a derivative (indices, keys)
};

// One input of a primitive. Written by the primitive's author.
typedef struct tn_input_info {
    const char *name; // a C identifier of at most 63 bytes, of this input alone
    const char *doc;  // one sentence, no full stop
    uint32_t flags;   // TN_INPUT_..., or 0
    // Set of TN_DTYPE_BIT that the primitive takes; 0: TN_FIRST_DTYPES. An array of another
    // dtype is TN_ERR_ARGUMENT before `infer` is called.
    uint32_t dtypes;
} tn_input_info;

// Flags of an output.
enum {
    // The output costs work, and serves derivatives, say: where nothing reads it,
    // `decompose` is told so (tn_rule.unread) and may leave it NULL.
    TN_OUTPUT_OPTIONAL = 1,
};

// One output of a primitive. Written by the primitive's author.
typedef struct tn_output_info {
    const char *name;  // a C identifier of at most 63 bytes
    const char *doc;   // one sentence, no full stop
    uint32_t flags;    // TN_OUTPUT_OPTIONAL, or 0
    uint32_t reserved; // 0
} tn_output_info;

// The most outputs of one application.
#define TN_MAX_OUTPUTS 64

// Permission to reuse memory: output `output` may be written over input `input` when no
// other node reads that input later. The core decides for each plan. Kernels then get both
// operands with the same first byte and strides, so a kernel has to read an element before
// it writes the element of the same position.
typedef struct tn_in_place {
    int32_t input;  // below num_inputs
    int32_t output; // below num_outputs
    // 1 + the input that replaces or changes a part of `input`: in place, kernels write at
    // most as many bytes of the output as that input has, and leave the others as they are.
    // tn_stats counts the written bytes by this field. 0: kernels write all of the output.
    int32_t update;
    int32_t reserved; // 0
} tn_in_place;

// --- types -----------------------------------------------------------------------------

// Argument of `infer`: the types of the inputs, and the attributes. Filled by the core,
// borrowed for the call.
typedef struct tn_infer {
    uint32_t struct_size; // sizeof(tn_infer) as the core was compiled
    uint32_t flags;       // 0
    const tn_host *host;  // for fail
    const tn_type *types; // num_inputs of them; dtype NONE: not given
    const void *attrs;    // the attribute struct, defaults filled in
    // Inputs of this application: a variadic input counts each array; without the scalars
    // of runtime attributes (TN_ATTR_RUNTIME).
    uint32_t num_inputs;
    uint32_t num_outputs; // of this application; 0 in count_outputs
} tn_infer;

// Argument of `view`: asks for the layout of the output's elements in the memory of the
// input. Filled by the core, borrowed for the call.
typedef struct tn_view {
    uint32_t struct_size;   // sizeof(tn_view) as the core was compiled
    uint32_t flags;         // 0
    const tn_layout *input; // of input 0
    const tn_type *output;  // as inferred
    const void *attrs;      // the attribute struct
} tn_view;

// --- building graph: what rules are written with ---------------------------------------

typedef struct tn_build tn_build;

// Builds outputs[0 .. num_outputs) from inputs in the scope of `build`: the body of a graph
// or of a mapping. It may use arrays of the scope around it. `user` is the pointer that was
// given with the body, and is valid during the call that took it.
typedef tn_status (*tn_build_body)(const tn_build *build, tn_array *const *inputs,
                                   uint64_t num_inputs, tn_array **outputs,
                                   uint64_t num_outputs, void *user);

// Functions that build graph, for decompose, vjp, jvp and vmap. Filled by the core, and
// valid during one call of a rule. Every slot returns NULL after a failure, and every slot
// accepts NULL arrays and then returns NULL: a rule is written as mathematics and checked
// once, by the core. Arrays belong to the scope: a rule frees nothing and keeps no array.
//
//   // z = x * y
//   tn_array *z = build->op(build, "base.multiply", TN_IN(x, y), TN_NO_ATTRS);
//   // the same with an expression, which needs no pack
//   tn_array *z = build->expr(build, "x, y -> x * y", TN_IN(x, y), TN_NO_ATTRS);
//
// All slots: on the thread that called the rule.
struct tn_build {
    uint32_t struct_size; // sizeof(tn_build) as the core was compiled
    uint32_t flags;       // 0
    const tn_host *host;  // for fail and log
    tn_scope *scope;      // that the arrays belong to; opaque

    // Applies a primitive ("base.sum/1", or "base.sum": the newest revision) that has one
    // output, and gives that output. Borrows the name, the inputs and the attributes.
    tn_array *(*op)(const tn_build *build, const char *primitive,
                    const tn_array *const *inputs, uint64_t num_inputs, tn_attr_list attrs);

    // Applies a primitive with any number of outputs, and writes them to
    // outputs[0 .. num_outputs); num_outputs is that of the primitive, or what its
    // count_outputs gives.
    tn_status (*op_n)(const tn_build *build, const char *primitive,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs);

    // Applies an expression: "g, x -> g / x". The names before the arrow stand for the
    // inputs in order; other names are attributes, given in `attrs`. One output.
    tn_array *(*expr)(const tn_build *build, const char *text,
                      const tn_array *const *inputs, uint64_t num_inputs,
                      tn_attr_list attrs);

    // A scalar (rank 0) of `value` converted to `dtype`, as <tenon/expr.h> converts an f64.
    tn_array *(*scalar)(const tn_build *build, tn_dtype dtype, double value);

    // The type of an array; NULL for NULL. Borrowed as long as the array lives.
    const tn_type *(*type)(const tn_array *array);

    // Calls `body` once with placeholders of these types, and gives what it built as a
    // graph, which lives as long as the scope. Arrays of the scope that the body used are
    // further inputs, which `captures` lists (tn_captures); NULL: using one is an error.
    // NULL after a failure.
    const tn_graph *(*trace)(const tn_build *build, tn_build_body body, void *user,
                             const tn_type *inputs, uint64_t num_inputs,
                             uint64_t num_outputs, tn_captures *captures);

    // Puts the nodes of a graph in here: gives its outputs for the first of `inputs`, as
    // many as it has. num_outputs is the graph's.
    tn_status (*call)(const tn_build *build, const tn_graph *graph, tn_array *const *inputs,
                      uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs);

    // Derivatives of what was built, as tn_vjp and tn_jvp of <tenon/tenon.h> give them: of
    // arrays `wrt` that the outputs do not depend on zeros.
    tn_status (*vjp)(const tn_build *build, tn_array *const *outputs,
                     tn_array *const *cotangents, uint64_t num_outputs,
                     tn_array *const *wrt, uint64_t num_wrt, tn_array **gradients);
    tn_status (*jvp)(const tn_build *build, tn_array *const *outputs, uint64_t num_outputs,
                     tn_array *const *wrt, tn_array *const *tangents, uint64_t num_wrt,
                     tn_array **out_tangents);

    // Applies `body` to all slices of the inputs, as tn_vmap_call does. NULL axes are 0.
    tn_status (*vmap)(const tn_build *build, tn_build_body body, void *user,
                      tn_array *const *inputs, const int32_t *in_axes, uint64_t num_inputs,
                      tn_array **outputs, const int32_t *out_axes, uint64_t num_outputs);
};

// Service: building graph in a scope of the application, for interfaces of a plugin's own
// that take one (a model's architecture, say): with the functions that rules have.
#define TN_HOST_GRAPH "tn.host.graph/1"
typedef struct tn_host_graph {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Fills out->struct_size bytes of *out, which the caller has set, with functions that
    // build in `scope`, a scope of the host's runtime. They are valid as long as the scope
    // is, and failures are the scope's. TN_ERR_ARGUMENT: the scope is NULL or of another
    // runtime. On the scope's thread.
    tn_status (*build)(const tn_host *host, tn_scope *scope, tn_build *out);
} tn_host_graph;

// Argument of a rule: the application of the primitive that the rule is asked about. Filled
// by the core, borrowed for the call.
typedef struct tn_rule {
    uint32_t struct_size;     // sizeof(tn_rule) as the core was compiled
    uint32_t flags;           // 0
    const void *attrs;        // the attribute struct
    tn_array *const *inputs;  // NULL: an optional input that was not given
    tn_array *const *outputs; // NULL in decompose; in vmap those of one slice: their types
    // Inputs of this application: a variadic input counts each array; with the scalars of
    // runtime attributes, which are the last.
    uint32_t num_inputs;
    uint32_t num_outputs;
    // In decompose: bit i says that nothing reads output i, which is TN_OUTPUT_OPTIONAL.
    uint64_t unread;
} tn_rule;

// Pair rule: another primitive that a device may compute together with this one. Where
// input `input` is the output of an application of `primitive`, and nothing else reads
// that, the core calls `rewrite`, which builds one application, of any primitive, that
// computes both. It replaces them on a device that has a kernel for it. Where this
// primitive alone would get a kernel, the kernel for both has to be of the same plugin:
// a plugin that brings its own kernel for this primitive is not bypassed. Elsewhere both
// stay.
typedef struct tn_pair_rule {
    const char *primitive; // "nn.rms_norm/1": of one output
    uint32_t input;        // below num_inputs
    uint32_t reserved;     // 0
    // Builds the output of `rule`, of its type, from the inputs of both: `made` is of
    // `primitive`, and rule->inputs[input] is NULL. *output stays NULL where these
    // attributes or types have no such primitive. Called while planning: no function of the
    // runtime may be used but those of `build`. [any-thread]
    tn_status (*rewrite)(const tn_build *build, const tn_rule *rule, const tn_rule *made,
                         tn_array **output);
} tn_pair_rule;

// --- the record ------------------------------------------------------------------------

// Flags of a primitive.
enum {
    // A strided view: the output is the memory of input 0 in another layout, which `view`
    // gives. Such a primitive has one output.
    TN_PRIM_VIEW = 1,
    // Has an effect beside its outputs (`effects` names its domain): equal applications are
    // not merged as a common subexpression, none is left out because its outputs have no
    // elements, and TENON_CHECK does not run it again to compare. As any node, it runs only
    // when a result that is evaluated needs it. Not with expr, decompose or TN_PRIM_VIEW:
    // the effect is that of the reference and of the kernels.
    TN_PRIM_EFFECT = 2,
    // With expr: shape and dtype of the outputs come from infer, not from the expression.
    TN_PRIM_OWN_TYPE = 4,
};

// Domains of effects that several packs share. Others are named like primitives, without
// a revision: "acme.journal".
#define TN_EFFECTS_OUTPUT "tn.output"               // people read it: terminals, logs
#define TN_EFFECTS_COMMUNICATION "tn.communication" // between processes and machines

// Roles: the few primitives that the core applies by itself, in derivatives and batching. A
// primitive that has a role declares the attributes named here. A role that the core does
// not know is ignored.
#define TN_ROLE_SUM_TO "tn.sum_to/1"             // ints `shape`: undoes a broadcast
#define TN_ROLE_BROADCAST_TO "tn.broadcast_to/1" // ints `shape`
#define TN_ROLE_RESHAPE "tn.reshape/1"           // ints `shape`; here without a -1
#define TN_ROLE_TRANSPOSE "tn.transpose/1" // ints `axes`: of x, in the order of the result
// Reductions of one input over ints `axis`, with bool `keepdims`: as REDUCE_SUM,
// REDUCE_PROD, REDUCE_MIN and REDUCE_MAX of <tenon/expr.h> fold, and the mean. Expressions
// that reduce are built from these on devices without TN_DEVICE_ROWS; on others these are
// fused into row programs.
#define TN_ROLE_SUM "tn.sum/1"
#define TN_ROLE_PROD "tn.prod/1"
#define TN_ROLE_MEAN "tn.mean/1"
#define TN_ROLE_MIN "tn.min/1"
#define TN_ROLE_MAX "tn.max/1"
// The elements of its first input at the indices that the second holds, integers, along an
// axis, i64 `axis`: the indices' axes take its place. Negative indices count from the end,
// others out of range are the nearest. On devices with TN_DEVICE_TAKES it becomes
// instruction TAKE of programs.
#define TN_ROLE_TAKE "tn.take/1"
// Primitives over graphs, for the functions of <tenon/control.h>, with the inputs, outputs
// and attributes of base.cond, base.while_loop, base.scan and base.checkpoint, which
// <tenon/ops/base_attrs.h> describes.
#define TN_ROLE_COND "tn.cond/1"
#define TN_ROLE_WHILE_LOOP "tn.while_loop/1"
#define TN_ROLE_SCAN "tn.scan/1"
#define TN_ROLE_CHECKPOINT "tn.checkpoint/1"

// A named operation: its inputs, outputs and attributes, its meaning, and its rules. It has
// no device code. Written by the primitive's author, checked when its plugin is loaded, and
// constant for as long as the plugin is loaded. [any-thread] for each function.
typedef struct tn_primitive {
    uint32_t struct_size; // sizeof(tn_primitive) as the plugin was compiled
    uint32_t flags;       // TN_PRIM_..., or 0
    const char *id;   // "nn.softmax/1": pack, name, revision; under 120 bytes before "/"
    const char *doc;  // a sentence or two
    const char *role; // TN_ROLE_..., or NULL

    const tn_input_info *inputs; // num_inputs of them, required ones first
    // NULL: one output named "out". With count_outputs: one entry, for all outputs.
    const tn_output_info *outputs;
    uint32_t num_inputs;         // 0 .. 64
    uint32_t num_outputs;        // 1 .. 8; 0 means 1; with count_outputs 0 or 1
    uint32_t input_size;         // sizeof(tn_input_info) as the plugin was compiled
    uint32_t output_size;        // sizeof(tn_output_info) likewise; 0 without `outputs`
    tn_attr_table attrs;         // zeros: no attributes
    const tn_in_place *in_place; // num_in_place pairs; may be NULL
    uint32_t num_in_place;
    uint32_t in_place_size; // sizeof(tn_in_place) likewise; 0 without `in_place`

    // The meaning, in one way or more. A view's meaning is `view`.
    //
    // An expression over the names of inputs and attributes: "alpha * x + beta * y". It may
    // start with definitions, and give several outputs:
    // "m1 = b * m + g; p - lr * m1, m1". docs/expressions.md has the grammar. Inputs
    // broadcast against each other, and dtypes promote, as in NumPy. The core derives
    // infer, vjp, jvp and vmap from the expression where the record has none.
    const char *expr;

    // Builds the outputs from other primitives, with the types that infer gives. On failure
    // nothing needs undoing.
    //
    // A record with neither infer nor expr is a composite: the core calls decompose when
    // the primitive is applied, and what it builds takes the application's place. Types,
    // derivatives and batching are those of what was built; no kernel may be brought for
    // it, and graphs and their files do not have it. It has no other rule but
    // count_outputs. An output may be an input.
    tn_status (*decompose)(const tn_build *build, const tn_rule *rule, tn_array **outputs);

    // Computes the outputs on the CPU in the plainest way: the definition that kernels are
    // tested against. Takes any layout of inputs and outputs, and any dtype that infer
    // accepts. Runs on one thread, with the scratch memory of reference_scratch.
    tn_status (*reference)(const struct tn_cpu_call *call);

    // Fills types[0 .. num_outputs). Fails with TN_ERR_ARGUMENT for inputs or attributes
    // that the primitive does not take. Pure; allocates nothing; the core checks that
    // extents do not overflow. NULL only with expr, or in a composite (decompose).
    tn_status (*infer)(const tn_infer *infer, tn_type *types);

    // For TN_PRIM_VIEW: fills *out with the dtype and extents that infer gave, and with an
    // offset and strides that stay between the lowest and the highest element of the input
    // in memory; the core refuses other layouts. TN_ERR_UNSUPPORTED, with no failure
    // recorded, when no strides express the view: the core then copies the input to a
    // contiguous layout and calls again, and the second call must succeed.
    tn_status (*view)(const tn_view *view, tn_layout *out);

    // Reverse mode (vector-Jacobian product): given d(loss)/d(output) for each output
    // (NULL: zero), builds d(loss)/d(input) into gradients[0 .. num_inputs). Bit i % 64 of
    // wanted[i / 64] says that the gradient of input i is needed; others may stay NULL. A
    // wanted gradient left NULL means zero. The core sums a gradient down to its input's
    // shape and casts it to its dtype.
    tn_status (*vjp)(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients);

    // Forward mode (Jacobian-vector product): given d(input)/dt for each input (NULL:
    // zero), builds d(output)/dt into out_tangents[0 .. num_outputs); NULL means zero.
    tn_status (*jvp)(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                     tn_array **out_tangents);

    // Batching: input i carries an extra axis at axes[i] (-1: none), of extent `size`,
    // which may be 0. Builds the outputs, and writes to out_axes where each output carries
    // the batch axis (-1: nowhere; the core has filled in 0). The core derives batching
    // from an expression or a decomposition: a rule is needed where there is neither, or
    // where a better graph is known.
    tn_status (*vmap)(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes);

    // Optional: the number of outputs depends on the application (parts that an array is
    // split into). Gives it, 1 .. TN_MAX_OUTPUTS, from the types of inputs and the
    // attributes; infer->num_outputs is 0. Fails as `infer` does, which is called next.
    // Pure; allocates nothing. Not with expr, view or in_place. All other functions see the
    // number in num_outputs.
    tn_status (*count_outputs)(const tn_infer *infer, uint64_t *out_count);

    // Optional: the bytes of scratch memory that `reference` needs, as
    // tn_kernel.scratch_size; NULL means 0.
    uint64_t (*reference_scratch)(const struct tn_kernel_query *query);

    // With TN_PRIM_EFFECT: the domain of the effect, TN_EFFECTS_... or a name of at most 63
    // bytes. Effects of one domain happen one after the other: within a graph in the order
    // in which its nodes were built, and those of an evaluation after those of evaluations
    // of the runtime that returned before it was called, on any device and also where they
    // are asynchronous. A derivative through such a node, and batching, is an error unless
    // the primitive has a rule of its own for it. NULL: in no order.
    const char *effects;

    // Optional: the meaning of a primitive whose work depends on data, such as a branch or
    // a loop over graphs: gives the outputs while a plan runs, between the steps of its
    // devices. Inputs and outputs lie on the first device of TENON_BACKEND. A kernel comes
    // first where a device has one; `run` comes before decompose. Not with expr, view or
    // in_place.
    tn_status (*run)(const tn_run *run);

    // Optional: what a device may compute together with this primitive, num_pair_rules
    // entries; the first one that applies is tried.
    const tn_pair_rule *pair_rules;
    uint32_t num_pair_rules; // 0 .. 16
    uint32_t pair_rule_size; // sizeof(tn_pair_rule) as the plugin was compiled
} tn_primitive;

// --- tables of a record ----------------------------------------------------------------

// Initialisers of a tn_primitive for arrays whose length the compiler knows: the array, the
// number of its elements and their size.
//
//   static const tn_input_info inputs[] = {{"x", "the array", 0, 0}};
//   const tn_primitive square = {..., TN_INPUTS(inputs), ...};
#define TN_INPUTS(array)                                                                   \
    .inputs = (array), .num_inputs = sizeof(array) / sizeof((array)[0]),                   \
    .input_size = sizeof(tn_input_info)
#define TN_OUTPUTS(array)                                                                  \
    .outputs = (array), .num_outputs = sizeof(array) / sizeof((array)[0]),                 \
    .output_size = sizeof(tn_output_info)
#define TN_PAIR_RULES(array)                                                               \
    .pair_rules = (array), .num_pair_rules = sizeof(array) / sizeof((array)[0]),           \
    .pair_rule_size = sizeof(tn_pair_rule)

// --- macros for calling tn_build and tn_op ---------------------------------------------

#ifndef __cplusplus

// The inputs of an application, for `op`, `op_n`, `expr` and tn_op(): expands to two
// arguments, the arrays and their number. At least one array; of none: NULL, 0.
#define TN_IN(...)                                                                         \
    ((const tn_array *const[]){__VA_ARGS__}),                                              \
        (sizeof((const tn_array *const[]){__VA_ARGS__}) / sizeof(const tn_array *))

// An initialiser of a tn_attr named `key`, its kind chosen by the C type of `v`: an
// integer, a floating-point number, a text (parsed as on the command line; of a STRING
// field the value itself), a pointer to tn_ints, tn_int_list or tn_float_list, an array (of
// a runtime attribute), or a graph. May evaluate `v` several times. Texts and lists are
// borrowed.
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
            tn_int_list *: TN_ATTR_INT_LIST,                                               \
            const tn_int_list *: TN_ATTR_INT_LIST,                                         \
            tn_float_list *: TN_ATTR_FLOAT_LIST,                                           \
            const tn_float_list *: TN_ATTR_FLOAT_LIST,                                     \
            tn_array *: TN_ATTR_ARRAY,                                                     \
            const tn_array *: TN_ATTR_ARRAY,                                               \
            const tn_graph *: TN_ATTR_GRAPH,                                               \
            default: TN_ATTR_I64),                                                         \
        .i = _Generic((v), float: 0, double: 0, TN_ATTR_POINTERS(0), default: (v)),        \
        .f = _Generic((v), TN_ATTR_POINTERS(0), default: (v)),                             \
        .ints = _Generic((v), tn_ints *: (v), const tn_ints *: (v), default: NULL),        \
        .text = _Generic((v), char *: (v), const char *: (v), default: NULL),              \
        .int_list =                                                                        \
            _Generic((v), tn_int_list *: (v), const tn_int_list *: (v), default: NULL),    \
        .float_list =                                                                      \
            _Generic((v), tn_float_list *: (v), const tn_float_list *: (v), default: NULL), \
        .array = _Generic((v), tn_array *: (v), const tn_array *: (v), default: NULL), \
        .graph = _Generic((v), const tn_graph *: (v), default: NULL), \
    }

// Part of TN_ATTR_INIT: the association of each type of pointer with `value`.
// clang-format off
#define TN_ATTR_POINTERS(value)                                                            \
    char *: (value), const char *: (value), tn_ints *: (value), const tn_ints *: (value),  \
    tn_int_list *: (value), const tn_int_list *: (value),                                  \
    tn_float_list *: (value), const tn_float_list *: (value),                              \
    tn_array *: (value), const tn_array *: (value), const tn_graph *: (value)
// clang-format on

// A tn_attr_list of up to eight pairs of a name and a value, valid within the enclosing
// block:
//
//   tn_attrs("alpha", 4.0, "axis", TN_INTS(0, 2), "dtype", "f16")
//
// More pairs, or an odd number of arguments, do not compile. TN_NO_ATTRS is the list of
// none: every attribute at its default.
#define tn_attrs(...)                                                                      \
    ((tn_attr_list){(const tn_attr[]){TN_ATTR_PAIRS(__VA_ARGS__)},                         \
                    sizeof((const tn_attr[]){TN_ATTR_PAIRS(__VA_ARGS__)}) /                \
                        sizeof(tn_attr),                                                   \
                    sizeof(tn_attr), 0})
#define TN_NO_ATTRS TN_ATTR_LIST(NULL, 0)

// The TN_ATTR_INIT of each pair. TN_ATTR_PICK gives its 17th argument: the pairs in front
// push TN_ATTR_n, for n pairs, into that position, or TN_ATTR_ODD, which does not exist.
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

// An integer list: TN_INTS(0, 2) is a `const tn_ints *`, valid within the enclosing block,
// of 1 .. TN_MAX_RANK integers. An empty list is &(const tn_ints){.given = 1}.
#define TN_INTS(...)                                                                       \
    (&(const tn_ints){                                                                     \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), 1, {__VA_ARGS__}})

// Lists of any length: TN_INT_LIST(3, 5, 7) is a `const tn_int_list *` and TN_FLOATS(0.5,
// 2) a `const tn_float_list *`, valid within the enclosing block. An empty list is
// &(const tn_int_list){0}.
#define TN_INT_LIST(...)                                                                   \
    (&(const tn_int_list){sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),        \
                          (const int64_t[]){__VA_ARGS__}})
#define TN_FLOATS(...)                                                                     \
    (&(const tn_float_list){sizeof((const double[]){__VA_ARGS__}) / sizeof(double),        \
                            (const double[]){__VA_ARGS__}})

#endif // __cplusplus

#endif // TENON_PRIMITIVE_H
