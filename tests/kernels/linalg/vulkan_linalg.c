// SPDX-License-Identifier: MIT
// linalg.cholesky and linalg.solve_triangular of a Vulkan backend against their references:
// sizes around the blocks and tiles, layouts, batches; and matrices that have no result.
// TENON_TEST_PLUGIN and TENON_TEST_LINALG name the plugins.
#include "check.h"

#include <math.h>
#include <tenon/ops/linalg_attrs.h>
#include <tenon/ops/reference.h>
#include "../vulkan_check.h"

TestSuite(vulkan_linalg, .init = begin_checks, .fini = end_checks);

// Makes matrices of random numbers triangular ones that have a factor and are far from
// singular: the diagonal is `diagonal`, other elements become smaller, and where nothing is
// read there is NaN.
static void make_triangles(const tn_step *step, bool lower, double diagonal)
{
    const tn_value *a = tn_step_input(step, 0);
    const tn_layout *layout = &a->layout;
    tn_tensor all = {bench.memory[a->slot], *layout};
    int64_t index[TN_MAX_RANK] = {0}, n = layout->extent[layout->rank - 1];
    if (tn_layout_count(layout) == 0)
        return;
    do {
        int64_t i = index[layout->rank - 2], j = index[layout->rank - 1];
        int64_t at = tn_offset_at(layout, index);
        bool is_read = lower ? i > j : i < j;
        double value = is_read ? tn_get_f64(&all, at) / (double)n : NAN;
        if (i == j)
            value = diagonal;
        tn_set_f64(&all, at, value);
    } while (tn_index_next(layout->rank, layout->extent, index));
}

// Contiguous; columns that follow each other, behind a gap; or one matrix for the batch.
static tn_layout laid_out(tn_layout a, int how)
{
    if (how == 1) {
        tn_layout rows = transposed(a, a.rank - 2, a.rank - 1);
        rows = row_major(a.dtype, a.rank, rows.extent);
        a = transposed(rows, a.rank - 2, a.rank - 1);
        a.offset = 3;
    }
    if (how == 2 && a.rank == 3)
        a.stride[0] = 0;
    return a;
}

static const int64_t sizes[] = {1, 3, 32, 33, 65, 97, 161};

static void factor(tn_dtype dtype, int64_t batch, int64_t n)
{
    static const tn_cholesky_attrs attrs[] = {{0}, {1}};
    for (int how = 0; how < 4; how++) {
        tn_layout plain = LAYOUT(dtype, batch, n, n);
        struct application a = {"linalg.cholesky/1",
                                &attrs[how & 1],
                                1,
                                {laid_out(plain, how / 2), plain},
                                2e-6};
        make_triangles(add_check(&a), how % 2 == 0, 4);
    }
}

static void solve(tn_dtype dtype, tn_layout a, tn_layout b, tn_layout out)
{
    static tn_solve_triangular_attrs attrs[12];
    for (int how = 0; how < 12; how++) {
        attrs[how] = (tn_solve_triangular_attrs){how % 2, how / 4, how / 2 % 2};
        struct application s = {"linalg.solve_triangular/1",
                                &attrs[how],
                                2,
                                {laid_out(a, how % 3), laid_out(b, how % 3 == 1), out},
                                2e-6};
        s.operands[1].dtype = dtype;
        // A diagonal of ones is not read.
        make_triangles(add_check(&s), how % 2, attrs[how].unit_diagonal ? NAN : 2);
    }
}

static void check_dtype(tn_dtype dtype)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t n = sizes[i], k = 1 + 67 * (int64_t)(i % 3);
        factor(dtype, i % 2 ? 3 : 1, n);
        solve(dtype, LAYOUT(dtype, 2, n, n), LAYOUT(dtype, 2, n, k),
              LAYOUT(dtype, 2, n, k));
        run_checks();
    }
    factor(dtype, 300, 5);
    solve(dtype, LAYOUT(dtype, 2, 1, 33, 33), LAYOUT(dtype, 3, 33, 130),
          LAYOUT(dtype, 2, 3, 33, 130));
    solve(dtype, LAYOUT(dtype, 3, 40, 40), LAYOUT(dtype, 40, 2), LAYOUT(dtype, 3, 40, 2));
    run_checks();
}

Test(vulkan_linalg, f32_agrees_with_the_reference)
{
    check_dtype(TN_F32);
}

Test(vulkan_linalg, f64_agrees_with_the_reference)
{
    if (!(bench.info.dtypes >> TN_F64 & 1))
        cr_skip("the device has no f64");
    check_dtype(TN_F64);
}

// A vector is b's only axis.
Test(vulkan_linalg, vectors_are_solved)
{
    static const tn_solve_triangular_attrs attrs[] = {{0, 0, 0}, {1, 0, 1}, {1, 1, 0}};
    for (int i = 0; i < 3; i++) {
        struct application s = {
            "linalg.solve_triangular/1",
            &attrs[i],
            2,
            {LAYOUT(TN_F32, 2, 70, 70), LAYOUT(TN_F32, 70), LAYOUT(TN_F32, 2, 70)},
            2e-6};
        make_triangles(add_check(&s), attrs[i].lower, 2);
    }
    run_checks();
}

// --- matrices without a result ----------------------------------------------------------

#define SIZE 40 // rows, in two blocks

// Factors the identity with `pivot` at [row, row] and a column of `below` under it. The
// factor's columns from there on depend on it, those before do not.
static void check_pivot(int64_t row, float pivot, float below)
{
    static const tn_cholesky_attrs lower = {0};
    tn_layout layout = LAYOUT(TN_F32, 2, SIZE, SIZE);
    tn_step *step = vb_step(&bench, 1, 1);
    uint32_t in = vb_slot(&bench, span(&layout)), out = vb_slot(&bench, span(&layout));
    float *a = (float *)(void *)bench.memory[in], *l = (float *)(void *)bench.memory[out];
    for (int64_t i = 0; i < 2 * SIZE * SIZE; i++)
        a[i] = i / SIZE % SIZE == i % SIZE ? 4 : 0;
    for (int64_t i = row + 1; i < SIZE; i++)
        a[i * SIZE + row] = below;
    a[row * SIZE + row] = pivot;
    vb_set(step, 0, in, &layout);
    vb_set(step, 1, out, &layout);
    step->attrs = &lower;
    step->label = "linalg.cholesky/1";
    cr_assert(vb_use_kernel(&bench, step, step->label));
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (int64_t m = 0; m < 2; m++)
        for (int64_t i = 0; i < SIZE; i++)
            for (int64_t j = 0; j < SIZE; j++) {
                float got = l[(m * SIZE + i) * SIZE + j], plain = i == j ? 2 : 0;
                bool lost = m == 0 && j >= row && i >= j;
                if (lost ? !isnan(got) : got != plain)
                    cr_fatal("pivot %g of row %d: [%d, %d, %d] is %g, expected %g", pivot,
                             (int)row, (int)m, (int)i, (int)j, got, lost ? NAN : plain);
            }
    vb_clear(&bench);
}

Test(vulkan_linalg, a_matrix_that_is_not_positive_definite_gives_nan)
{
    static const float pivots[] = {0, -1, NAN, -INFINITY};
    for (int i = 0; i < 4; i++) {
        check_pivot(0, pivots[i], 1);
        check_pivot(20, pivots[i], 1);
        check_pivot(35, pivots[i], 1);
    }
}
