// SPDX-License-Identifier: MIT
// The definition of the transforms: in f64, one row at a time, by the factors of its length
// (Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series",
// 1965).
#include "pack.h"

#include <tenon/ops/complex.h>
#include <tenon/ops/reference.h>

#define PI 3.14159265358979323846

static int64_t least_factor(int64_t n)
{
    for (int64_t p = 2; p <= n / p; p++)
        if (n % p == 0)
            return p;
    return n;
}

// out[k] = the sum over j of in[j * step] * exp(turn i j k / n). `room` has n numbers.
static void fft_reference_transform(const tn_complex128 *in, int64_t step, int64_t n,
                                    double turn, tn_complex128 *out, tn_complex128 *room)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int64_t p = least_factor(n), m = n / p;
    for (int64_t r = 0; r < p; r++)
        fft_reference_transform(in + r * step, step * p, m, turn, out + r * m, room);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < p; q++) {
            tn_complex128 sum = {0, 0};
            for (int64_t r = 0, at = 0; r < p; r++, at = (at + k + q * m) % n) {
                double angle = turn * (double)at / (double)n, c = cos(angle),
                       s = sin(angle);
                tn_complex128 v = out[r * m + k];
                sum.re += v.re * c - v.im * s;
                sum.im += v.re * s + v.im * c;
            }
            room[q] = sum;
        }
        for (int64_t q = 0; q < p; q++)
            out[k + q * m] = room[q];
    }
}

static int64_t fft_reference_row_length(const tn_layout *in, const tn_layout *out)
{
    int64_t a = in->extent[in->rank - 1], b = out->extent[out->rank - 1];
    return a > b ? a : b; // elements 0 .. n / 2 are no more than n
}

uint64_t dft_reference_scratch(const tn_kernel_query *query)
{
    return tn_saturated_multiply(
        (uint64_t)fft_reference_row_length(&query->inputs[0], &query->outputs[0]),
        3 * sizeof(tn_complex128));
}

// Element k of the row of n numbers that begins at `first`; the half spectrum of real
// numbers stores elements up to n / 2 alone.
static tn_complex128 fft_reference_element(const tn_tensor *x, int64_t first, int64_t n,
                                           int64_t k, bool to_real)
{
    int64_t step = x->layout.stride[x->layout.rank - 1];
    bool mirrored = to_real && k > n / 2;
    tn_complex128 v = tn_get_complex(x, first + (mirrored ? n - k : k) * step);
    if (to_real)
        v.im = k == 0 || 2 * k == n ? 0 : mirrored ? -v.im : v.im;
    return v;
}

// Transforms all rows, of length n.
static tn_status fft_reference_run(const tn_cpu_call *call, int64_t n, bool inverse,
                                   double scale)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int32_t last = x->layout.rank - 1;
    bool to_real = !tn_is_complex(out->layout.dtype);
    int64_t results = out->layout.extent[last];
    int64_t step = out->layout.stride[last], index[TN_MAX_RANK] = {0};
    tn_complex128 *in = call->scratch, *to = in + n, *room = to + n;
    tn_layout rows = x->layout;
    rows.extent[last] = 1;
    if (tn_layout_count(&rows) == 0)
        return TN_OK;
    do {
        int64_t from = tn_offset_at(&x->layout, index);
        int64_t at = tn_offset_at(&out->layout, index);
        for (int64_t k = 0; k < n; k++)
            in[k] = fft_reference_element(x, from, n, k, to_real);
        fft_reference_transform(in, 1, n, inverse ? 2 * PI : -2 * PI, to, room);
        for (int64_t k = 0; k < results; k++) {
            tn_complex128 v = {scale * to[k].re, scale * to[k].im};
            if (!tn_is_complex(x->layout.dtype) && (k == 0 || 2 * k == n))
                v.im = 0;
            tn_set_complex(out, at + k * step, v);
        }
    } while (tn_index_next(rows.rank, rows.extent, index));
    return TN_OK;
}

tn_status dft_reference(const tn_cpu_call *call)
{
    const tn_dft_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout;
    return fft_reference_run(call, x->extent[x->rank - 1], attrs->inverse != 0,
                             attrs->scale);
}

tn_status dft_of_real_reference(const tn_cpu_call *call)
{
    const tn_layout *x = &call->inputs[0].layout;
    return fft_reference_run(call, x->extent[x->rank - 1], false,
                             ((const tn_dft_of_real_attrs *)call->attrs)->scale);
}

tn_status dft_to_real_reference(const tn_cpu_call *call)
{
    const tn_dft_to_real_attrs *attrs = call->attrs;
    return fft_reference_run(call, attrs->n, true, attrs->scale);
}
