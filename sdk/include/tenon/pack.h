// SPDX-License-Identifier: MIT
// An op pack in few lines: macros that write the records of <tenon/primitive.h>,
// <tenon/kernel.h> and <tenon/plugin.h>. They expand to plain constant data at file scope:
// where a macro is too narrow, write the record out and list it beside the others.
//
//   #include <tenon/pack.h>
//
//   TN_EXPR_OP(axpby, "acme.axpby/1", (x, y), (alpha, 1, beta, 1), "alpha * x + beta * y");
//   TN_PACK("com.acme.axpby", "1.0.0", "Acme", TN_PRIMITIVES(&axpby));
//
// That is a whole plugin. With a kernel for the CPU, which <tenon/ops/rows.h> calls row by
// row, it is
//
//   static void rows(const tn_row *row)
//   {
//       const axpby_attrs *attrs = row->call->attrs; // defined by TN_EXPR_OP
//       float alpha = (float)attrs->alpha, beta = (float)attrs->beta;
//       ...
//   }
//   TN_ROW_KERNEL(fast, "acme.axpby/1", rows, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));
//   TN_PACK("com.acme.axpby", "1.0.0", "Acme", TN_PRIMITIVES(&axpby), TN_KERNELS(&fast));
//
// Arguments. NAME is the C name of the record that a macro defines, and the stem of the
// names of its tables. Ids, families and texts are string literals. Lists stand in
// parentheses. Macros whose names begin with TN_PACK_ are parts of the others, and no
// interface.
//
// Errors. A wrong list is a compile error with a sentence: an attribute without a default,
// more than eight attributes, attributes without parentheses, push constants that do not
// match the shader. The core checks the records when the plugin is loaded, as those written
// by hand.
//
// C only: in C++ the records are written out.
//
// Threads. Plain constant data: any thread.
#ifndef TENON_PACK_H
#define TENON_PACK_H

#include <tenon/plugin.h>

#ifndef __cplusplus

// --- primitives ------------------------------------------------------------------------

// Attributes that are numbers: names and defaults in turn, at most eight pairs. Defines the
// struct NAME_attrs, of doubles, and the array NAME_fields that describes it.
// TN_ATTRS_OF(NAME) is the tn_attr_table of both. Attributes of other kinds, and sentences
// that describe them, are written with the macros of <tenon/attr.h>.
//
//   TN_NUMBER_ATTRS(clip, lo, 0, hi, 1);  // struct clip_attrs { double lo; double hi; }
//   TN_OP(clip, "acme.clip/1", (x), .attrs = TN_ATTRS_OF(clip), ...);
#define TN_NUMBER_ATTRS(name, ...)                                                         \
    TN_PACK_JOIN(TN_PACK_NUMBERS_, TN_PACK_KIND(__VA_ARGS__))(name, __VA_ARGS__)
#define TN_ATTRS_OF(name) TN_ATTR_TABLE(name##_attrs, name##_fields)

// Defines a static tn_primitive NAME: its id, the names of its inputs in parentheses (one
// to eight, all required), and its meaning and rules as designated initialisers of
// tn_primitive.
//
//   TN_OP(square, "acme.square/1", (x), .expr = "x * x", .doc = "x times x.");
//   TN_OP(norm, "acme.norm/1", (x), .infer = norm_infer, .decompose = norm_decompose,
//         .doc = "The Euclidean norm of the last axis.");
#define TN_OP(name, op_id, input_names, ...)                                               \
    static const tn_input_info name##_inputs[] = {TN_PACK_INPUTS input_names};             \
    static const tn_primitive name = {.struct_size = sizeof(tn_primitive),                 \
                                      .id = op_id,                                         \
                                      TN_INPUTS(name##_inputs),                            \
                                      __VA_ARGS__}

// Initialisers for TN_OP: an expression that is the primitive's meaning and its
// documentation.
#define TN_MEANS(text) .expr = text, .doc = text

// Initialisers for TN_OP: output `o` may take over the memory of input `i`, as tn_in_place
// of <tenon/primitive.h> says. One pair only.
#define TN_IN_PLACE(i, o)                                                                  \
    .in_place = &(const tn_in_place){.input = i, .output = o}, .num_in_place = 1,          \
    .in_place_size = sizeof(tn_in_place)

// Defines a static tn_primitive NAME that is an expression over its inputs and attributes
// (docs/expressions.md). The core derives type inference, derivatives and batching from it.
// The attributes stand in parentheses, as for TN_NUMBER_ATTRS, and define the struct
// NAME_attrs; a primitive without attributes leaves the parentheses out.
//
//   TN_EXPR_OP(square, "acme.square/1", (x), "x * x");
//   TN_EXPR_OP(scale, "acme.scale/1", (x), (factor, 2), "factor * x");
#define TN_EXPR_OP(name, op_id, input_names, ...)                                          \
    TN_PACK_JOIN(TN_PACK_EXPR_, TN_PACK_KIND(__VA_ARGS__))                                 \
    (name, op_id, input_names, __VA_ARGS__)

// --- kernels ---------------------------------------------------------------------------

// The priority of the kernels that the macros below define: "tuned", in the ranges of
// tn_kernel.priority in <tenon/kernel.h>. Define it before this header for another one.
#ifndef TN_KERNEL_PRIORITY
#define TN_KERNEL_PRIORITY 500
#endif

// Initialisers of a tn_kernel that state which operands it takes: all of one dtype, out of
// a set of TN_DTYPE_BIT, in any strides, or contiguous only. Inputs that are not contiguous
// are then copied first. A kernel with other rules for each operand writes .operands
// itself.
#define TN_TAKES_ANY(dtype_set) TN_PACK_TAKES(dtype_set, TN_NEEDS_ANY)
#define TN_TAKES_CONTIGUOUS(dtype_set) TN_PACK_TAKES(dtype_set, TN_NEEDS_CONTIGUOUS)
#define TN_PACK_TAKES(dtype_set, layouts)                                                  \
    .flags = TN_KERNEL_SAME_DTYPE,                                                         \
    TN_OPERANDS(((const tn_operand_rule[]){{.dtypes = (dtype_set), .needs = (layouts)}}))

// For a kernel's `accepts`: 1 when every input has the rank and extents of output 0, so
// that no input is broadcast; otherwise 0. Pure.
static inline int32_t tn_same_extents(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    for (uint32_t k = 0; k < query->num_inputs; k++) {
        if (query->inputs[k].rank != out->rank)
            return 0;
        for (int32_t i = 0; i < out->rank; i++)
            if (query->inputs[k].extent[i] != out->extent[i])
                return 0;
    }
    return 1;
}

// Defines a cpu.c/1 kernel NAME for primitive `op_id`, which may be of another pack; NAME
// is also what `tenon why` prints. `function` is its launch, of the type of
// tn_cpu_kernel.launch: called on any thread, by several at once. Then follow TN_TAKES_...,
// and more designated initialisers of tn_kernel such as .accepts. `static` may stand in
// front.
//
//   static TN_CPU_KERNEL(fast, "acme.axpby/1", launch, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));
#define TN_CPU_KERNEL(kernel_name, op_id, function, ...)                                   \
    const tn_kernel kernel_name = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = op_id,                                                                \
        .family = TN_FAMILY_CPU,                                                           \
        .name = #kernel_name,                                                              \
        .priority = TN_KERNEL_PRIORITY,                                                    \
        .payload = &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel),            \
                                          .launch = function},                             \
        __VA_ARGS__}

// Push constants of a shader, for TN_SHADER_KERNELS, in the order of the shader's block:
//   TN_PUSH_THE_COUNT   uint: the number of elements of output 0
//   TN_PUSH_OFFSETS(n)  n times uint: the first element of operands 0 .. n - 1; n is 1 .. 4
//   TN_PUSH_NUMBERS(n)  n times float: attributes 0 .. n - 1, of kind F64; n is 1 .. 4
//
// Other fields are written as a tn_push_field: {TN_PUSH_EXTENT, -1, 0}. For a block of an
// elementwise shader with two inputs, one output and two attributes:
//
//   (TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(3), TN_PUSH_NUMBERS(2))
#define TN_PUSH_THE_COUNT                                                                  \
    {                                                                                      \
        TN_PUSH_COUNT, 0, 0                                                                \
    }
#define TN_PUSH_OFFSETS(n) TN_PACK_OFFSETS##n
#define TN_PUSH_NUMBERS(n) TN_PACK_NUMBERS##n

// Defines two kernels of one shader: NAME_glsl in family vulkan.glsl/1 and NAME_spirv in
// vulkan.spirv/1. Takes what `tenon-plugin shader --name NAME` writes: the arrays
// NAME_glsl_code and NAME_spirv_code, and NAME_push_words, the size of the shader's
// push-constant block in words of 4 bytes. A list `push` of another length does not
// compile.
//
// `group` is the number of elements of output 0 that a workgroup computes. `push` is the
// list of push constants in parentheses. Then follow TN_TAKES_... and more designated
// initialisers of tn_kernel, for both kernels.
//
//   #include "axpby_shader.h" // written by tenon-plugin shader when the pack is built
//   TN_SHADER_KERNELS(axpby, "acme.axpby/1", 256,
//                     (TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(3), TN_PUSH_NUMBERS(2)),
//                     TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)),
//                     .accepts = tn_same_extents);
#define TN_SHADER_KERNELS(shader, op_id, group, push_list, ...)                            \
    static const tn_push_field shader##_push[] = {TN_PACK_UNWRAP push_list};               \
    _Static_assert(sizeof(shader##_push) / sizeof(shader##_push[0]) ==                     \
                       shader##_push_words,                                                \
                   "push constants: the list is not as long as the block of the shader");  \
    TN_PACK_MODULES(shader##_glsl, TN_PACK_TEXTS1(shader));                                \
    TN_PACK_GPU_KERNEL(shader##_glsl, TN_FAMILY_VULKAN_GLSL, op_id,                        \
                       (TN_PACK_PLAIN(shader, group)), __VA_ARGS__);                       \
    TN_PACK_MODULES(shader##_spirv, TN_PACK_WORDS1(shader));                               \
    TN_PACK_GPU_KERNEL(shader##_spirv, TN_FAMILY_VULKAN_SPIRV, op_id,                      \
                       (TN_PACK_PLAIN(shader, group)), __VA_ARGS__)
#define TN_PACK_PLAIN(shader, group)                                                       \
    .push = shader##_push, .num_push = shader##_push_words, .elements_per_group = group

// Defines two kernels that plan their launches: NAME_glsl in family vulkan.glsl/1 and
// NAME_spirv in vulkan.spirv/1. `function` is the `plan` of both, see <tenon/vulkan.h>.
// `shaders` are the names of their modules in parentheses, one to eight, in the order of
// the indices that the plan uses, as `tenon-plugin shader --name` got them. Then follow
// TN_TAKES_... and more designated initialisers of tn_kernel, such as .scratch_size.
//
//   #include <tenon/vulkan.h>
//   static tn_status plan(const tn_vulkan_plan *plan) { ... plan->launch(plan, ...) ... }
//   enum { ROWS, SUMS, SCALE }; // tn_vulkan_launch.module
//   TN_PLANNED_KERNELS(norm, "acme.norm/1", plan, (rows, sums, scale),
//                      TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)),
//                      .scratch_size = scratch_size);
//
// Where one shader's text serves several modules by macros (tn_vulkan_module.defines), or
// its entry point is not "main", the records are written out.
#define TN_PLANNED_KERNELS(kernel, op_id, function, shaders, ...)                          \
    TN_PACK_MODULES(kernel##_glsl, TN_PACK_CALL(TN_PACK_TEXTS, shaders));                  \
    TN_PACK_GPU_KERNEL(kernel##_glsl, TN_FAMILY_VULKAN_GLSL, op_id, (.plan = function),    \
                       __VA_ARGS__);                                                       \
    TN_PACK_MODULES(kernel##_spirv, TN_PACK_CALL(TN_PACK_WORDS, shaders));                 \
    TN_PACK_GPU_KERNEL(kernel##_spirv, TN_FAMILY_VULKAN_SPIRV, op_id, (.plan = function),  \
                       __VA_ARGS__)

// One of the two kernels: its modules, and its payload, of which `form` says in parentheses
// how it is launched.
#define TN_PACK_MODULES(kernel_name, ...)                                                  \
    static const tn_vulkan_module kernel_name##_modules[] = {__VA_ARGS__}
#define TN_PACK_GPU_KERNEL(kernel_name, family_, op_id, form, ...)                         \
    static const tn_kernel kernel_name = {                                                 \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = op_id,                                                                \
        .family = family_,                                                                 \
        .name = #kernel_name,                                                              \
        .priority = TN_KERNEL_PRIORITY,                                                    \
        .payload =                                                                         \
            &(const tn_vulkan_kernel){.struct_size = sizeof(tn_vulkan_kernel),             \
                                      .modules = kernel_name##_modules,                    \
                                      .num_modules = sizeof(kernel_name##_modules) /       \
                                                     sizeof(kernel_name##_modules[0]),     \
                                      .module_size = sizeof(tn_vulkan_module),             \
                                      TN_PACK_UNWRAP form},                                \
        __VA_ARGS__}

// --- the plugin ------------------------------------------------------------------------

// The pack's primitives, for TN_PACK: addresses of records. A pack may have none, and bring
// kernels for primitives of other packs.
#define TN_PRIMITIVES(...)                                                                 \
    .primitives = (const tn_primitive *const[]){__VA_ARGS__},                              \
    .num_primitives = sizeof((const tn_primitive *const[]){__VA_ARGS__}) / sizeof(void *)

// The pack's kernels, for TN_PACK: TN_KERNELS(&fast, &axpby_glsl, &axpby_spirv).
#define TN_KERNELS(...)                                                                    \
    .kernels = (const tn_kernel *const[]){__VA_ARGS__},                                    \
    .num_kernels = sizeof((const tn_kernel *const[]){__VA_ARGS__}) / sizeof(void *)

// Defines the plugin of an op pack, once a shared object: its id, version and vendor (see
// TN_PLUGIN of <tenon/plugin.h>), then TN_PRIMITIVES(...), TN_KERNELS(...) or both. A pack
// that needs init, deinit or further interfaces writes its tn_ops and TN_PLUGIN out:
//
//   static const tn_ops ops = {.struct_size = sizeof(ops), TN_PRIMITIVES(&axpby)};
//   TN_PLUGIN("com.acme.axpby", "1.0.0", "Acme", .query = query, .init = init);
#define TN_PACK(pack_id, pack_version, pack_vendor, ...)                                   \
    static const tn_ops tn_pack_ops_ = {.struct_size = sizeof(tn_ops), __VA_ARGS__};       \
    static const void *tn_pack_query_(const char *interface_id)                            \
    {                                                                                      \
        return __builtin_strcmp(interface_id, TN_IFACE_OPS) == 0 ? &tn_pack_ops_ : NULL;   \
    }                                                                                      \
    TN_PLUGIN(pack_id, pack_version, pack_vendor, .query = tn_pack_query_)

// --- parts of the macros above ----------------------------------------------------------

// The preprocessor has no loops, so each list is taken apart by a macro for its length:
// TN_PACK_PICK counts the arguments and appends the number to a stem, and TN_PACK_FIELDS4
// handles two of them and leaves the rest to TN_PACK_FIELDS2.

// clang-format off
// Calls `macro` with the arguments that stand in parentheses.
#define TN_PACK_CALL(macro, arguments) macro arguments
// A list without its parentheses: TN_PACK_UNWRAP (a, b).
#define TN_PACK_UNWRAP(...) __VA_ARGS__
// One token of two, each expanded first.
#define TN_PACK_JOIN(a, b) TN_PACK_JOIN_(a, b)
#define TN_PACK_JOIN_(a, b) a##b
// The number of arguments, 1 .. 16: those in front push the number into the position of
// `count`.
#define TN_PACK_COUNT(...)                                                                 \
    TN_PACK_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TN_PACK_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
// The macro named `stem` and the number of arguments.
#define TN_PACK_PICK(stem, ...) TN_PACK_JOIN(stem, TN_PACK_COUNT(__VA_ARGS__))

// Classifies a list by its length: ONE argument (which may be empty), TWO, an EVEN or ODD
// number up to sixteen, or MANY, up to 32. Where users err, the class picks the message.
#define TN_PACK_KIND(...)                                                                  \
    TN_PACK_KIND_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
                  MANY, MANY, MANY, MANY, MANY, MANY, EVEN, ODD, EVEN, ODD, EVEN, ODD,     \
                  EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, TWO, ONE, 0)
#define TN_PACK_KIND_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, \
                      x, y, z, aa, ab, ac, ad, ae, af, kind, ...)                          \
    kind
// A list as a string literal: "" when it is empty.
#define TN_PACK_TEXT(...) #__VA_ARGS__

// TN_EXPR_OP, by the class of what follows the inputs. ONE: the expression.
#define TN_PACK_EXPR_ONE(name, op_id, input_names, text)                                   \
    TN_OP(name, op_id, input_names, TN_MEANS(text))
// TWO: attributes in parentheses, and the expression.
#define TN_PACK_EXPR_TWO(name, op_id, input_names, numbers, text)                          \
    TN_PACK_WITH(TN_PACK_KIND_OF(TN_PACK_UNWRAP numbers), name, op_id, input_names,        \
                 numbers, text)
#define TN_PACK_KIND_OF(...) TN_PACK_KIND(__VA_ARGS__)
#define TN_PACK_WITH(kind, ...) TN_PACK_JOIN(TN_PACK_WITH_, kind)(__VA_ARGS__)
// One name in the parentheses is an attribute without a default: an error with a message.
// The parentheses may also be empty.
#define TN_PACK_WITH_ONE(name, op_id, input_names, numbers, text)                          \
    _Static_assert(sizeof(TN_PACK_TEXT numbers) == 1,                                      \
                   "an attribute needs a default behind it: (alpha, 1)");                  \
    TN_OP(name, op_id, input_names, TN_MEANS(text))
// Names and defaults. Their number is checked by TN_NUMBER_ATTRS.
#define TN_PACK_WITH_TWO(name, op_id, input_names, numbers, text)                          \
    TN_PACK_CALL(TN_NUMBER_ATTRS, (name, TN_PACK_UNWRAP numbers));                         \
    TN_OP(name, op_id, input_names, .attrs = TN_ATTRS_OF(name), TN_MEANS(text))
#define TN_PACK_WITH_EVEN TN_PACK_WITH_TWO
#define TN_PACK_WITH_ODD TN_PACK_WITH_TWO
#define TN_PACK_WITH_MANY TN_PACK_WITH_TWO
// More arguments: the parentheses were left out. An error with a message.
#define TN_PACK_EXPR_MANY(name, op_id, input_names, ...)                                   \
    _Static_assert(0, "attributes stand in parentheses: TN_EXPR_OP(" #name ", ID, "        \
                      "(x), (alpha, 1), TEXT)");                                           \
    TN_OP(name, op_id, input_names, .doc = "")
#define TN_PACK_EXPR_EVEN TN_PACK_EXPR_MANY
#define TN_PACK_EXPR_ODD TN_PACK_EXPR_MANY

// The tn_vulkan_module of each shader, as GLSL and as SPIR-V: its name, code and size; the
// entry point is "main", and there are no macros.
#define TN_PACK_TEXTS(...) TN_PACK_PICK(TN_PACK_TEXTS, __VA_ARGS__)(__VA_ARGS__)
#define TN_PACK_TEXTS1(n) {#n, n##_glsl_code, sizeof(n##_glsl_code) - 1, 0, 0}
#define TN_PACK_TEXTS2(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS1(__VA_ARGS__)
#define TN_PACK_TEXTS3(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS2(__VA_ARGS__)
#define TN_PACK_TEXTS4(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS3(__VA_ARGS__)
#define TN_PACK_TEXTS5(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS4(__VA_ARGS__)
#define TN_PACK_TEXTS6(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS5(__VA_ARGS__)
#define TN_PACK_TEXTS7(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS6(__VA_ARGS__)
#define TN_PACK_TEXTS8(n, ...) TN_PACK_TEXTS1(n), TN_PACK_TEXTS7(__VA_ARGS__)
#define TN_PACK_WORDS(...) TN_PACK_PICK(TN_PACK_WORDS, __VA_ARGS__)(__VA_ARGS__)
#define TN_PACK_WORDS1(n) {#n, n##_spirv_code, sizeof(n##_spirv_code), 0, 0}
#define TN_PACK_WORDS2(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS1(__VA_ARGS__)
#define TN_PACK_WORDS3(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS2(__VA_ARGS__)
#define TN_PACK_WORDS4(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS3(__VA_ARGS__)
#define TN_PACK_WORDS5(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS4(__VA_ARGS__)
#define TN_PACK_WORDS6(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS5(__VA_ARGS__)
#define TN_PACK_WORDS7(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS6(__VA_ARGS__)
#define TN_PACK_WORDS8(n, ...) TN_PACK_WORDS1(n), TN_PACK_WORDS7(__VA_ARGS__)

// TN_NUMBER_ATTRS: an even number of arguments are names and defaults. For other numbers,
// WRONG reports one message, and defines an empty struct and table so that no error follows
// from their absence.
#define TN_PACK_NUMBERS_TWO(name, ...)                                                     \
    typedef struct name##_attrs {                                                          \
        TN_PACK_PICK(TN_PACK_MEMBERS, __VA_ARGS__)(__VA_ARGS__)                            \
    } name##_attrs;                                                                        \
    __attribute__((unused)) static const tn_attr_field name##_fields[] = {                 \
        TN_PACK_PICK(TN_PACK_FIELDS, __VA_ARGS__)(name##_attrs, __VA_ARGS__)}
#define TN_PACK_NUMBERS_EVEN TN_PACK_NUMBERS_TWO
#define TN_PACK_NUMBERS_WRONG(name, why)                                                   \
    _Static_assert(0, why);                                                                \
    typedef struct name##_attrs {                                                          \
        double none;                                                                       \
    } name##_attrs;                                                                        \
    __attribute__((unused)) static const tn_attr_field name##_fields[1] = {{0}}
#define TN_PACK_NUMBERS_ONE TN_PACK_NUMBERS_ODD
#define TN_PACK_NUMBERS_ODD(name, ...)                                                     \
    TN_PACK_NUMBERS_WRONG(name, "attributes are names and defaults in turn: alpha, 1, ...")
#define TN_PACK_NUMBERS_MANY(name, ...)                                                    \
    TN_PACK_NUMBERS_WRONG(name, "at most eight attributes; more: see <tenon/attr.h>")

// TN_PUSH_OFFSETS(n) and TN_PUSH_NUMBERS(n): n initialisers of tn_push_field, by appending one
// to the list of n - 1.
#define TN_PACK_OFFSETS1 {TN_PUSH_OFFSET, 0, 0}
#define TN_PACK_OFFSETS2 TN_PACK_OFFSETS1, {TN_PUSH_OFFSET, 0, 1}
#define TN_PACK_OFFSETS3 TN_PACK_OFFSETS2, {TN_PUSH_OFFSET, 0, 2}
#define TN_PACK_OFFSETS4 TN_PACK_OFFSETS3, {TN_PUSH_OFFSET, 0, 3}
#define TN_PACK_NUMBERS1 {TN_PUSH_ATTR_F32, 0, 0}
#define TN_PACK_NUMBERS2 TN_PACK_NUMBERS1, {TN_PUSH_ATTR_F32, 0, 1}
#define TN_PACK_NUMBERS3 TN_PACK_NUMBERS2, {TN_PUSH_ATTR_F32, 0, 2}
#define TN_PACK_NUMBERS4 TN_PACK_NUMBERS3, {TN_PUSH_ATTR_F32, 0, 3}

// The members of NAME_attrs, from twice as many names and defaults: the names count.
#define TN_PACK_MEMBERS2(n, v) double n;
#define TN_PACK_MEMBERS4(n, v, ...)                                                        \
    double n;                                                                              \
    TN_PACK_MEMBERS2(__VA_ARGS__)
#define TN_PACK_MEMBERS6(n, v, ...)                                                        \
    double n;                                                                              \
    TN_PACK_MEMBERS4(__VA_ARGS__)
#define TN_PACK_MEMBERS8(n, v, ...)                                                        \
    double n;                                                                              \
    TN_PACK_MEMBERS6(__VA_ARGS__)
#define TN_PACK_MEMBERS10(n, v, ...)                                                       \
    double n;                                                                              \
    TN_PACK_MEMBERS8(__VA_ARGS__)
#define TN_PACK_MEMBERS12(n, v, ...)                                                       \
    double n;                                                                              \
    TN_PACK_MEMBERS10(__VA_ARGS__)
#define TN_PACK_MEMBERS14(n, v, ...)                                                       \
    double n;                                                                              \
    TN_PACK_MEMBERS12(__VA_ARGS__)
#define TN_PACK_MEMBERS16(n, v, ...)                                                       \
    double n;                                                                              \
    TN_PACK_MEMBERS14(__VA_ARGS__)

// The tn_attr_field of each pair, of struct t. "a number" is the text that people see: the
// expression, which the documentation shows, says what it does.
#define TN_PACK_FIELDS2(t, n, v) TN_F64_FIELD(t, n, v, "a number")
#define TN_PACK_FIELDS4(t, n, v, ...)                                                      \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS2(t, __VA_ARGS__)
#define TN_PACK_FIELDS6(t, n, v, ...)                                                      \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS4(t, __VA_ARGS__)
#define TN_PACK_FIELDS8(t, n, v, ...)                                                      \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS6(t, __VA_ARGS__)
#define TN_PACK_FIELDS10(t, n, v, ...)                                                     \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS8(t, __VA_ARGS__)
#define TN_PACK_FIELDS12(t, n, v, ...)                                                     \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS10(t, __VA_ARGS__)
#define TN_PACK_FIELDS14(t, n, v, ...)                                                     \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS12(t, __VA_ARGS__)
#define TN_PACK_FIELDS16(t, n, v, ...)                                                     \
    TN_PACK_FIELDS2(t, n, v), TN_PACK_FIELDS14(t, __VA_ARGS__)

// The tn_input_info of each name, required and with the text "an array".
#define TN_PACK_INPUTS(...) TN_PACK_PICK(TN_PACK_IN, __VA_ARGS__)(__VA_ARGS__)
#define TN_PACK_IN1(n)                                                                     \
    {                                                                                      \
#n, "an array", 0, 0                                                               \
    }
#define TN_PACK_IN2(n, ...) TN_PACK_IN1(n), TN_PACK_IN1(__VA_ARGS__)
#define TN_PACK_IN3(n, ...) TN_PACK_IN1(n), TN_PACK_IN2(__VA_ARGS__)
#define TN_PACK_IN4(n, ...) TN_PACK_IN1(n), TN_PACK_IN3(__VA_ARGS__)
#define TN_PACK_IN5(n, ...) TN_PACK_IN1(n), TN_PACK_IN4(__VA_ARGS__)
#define TN_PACK_IN6(n, ...) TN_PACK_IN1(n), TN_PACK_IN5(__VA_ARGS__)
#define TN_PACK_IN7(n, ...) TN_PACK_IN1(n), TN_PACK_IN6(__VA_ARGS__)
#define TN_PACK_IN8(n, ...) TN_PACK_IN1(n), TN_PACK_IN7(__VA_ARGS__)
// clang-format on

#endif // __cplusplus

#endif // TENON_PACK_H
