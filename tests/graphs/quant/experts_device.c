// SPDX-License-Identifier: MIT
// Products whose rows choose their matrices, on the backend that TENON_TEST_BACKEND names.
#include <math.h>
#include "quant_matrix.h"

TestSuite(experts_device, .init = open_device, .fini = teardown);

enum { EXPERTS = 3, COLUMNS = 37 };

static struct matrix experts_make(const char *format, int64_t k)
{
    return matrix_make(format, EXPERTS * COLUMNS, k);
}

// With rows that choices share and others, numbers from the end and beyond it, and blocks
// from an odd byte on.
static void check_experts(struct matrix m, int64_t rows, int is_shared)
{
    enum { USED = 2, CHOICES = 10 };
    static const int32_t choices[CHOICES] = {0, 2, -1, 1, 1, 1, 99, -99, 2, 0};
    static const int of[CHOICES] = {0, 2, 2, 1, 1, 1, 2, 0, 2, 0};
    const char *format = m.format ? m.format->name : tn_dtype_name(m.floats);
    int64_t own = is_shared ? 1 : USED, pairs = rows * USED, k = m.k;
    tn_scope *s = tn_scope_open(runtime);
    size_t bytes = (size_t)(pairs * COLUMNS) * sizeof(float);
    float *x = malloc((size_t)(rows * own * k) * sizeof(*x)), *got = malloc(bytes);
    int32_t *ids = malloc((size_t)pairs * sizeof(*ids));
    for (int64_t i = 0; i < rows * own * k; i++)
        x[i] = (float)next_bits() / 8388608 - 1;
    for (int64_t i = 0; i < pairs; i++)
        ids[i] = choices[i % CHOICES];
    tn_array *w = tn_op(s, "base.reshape", TN_IN(matrix_array(s, &m, !is_shared)),
                        tn_attrs("shape", TN_INTS(EXPERTS, COLUMNS, -1)));
    tn_array *y = tn_op(s, "quant.experts_matmul",
                        TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(rows, own, k), x), w,
                              tn_from_data(s, TN_I32, TN_SHAPE(rows, USED), ids)),
                        tn_attrs("format", m.format ? format : ""));
    must(s, tn_read(s, y, got, bytes));
    for (int64_t i = 0; i < pairs * COLUMNS; i++) {
        int64_t pair = i / COLUMNS, row = of[pair % CHOICES] * COLUMNS + i % COLUMNS;
        const float *from = x + (is_shared ? pair / USED : pair) * k;
        double want = 0, size = 0;
        for (int64_t j = 0; j < k; j++) {
            double term = (double)from[j] * (double)m.values[row * k + j];
            want += term;
            size += fabs(term);
        }
        if (!(fabs((double)got[i] - want) <= 1e-6 * size + 1e-30))
            cr_fatal("%s, %d rows: element %d is %g, expected %g", format, (int)rows,
                     (int)i, (double)got[i], want);
    }
    tn_scope_close(s);
    matrix_free(&m);
    free(x);
    free(got);
    free(ids);
}

// Pairs apart, and several of a matrix together; at last more than are looked through at a
// time.
Test(experts_device, rows_are_multiplied_by_what_they_chose)
{
    for (size_t f = 0; f < FORMATS; f++) {
        if (is_for_the_other(f))
            continue;
        check_experts(experts_make(formats[f].name, 1280), 2, 1);
        check_experts(experts_make(formats[f].name, 256), 5, 0);
    }
    check_experts(experts_make("q4_0", 1280), 5, 1);
    check_experts(experts_make("q8_0", 64), 600, 1);
    check_experts(experts_make("q4_1", 96), 2, 0);
    static const tn_dtype floats[] = {TN_F32, TN_F16, TN_BF16};
    for (size_t f = 0; f < 3; f++) {
        if (is_for_the_other(f))
            continue;
        check_experts(floats_make(floats[f], EXPERTS * COLUMNS, 1288), 2, 1);
        check_experts(floats_make(floats[f], EXPERTS * COLUMNS, 24), 40, 0);
    }
}
