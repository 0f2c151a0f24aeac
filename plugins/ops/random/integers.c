// SPDX-License-Identifier: MIT
// Random integers, orders and choices.
#include "pack.h"

// --- randint ----------------------------------------------------------------------------

typedef struct {
    tn_ints shape;
    int64_t low, high, dtype, layout;
} randint_attrs;

#define NO_BOUND INT64_MAX

static const tn_input_info randint_inputs[] = {
    KEY_INPUT,
    {"minval", "the least integer, in place of low", TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    {"maxval", "the integer to stop before, in place of high",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};
static const tn_attr_field randint_fields[] = {
    SHAPE_FIELD(randint_attrs),
    TN_I64_FIELD(randint_attrs, low, 0, "the least integer"),
    TN_I64_FIELD(randint_attrs, high, NO_BOUND,
                 "the integer to stop before; not given: the dtype's greatest is the last"),
    TN_DTYPE_FIELD(randint_attrs, dtype, 0, "an integer dtype; not given: i32"),
    LAYOUT_FIELD(randint_attrs),
};

// The range of an integer dtype, within int64_t: the greatest u64 numbers are left out.
static void integer_range(tn_dtype dtype, int64_t *out_least, int64_t *out_most)
{
    int64_t width = 8 * tn_dtype_bytes(dtype);
    bool is_signed = tn_is_signed(dtype);
    *out_least = is_signed ? -1 - (int64_t)(UINT64_MAX >> (65 - width)) : 0;
    *out_most = width == 64 ? INT64_MAX
                            : (int64_t)(UINT64_MAX >> (64 - width + (is_signed ? 1 : 0)));
}

static tn_status randint_check(const tn_build *build, const tn_rule *rule, tn_dtype dtype)
{
    const randint_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int64_t least, most;
    integer_range(dtype, &least, &most);
    if (attrs->low < least || attrs->low > most)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "low is %" PRId64 ", expected %" PRId64 " to %" PRId64 " of %s",
                          attrs->low, least, most, tn_dtype_name(dtype));
    if (attrs->high == NO_BOUND)
        return TN_OK;
    if (attrs->high <= least || attrs->high - 1 > most)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "high is %" PRId64 ", expected at most %" PRId64
                          " + 1 and above %" PRId64 ", as %s has",
                          attrs->high, most, least, tn_dtype_name(dtype));
    if (attrs->low >= attrs->high)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "low is %" PRId64 " and high %" PRId64
                          ", expected low below high",
                          attrs->low, attrs->high);
    return TN_OK;
}

// The span between the bounds, 0 for 2^64, and the least integer: u64 arrays, modulo 2^64.
static void randint_bounds(const tn_build *build, const tn_rule *rule, tn_dtype dtype,
                           tn_array **out_low, tn_array **out_span)
{
    const randint_attrs *attrs = rule->attrs;
    tn_array *low = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    tn_array *high = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    int64_t least, most;
    integer_range(dtype, &least, &most);
    tn_array *zero = build->scalar(build, TN_U64, 0);
    *out_low = low ? random_cast(build, low, TN_U64)
                   : build->expr(build, "z -> z + u64(i64(a))", TN_IN(zero),
                                 tn_attrs("a", attrs->low));
    // Bounds given as arrays may be equal or in the wrong order: high is then low + 1.
    if (high) {
        tn_array *first = low ? low
                              : build->expr(build, "z -> i64(z) + i64(a)", TN_IN(zero),
                                            tn_attrs("a", attrs->low));
        *out_span = build->expr(build, "a, b, low -> a < b ? u64(b) - low : u64(1)",
                                TN_IN(first, high, *out_low), TN_NO_ATTRS);
    } else if (attrs->high != NO_BOUND) {
        *out_span = build->expr(build, "z, low -> z + u64(i64(b)) - low",
                                TN_IN(zero, *out_low), tn_attrs("b", attrs->high));
    } else {
        *out_span =
            build->expr(build, "z, low -> z + u64(most) + 1 - low", TN_IN(zero, *out_low),
                        tn_attrs("most", dtype == TN_U64 ? -1 : most));
    }
}

// Dtypes of 8 to 32 bits: 64 random bits modulo the span, so that relative errors of
// probabilities are below 2^-32. Dtypes of 64 bits: 128 random bits modulo the span where
// it has 32 bits, else the upper 64 bits of the product with the span.
#define MODULO_64 "h, l, s, low -> x = u64(h) << 32 | u64(l); (s == 0 ? x : x % s) + low"
#define MULTIPLIED_128                                                                     \
    "h, l, s, low -> s0 = s & 4294967295; s1 = s >> 32; "                                  \
    "a0 = l & 4294967295; a1 = l >> 32; b0 = h & 4294967295; b1 = h >> 32; "               \
    "p = a0 * s1 + (a0 * s0 >> 32); q = a1 * s0 + (p & 4294967295); "                      \
    "carried = a1 * s1 + (p >> 32) + (q >> 32); "                                          \
    "t = b0 * s0; u = b0 * s1 + (t >> 32); v = b1 * s0 + (u & 4294967295); "               \
    "upper = b1 * s1 + (u >> 32) + (v >> 32); lower = v << 32 | t & 4294967295; "          \
    "product = upper + u64(lower + carried < lower); "                                     \
    "m = s == 0 ? u64(1) : s; r = u64(4294967296) % m; "                                   \
    "small = ((h % m) * (r * r % m) + l % m) % m; "                                        \
    "low + (s == 0 ? h : s1 == 0 ? small : product)"

// MODULO_64 for constant spans, without a division. With rest = 2^32 % span, the word's
// value is h * rest + l modulo span. The upper half of h * floor(rest * 2^32 / span) is h *
// rest / span with an error below 2 (V. Shoup's product modulo a constant); that of l *
// floor(2^32 / span), likewise, l / span: the remainder is below 4 spans, in 32-bit words.
#define KNOWN_SPAN (INT64_C(1) << 30)
#define MODULO_KNOWN                                                                       \
    "h, l -> q = u32(u64(h) * u64(m) >> 32) + u32(u64(l) * u64(n) >> 32); "                \
    "a = h * u32(rest) + l - q * u32(span); "                                              \
    "b = a >= u32(2 * span) ? a - u32(2 * span) : a; "                                     \
    "i64(b >= u32(span) ? b - u32(span) : b) + low"

DECOMPOSE(randint)
{
    const randint_attrs *attrs = rule->attrs;
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_I32;
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected an integer dtype",
                                 tn_dtype_name(dtype));
    const tn_random_bits_attrs common = {.shape = attrs->shape, .layout = attrs->layout};
    struct drawn s;
    tn_status status = read_sample(build, rule, &common, 1, &s);
    if (!status)
        status = randint_check(build, rule, dtype);
    if (status)
        return status;
    bool is_wide = tn_dtype_bytes(dtype) == 8;
    tn_array *low, *span, *words[2];
    randint_bounds(build, rule, dtype, &low, &span);
    for (int64_t i = 0; i < 2; i++)
        words[i] =
            draw_numbers(build, "random.bits/1", split_key(build, s.key, 2, i, s.layout),
                         &s.shape, is_wide ? TN_U64 : TN_U32, s.layout);
    tn_array *x;
    if (!is_wide && rule->num_inputs == 1 && attrs->high != NO_BOUND &&
        attrs->high - attrs->low <= KNOWN_SPAN) {
        int64_t few = attrs->high - attrs->low, words_of = INT64_C(1) << 32;
        int64_t rest = words_of % few;
        x = build->expr(build, MODULO_KNOWN, TN_IN(words[0], words[1]),
                        tn_attrs("span", few, "rest", rest, "low", attrs->low, "m",
                                 rest * words_of / few, "n",
                                 few > 1 ? words_of / few : UINT32_MAX));
    } else {
        x = build->expr(build, is_wide ? MULTIPLIED_128 : MODULO_64,
                        TN_IN(words[0], words[1], span, low), TN_NO_ATTRS);
    }
    outputs[0] = random_cast(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(randint, "Random integers from low up to but without high.",
          TN_INPUTS(randint_inputs), .attrs = TN_ATTR_TABLE(randint_attrs, randint_fields));

// --- permutation ------------------------------------------------------------------------

#define NO_N INT64_MIN

typedef struct {
    int64_t n, axis, independent, layout;
} permutation_attrs;

static const tn_input_info permutation_inputs[] = {
    KEY_INPUT,
    {"x", "the array; not given: 0, 1, ... n - 1", TN_INPUT_OPTIONAL, TN_ALL_DTYPES},
};
static const tn_attr_field permutation_fields[] = {
    TN_I64_FIELD(permutation_attrs, n, NO_N, "without x: how many integers"),
    TN_I64_FIELD(permutation_attrs, axis, 0, "the axis along which x is put in order"),
    TN_BOOL_FIELD(permutation_attrs, independent, 0,
                  "each row of x in an order of its own"),
    LAYOUT_FIELD(permutation_attrs),
};

// A random order of positions along an axis: i64 indices of `shape`. Sorts random words; in
// layout counters several times where 32-bit words may be equal, as JAX does.
static tn_array *random_order(const tn_build *build, tn_array *key, const tn_ints *shape,
                              int64_t axis, int64_t layout)
{
    double count = 1;
    for (uint32_t i = 0; i < shape->count; i++)
        count *= (double)shape->value[i];
    int rounds = layout == TN_RANDOM_HALVES
                     ? 1
                     : (int)ceil(3 * log(fmax(1, count)) / log(UINT32_MAX));
    tn_array *order = NULL;
    for (int i = 0; i < rounds; i++) {
        bool is_last = layout == TN_RANDOM_HALVES;
        tn_array *own = is_last ? key : split_key(build, key, 2, 1, layout);
        tn_array *w = draw_numbers(build, "random.bits/1", own, shape, TN_U32, layout);
        tn_array *positions =
            build->op(build, "base.argsort/1", TN_IN(w), tn_attrs("axis", axis));
        order = i == 0 ? positions
                       : build->op(build, "base.take_along_axis/1", TN_IN(order, positions),
                                   tn_attrs("axis", axis));
        if (i + 1 < rounds)
            key = split_key(build, key, 2, 0, layout);
    }
    if (order)
        return order;
    return build->op(build, "base.full/1", NULL, 0, // one element, or none
                     tn_attrs("shape", shape, "dtype", (int64_t)TN_I64));
}

static tn_status order_check_count(const tn_host *host, int64_t n, bool is_given)
{
    if (is_given == (n != NO_N))
        return host->fail(host, TN_ERR_ARGUMENT,
                          is_given ? "got both an array and n, expected one of them"
                                   : "got neither an array nor n, expected one of them");
    if (!is_given && n < 0)
        return host->fail(host, TN_ERR_ARGUMENT, "n is %" PRId64 ", expected at least 0",
                          n);
    return TN_OK;
}

DECOMPOSE(permutation)
{
    const permutation_attrs *attrs = rule->attrs;
    tn_array *key = rule->inputs[0], *x = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    int32_t axis = 0;
    tn_status status = random_check_key(build->host, build->type(key));
    if (!status)
        status = order_check_count(build->host, attrs->n, x != NULL);
    if (!status)
        status = random_check_axis(build->host, attrs->axis, x ? build->type(x)->rank : 1,
                                   &axis);
    if (status)
        return status;
    const tn_ints whole = x ? tn_extents(build, x) : (tn_ints){1, 1, {attrs->n}};
    const tn_ints row = {1, 1, {whole.value[axis]}};
    bool rows = attrs->independent && whole.count > 1;
    tn_array *order =
        random_order(build, key, rows ? &whole : &row, rows ? axis : 0, attrs->layout);
    outputs[0] = x ? build->op(build, rows ? "base.take_along_axis/1" : "base.take/1",
                               TN_IN(x, order), tn_attrs("axis", (int64_t)axis))
                   : order;
    return built(outputs[0]);
}

COMPOSITE(permutation, "An array's rows, or the first integers, in random order.",
          TN_INPUTS(permutation_inputs),
          .attrs = TN_ATTR_TABLE(permutation_attrs, permutation_fields));

// --- choice -----------------------------------------------------------------------------

typedef struct {
    tn_ints shape;
    int64_t n, replace, axis, layout;
} choice_attrs;

static const tn_input_info choice_inputs[] = {
    KEY_INPUT,
    {"a", "the array; not given: 0, 1, ... n - 1", TN_INPUT_OPTIONAL, TN_ALL_DTYPES},
    {"p", "the probability of each row of a, f32[n]; not given: all are equal",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, TN_FLOAT_DTYPES},
};
static const tn_attr_field choice_fields[] = {
    TN_INTS_FIELD(choice_attrs, shape, "how many are chosen; not given: one, without axes"),
    TN_I64_FIELD(choice_attrs, n, NO_N, "without a: how many integers"),
    TN_BOOL_FIELD(choice_attrs, replace, 1, "whether one may be chosen again"),
    TN_I64_FIELD(choice_attrs, axis, 0, "the axis of a from which is chosen"),
    LAYOUT_FIELD(choice_attrs),
};

static tn_status choice_check(const tn_build *build, const choice_attrs *attrs, int64_t n,
                              const tn_type *p, int64_t *out_count)
{
    const tn_host *host = build->host;
    char text[SHAPE_TEXT];
    *out_count = 1;
    tn_status status = random_check_shape(host, &attrs->shape);
    if (status)
        return status;
    for (uint32_t i = 0; i < attrs->shape.count; i++)
        if (!tn_checked_multiply_extents(*out_count, attrs->shape.value[i], out_count))
            *out_count = INT64_MAX;
    if (*out_count > 0 && n == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "there are 0 to choose from, expected at least 1");
    if (!attrs->replace && *out_count > n)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%" PRId64 " of %" PRId64
                          " are to be chosen, expected at most as many without replace",
                          *out_count, n);
    if (p && (p->rank != 1 || p->extent[0] != n))
        return host->fail(host, TN_ERR_ARGUMENT, "p has shape %s, expected [%" PRId64 "]",
                          random_shape_text(p->rank, p->extent, text), n);
    return TN_OK;
}

// The first `count` elements of a vector, reshaped to `shape`.
static tn_array *choice_first(const tn_build *build, tn_array *x, int64_t count,
                              const tn_ints *shape)
{
    tn_array *part = build->op(build, "base.slice/1", TN_IN(x),
                               tn_attrs("start", TN_INTS(0), "stop", TN_INTS(count)));
    return random_with_shape(build, "base.reshape/1", part, shape);
}

// Positions where the running sum of p reaches a random number between 0 and its end.
static tn_array *chosen_by(const tn_build *build, tn_array *key, tn_array *p,
                           const tn_ints *shape, int64_t layout)
{
    tn_array *running = build->op(build, "base.cumsum/1", TN_IN(p), TN_NO_ATTRS);
    tn_array *whole =
        build->op(build, "base.max/1", TN_IN(running), tn_attrs("axis", TN_INTS(0)));
    tn_array *x =
        draw_numbers(build, "random.random/1", key, shape, build->type(p)->dtype, layout);
    tn_array *at = build->expr(build, "x, w -> w * (1 - x)", TN_IN(x, whole), TN_NO_ATTRS);
    return build->op(build, "base.searchsorted/1", TN_IN(running, at), TN_NO_ATTRS);
}

static tn_array *random_integers_chosen(const tn_build *build, const tn_rule *rule,
                                        tn_array *p, int64_t n, int64_t count)
{
    const choice_attrs *attrs = rule->attrs;
    const tn_ints row = {1, 1, {n}};
    tn_ints wanted = attrs->shape;
    wanted.given = 1;
    tn_array *key = rule->inputs[0];
    if (count == 0)
        return build->op(build, "base.full/1", NULL, 0,
                         tn_attrs("shape", &wanted, "dtype", (int64_t)TN_I64));
    if (p && attrs->replace)
        return chosen_by(build, key, p, &wanted, attrs->layout);
    if (p) {
        tn_array *g =
            build->op(build, "random.gumbel/1", TN_IN(key),
                      tn_attrs("shape", &row, "dtype", (int64_t)build->type(p)->dtype,
                               "layout", attrs->layout));
        tn_array *score =
            build->expr(build, "g, p -> g + log(p)", TN_IN(g, p), TN_NO_ATTRS);
        tn_array *order = build->op(build, "base.argsort/1", TN_IN(score),
                                    tn_attrs("descending", INT64_C(1)));
        return choice_first(build, order, count, &wanted);
    }
    if (attrs->replace) {
        int64_t dtype = n <= INT32_MAX ? TN_I32 : TN_I64;
        return random_cast(build,
                           build->op(build, "random.randint/1", TN_IN(key),
                                     tn_attrs("shape", &wanted, "high", n, "dtype", dtype,
                                              "layout", attrs->layout)),
                           TN_I64);
    }
    tn_array *order = random_order(build, key, &row, 0, attrs->layout);
    return choice_first(build, order, count, &wanted);
}

DECOMPOSE(choice)
{
    const choice_attrs *attrs = rule->attrs;
    tn_array *a = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    tn_array *p = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    int32_t axis = 0;
    int64_t count = 0;
    tn_status status = random_check_key(build->host, build->type(rule->inputs[0]));
    if (!status)
        status = order_check_count(build->host, attrs->n, a != NULL);
    if (!status)
        status = random_check_axis(build->host, attrs->axis, a ? build->type(a)->rank : 1,
                                   &axis);
    int64_t n = status ? 0 : a ? build->type(a)->extent[axis] : attrs->n;
    if (!status)
        status = choice_check(build, attrs, n, build->type(p), &count);
    if (status)
        return status;
    tn_array *positions = random_integers_chosen(build, rule, p, n, count);
    outputs[0] = a ? build->op(build, "base.take/1", TN_IN(a, positions),
                               tn_attrs("axis", (int64_t)axis))
                   : positions;
    return built(outputs[0]);
}

COMPOSITE(choice, "Rows of an array, or of the first integers, chosen at random.",
          TN_INPUTS(choice_inputs), .attrs = TN_ATTR_TABLE(choice_attrs, choice_fields));
