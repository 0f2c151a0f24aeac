// SPDX-License-Identifier: MIT
// The Poisson distribution. Means below 10: by one word for each element, compared with
// tail probabilities; other means: transformed rejection (Hoermann 1993, "The transformed
// rejection method for generating Poisson random variables").
#include "pack.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct {
    tn_ints shape;
    int64_t dtype, layout;
} poisson_attrs;

static const tn_input_info poisson_inputs[] = {
    KEY_INPUT,
    {"lam", "the mean, at least 0", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field poisson_fields[] = {
    SHAPE_FIELD(poisson_attrs),
    TN_DTYPE_FIELD(poisson_attrs, dtype, 0, "an integer or float dtype; not given: i64"),
    LAYOUT_FIELD(poisson_attrs),
};

// --- means below 10 ---------------------------------------------------------------------

// With v in (0, 1) the count is the number of j with v < P(count > j). Probabilities are
// summed from the least one on, so that the tail keeps digits of its own, down to v's least
// step, 2^-33: beyond LAST it is below that. Counts from MIDDLE on are tested only where v
// is below all tails before.
enum { MIDDLE = 20, LAST = 37, TAIL_TERMS = 12, TEXT_SIZE = 6144 };

struct count_text {
    char data[TEXT_SIZE];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void
random_poisson_add_text(struct count_text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text->data + text->size, TEXT_SIZE - text->size, format, list);
    va_end(list);
    text->size += (size_t)size;
}

#define V_OF_WORD "v = (%s(w) + 0.5) * 2.3283064365386963e-10; "

// Writes definitions: p<j>, the probability of count j, from p<first> on; s<j> = P(count >
// j) - v, beginning with the known s<last>; c<j>, the number of positive s from j on.
static void add_counts(struct count_text *text, int first, int last)
{
    random_poisson_add_text(text, "c%d = f32(s%d > 0); ", last, last);
    for (int j = last - 1; j >= first; j--)
        random_poisson_add_text(text, "s%d = s%d + p%d; c%d = c%d + f32(s%d > 0); ", j,
                                j + 1, j + 1, j, j + 1, j);
}

static void add_probabilities(struct count_text *text, int first, int last)
{
    for (int j = first + 1; j <= last; j++)
        random_poisson_add_text(text, "p%d = p%d * l * (1 / %d); ", j, j - 1, j);
}

static tn_array *few_counts(const tn_build *build, const struct drawn *s, tn_array *lam)
{
    const char *dtype = tn_dtype_name(s->dtype);
    tn_array *w =
        draw_numbers(build, "random.bits/1", s->key, &s->shape, TN_U32, s->layout);
    tn_array *l =
        build->expr(build, "l -> l > 0 & l < 10 ? l : 0", TN_IN(lam), TN_NO_ATTRS);
    struct count_text text = {.size = 0};
    random_poisson_add_text(&text, "l, w -> " V_OF_WORD "p0 = exp(-l); ", dtype);
    add_probabilities(&text, 0, MIDDLE);
    // P(count >= MIDDLE) = p (1 + l / (MIDDLE + 1) (1 + l / (MIDDLE + 2) (1 + ... .
    random_poisson_add_text(&text, "t%d = 1; ", TAIL_TERMS);
    for (int i = TAIL_TERMS; i > 0; i--)
        random_poisson_add_text(&text, "t%d = 1 + l * (1 / %d) * t%d; ", i - 1, MIDDLE + i,
                                i);
    random_poisson_add_text(&text, "s%d = p%d * t0 - v; ", MIDDLE - 1, MIDDLE);
    add_counts(&text, 0, MIDDLE - 1);
    random_poisson_add_text(&text, "c0");
    tn_array *n = build->expr(build, text.data, TN_IN(l, w), TN_NO_ATTRS);

    text.size = 0;
    random_poisson_add_text(
        &text, "n, l, w -> " V_OF_WORD "p%d = exp(%d * log(l) - l - log_factorial); ",
        dtype, MIDDLE, MIDDLE);
    add_probabilities(&text, MIDDLE, LAST + 1);
    random_poisson_add_text(&text, "s%d = p%d - v; ", LAST, LAST + 1);
    add_counts(&text, MIDDLE, LAST);
    random_poisson_add_text(&text, "%s(n < %d ? n : n + c%d)", dtype, MIDDLE, MIDDLE);
    return build->expr(build, text.data, TN_IN(n, l, w),
                       tn_attrs("log_factorial", lgamma(MIDDLE + 1)));
}

// --- others -----------------------------------------------------------------------------

// The mean; 10 where it is below 10, infinite or NaN, as the count is known there.
#define MANY                                                                               \
    "m = l >= 10 & l < inf ? l : 10; b = 0.931 + 2.53 * sqrt(m); a = -0.059 + 0.02483 * "  \
    "b; "

// One more try. Carried: the counts, -1 for elements that are left, and the key. A
// constant: lam.
static tn_status next_try(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    const struct drawn *s = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *counts = inputs[0], *key = inputs[1], *lam = inputs[2];
    tn_array *uniform[2];
    for (int64_t i = 0; i < 2; i++)
        uniform[i] = draw_numbers(build, "random.random/1",
                                  split_key(build, key, 3, i + 1, s->layout), &s->shape,
                                  s->dtype, s->layout);
    tn_array *k = build->expr(
        build,
        "w, l -> " MANY "u = w - 0.5; floor((2 * a / (0.5 - abs(u)) + b) * u + m + 0.43)",
        TN_IN(uniform[0], lam), TN_NO_ATTRS);
    tn_array *factorial =
        build->op(build, "base.lgamma/1",
                  TN_IN(build->expr(build, "k -> max(k, 0) + 1", TN_IN(k), TN_NO_ATTRS)),
                  TN_NO_ATTRS);
    outputs[0] =
        build->expr(build,
                    "n, w, z, k, f, l -> " MANY "v = 1 - z; r = 0.5 - abs(w - 0.5); "
                    "quick = r >= 0.07 & v <= 0.9277 - 3.6224 / (b - 2); "
                    "out = k < 0 | r < 0.013 & v > r; "
                    "s = log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (r * r) + b)); "
                    "n >= 0 ? n : quick | !out & s <= k * log(m) - m - f ? k : -1",
                    TN_IN(counts, uniform[0], uniform[1], k, factorial, lam), TN_NO_ATTRS);
    outputs[1] = split_key(build, key, 3, 0, s->layout);
    return built(outputs[0]) ? TN_ERR_ARGUMENT : built(outputs[1]);
}

static tn_array *poisson_counts(const tn_build *build, struct drawn *s, tn_array *lam)
{
    tn_array *key = s->key, *counts[2] = {NULL};
    s->key = split_key(build, key, 2, 0, s->layout);
    tn_array *n = build->expr(build, "n, l -> l >= 10 & l < inf ? -1 : n",
                              TN_IN(few_counts(build, s, lam), lam), TN_NO_ATTRS);
    tn_array *first[] = {n, split_key(build, key, 2, 1, s->layout), lam};
    if (loop_while_any(build, "n -> n < 0", next_try, s, first, 2, 3, counts))
        return NULL;
    return counts[0];
}

DECOMPOSE(poisson)
{
    const poisson_attrs *attrs = rule->attrs;
    tn_random_bits_attrs common = {.shape = attrs->shape, .layout = attrs->layout};
    tn_dtype dtype = attrs->dtype ? (tn_dtype)attrs->dtype : TN_I64;
    struct drawn s;
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES | TN_FLOAT_DTYPES))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "dtype is %s, expected an integer or float dtype",
                                 tn_dtype_name(dtype));
    tn_status status = read_sample(build, rule, &common, 1, &s);
    if (status)
        return status;
    s.dtype = tn_dtype_computed(s.dtype);
    tn_array *still = build->op(build, "base.stop_gradient/1",
                                TN_IN(random_cast(build, s.in[0], s.dtype)), TN_NO_ATTRS);
    tn_array *lam = random_with_shape(build, "base.broadcast_to/1", still, &s.shape);
    outputs[0] = random_cast(build, poisson_counts(build, &s, lam), dtype);
    return built(outputs[0]);
}

COMPOSITE(poisson, "Random counts of the Poisson distribution.", TN_INPUTS(poisson_inputs),
          .attrs = TN_ATTR_TABLE(poisson_attrs, poisson_fields));
