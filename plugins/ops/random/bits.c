// SPDX-License-Identifier: MIT
// Words of Threefry-2x32 in two layouts, numbers in [0, 1) and of the normal distribution
// made from them, and keys. Each primitive is one expression over the element's number, so
// it fuses with its consumers.
#include <tenon/ops/threefry.h>
#include "pack.h"

// --- words ------------------------------------------------------------------------------

// Definitions by layout: `w` is the word of 32 bits of each element; `x` and `y` the two
// words of 64 bits.
#define COUNTERS                                                                           \
    "k0, k1 -> " TN_THREEFRY_TEXT("u32(index >> 32)", "u32(index)") "w = a60 ^ b60; "
#define COUNTERS_WIDE                                                                      \
    "k0, k1 -> " TN_THREEFRY_TEXT("u32(index >> 32)", "u32(index)") "x = a60; y = b60; "
// The word at position `at` of n: the first of the pair (at, at + half), or the second of
// (at - half, at). Positions beyond n count as 0.
#define HALVES_AT(at)                                                                      \
    "k0, k1 -> at = " at "; first = at < i64(half); i = first ? at : at - i64(half); "     \
    "j = i + i64(half); " TN_THREEFRY_TEXT(                                                \
        "u32(i)", "u32(j < i64(n) ? j : 0)") "w = first ? a60 : b60; "
#define HALVES HALVES_AT("index")
// 64-bit elements have 2 n words: an element gets both words of a pair.
#define HALVES_WIDE                                                                        \
    "k0, k1 -> " TN_THREEFRY_TEXT("u32(index)", "u32(index + i64(n))") "x = a60; y = "     \
                                                                       "b60; "

#define U64 "u64(x) << 32 | u64(y)"
#define F64 "(f64(x) * 1048576.0 + f64(y >> 12)) * 2.220446049250313e-16"
#define NORMAL_OF(f) "erfinv(max(" f " * 2.0 + low, low)) * 1.4142135623730951"
// Numbers in [0, 1) with as many bits as a mantissa: 23, for f16 10, for bf16 7.
#define F32 "f32(w >> 9) * 1.1920928955078125e-7"
#define F16 "f32((w & 65535) >> 6) * 0.0009765625"
#define BF16 "f32((w & 255) >> 1) * 0.0078125"
#define OF_HALVES "min(f32(w) * 2.3283064365386963e-10, last)"

// Kinds of results; each has an expression for each layout.
enum words_kind { BITS, FLOATS, NORMAL };
static const char *word_text(enum words_kind kind, tn_dtype dtype, bool halves)
{
    static const char *const wide[][2] = {
        {COUNTERS_WIDE U64, HALVES_WIDE U64},
        {COUNTERS_WIDE F64, HALVES_WIDE F64},
        {COUNTERS_WIDE NORMAL_OF(F64), HALVES_WIDE NORMAL_OF(F64)},
    };
    static const char *const bits[][2] = {
        {COUNTERS "w", HALVES "w"},
        {COUNTERS "u16(w)", HALVES_AT("index >> 1") "u16(w >> u32((index & 1) << 4))"},
        {COUNTERS "u8(w)", HALVES_AT("index >> 2") "u8(w >> u32((index & 3) << 3))"},
    };
    static const char *const floats[][3] = {
        {COUNTERS F32, COUNTERS F16, COUNTERS BF16},
        {COUNTERS NORMAL_OF(F32), COUNTERS NORMAL_OF(F16), COUNTERS NORMAL_OF(BF16)},
    };
    if (dtype == TN_U64 || dtype == TN_F64)
        return wide[kind][halves];
    if (kind == BITS)
        return bits[dtype == TN_U32 ? 0 : dtype == TN_U16 ? 1 : 2][halves];
    if (halves)
        return kind == FLOATS ? HALVES OF_HALVES : HALVES NORMAL_OF(OF_HALVES);
    return floats[kind == NORMAL][dtype == TN_F32 ? 0 : dtype == TN_F16 ? 1 : 2];
}

// Word `word` of the key, broadcast to `shape`: a view.
static tn_array *random_key_word(const tn_build *build, const tn_array *key, int64_t word,
                                 const tn_ints *shape)
{
    const tn_ints scalar = {.given = 1};
    tn_array *one = build->op(build, "base.slice/1", TN_IN(key),
                              tn_attrs("start", TN_INTS(word), "stop", TN_INTS(word + 1)));
    return random_with_shape(build, "base.broadcast_to/1",
                             random_with_shape(build, "base.reshape/1", one, &scalar),
                             shape);
}

// The number of elements, and of their 32-bit words. False: more than an array may have.
static bool count_words(const tn_ints *shape, tn_dtype dtype, int64_t *out_words)
{
    int64_t count = 1, size = dtype == TN_U8    ? 1
                              : dtype == TN_U16 ? 2
                              : dtype == TN_U64 ? 8
                              : dtype == TN_F64 ? 8
                                                : 4;
    for (uint32_t i = 0; i < shape->count; i++)
        if (shape->value[i] == 0)
            return *out_words = 0, true;
    for (uint32_t i = 0; i < shape->count; i++)
        if (!tn_checked_multiply_extents(count, shape->value[i], &count))
            return false;
    if (size >= 4)
        return tn_checked_multiply_extents(count, size / 4, out_words);
    *out_words = count / (4 / size) + (count % (4 / size) != 0);
    return true;
}

static tn_status bits_or_floats_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_random_bits_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    int64_t words = 0;
    tn_status status = random_check_key(host, &infer->types[0]);
    if (!status)
        status = random_check_shape(host, &attrs->shape);
    if (status)
        return status;
    bool counted = count_words(&attrs->shape, dtype, &words);
    if (attrs->layout == TN_RANDOM_HALVES && (!counted || words > UINT32_MAX))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "layout halves numbers words of 32 bits, got more than 2^32 - 1 "
                          "of them: layout counters has no bound");
    types[0] = (tn_type){.dtype = dtype, .rank = (int32_t)attrs->shape.count};
    memcpy(types[0].extent, attrs->shape.value, sizeof(types[0].extent));
    return TN_OK;
}

static tn_status bits_infer(const tn_infer *infer, tn_type *types)
{
    const tn_random_bits_attrs *attrs = infer->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_U32;
    if (!tn_dtype_in(dtype, TN_UNSIGNED_DTYPES))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected u8, u16, u32 or u64",
                                 tn_dtype_name(dtype));
    return bits_or_floats_infer(infer, dtype, types);
}

static tn_status floats_infer(const tn_infer *infer, tn_type *types)
{
    const tn_random_bits_attrs *attrs = infer->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_F32;
    if (!tn_dtype_in(dtype, TN_FLOAT_DTYPES))
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected a float dtype",
                                 tn_dtype_name(dtype));
    return bits_or_floats_infer(infer, dtype, types);
}

static tn_status words_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs, enum words_kind kind)
{
    const tn_random_bits_attrs *attrs = rule->attrs;
    const tn_ints *shape = &attrs->shape;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : kind == BITS ? TN_U32 : TN_F32;
    bool is_wide = dtype == TN_U64 || dtype == TN_F64;
    int64_t words = 0;
    count_words(shape, dtype, &words);
    // 2 u - 1, where the layout's own number replaces -1.
    tn_dtype computed =
        attrs->layout == TN_RANDOM_HALVES ? tn_dtype_computed(dtype) : dtype;
    tn_dtype rounded = kind == NORMAL ? computed : dtype;
    int64_t n = is_wide ? words / 2 : words, half = words - words / 2;
    double last = kind == BITS ? 0 : below_one(rounded);
    double low = kind == BITS ? 0 : -below_one(computed);
    const tn_attr_list by_counters[] = {TN_NO_ATTRS, TN_NO_ATTRS, tn_attrs("low", low)};
    const tn_attr_list wide[] = {tn_attrs("n", n), tn_attrs("n", n),
                                 tn_attrs("n", n, "low", low)};
    const tn_attr_list narrow[] = {
        tn_attrs("n", n, "half", half), tn_attrs("n", n, "half", half, "last", last),
        tn_attrs("n", n, "half", half, "last", last, "low", low)};
    bool halves = attrs->layout == TN_RANDOM_HALVES;
    tn_array *x = build->expr(build, word_text(kind, dtype, halves),
                              TN_IN(random_key_word(build, rule->inputs[0], 0, shape),
                                    random_key_word(build, rule->inputs[0], 1, shape)),
                              !halves   ? by_counters[kind]
                              : is_wide ? wide[kind]
                                        : narrow[kind]);
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

DECOMPOSE(bits)
{
    return words_decompose(build, rule, outputs, BITS);
}

DECOMPOSE(random)
{
    return words_decompose(build, rule, outputs, FLOATS);
}

DECOMPOSE(standard_normal)
{
    return words_decompose(build, rule, outputs, NORMAL);
}

static const tn_attr_field bits_fields[] = {
    TN_REQUIRED_FIELD(tn_random_bits_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_DTYPE_FIELD(tn_random_bits_attrs, dtype, 0, "u8, u16, u32 or u64; not given: u32"),
    LAYOUT_FIELD(tn_random_bits_attrs),
};
static const tn_attr_field float_fields[] = {
    TN_REQUIRED_FIELD(tn_random_bits_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_DTYPE_FIELD(tn_random_bits_attrs, dtype, 0, "a float dtype; not given: f32"),
    LAYOUT_FIELD(tn_random_bits_attrs),
};

// Rules of primitives without a derivative: gradients and tangents stay NULL, which is
// zero.
static tn_status random_zero_vjp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *cotangents, const uint64_t *wanted,
                                 tn_array **gradients)
{
    (void)build, (void)rule, (void)cotangents, (void)wanted, (void)gradients;
    return TN_OK;
}

static tn_status random_zero_jvp(const tn_build *build, const tn_rule *rule,
                                 tn_array *const *tangents, tn_array **out_tangents)
{
    (void)build, (void)rule, (void)tangents, (void)out_tangents;
    return TN_OK;
}

#define PRIMITIVE(name, rule, fields, sentence)                                            \
    const tn_primitive random_##name = {                                                   \
        .struct_size = sizeof(tn_primitive),                                               \
        .id = "random." #name "/1",                                                        \
        .doc = sentence,                                                                   \
        TN_INPUTS(random_key_input),                                                       \
        .attrs = TN_ATTR_TABLE(tn_random_bits_attrs, fields),                              \
        .infer = rule,                                                                     \
        .decompose = name##_decompose,                                                     \
        .vjp = random_zero_vjp,                                                            \
        .jvp = random_zero_jvp,                                                            \
    }
PRIMITIVE(bits, bits_infer, bits_fields, "Random bits: Threefry-2x32 of the key.");
PRIMITIVE(random, floats_infer, float_fields, "Random numbers spread evenly in [0, 1).");
PRIMITIVE(standard_normal, floats_infer, float_fields,
          "Random numbers of the normal distribution with mean 0 and deviation 1.");

// --- keys -------------------------------------------------------------------------------

typedef struct {
    int64_t seed;
} key_attrs;
static const tn_attr_field key_fields[] = {
    TN_I64_FIELD(key_attrs, seed, 0, "its high and its low 32 bits are the key"),
};

DECOMPOSE(key)
{
    const key_attrs *attrs = rule->attrs;
    uint64_t seed = (uint64_t)attrs->seed;
    const tn_ints two = {1, 1, {2}};
    tn_array *zeros = build->op(build, "base.full/1", NULL, 0,
                                tn_attrs("shape", &two, "dtype", (int64_t)TN_U32));
    outputs[0] = build->expr(
        build, "z -> z + u32(index == 0 ? high : low)", TN_IN(zeros),
        tn_attrs("high", (int64_t)(seed >> 32), "low", (int64_t)(seed & UINT32_MAX)));
    return built(outputs[0]);
}

COMPOSITE(key, "A key of a seed, u32[2].", .attrs = TN_ATTR_TABLE(key_attrs, key_fields));

typedef struct {
    int64_t num;
    int64_t layout;
} split_attrs;
static const tn_attr_field split_fields[] = {
    TN_I64_FIELD(split_attrs, num, 2, "how many keys"),
    LAYOUT_FIELD(split_attrs),
};

// Keys are the two words of a counter, or two adjacent words of layout halves.
DECOMPOSE(split)
{
    const split_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    tn_status status = random_check_key(host, build->type(rule->inputs[0]));
    if (!status && attrs->num < 0)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "num is %" PRId64 ", expected at least 0", attrs->num);
    if (status)
        return status;
    const tn_ints keys = {2, 1, {attrs->num, 2}}, pairs = {1, 1, {attrs->num}};
    if (attrs->layout == TN_RANDOM_HALVES) {
        outputs[0] = draw_numbers(build, "random.bits/1", rule->inputs[0], &keys, TN_U32,
                                  TN_RANDOM_HALVES);
        return built(outputs[0]);
    }
    tn_array *x = draw_numbers(build, "random.bits/1", rule->inputs[0], &pairs, TN_U64, 0);
    tn_array *high = build->expr(build, "x -> u32(x >> 32)", TN_IN(x), TN_NO_ATTRS);
    tn_array *low = build->expr(build, "x -> u32(x)", TN_IN(x), TN_NO_ATTRS);
    outputs[0] =
        build->op(build, "base.stack/1", TN_IN(high, low), tn_attrs("axis", INT64_C(-1)));
    return built(outputs[0]);
}

COMPOSITE(split, "Independent keys of a key: u32[num, 2].", TN_INPUTS(random_key_input),
          .attrs = TN_ATTR_TABLE(split_attrs, split_fields));

static const tn_input_info fold_inputs[] = {
    KEY_INPUT,
    {"data", "an integer: its low 32 bits count", TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};

// The key for a number: the words (0, data), encrypted.
DECOMPOSE(fold_in)
{
    const tn_host *host = build->host;
    const tn_type *data = build->type(rule->inputs[1]);
    const tn_ints two = {1, 1, {2}};
    tn_status status = random_check_key(host, build->type(rule->inputs[0]));
    if (!status && data->rank != 0)
        status =
            host->fail(host, TN_ERR_ARGUMENT, "data has rank %d, expected 0", data->rank);
    if (status)
        return status;
    outputs[0] = build->expr(
        build,
        "k0, k1, d -> " TN_THREEFRY_TEXT("u32(0)", "u32(d)") "index == 0 ? a60 : b60",
        TN_IN(random_key_word(build, rule->inputs[0], 0, &two),
              random_key_word(build, rule->inputs[0], 1, &two), rule->inputs[1]),
        TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(fold_in, "A key of a key and a number.", TN_INPUTS(fold_inputs));
