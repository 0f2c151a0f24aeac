// SPDX-License-Identifier: MIT
// An op pack in few lines: macros that write the records of <tenon/primitive.h>,
// <tenon/kernel.h> and <tenon/plugin.h>. What they make is plain constant data: where one
// of them is too narrow, write the record out and list it beside the others.
//
//   #include <tenon/pack.h>
//
//   TN_EXPR_OP(axpby, "acme.axpby/1", (x, y), (alpha, 1, beta, 1), "alpha * x + beta * y");
//   TN_PACK("com.acme.axpby", "1.0.0", "Acme", TN_PRIMITIVES(&axpby));
//
// That is a whole plugin. C only: in C++ the records are written out.
//
// Threads. Plain constant data.
#ifndef TENON_PACK_H
#define TENON_PACK_H

#include <tenon/plugin.h>

#ifndef __cplusplus

// --- primitives ------------------------------------------------------------------------

// Attributes that are numbers: names and defaults in turn, at most eight. Makes the struct
// NAME_attrs, of doubles, and its table, which TN_ATTRS_OF(NAME) is. Other kinds of
// attributes: <tenon/attr.h>.
#define TN_NUMBER_ATTRS(name, ...)                                                         \
    TN_PACK_JOIN(TN_PACK_NUMBERS_, TN_PACK_KIND(__VA_ARGS__))(name, __VA_ARGS__)
#define TN_ATTRS_OF(name) TN_ATTR_TABLE(name##_attrs, name##_fields)

// A primitive NAME: its id, the names of its inputs in parentheses (one to eight), and what
// it means, as designated initialisers of tn_primitive.
//
//   TN_OP(square, "acme.square/1", (x), .expr = "x * x", .doc = "x times x.");
#define TN_OP(name, op_id, input_names, ...)                                               \
    static const tn_input_info name##_inputs[] = {TN_PACK_INPUTS input_names};             \
    static const tn_primitive name = {.struct_size = sizeof(tn_primitive),                 \
                                      .id = op_id,                                         \
                                      .inputs = name##_inputs,                             \
                                      .num_inputs = sizeof(name##_inputs) /                \
                                                    sizeof(name##_inputs[0]),              \
                                      __VA_ARGS__}

// What a primitive means, as an expression, which is its documentation too; and that output
// `o` may take over the memory of input `i` when nobody else needs it.
#define TN_MEANS(text) .expr = text, .doc = text
#define TN_IN_PLACE(i, o) .in_place = &(const tn_in_place){i, o}, .num_in_place = 1

// A primitive that is an expression over its inputs and attributes, and nothing else. The
// attributes are in parentheses, as for TN_NUMBER_ATTRS; without any they are left out.
//
//   TN_EXPR_OP(square, "acme.square/1", (x), "x * x");
//   TN_EXPR_OP(scale, "acme.scale/1", (x), (factor, 2), "factor * x");
#define TN_EXPR_OP(name, op_id, input_names, ...)                                          \
    TN_PACK_JOIN(TN_PACK_EXPR_, TN_PACK_KIND(__VA_ARGS__))                                 \
    (name, op_id, input_names, __VA_ARGS__)

// --- kernels ---------------------------------------------------------------------------

// The priority of the kernels below, as in <tenon/kernel.h>: define it before this header
// when it is another.
#ifndef TN_KERNEL_PRIORITY
#define TN_KERNEL_PRIORITY 500
#endif

// Rules for all operands of a kernel: one dtype, out of a set of TN_DTYPE_BIT, in any
// layout, or contiguous ones only.
#define TN_TAKES_ANY(dtype_set) TN_PACK_TAKES(dtype_set, TN_NEEDS_ANY)
#define TN_TAKES_CONTIGUOUS(dtype_set) TN_PACK_TAKES(dtype_set, TN_NEEDS_CONTIGUOUS)
#define TN_PACK_TAKES(dtype_set, layouts)                                                  \
    .flags = TN_KERNEL_SAME_DTYPE, .num_operands = 1, .operands = &(const tn_operand_rule) \
    {                                                                                      \
        .dtypes = (dtype_set), .needs = (layouts)                                          \
    }

// For a kernel's `accepts`: whether every input has the extents of output 0, so that none
// is broadcast.
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

// A cpu.c/1 kernel NAME for a primitive, its launch, and what it takes: TN_TAKES_... and
// more designated initialisers of tn_kernel. `static` may stand before it.
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

// Push constants of a shader, in the order of its block: the number of elements; an offset
// for each of `n` operands (1 to 4); attributes 0 to n - 1 (1 to 4), which are numbers.
//
//   (TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(3), TN_PUSH_NUMBERS(2))
#define TN_PUSH_THE_COUNT                                                                  \
    {                                                                                      \
        TN_PUSH_COUNT, 0, 0                                                                \
    }
#define TN_PUSH_OFFSETS(n) TN_PACK_OFFSETS##n
#define TN_PUSH_NUMBERS(n) TN_PACK_NUMBERS##n

// One shader as two kernels, NAME_glsl and NAME_spirv, from what `tenon-plugin shader
// --name NAME` writes: the arrays NAME_glsl_code and NAME_spirv_code, and NAME_push_words,
// the size of the shader's push-constant block, to which the compiler holds `push`. `group`
// is how many elements of output 0 a workgroup computes, `push` the push constants in
// parentheses; then what they take, as for TN_CPU_KERNEL.
#define TN_SHADER_KERNELS(shader, op_id, group, push, ...)                                 \
    static const tn_push_field shader##_push[] = {TN_PACK_UNWRAP push};                    \
    _Static_assert(sizeof(shader##_push) / sizeof(shader##_push[0]) ==                     \
                       shader##_push_words,                                                \
                   "push constants: the list is not as long as the block of the shader");  \
    TN_PACK_SHADER(shader, shader##_glsl, TN_FAMILY_VULKAN_GLSL, op_id,                    \
                   shader##_glsl_code, sizeof(shader##_glsl_code) - 1, group,              \
                   __VA_ARGS__);                                                           \
    TN_PACK_SHADER(shader, shader##_spirv, TN_FAMILY_VULKAN_SPIRV, op_id,                  \
                   shader##_spirv_code, sizeof(shader##_spirv_code), group, __VA_ARGS__)
#define TN_PACK_SHADER(shader, kernel_name, family_, op_id, code_, size, group, ...)       \
    static const tn_kernel kernel_name = {                                                 \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = op_id,                                                                \
        .family = family_,                                                                 \
        .name = #kernel_name,                                                              \
        .priority = TN_KERNEL_PRIORITY,                                                    \
        .payload = &(const tn_vulkan_kernel){.struct_size = sizeof(tn_vulkan_kernel),      \
                                             .code = code_,                                \
                                             .code_size = size,                            \
                                             .push = shader##_push,                        \
                                             .num_push = sizeof(shader##_push) /           \
                                                         sizeof(shader##_push[0]),         \
                                             .elements_per_group = group},                 \
        __VA_ARGS__}

// --- the plugin ------------------------------------------------------------------------

// What the pack brings, for TN_PACK: addresses of records.
#define TN_PRIMITIVES(...)                                                                 \
    .primitives = (const tn_primitive *const[]){__VA_ARGS__},                              \
    .num_primitives = sizeof((const tn_primitive *const[]){__VA_ARGS__}) / sizeof(void *)
#define TN_KERNELS(...)                                                                    \
    .kernels = (const tn_kernel *const[]){__VA_ARGS__},                                    \
    .num_kernels = sizeof((const tn_kernel *const[]){__VA_ARGS__}) / sizeof(void *)

// The plugin of an op pack: its id, version, vendor, then TN_PRIMITIVES(...),
// TN_KERNELS(...) or both. Once a plugin.
#define TN_PACK(pack_id, pack_version, pack_vendor, ...)                                   \
    static const tn_ops tn_pack_ops_ = {.struct_size = sizeof(tn_ops), __VA_ARGS__};       \
    static const void *tn_pack_query_(const char *interface_id)                            \
    {                                                                                      \
        return __builtin_strcmp(interface_id, TN_IFACE_OPS) == 0 ? &tn_pack_ops_ : NULL;   \
    }                                                                                      \
    TN_PLUGIN(pack_id, pack_version, pack_vendor, .query = tn_pack_query_)

// --- how the lists above are taken apart ------------------------------------------------

// clang-format off
#define TN_PACK_CALL(macro, arguments) macro arguments
#define TN_PACK_UNWRAP(...) __VA_ARGS__
#define TN_PACK_JOIN(a, b) TN_PACK_JOIN_(a, b)
#define TN_PACK_JOIN_(a, b) a##b
#define TN_PACK_COUNT(...)                                                                 \
    TN_PACK_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TN_PACK_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define TN_PACK_PICK(stem, ...) TN_PACK_JOIN(stem, TN_PACK_COUNT(__VA_ARGS__))

// ONE argument (which may be empty), TWO, an EVEN or ODD number up to sixteen, or MANY.
#define TN_PACK_KIND(...)                                                                  \
    TN_PACK_KIND_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
                  MANY, MANY, MANY, MANY, MANY, MANY, EVEN, ODD, EVEN, ODD, EVEN, ODD,     \
                  EVEN, ODD, EVEN, ODD, EVEN, ODD, EVEN, ODD, TWO, ONE, 0)
#define TN_PACK_KIND_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, \
                      x, y, z, aa, ab, ac, ad, ae, af, kind, ...)                          \
    kind
#define TN_PACK_TEXT(...) #__VA_ARGS__

// TN_EXPR_OP: a text alone, or attributes in parentheses and a text.
#define TN_PACK_EXPR_ONE(name, op_id, input_names, text)                                   \
    TN_OP(name, op_id, input_names, TN_MEANS(text))
#define TN_PACK_EXPR_TWO(name, op_id, input_names, numbers, text)                          \
    TN_PACK_WITH(TN_PACK_KIND_OF(TN_PACK_UNWRAP numbers), name, op_id, input_names,        \
                 numbers, text)
#define TN_PACK_KIND_OF(...) TN_PACK_KIND(__VA_ARGS__)
#define TN_PACK_WITH(kind, ...) TN_PACK_JOIN(TN_PACK_WITH_, kind)(__VA_ARGS__)
#define TN_PACK_WITH_ONE(name, op_id, input_names, numbers, text)                          \
    _Static_assert(sizeof(TN_PACK_TEXT numbers) == 1,                                      \
                   "an attribute needs a default behind it: (alpha, 1)");                  \
    TN_OP(name, op_id, input_names, TN_MEANS(text))
#define TN_PACK_WITH_TWO(name, op_id, input_names, numbers, text)                          \
    TN_PACK_CALL(TN_NUMBER_ATTRS, (name, TN_PACK_UNWRAP numbers));                         \
    TN_OP(name, op_id, input_names, .attrs = TN_ATTRS_OF(name), TN_MEANS(text))
#define TN_PACK_WITH_EVEN TN_PACK_WITH_TWO
#define TN_PACK_WITH_ODD TN_PACK_WITH_TWO
#define TN_PACK_WITH_MANY TN_PACK_WITH_TWO
#define TN_PACK_EXPR_MANY(name, op_id, input_names, ...)                                   \
    _Static_assert(0, "attributes stand in parentheses: TN_EXPR_OP(" #name ", ID, "        \
                      "(x), (alpha, 1), TEXT)");                                           \
    TN_OP(name, op_id, input_names, .doc = "")
#define TN_PACK_EXPR_EVEN TN_PACK_EXPR_MANY
#define TN_PACK_EXPR_ODD TN_PACK_EXPR_MANY

// TN_NUMBER_ATTRS: names and defaults in turn; else one message.
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

#define TN_PACK_OFFSETS1 {TN_PUSH_OFFSET, 0, 0}
#define TN_PACK_OFFSETS2 TN_PACK_OFFSETS1, {TN_PUSH_OFFSET, 0, 1}
#define TN_PACK_OFFSETS3 TN_PACK_OFFSETS2, {TN_PUSH_OFFSET, 0, 2}
#define TN_PACK_OFFSETS4 TN_PACK_OFFSETS3, {TN_PUSH_OFFSET, 0, 3}
#define TN_PACK_NUMBERS1 {TN_PUSH_ATTR_F32, 0, 0}
#define TN_PACK_NUMBERS2 TN_PACK_NUMBERS1, {TN_PUSH_ATTR_F32, 0, 1}
#define TN_PACK_NUMBERS3 TN_PACK_NUMBERS2, {TN_PUSH_ATTR_F32, 0, 2}
#define TN_PACK_NUMBERS4 TN_PACK_NUMBERS3, {TN_PUSH_ATTR_F32, 0, 3}

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
