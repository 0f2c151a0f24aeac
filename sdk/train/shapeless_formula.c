// SPDX-License-Identifier: MIT
// Numbers of a graph as functions of extents: fitted to their values for some extents, and
// accepted only if they give all of these.
#include <math.h>
#include <string.h>
#include "shapeless.h"

// --- functions of whole numbers ---------------------------------------------------------

static double shapeless_formula_same(double n)
{
    return n;
}
static double shapeless_formula_inverse(double n)
{
    return 1 / n;
}
static double inverse_single(double n)
{
    return (float)(1 / n);
}
static double shapeless_formula_root(double n)
{
    return sqrt(n);
}
static double root_single(double n)
{
    return (float)sqrt(n);
}
static double square_of_root(double x)
{
    return x * x;
}
static double inverse_root(double n)
{
    return 1 / sqrt(n);
}
static double inverse_root_single(double n)
{
    return (float)(1 / sqrt(n));
}
static double inverse_square(double x)
{
    return 1 / (x * x);
}

// Functions that make a real number of a graph from a whole number that follows from
// extents: a count, a divisor, the scale of attention.
static const struct {
    double (*of)(double n), (*whole)(double x);
} functions[] = {{shapeless_formula_same, shapeless_formula_same},
                 {shapeless_formula_inverse, shapeless_formula_inverse},
                 {inverse_single, shapeless_formula_inverse},
                 {inverse_root, inverse_square},
                 {inverse_root_single, inverse_square},
                 {shapeless_formula_root, square_of_root},
                 {root_single, square_of_root}};
enum { NUM_FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

// The whole number from which `function` gives the word. False: there is none.
static bool shapeless_formula_whole_of(const struct shapeless_word *word, uint32_t function,
                                       int64_t *out)
{
    if (word->kind == WHOLE) {
        *out = word->i;
        return function == 0;
    }
    double n = nearbyint(functions[function].whole(word->f));
    if (!(fabs(n) < 0x1p53) || functions[function].of(n) != word->f)
        return false;
    *out = (int64_t)n;
    return true;
}

// --- formulas ---------------------------------------------------------------------------

static bool fits_int64(__int128 x)
{
    return x >= INT64_MIN && x <= INT64_MAX;
}

static bool sum_at(const struct shapeless_formula *f, const struct shapeless_extents *first,
                   const struct shapeless_extents *at, uint32_t num_symbols, int64_t *out)
{
    __int128 sum = f->base;
    for (uint32_t k = 0; k < num_symbols; k++) {
        if (!f->rise[k])
            continue;
        __int128 more = (__int128)f->rise[k] * (at->of[k] - first->of[k]);
        if (more % f->run[k])
            return false;
        sum += more / f->run[k];
    }
    *out = (int64_t)sum;
    return fits_int64(sum);
}

static bool product_at(const struct shapeless_formula *f,
                       const struct shapeless_extents *first,
                       const struct shapeless_extents *at, uint32_t num_symbols,
                       int64_t *out)
{
    __int128 product = f->base, divisor = 1;
    for (uint32_t k = 0; k < num_symbols; k++) {
        if (!f->rise[k])
            continue;
        product *= at->of[k];
        divisor *= first->of[k];
        if (!fits_int64(product / first->of[k]) || divisor > INT64_MAX)
            return false;
    }
    if (product % divisor)
        return false;
    *out = (int64_t)(product / divisor);
    return fits_int64(product / divisor);
}

bool formula_value(const struct shapeless_formula *f, const struct shapeless_extents *first,
                   const struct shapeless_extents *at, uint32_t num_symbols,
                   struct shapeless_word *out)
{
    int64_t whole;
    if (f->is_constant)
        return true;
    if (!(f->is_product ? product_at : sum_at)(f, first, at, num_symbols, &whole))
        return false;
    out->i = whole;
    out->f = functions[f->function].of((double)whole);
    return true;
}

static bool same_word(const struct shapeless_word *a, const struct shapeless_word *b)
{
    return a->kind == REAL ? memcmp(&a->f, &b->f, sizeof(a->f)) == 0 : a->i == b->i;
}

static bool gives_all(const struct shapeless_formula *f,
                      const struct shapeless_word *const *words,
                      const struct shapeless_extents *at, uint32_t num_probes,
                      uint32_t num_symbols)
{
    for (uint32_t p = 0; p < num_probes; p++) {
        struct shapeless_word got = {.i = 0};
        if (!words[p])
            continue;
        got.kind = words[p]->kind;
        if (!formula_value(f, &at[0], &at[p], num_symbols, &got) ||
            !same_word(&got, words[p]))
            return false;
    }
    return true;
}

bool formula_find(const struct shapeless_word *const *words,
                  const struct shapeless_extents *at, uint32_t num_probes,
                  uint32_t num_symbols, struct shapeless_formula *out)
{
    bool is_constant = true;
    for (uint32_t p = 1; p < num_probes && is_constant; p++)
        is_constant = !words[p] || same_word(words[0], words[p]);
    *out = (struct shapeless_formula){.is_constant = is_constant};
    for (uint32_t n = 0; n < 2 * NUM_FUNCTIONS && !is_constant; n++) {
        *out = (struct shapeless_formula){.is_product = n % 2, .function = n / 2};
        bool is_whole = shapeless_formula_whole_of(words[0], n / 2, &out->base);
        for (uint32_t k = 0; k < num_symbols && is_whole; k++) {
            const uint32_t p = 1 + 3 * k;
            int64_t moved = out->base;
            is_whole = !words[p] || shapeless_formula_whole_of(words[p], n / 2, &moved);
            out->rise[k] = moved - out->base;
            out->run[k] = words[p] ? at[p].of[k] - at[0].of[k] : 1;
        }
        if (is_whole && gives_all(out, words, at, num_probes, num_symbols))
            return true;
    }
    return is_constant;
}
