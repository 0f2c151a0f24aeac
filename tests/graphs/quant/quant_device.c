// SPDX-License-Identifier: MIT
// Quantised weights on the backend that TENON_TEST_BACKEND names: products, rows and values
// against blocks that are decoded here.
#include <math.h>
#include <stdlib.h>
#include "quant.h"
#include "quant_matrix.h"

TestSuite(quant_device, .init = open_device, .fini = teardown);

// By what a product may be off where x is rounded: of 32 elements by their greatest
// magnitude / 254.
static double rounding(const float *x, const float *w, int64_t k)
{
    double off = 0;
    for (int64_t i = 0; i < k; i += 32) {
        double most = 0, sum = 0;
        for (int64_t j = i; j < i + 32; j++) {
            most = fmax(most, fabs((double)x[j]));
            sum += fabs((double)w[j]);
        }
        off += sum * most / 254;
    }
    return off;
}

// Multiplications from which on plain rows may be multiplied on matrix units.
#define UNITS_FROM 4194304

static float x_size = 1; // greatest magnitude of x

// The product of `rows` rows, from element `skipped` of their memory on. Of very many rows
// some are looked at.
static void check_product(const struct matrix *m, int64_t rows, int64_t skipped, int is_odd)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = rows * m->k;
    float *x = malloc((size_t)(count + skipped) * sizeof(*x));
    float *got = malloc((size_t)(rows * m->n) * sizeof(*got));
    for (int64_t i = 0; i < count + skipped; i++)
        x[i] = ((float)next_bits() / 8388608 - 1) * x_size;
    tn_array *in = tn_from_data(s, TN_F32, TN_SHAPE(count + skipped), x);
    if (skipped)
        in = tn_op(s, "base.slice", TN_IN(in),
                   tn_attrs("start", TN_INTS(skipped), "stop", TN_INTS(count + skipped)));
    in = tn_op(s, "base.reshape", TN_IN(in), tn_attrs("shape", TN_INTS(rows, m->k)));
    tn_array *y = tn_op(s, "quant.quantized_matmul", TN_IN(in, matrix_array(s, m, is_odd)),
                        tn_attrs("format", matrix_format(m), "exact", m->exact));
    must(s, tn_read(s, y, got, (size_t)(rows * m->n) * sizeof(*got)));
    int may_round = !m->exact && (m->is_packed || count * m->n >= UNITS_FROM);
    int64_t step = rows > 200 ? 37 : 1;
    for (int64_t row = 0; row < rows; row += step)
        for (int64_t column = 0; column < m->n; column++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < m->k; i++) {
                double term = (double)x[skipped + row * m->k + i] *
                              (double)m->values[column * m->k + i];
                sum += term;
                size += fabs(term);
            }
            double error = fabs((double)got[row * m->n + column] - sum);
            double off = may_round ? rounding(x + skipped + row * m->k,
                                              m->values + column * m->k, m->k)
                                   : 0;
            cr_assert(le(dbl, error, off + 1e-6 * size + 1e-30),
                      "%s, %d rows: row %d, column %d is %g, expected %g", m->format->name,
                      (int)rows, (int)row, (int)column, (double)got[row * m->n + column],
                      sum);
        }
    free(x);
    free(got);
    tn_scope_close(s);
}

// One row, some at a time, tiles: the first format with all, the others with one; more
// terms than invocations take at once; rows and blocks that begin where they are read in
// pieces.
Test(quant_device, products_are_those_of_the_values)
{
    static const int64_t rows[] = {1, 6, 18};
    for (size_t f = 0; f < FORMATS; f++) {
        int64_t block = tn_quant_find(formats[f].name)->block;
        struct matrix m = matrix_make(formats[f].name, 37, block == 256 ? 1280 : 1120);
        for (size_t i = 0; i < 3; i++)
            if (f == 0 || f % 3 == i)
                check_product(&m, rows[i], 0, 0);
        matrix_free(&m);
    }
    static const char *const odd[] = {"q5_1", "q3_k", "mxfp4"};
    for (size_t i = 0; i < 3; i++) {
        struct matrix m = matrix_make(odd[i], 21, i == 1 ? 256 : 96);
        check_product(&m, 1, 3, 1);
        matrix_free(&m);
    }
    struct matrix large = matrix_make("q5_0", 730, 64);
    large.exact = 1;
    check_product(&large, 190, 0, 0); // larger tiles
    matrix_free(&large);
    large = matrix_make("q8_0", 730, 32);
    large.exact = 1;
    check_product(&large, 190, 1, 0);
    matrix_free(&large);
    large = matrix_make("q4_0", 7, 4128); // all invocations share a column
    check_product(&large, 1, 0, 0);
    matrix_free(&large);
}

// The bytes of a value in a dtype.
static size_t stored(const char *dtype, float value, uint8_t out[8])
{
    uint16_t half =
        strcmp(dtype, "f16") == 0 ? tn_f16_of_f32(value) : tn_bf16_of_f32(value);
    double wide = (double)value;
    if (strcmp(dtype, "f32") == 0) {
        memcpy(out, &value, sizeof(value));
        return sizeof(value);
    }
    if (strcmp(dtype, "f64") == 0) {
        memcpy(out, &wide, sizeof(wide));
        return sizeof(wide);
    }
    memcpy(out, &half, sizeof(half));
    return sizeof(half);
}

static void check_values(const struct matrix *m, const char *dtype, int is_odd)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = m->n * m->k;
    uint8_t *got = malloc((size_t)count * 8), want[8];
    size_t size = stored(dtype, 0, want);
    tn_array *values = tn_op(s, "quant.dequantize", TN_IN(matrix_array(s, m, is_odd)),
                             tn_attrs("format", matrix_format(m), "dtype", dtype));
    must(s, tn_read(s, values, got, (size_t)count * size));
    for (int64_t i = 0; i < count; i++) {
        stored(dtype, m->values[i], want);
        cr_assert(eq(int, memcmp(got + (size_t)i * size, want, size), 0),
                  "%s as %s, element %d", m->format->name, dtype, (int)i);
    }
    free(got);
    tn_scope_close(s);
}

// Packed rows: of few rows of x those that are all packed, others as all products; x in
// floats and in bytes; x from memory in fours, or by element; blocks that a strand has and
// has not. The first formats with all, the others with some: they take long to compile.
Test(quant_device, packed_products_are_those_of_the_values)
{
    for (size_t f = 0; f < FORMATS; f++) {
        if (is_for_the_other(f) || !packing_of(runtime, formats[f].name))
            continue;
        int64_t block = tn_quant_find(formats[f].name)->block;
        struct matrix m = matrix_make(formats[f].name, 48, (block == 32 ? 19 : 3) * block);
        m.is_packed = 1;
        check_product(&m, 1, f % 2 ? 3 : 0, 0);
        m.exact = 1;
        check_product(&m, 1, f % 2 ? 0 : 3, 0);
        if (f == 0 || f == 7) {
            check_product(&m, 5, 0, 0);
            m.exact = 0;
            check_product(&m, 5, 3, 0);
        }
        matrix_free(&m);
        m = matrix_make(formats[f].name, 37, 2 * block);
        m.is_packed = m.exact = 1;
        if (f < 2)
            check_product(&m, f == 0 ? 1 : 18, 0, 0);
        check_values(&m, "f32", 0);
        matrix_free(&m);
    }
    struct matrix wide =
        matrix_make("q4_0", 64 * 80, 96); // several groups of rows a workgroup
    wide.is_packed = 1;
    check_product(&wide, 1, 0, 0);
    matrix_free(&wide);
}

// Work for matrix units, where a device has them: tiles of 64, also with parts of the
// terms, and of 128, parts of them at the ends, from any element on. Software drivers have
// none, and get one format: with TEST_LARGE all of them, plain and packed.
Test(quant_device, products_on_matrix_units_are_those_of_the_values)
{
    size_t count = getenv("TEST_LARGE") ? FORMATS : 1;
    for (size_t f = 0; f < count; f++) {
        int64_t block = tn_quant_find(formats[f].name)->block;
        for (int is_packed = 0; is_packed < 2; is_packed++) {
            if (is_packed && !packing_of(runtime, formats[f].name))
                continue;
            struct matrix m = matrix_make(formats[f].name, 733, block == 256 ? 768 : 96);
            m.is_packed = is_packed;
            check_product(&m, 67, f % 2 ? 3 : 0, !is_packed && f % 3 == 0);
            if (count > 1)
                check_product(&m, f % 2 ? 61 : 63, 0, !is_packed && f % 3 == 1);
            matrix_free(&m);
            if (count == 1)
                continue;
            m = matrix_make(formats[f].name, 330, block == 256 ? 1280 : 1312);
            m.is_packed = is_packed; // workgroups share the terms of a tile
            check_product(&m, 32, f % 2 ? 4 : 0, !is_packed && f % 3 == 0);
            matrix_free(&m);
            m = matrix_make(formats[f].name, 2000, block == 256 ? 256 : 160);
            m.is_packed = is_packed;
            check_product(&m, 1030, f % 2 ? 0 : 5, 0);
            matrix_free(&m);
            m = matrix_make(formats[f].name, 1008, block == 256 ? 1280 : 1056);
            m.is_packed = is_packed;
            for (int64_t few = 2; few < 9; few++)
                check_product(&m, few, few % 3, 0);
            matrix_free(&m);
        }
    }
}

// A block whose weights are beyond f16, and rows of x far from 1: what units compute in.
Test(quant_device, products_keep_the_range_of_floats)
{
    static const char *const names[] = {"q4_0", "q4_1", "q6_k"};
    static const float sizes[] = {1e-20f, 3e8f};
    for (size_t f = 0; f < 3; f++) {
        int64_t block = tn_quant_find(names[f])->block, scale = f == 2 ? 208 : 0;
        struct matrix m = matrix_make(names[f], 330, block == 256 ? 768 : 416);
        uint8_t *at = m.bytes + 1 + 70 * m.row_bytes;
        at[scale + 1] = 0x78; // 2^15 and more
        m.format->decode(at, m.values + 70 * m.k);
        m.is_packed = f != 1;
        x_size = 1;
        check_product(&m, 33, 0, 0);
        for (size_t i = 0; i < 2; i++) {
            x_size = sizes[i];
            check_product(&m, 33, 0, 0);
        }
        x_size = 1;
        matrix_free(&m);
    }
}

// What is no number stays none, also where x is rounded.
Test(quant_device, rounding_keeps_what_is_no_number)
{
    static const float strange[] = {NAN, INFINITY, 0, 1e-40f};
    for (size_t i = 0; i < 4; i++) {
        tn_scope *s = tn_scope_open(runtime);
        struct matrix m = matrix_make("q4_0", 16, 64);
        float x[64] = {0}, got[16];
        m.is_packed = 1;
        x[40] = strange[i];
        must(s, tn_read(s,
                        tn_op(s, "quant.quantized_matmul",
                              TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(1, 64), x),
                                    matrix_array(s, &m, 0)),
                              tn_attrs("format", matrix_format(&m))),
                        got, sizeof(got)));
        for (int64_t n = 0; n < 16; n++)
            cr_assert(i < 2 ? !isfinite(got[n]) : fabsf(got[n]) < 1e-38f, "%g: %g",
                      (double)strange[i], (double)got[n]);
        matrix_free(&m);
        tn_scope_close(s);
    }
}

// One launch of few rows; with more of them, what is before is one of its own. The first
// format with all, the others with some.
Test(quant_device, programs_are_part_of_products)
{
    static const int64_t rows[] = {1, 5, 18};
    for (size_t f = 0; f < 5; f++) {
        tn_scope *s = tn_scope_open(runtime);
        struct matrix m = matrix_make(formats[f].name, 37, 96);
        struct beside b = {
            formats[f].name, tn_keep(s, matrix_array(s, &m, 0)), 0, m.n, m.k, 0};
        for (size_t i = 0; i < 3; i++) {
            b.rows = rows[i];
            b.steps = rows[i] > 8 ? 2 : 1;
            if (f == 0 || f % 3 == i)
                check_beside(&b);
        }
        tn_release(b.w);
        matrix_free(&m);
        tn_scope_close(s);
    }
}

// The product of normalised rows, with what else the case asks for, and the steps of it.
struct normed {
    int64_t rows, exact, axis;
    bool is_kept;   // the norm is read twice
    uint64_t steps; // of packed rows that the device multiplies by bytes
};

static void check_normed(const struct normed *c, const struct matrix *m, bool has_kernel)
{
    enum { MOST = 12 * 1280 };
    static float x[MOST], g[MOST], got[2 * 4096], h[MOST];
    tn_scope *s = tn_scope_open(runtime);
    for (int64_t i = 0; i < c->rows * m->k; i++)
        x[i] = (float)next_bits() / 8388608 - 1;
    for (int64_t i = 0; i < m->k; i++)
        g[i] = (float)next_bits() / 8388608 + 0.5f;
    tn_array *in = tn_from_data(s, TN_F32, TN_SHAPE(c->rows, m->k), x);
    tn_array *w = tn_keep(s, matrix_array(s, m, 0));
    tn_array *norm =
        tn_op(s, "nn.rms_norm", TN_IN(in, tn_from_data(s, TN_F32, TN_SHAPE(m->k), g)),
              tn_attrs("eps", 0.25, "axis", c->axis));
    tn_array *y = tn_op(s, "quant.quantized_matmul", TN_IN(norm, w),
                        tn_attrs("format", matrix_format(m), "exact", c->exact));
    must(s, tn_eval(s, w));
    uint64_t before = stats_of(runtime).steps;
    tn_array *outputs[] = {y, norm};
    must(s, tn_eval_n(s, outputs, 1 + c->is_kept));
    cr_assert(eq(u64, stats_of(runtime).steps - before, has_kernel ? c->steps : 2),
              "%s, %d rows", m->format->name, (int)c->rows);
    must(s, tn_read(s, y, got, (size_t)(c->rows * m->n) * sizeof(*got)));
    for (int64_t row = 0; row < c->rows; row++) {
        double mean = 0;
        for (int64_t i = 0; i < m->k; i++)
            mean += (double)x[row * m->k + i] * (double)x[row * m->k + i] / (double)m->k;
        for (int64_t i = 0; i < m->k; i++)
            h[i] = (float)((double)x[row * m->k + i] / sqrt(mean + 0.25) * (double)g[i]);
        for (int64_t column = 0; column < m->n; column++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < m->k; i++) {
                double term = (double)h[i] * (double)m->values[column * m->k + i];
                sum += term;
                size += fabs(term);
            }
            double off = c->exact ? 0 : rounding(h, m->values + column * m->k, m->k);
            cr_assert(
                le(dbl, fabs((double)got[row * m->n + column] - sum), off + 2e-6 * size),
                "%s, %d rows: row %d, column %d is %g, expected %g", m->format->name,
                (int)c->rows, (int)row, (int)column, (double)got[row * m->n + column], sum);
        }
    }
    tn_release(w);
    tn_scope_close(s);
}

// One launch, of packed rows whose formats have such a kernel, of few rows.
Test(quant_device, norms_are_part_of_products)
{
    static const char *const kernels[] = {"q4_0", "q4_1", "q8_0", "q4_k", "q5_k", "q6_k"};
    static const struct normed cases[] = {
        {1, 0, -1, false, 1},  {3, 0, 1, false, 1},  {8, 0, -1, false, 1},
        {12, 0, -1, false, 2}, {2, 1, -1, false, 2}, {1, 0, -1, true, 2},
    };
    for (size_t f = 0; f < 6; f++) {
        if (is_for_the_other(f))
            continue;
        int64_t block = tn_quant_find(kernels[f])->block;
        struct matrix m = matrix_make(kernels[f], 80, block == 256 ? 1280 : 1120);
        m.is_packed = 1;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            if (f == 0 || i % 3 == f % 3)
                check_normed(&cases[i], &m, true);
        matrix_free(&m);
    }
    struct matrix plain = matrix_make("q5_0", 37, 96);
    check_normed(&cases[0], &plain, false);
    matrix_free(&plain);
    // Rows that are longer than what is in shared memory at once.
    struct matrix m = matrix_make("q4_0", 32, 12320);
    m.is_packed = 1;
    check_normed(&cases[0], &m, true);
    matrix_free(&m);
}

// Large products take no norm in where matrix units are faster, which differs by format,
// nor where workgroups together would normalise too much of several rows.
Test(quant_device, norms_are_apart_where_that_is_faster)
{
    static const struct {
        const char *format;
        int64_t columns, terms;
        struct normed normed;
    } cases[] = {{"q4_0", 1008, 1056, {2, 0, -1, false, 1}},
                 {"q4_0", 1008, 1056, {4, 0, -1, false, 2}},
                 {"q8_0", 1008, 1056, {4, 0, -1, false, 1}},
                 {"q8_0", 1008, 1056, {5, 0, -1, false, 2}},
                 {"q8_0", 4096, 2080, {2, 0, -1, false, 2}},
                 {"q8_0", 4096, 2080, {1, 0, -1, false, 1}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (is_for_the_other(i > 1))
            continue;
        struct matrix m = matrix_make(cases[i].format, cases[i].columns, cases[i].terms);
        m.is_packed = 1;
        check_normed(&cases[i].normed, &m, true);
        matrix_free(&m);
    }
}

// So long rows that workgroups do not each round them: what is before them is in the launch
// that does.
Test(quant_device, long_rows_are_rounded_once)
{
    struct matrix m = matrix_make("q4_0", 2048, 8320);
    m.is_packed = 1;
    check_product(&m, 1, 0, 0);
    check_product(&m, 2, 3, 0);
    tn_scope *s = tn_scope_open(runtime);
    struct beside b = {
        matrix_format(&m), tn_keep(s, matrix_array(s, &m, 0)), 1, m.n, m.k, 1};
    check_beside(&b);
    tn_release(b.w);
    tn_scope_close(s);
    matrix_free(&m);
}

// To the bit, in each dtype.
Test(quant_device, values_are_those_of_the_blocks)
{
    static const char *const dtypes[] = {"f16", "bf16", "f64"};
    for (size_t f = 0; f < FORMATS; f++) {
        int64_t block = tn_quant_find(formats[f].name)->block;
        struct matrix m = matrix_make(formats[f].name, 13, 3 * block);
        check_values(&m, "f32", (int)(f % 2));
        check_values(&m, dtypes[f % 3], (int)((f + 1) % 2));
        matrix_free(&m);
    }
}

static const struct {
    tn_dtype dtype;
    uint64_t bits[4]; // little-endian, as many bytes as the dtype has
    int64_t rows[4];
} lookups[] = {
    {TN_I64, {0, UINT64_MAX, UINT64_C(1) << 32, UINT64_MAX << 32}, {0, 12, 12, 0}},
    {TN_I8, {5, 0xff, 127, 0x80}, {5, 12, 12, 0}},
    {TN_U8, {5, 0xff, 12, 11}, {5, 12, 12, 11}},
    {TN_U64, {5, UINT64_MAX, 12, UINT64_C(5) << 32}, {5, 12, 12, 12}},
    {TN_I32, {5, UINT32_MAX - 1, 13, 0x80000000}, {5, 11, 12, 0}},
};

// Ids of all sizes; negative ones count from the end, and beyond the ends is the nearest.
Test(quant_device, rows_are_those_that_ids_mean)
{
    for (size_t f = 0; f < FORMATS; f++) {
        size_t l = f % (sizeof(lookups) / sizeof(lookups[0]));
        tn_scope *s = tn_scope_open(runtime);
        int64_t k = 2 * tn_quant_find(formats[f].name)->block;
        struct matrix m = matrix_make(formats[f].name, 13, k);
        uint8_t ids[32];
        float got[4 * 2 * TN_QUANT_MAX_BLOCK];
        size_t size = (size_t)tn_dtype_bytes(lookups[l].dtype);
        for (size_t i = 0; i < 4; i++)
            memcpy(ids + i * size, &lookups[l].bits[i], size);
        tn_array *at = tn_from_data(s, lookups[l].dtype, TN_SHAPE(2, 2), ids);
        must(s, tn_read(s,
                        tn_op(s, "quant.quantized_take", TN_IN(matrix_array(s, &m, 0), at),
                              tn_attrs("format", formats[f].name)),
                        got, (size_t)(4 * k) * sizeof(*got)));
        for (int64_t i = 0; i < 4 * k; i++)
            cr_assert(eq(flt, got[i], m.values[lookups[l].rows[i / k] * k + i % k]),
                      "%s, %s, row %d", formats[f].name, tn_dtype_name(lookups[l].dtype),
                      (int)(i / k));
        matrix_free(&m);
        tn_scope_close(s);
    }
}

// A format that no kernel has is told, not computed wrongly.
Test(quant_device, other_formats_are_refused)
{
    static const uint8_t bytes[17] = {0};
    tn_scope *s = tn_scope_open(runtime);
    float out[32];
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(1, 17), bytes);
    tn_array *y = tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", "mxfp5"));
    cr_assert(ne(int, tn_read(s, y, out, sizeof(out)), TN_OK));
    const char *said = tn_scope_error(s);
    cr_assert(ne(ptr, (void *)said, NULL));
    cr_assert(ne(ptr, strstr(said, "mxfp5"), NULL), "%s", said);
    tn_scope_close(s);
}
