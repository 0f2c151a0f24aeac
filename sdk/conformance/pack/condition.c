// SPDX-License-Identifier: MIT
// By how much results move when their inputs move by a rounding.
//
// A difference of large terms, a quotient by nearly nothing, a variance of equal numbers:
// no two orders of computing agree there in the last digits, and a tolerance relative to
// the result is too small. So where results differ by more than the tolerance, each input
// is moved by a rounding, and the definition is applied again: an element may differ by
// some times as much as it moved.
#include <math.h>
#include "../kit/numbers.h"
#include "apply.h"

enum { MOVES = 6, TIMES = 8 };

// Relative size of one rounding of the computation. Expressions and decompositions promote
// at each of their steps, and so compute some steps in the dtype of one input.
static double pack_condition_unit_of(const struct sample *s)
{
    double unit = 0;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        unit = fmax(unit, dtype_rounding(s->outputs[i].dtype));
    for (uint32_t i = 0; i < s->num_inputs && !s->primitive->reference; i++)
        if (s->types[i].dtype != TN_DTYPE_NONE)
            unit = fmax(unit, dtype_rounding(tn_dtype_computed(s->types[i].dtype)));
    return unit;
}

// The sample with half floats replaced by the dtype in which they are computed, if that
// leaves the outputs' types: half floats themselves move too far, or not at all.
static struct sample pack_condition_computed(struct sample_maker *maker,
                                             const struct sample *s)
{
    struct sample other = *s;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (dtype_derives(s->types[i].dtype))
            other.types[i].dtype = tn_dtype_computed(s->types[i].dtype);
    if (sample_infer(maker, &other) != TN_OK ||
        memcmp(other.outputs, s->outputs, s->num_outputs * sizeof(*s->outputs)) != 0)
        return *s;
    return other;
}

// A random move of one or two units in the last place, in units of half of one, to either
// side: smaller moves are rounded away.
static double move_of(uint64_t *state)
{
    static const double moves[] = {-4, -2, 2, 4};
    return moves[numbers_next(state) >> 62];
}

static struct array pack_condition_moved(const struct array *from, tn_dtype dtype,
                                         double unit, uint64_t *state)
{
    tn_type type = array_type(from);
    type.dtype = dtype;
    struct array to = array_new(&type, PLAIN, 0);
    for (int64_t i = 0; i < to.count; i++) {
        tn_complex128 x = array_get_complex(from, i);
        x.re *= 1 + unit * move_of(state);
        x.im *= 1 + unit * move_of(state);
        array_set_complex(&to, i, x);
    }
    return to;
}

static bool is_finite(tn_complex128 x)
{
    return isfinite(x.re) && isfinite(x.im);
}

static void pack_condition_widen(double *spread, const struct array *want,
                                 const struct array *other)
{
    for (int64_t i = 0; i < want->count; i++) {
        tn_complex128 x = array_get_complex(want, i), y = array_get_complex(other, i);
        double by = hypot(x.re - y.re, x.im - y.im);
        if (is_finite(x) != is_finite(y))
            by = INFINITY;
        if (by > spread[i]) // false for NaN
            spread[i] = by;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Raises spreads to their median: moves may cancel in an element, but not in half of them.
static void pack_condition_level(double *spread, int64_t count)
{
    double *sorted = malloc((size_t)count * sizeof(*sorted) + 1);
    if (!sorted)
        abort();
    memcpy(sorted, spread, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), by_size);
    for (int64_t i = 0; i < count; i++)
        spread[i] = TIMES * fmax(spread[i], sorted[count / 2]);
    free(sorted);
}

// Fills spread[i], the amount by which element i may differ.
static void pack_condition_spread_of(struct sample_maker *maker, const struct sample *s,
                                     uint32_t output, const struct array *want,
                                     double *spread)
{
    uint64_t state = 1;
    double unit = pack_condition_unit_of(s);
    const struct sample base = pack_condition_computed(maker, s);
    for (int n = 0; n < MOVES; n++) {
        struct sample other = base;
        struct array out[MAX_OUT];
        for (uint32_t i = 0; i < s->num_inputs; i++)
            if (s->in[i].tensor.data && dtype_derives(s->types[i].dtype))
                other.in[i] =
                    pack_condition_moved(&s->in[i], base.types[i].dtype, unit, &state);
        if (!apply_definition(maker, &other, out)) {
            pack_condition_widen(spread, want, &out[output]);
            outputs_free(out);
        }
        for (uint32_t i = 0; i < s->num_inputs; i++)
            if (other.in[i].memory != s->in[i].memory)
                array_free(&other.in[i]);
    }
    pack_condition_level(spread, want->count);
}

const char *apply_compare_output(struct sample_maker *maker, const struct sample *s,
                                 uint32_t output, const struct array *got,
                                 const struct array *want, double tolerance)
{
    double least = sample_magnitude(s, want);
    const char *failure = array_compare(got, want, tolerance, least, NULL);
    tn_type have = array_type(got), expected = array_type(want);
    if (!failure || !dtype_derives(expected.dtype) ||
        memcmp(&have, &expected, sizeof(have)) != 0)
        return failure;
    double *spread = calloc((size_t)want->count + 1, sizeof(*spread));
    if (!spread)
        abort();
    pack_condition_spread_of(maker, s, output, want, spread);
    failure = array_compare(got, want, tolerance, least, spread);
    free(spread);
    return failure;
}

const char *apply_compare(struct sample_maker *maker, const struct sample *s,
                          const struct array *got, const struct array *want,
                          double tolerance)
{
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        const char *failure =
            apply_compare_output(maker, s, i, &got[i], &want[i], tolerance);
        if (failure)
            return failure;
    }
    return NULL;
}
