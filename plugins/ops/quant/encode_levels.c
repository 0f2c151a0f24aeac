// SPDX-License-Identifier: MIT
// Encoders of formats without a minimum: an element is scale * level. Levels are integers
// around 0, or a table's.
#include "encode_search.h"

// A format: q3_k, q6_k, iq4_xs; iq4_nl is a single part of iq4_xs. Levels are the integers
// from `least` to `most`, or the 16 of a table.
struct centred {
    int32_t parts, size;
    float least, most;             // levels
    float least_scale, most_scale; // integers
    bool has_table;
    int32_t steps; // candidates of step 1 on each side of the unchanged scale
};

struct centred_block {
    const struct centred *format;
    const float *x, *w;
    float d;                // representable in f16
    float scale[MAX_PARTS]; // integers
    float error[MAX_PARTS];
};

// The level of the table nearest to x: the least level plus the distances to the next
// level, for each midpoint between two levels that x exceeds.
static inline float nearest_of_table(float x)
{
    static const float middles[15] = {-115.5f, -93.5f, -74,   -57, -42,
                                      -28.5f,  -16,    -4.5f, 7,   19,
                                      31.5f,   45.5f,  61,    79,  101};
    static const float steps[15] = {23, 21, 18, 16, 14, 13, 12, 11,
                                    12, 12, 13, 15, 16, 20, 24};
    float level = -127;
    for (int32_t i = 0; i < 15; i++)
        level += x > middles[i] ? steps[i] : 0;
    return level;
}

static inline float level_of(bool has_table, float least, float most, float x)
{
    return has_table ? nearest_of_table(x) : to_nearest(within(x, least, most));
}

// Sums of x * level and level^2 of a part, whose levels are the nearest to x * inverse.
static inline void centred_sums(const float *x, const float *w, int32_t size,
                                bool has_table, float least, float most, float inverse,
                                float *out_xl, float *out_ll)
{
    float xl[4] = {0}, ll[4] = {0};
    for (int32_t i = 0; i < size; i += 4)
        for (int32_t k = 0; k < 4; k++) {
            float l = level_of(has_table, least, most, x[i + k] * inverse);
            xl[k] += w[i + k] * x[i + k] * l;
            ll[k] += w[i + k] * l * l;
        }
    *out_xl = xl[0] + xl[1] + xl[2] + xl[3];
    *out_ll = ll[0] + ll[1] + ll[2] + ll[3];
}

static void encode_levels_sums_of(const struct centred *f, const float *x, const float *w,
                                  float inverse, float *xl, float *ll)
{
    if (f->has_table)
        centred_sums(x, w, 32, true, 0, 0, inverse, xl, ll);
    else if (f->size == 16)
        centred_sums(x, w, 16, false, f->least, f->most, inverse, xl, ll);
    else
        centred_sums(x, w, 32, false, f->least, f->most, inverse, xl, ll);
}

// The squared error of a part without the sum of squares of x, which the levels do not
// change.
static float centred_error(const struct centred *f, const float *x, const float *w,
                           float scale)
{
    float xl, ll;
    if (scale == 0)
        return 0;
    encode_levels_sums_of(f, x, w, 1 / scale, &xl, &ll);
    return scale * (scale * ll - 2 * xl);
}

// Step 1 for a part: the scale with the least error. 0: all elements of the part are 0.
static float search_centred(const struct centred *f, const float *x, const float *w)
{
    float extreme = 0, best = 0, scale = 0;
    for (int32_t i = 0; i < f->size; i++)
        if ((x[i] < 0 ? -x[i] : x[i]) > (extreme < 0 ? -extreme : extreme))
            extreme = x[i];
    if ((extreme < 0 ? -extreme : extreme) < LEAST_MAGNITUDE)
        return 0;
    float step = (f->most - f->least) / 2 * 0.0125f;
    step = f->has_table ? 1.5f : step < 0.1f ? 0.1f : step;
    for (int32_t i = -f->steps; i <= f->steps; i++)
        for (int32_t end = 0; end < 2; end++) {
            float xl, ll;
            float to = end ? f->most + step * (float)i : f->least - step * (float)i;
            encode_levels_sums_of(f, x, w, to / extreme, &xl, &ll);
            // The first of candidates that differ by rounding alone is taken, so that equal
            // parts get equal scales.
            if (ll > 0 && xl * xl > best * ll * (1 + ROUNDING)) {
                best = xl * xl / ll;
                scale = xl / ll;
            }
        }
    return scale;
}

static bool step_centred(struct centred_block *b)
{
    const struct centred *f = b->format;
    bool is_better = false;
    for (int32_t part = 0; part < f->parts; part++) {
        float scale = b->scale[part];
        for (int32_t i = -2; i <= 2; i++) {
            float s = scale + (float)i;
            if (i == 0 || s < f->least_scale || s > f->most_scale)
                continue;
            float error =
                centred_error(f, b->x + part * f->size, b->w + part * f->size, b->d * s);
            if (error < b->error[part]) {
                b->error[part] = error;
                b->scale[part] = s;
                is_better = true;
            }
        }
    }
    return is_better;
}

static void measure_centred(struct centred_block *b)
{
    const struct centred *f = b->format;
    for (int32_t part = 0; part < f->parts; part++)
        b->error[part] = centred_error(f, b->x + part * f->size, b->w + part * f->size,
                                       b->d * b->scale[part]);
}

// Fits d by least squares over the block. Returns whether the error has fallen.
static bool fit_centred_block(struct centred_block *b)
{
    const struct centred *f = b->format;
    struct centred_block other = *b;
    float above = 0, below = 0;
    for (int32_t part = 0; part < f->parts; part++) {
        float xl, ll, scale = b->scale[part];
        if (b->d * scale == 0)
            continue;
        encode_levels_sums_of(f, b->x + part * f->size, b->w + part * f->size,
                              1 / (b->d * scale), &xl, &ll);
        above += scale * xl;
        below += scale * scale * ll;
    }
    other.d = below > 0 ? as_f16(above / below) : 0;
    if (other.d == 0 || other.d == b->d)
        return false;
    measure_centred(&other);
    if (!(total(other.error, f->parts) < total(b->error, f->parts)))
        return false;
    *b = other;
    return true;
}

// Encodes a block without its levels. `x` has been tamed (tame()).
static void encode_centred(const struct centred *format, const float *x, const float *w,
                           struct centred_block *out)
{
    float scales[MAX_PARTS], extreme = 0;
    for (int32_t part = 0; part < format->parts; part++) {
        int32_t first = part * format->size;
        float scale = scales[part] = search_centred(format, x + first, w + first);
        if ((scale < 0 ? -scale : scale) > (extreme < 0 ? -extreme : extreme))
            extreme = scale;
    }
    *out = (struct centred_block){.format = format, .x = x, .w = w};
    out->d = scale_f16(extreme / format->least_scale);
    for (int32_t part = 0; part < format->parts && out->d != 0; part++)
        out->scale[part] = to_nearest(
            within(scales[part] / out->d, format->least_scale, format->most_scale));
    measure_centred(out);
    for (int32_t round = 0; round < ROUNDS; round++) {
        bool is_better = step_centred(out);
        is_better |= fit_centred_block(out);
        if (!is_better)
            return;
    }
}

// The levels of part `part`.
static void centred_levels(const struct centred_block *b, int32_t part, float *out)
{
    const struct centred *f = b->format;
    float scale = b->d * b->scale[part], inverse = scale != 0 ? 1 / scale : 0;
    for (int32_t i = 0; i < f->size; i++)
        out[i] =
            level_of(f->has_table, f->least, f->most, b->x[part * f->size + i] * inverse);
}

void weigh_q3_k(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {16, 16, -4, 3, -32, 31, false, 12};
    float x[BLOCK], levels[16];
    struct centred_block b;
    tame(values, BLOCK, x);
    encode_centred(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_q3_k);
    for (int32_t part = 0; part < 16; part++) {
        uint8_t *at = out + 32 + part / 8 * 32 + part % 2 * 16, *top = out + part % 2 * 16;
        int32_t scale = (int32_t)b.scale[part] + 32;
        uint8_t *low = out + 96 + part % 8, *high = out + 104 + part % 4;
        *low = (uint8_t)(*low | (scale & 15) << part / 8 * 4);
        *high = (uint8_t)(*high | scale >> 4 << part / 4 * 2);
        centred_levels(&b, part, levels);
        for (int32_t i = 0; i < 16; i++) {
            int32_t q = (int32_t)levels[i] + 4;
            at[i] = (uint8_t)(at[i] | (q & 3) << part % 8 / 2 * 2);
            top[i] = (uint8_t)(top[i] | q >> 2 << part / 2);
        }
    }
    set_f16(out + 108, b.d);
}

void weigh_q6_k(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {16, 16, -32, 31, -128, 127, false, 10};
    float x[BLOCK], levels[16];
    struct centred_block b;
    tame(values, BLOCK, x);
    encode_centred(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_q6_k);
    for (int32_t part = 0; part < 16; part++) {
        uint8_t *four = out + part / 8 * 64 + part % 4 * 16;
        uint8_t *two = out + 128 + part / 8 * 32 + part % 2 * 16;
        out[192 + part] = (uint8_t)((int32_t)b.scale[part] & 255);
        centred_levels(&b, part, levels);
        for (int32_t i = 0; i < 16; i++) {
            int32_t q = (int32_t)levels[i] + 32;
            four[i] = (uint8_t)(four[i] | (q & 15) << part % 8 / 4 * 4);
            two[i] = (uint8_t)(two[i] | q >> 4 << part % 8 / 2 * 2);
        }
    }
    set_f16(out + 208, b.d);
}

// Writes 32 levels of the table to 16 bytes.
static void put_levels(const float *levels, uint8_t *out)
{
    memset(out, 0, 16);
    for (int32_t i = 0; i < 32; i++) {
        int32_t q = 0;
        while (tn_quant_iq4_value(q) < (int32_t)levels[i])
            q++;
        set_nibble(out, i, q);
    }
}

void weigh_iq4_xs(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {8, 32, -127, 113, -32, 31, true, 12};
    float x[BLOCK], levels[32];
    struct centred_block b;
    int32_t high = 0;
    tame(values, BLOCK, x);
    encode_centred(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_iq4_xs);
    set_f16(out, b.d);
    for (int32_t part = 0; part < 8; part++) {
        int32_t scale = (int32_t)b.scale[part] + 32;
        uint8_t *low = out + 4 + part / 2;
        *low = (uint8_t)(*low | (scale & 15) << part % 2 * 4);
        high |= scale >> 4 << 2 * part;
        centred_levels(&b, part, levels);
        put_levels(levels, out + 8 + part * 16);
    }
    out[2] = (uint8_t)(high & 255);
    out[3] = (uint8_t)(high >> 8);
}

// Encodes a block of one part, whose scale is d.
static void encode_single(const struct centred *format, const float *values,
                          const float *weights, float *x, struct centred_block *b)
{
    tame(values, format->size, x);
    *b = (struct centred_block){.format = format, .x = x, .w = weights, .scale = {1}};
    const float scale = search_centred(format, x, weights);
    b->d = scale_f16(scale);
    measure_centred(b);
    struct centred_block nearest = *b;
    nearest.d = as_f16(scale);
    measure_centred(&nearest);
    if (nearest.error[0] < b->error[0])
        *b = nearest;
    for (int32_t round = 0; round < ROUNDS && fit_centred_block(b); round++) {
    }
}

void weigh_iq4_nl(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {1, 32, -127, 113, 1, 1, true, 16};
    float x[32], levels[32];
    struct centred_block b;
    encode_single(&format, values, weights, x, &b);
    set_f16(out, b.d);
    centred_levels(&b, 0, levels);
    put_levels(levels, out + 2);
}

void weigh_q4_0(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {1, 32, -8, 7, 1, 1, false, 16};
    float x[32], levels[32];
    struct centred_block b;
    encode_single(&format, values, weights, x, &b);
    memset(out, 0, TN_QUANT_BYTES_q4_0);
    set_f16(out, b.d);
    centred_levels(&b, 0, levels);
    for (int32_t i = 0; i < 32; i++)
        set_nibble(out + 2, i, (int32_t)levels[i] + 8);
}

void weigh_q5_0(const float *values, const float *weights, uint8_t *out)
{
    static const struct centred format = {1, 32, -16, 15, 1, 1, false, 16};
    float x[32], levels[32];
    struct centred_block b;
    encode_single(&format, values, weights, x, &b);
    memset(out, 0, TN_QUANT_BYTES_q5_0);
    set_f16(out, b.d);
    centred_levels(&b, 0, levels);
    for (int32_t i = 0; i < 32; i++) {
        int32_t q = (int32_t)levels[i] + 16;
        set_nibble(out + 6, i, q);
        out[2 + i / 8] = (uint8_t)(out[2 + i / 8] | q >> 4 << i % 8);
    }
}

// --- without weights --------------------------------------------------------------------

#define ONES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
static const float ones[BLOCK] = {ONES, ONES, ONES, ONES, ONES, ONES, ONES, ONES,
                                  ONES, ONES, ONES, ONES, ONES, ONES, ONES, ONES};
#undef ONES

#define PLAIN(name)                                                                        \
    void encode_##name(const float *values, uint8_t *out)                                  \
    {                                                                                      \
        weigh_##name(values, ones, out);                                                   \
    }
SEARCHED_FORMATS(PLAIN)
#undef PLAIN
