// SPDX-License-Identifier: MIT
// Encoders of formats with a minimum: an element is scale * q - minimum.
#include "encode_search.h"

// A format: q2_k, q4_k, q5_k.
struct affine {
    int32_t parts, size; // number of parts, elements of a part
    float most_q, most_scale;
};

struct affine_block {
    const struct affine *format;
    const float *x, *w;
    float d, m;                                 // representable in f16
    float scale[MAX_PARTS], minimum[MAX_PARTS]; // integers
    float error[MAX_PARTS];
};

// The squared error of a part whose fractions are rounded for this scale and minimum.
static inline float affine_error(const float *x, const float *w, int32_t size, float most_q,
                                 float scale, float minimum)
{
    float inverse = scale > 0 ? 1 / scale : 0, error = 0;
    float lanes[4] = {0, 0, 0, 0};
    for (int32_t i = 0; i < size; i += 4)
        for (int32_t k = 0; k < 4; k++) {
            float q = to_nearest(within((x[i + k] + minimum) * inverse, 0, most_q));
            float apart = scale * q - minimum - x[i + k];
            lanes[k] += w[i + k] * apart * apart;
        }
    for (int32_t k = 0; k < 4; k++)
        error += lanes[k];
    return error;
}

// A determinant below this share of its terms is rounding: all fractions are nearly equal.
#define LEAST_DETERMINANT 2e-6f

// Fits scale and minimum by least squares to the fractions that `inverse` and `least` give;
// only the scale, beside -least, where equal fractions do not determine a minimum. False:
// they do not determine a scale either.
static inline bool fit_affine(const float *x, const float *w, int32_t size, float most_q,
                              float inverse, float least, float *scale, float *minimum)
{
    float l[4] = {0}, ll[4] = {0}, xl[4] = {0}, sum[4] = {0}, all[4] = {0};
    for (int32_t i = 0; i < size; i += 4)
        for (int32_t k = 0; k < 4; k++) {
            float v = x[i + k], weight = w[i + k];
            float q = to_nearest(within((v - least) * inverse, 0, most_q));
            l[k] += weight * q;
            ll[k] += weight * q * q;
            xl[k] += weight * v * q;
            sum[k] += weight * v;
            all[k] += weight;
        }
    float n = all[0] + all[1] + all[2] + all[3];
    float sl = l[0] + l[1] + l[2] + l[3], sll = ll[0] + ll[1] + ll[2] + ll[3];
    float sxl = xl[0] + xl[1] + xl[2] + xl[3], sx = sum[0] + sum[1] + sum[2] + sum[3];
    float determinant = n * sll - sl * sl;
    if (determinant > LEAST_DETERMINANT * n * sll) {
        *scale = (n * sxl - sx * sl) / determinant;
        *minimum = (sl * sxl - sll * sx) / determinant;
    } else {
        *minimum = -least;
        *scale = (sxl - least * sl) / sll; // NaN where all fractions are 0
    }
    if (*minimum < 0) { // not representable: the best scale without a minimum
        *minimum = 0;
        *scale = sxl / sll;
    }
    return *scale > 0;
}

// The best candidate of step 1 for a part of the block.
struct affine_best {
    float scale, minimum, error;
    float noise; // errors below this are rounding, so equal parts get equal scales
};

// Fits the fractions that `inverse` and `least` give; keeps the fit where its error is
// less.
static bool try_affine(const float *x, const float *w, int32_t size, float most_q,
                       float inverse, float least, struct affine_best *best)
{
    float scale, minimum;
    if (!fit_affine(x, w, size, most_q, inverse, least, &scale, &minimum))
        return false;
    float error = affine_error(x, w, size, most_q, scale, minimum);
    if (error >= best->error - best->noise)
        return false;
    *best = (struct affine_best){scale, minimum, error, best->noise};
    return true;
}

// Step 1 for a part. A part of positive elements gets the minimum 0.
static struct affine_best search_affine(const float *x, const float *w, int32_t size,
                                        float most_q)
{
    float least = 0, greatest = 0, squares = 0;
    for (int32_t i = 0; i < size; i++) {
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
        squares += w[i] * x[i] * x[i];
    }
    float range = greatest - least;
    struct affine_best best = {.minimum = -least, .noise = ROUNDING * squares};
    if (range < LEAST_MAGNITUDE)
        return best;
    best.error = affine_error(x, w, size, most_q, best.scale, best.minimum);
    for (int32_t step = -10; step <= 10; step++)
        try_affine(x, w, size, most_q, (most_q + 0.1f * (float)step) / range, least, &best);
    // Twice, as the fractions of a fit may fit better still.
    for (int32_t again = 0; again < 2 && best.scale > 0; again++)
        if (!try_affine(x, w, size, most_q, 1 / best.scale, -best.minimum, &best))
            break;
    return best;
}

static inline float affine_part(const struct affine_block *b, int32_t part, float scale,
                                float minimum)
{
    int32_t size = b->format->size;
    const float *x = b->x + part * size, *w = b->w + part * size;
    if (size == 32)
        return affine_error(x, w, 32, b->format->most_q, b->d * scale, b->m * minimum);
    return affine_error(x, w, 16, b->format->most_q, b->d * scale, b->m * minimum);
}

// Chooses each part's integers: those nearest to the fitted floats, or their neighbours.
static bool step_affine(struct affine_block *b)
{
    float most = b->format->most_scale;
    bool is_better = false;
    for (int32_t part = 0; part < b->format->parts; part++) {
        float scale = b->scale[part], minimum = b->minimum[part];
        for (int32_t i = 0; i < 9; i++) {
            float s = scale + (float)(i % 3 - 1), t = minimum + (float)(i / 3 - 1);
            if (i == 4 || s < 0 || s > most || t < 0 || t > most)
                continue;
            float error = affine_part(b, part, s, t);
            if (error < b->error[part]) {
                b->error[part] = error;
                b->scale[part] = s;
                b->minimum[part] = t;
                is_better = true;
            }
        }
    }
    return is_better;
}

static void measure_affine(struct affine_block *b)
{
    for (int32_t part = 0; part < b->format->parts; part++)
        b->error[part] = affine_part(b, part, b->scale[part], b->minimum[part]);
}

// Fits d and m by least squares over the block. Returns whether the error has fallen.
static bool fit_affine_block(struct affine_block *b)
{
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    const struct affine *f = b->format;
    for (int32_t part = 0; part < f->parts; part++) {
        float scale = b->d * b->scale[part], minimum = b->m * b->minimum[part];
        float inverse = scale > 0 ? 1 / scale : 0, l = 0, ll = 0, xl = 0, sum = 0;
        float all = 0;
        for (int32_t i = 0; i < f->size; i++) {
            float v = b->x[part * f->size + i], weight = b->w[part * f->size + i];
            float q = to_nearest(within((v + minimum) * inverse, 0, f->most_q));
            l += weight * q;
            ll += weight * q * q;
            xl += weight * v * q;
            sum += weight * v;
            all += weight;
        }
        double s = (double)b->scale[part], t = (double)b->minimum[part];
        aa += s * s * (double)ll;
        ab += s * t * (double)l;
        bb += t * t * (double)all;
        ax += s * (double)xl;
        bx += t * (double)sum;
    }
    double determinant = aa * bb - ab * ab;
    struct affine_block other = *b;
    if (determinant > 1e-12 * aa * bb && determinant > 0) {
        other.d = as_f16((float)((ax * bb - bx * ab) / determinant));
        other.m = as_f16((float)((ax * ab - aa * bx) / determinant));
    } else if (aa > 0) {
        other.d = as_f16((float)((ax + ab * (double)b->m) / aa));
    }
    if (!(other.d > 0) || other.m < 0 || (other.d == b->d && other.m == b->m))
        return false;
    measure_affine(&other);
    if (!(total(other.error, f->parts) < total(b->error, f->parts)))
        return false;
    *b = other;
    return true;
}

// Steps 2 and 3, beginning with a given d and m.
static void refine_affine(struct affine_block *b, const float *scales, const float *minima,
                          float d, float m)
{
    float most = b->format->most_scale;
    b->d = scale_f16(d);
    b->m = scale_f16(m);
    for (int32_t part = 0; part < b->format->parts; part++) {
        b->scale[part] = b->d > 0 ? to_nearest(within(scales[part] / b->d, 0, most)) : 0;
        b->minimum[part] = b->m > 0 ? to_nearest(within(minima[part] / b->m, 0, most)) : 0;
    }
    measure_affine(b);
    for (int32_t round = 0; round < ROUNDS; round++) {
        bool is_better = step_affine(b);
        is_better |= fit_affine_block(b);
        if (!is_better)
            return;
    }
}

// Encodes a block without its fractions. `x` has been tamed (tame()).
static void encode_affine(const struct affine *format, const float *x, const float *w,
                          struct affine_block *out)
{
    float scales[MAX_PARTS], minima[MAX_PARTS], d = 0, m = 0;
    for (int32_t part = 0; part < format->parts; part++) {
        struct affine_best best = search_affine(
            x + part * format->size, w + part * format->size, format->size, format->most_q);
        scales[part] = best.scale;
        minima[part] = best.minimum;
        d = scales[part] > d ? scales[part] : d;
        m = minima[part] > m ? minima[part] : m;
    }
    *out = (struct affine_block){.format = format, .x = x, .w = w};
    refine_affine(out, scales, minima, d / format->most_scale, m / format->most_scale);
}

// The fractions of part `part`.
static void affine_fractions(const struct affine_block *b, int32_t part, uint8_t *out)
{
    const struct affine *f = b->format;
    float scale = b->d * b->scale[part], minimum = b->m * b->minimum[part];
    float inverse = scale > 0 ? 1 / scale : 0;
    for (int32_t i = 0; i < f->size; i++) {
        float v = (b->x[part * f->size + i] + minimum) * inverse;
        out[i] = (uint8_t)to_nearest(within(v, 0, f->most_q));
    }
}

void weigh_q2_k(const float *values, const float *weights, uint8_t *out)
{
    static const struct affine format = {16, 16, 3, 15};
    float x[BLOCK];
    uint8_t q[16];
    struct affine_block b;
    tame(values, BLOCK, x);
    encode_affine(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_q2_k);
    for (int32_t part = 0; part < 16; part++) {
        uint8_t *at = out + 16 + part / 8 * 32 + part % 2 * 16;
        out[part] = (uint8_t)((int32_t)b.scale[part] | (int32_t)b.minimum[part] << 4);
        affine_fractions(&b, part, q);
        for (int32_t i = 0; i < 16; i++)
            at[i] = (uint8_t)(at[i] | q[i] << part % 8 / 2 * 2);
    }
    set_f16(out + 80, b.d);
    set_f16(out + 82, b.m);
}

// Writes the head of q4_k and q5_k: d, m, and 12 bytes of scales.
static void put_affine_head(const struct affine_block *b, uint8_t *out)
{
    set_f16(out, b->d);
    set_f16(out + 2, b->m);
    for (int32_t part = 0; part < 4; part++) {
        int32_t scale = (int32_t)b->scale[part], minimum = (int32_t)b->minimum[part];
        int32_t later = (int32_t)b->scale[part + 4];
        int32_t later_minimum = (int32_t)b->minimum[part + 4];
        out[4 + part] = (uint8_t)(scale | later >> 4 << 6);
        out[8 + part] = (uint8_t)(minimum | later_minimum >> 4 << 6);
        out[12 + part] = (uint8_t)((later & 15) | (later_minimum & 15) << 4);
    }
}

void weigh_q4_k(const float *values, const float *weights, uint8_t *out)
{
    static const struct affine format = {8, 32, 15, 63};
    float x[BLOCK];
    uint8_t q[32];
    struct affine_block b;
    tame(values, BLOCK, x);
    encode_affine(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_q4_k);
    put_affine_head(&b, out);
    for (int32_t part = 0; part < 8; part++) {
        uint8_t *at = out + 16 + part / 2 * 32;
        affine_fractions(&b, part, q);
        for (int32_t i = 0; i < 32; i++)
            at[i] = (uint8_t)(at[i] | q[i] << part % 2 * 4);
    }
}

void weigh_q5_k(const float *values, const float *weights, uint8_t *out)
{
    static const struct affine format = {8, 32, 31, 63};
    float x[BLOCK];
    uint8_t q[32];
    struct affine_block b;
    tame(values, BLOCK, x);
    encode_affine(&format, x, weights, &b);
    memset(out, 0, TN_QUANT_BYTES_q5_k);
    put_affine_head(&b, out);
    for (int32_t part = 0; part < 8; part++) {
        uint8_t *at = out + 48 + part / 2 * 32, *high = out + 16;
        affine_fractions(&b, part, q);
        for (int32_t i = 0; i < 32; i++) {
            at[i] = (uint8_t)(at[i] | (q[i] & 15) << part % 2 * 4);
            high[i] = (uint8_t)(high[i] | q[i] >> 4 << part);
        }
    }
}
