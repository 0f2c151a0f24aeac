// SPDX-License-Identifier: MIT
// Functions that quant.c and quant_amx.c share: the layout of rounded rows of x, and the
// scaling of a sum of 32 products.
#ifndef KERNELS_CPU_QUANT_SUMS_H
#define KERNELS_CPU_QUANT_SUMS_H

#include "quant_unpack.h"

static const int64_t bytes_of[] = {
#define SIZES(name, plain, ...) [CPU_QUANT_##name] = TN_QUANT_BYTES_##plain,
    TN_QUANT_PACKED_FORMATS(SIZES)
#undef SIZES
};

// 32 elements of a row of x: their bytes, their scale, and the format's word.
struct part {
    const uint8_t *q, *extra;
    float scale;
};

static inline struct part part_of(const struct cpu_quant_product *p, const uint8_t *x,
                                  int t, int64_t b)
{
    const uint8_t *row = x + t * cpu_quant_row_bytes(p->k), *scale = row + p->k + 4 * b;
    return (struct part){row + 32 * b, scale + p->k / 32 * 4,
                         f32_of_bits((uint32_t)word_at(scale))};
}

// sum + `products`, which are sums of 32 products of integers, with all factors and minima
// applied. `f` is a constant where this is inlined.
INLINE floats scaled(const struct traits *f, const struct unpacked *w, const struct part *x,
                     words products, floats sum)
{
    floats factor = multiply(w->factor, all_floats(x->scale));
    sum = add(sum, multiply(to_floats(products), factor));
    if (f->extra == EXTRA_TERM) {
        const float term = f32_of_bits((uint32_t)word_at(x->extra));
        sum = add(sum, multiply(w->least, all_floats(term)));
    }
    if (f->has_minimum) {
        const words least = sum_of_pairs(w->minimum, all_words(word_at(x->extra)));
        factor = multiply(w->least, all_floats(x->scale));
        sum = add(sum, multiply(to_floats(least), factor));
    }
    return sum;
}

// group_fn multiplies all rows of x by one group of weights, multiply_groups() by all.
typedef void group_fn(const struct cpu_quant_product *p, const uint8_t *w, float *out);

static inline void multiply_groups(const struct cpu_quant_product *p, group_fn *of_group)
{
    const int64_t bytes = p->k / 32 / traits_of[p->format].parts * 16 * bytes_of[p->format];
    for (int64_t g = 0; g < p->groups; g++)
        of_group(p, p->w + g * bytes, p->out + 16 * g);
}

#endif // KERNELS_CPU_QUANT_SUMS_H
