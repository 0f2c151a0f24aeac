// SPDX-License-Identifier: MIT
// Products of matrices on a Vulkan backend against the reference. Part of
// vulkan_kernels.c's program.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/reference.h>
#include "vulkan_check.h"

static void begin(void)
{
    vb_as_gpu = true; // the kernels of GPUs
    begin_checks();
}

TestSuite(vulkan_products_of_matrices, .init = begin, .fini = end_checks);

FIRST_DTYPE_TEST(vulkan_products_of_matrices, products_agree_with_the_reference, dtype,
                 TN_I8)
{
    static const tn_matmul_attrs none = {0};
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},    {16, 16, 16},
                                       {17, 33, 65}, {64, 64, 64}, {100, 30, 130},
                                       {1, 300, 40}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        for (int flip = 0; flip < 4; flip++) {
            tn_layout a =
                flip & 1 ? transposed(LAYOUT(dtype, k, m), 0, 1) : LAYOUT(dtype, m, k);
            tn_layout b =
                flip & 2 ? transposed(LAYOUT(dtype, n, k), 0, 1) : LAYOUT(dtype, k, n);
            add_check(&(struct application){
                "base.matmul/1", &none, 2, {a, b, LAYOUT(dtype, m, n)}, 1e-5, 5});
        }
    }
    add_check(&(struct application){
        "base.matmul/1",
        &none,
        2,
        {LAYOUT(dtype, 3, 1, 6, 8), LAYOUT(dtype, 4, 8, 5), LAYOUT(dtype, 3, 4, 6, 5)},
        1e-5,
        5});
    add_check(
        &(struct application){"base.matmul/1",
                              &none,
                              2,
                              {LAYOUT(dtype, 9), LAYOUT(dtype, 9, 4), LAYOUT(dtype, 4)},
                              1e-5,
                              5});
    run_checks();
}

Test(vulkan_products_of_matrices, products_large_enough_for_the_larger_tiles)
{
    static const tn_matmul_attrs none = {0};
    add_check(&(struct application){
        "base.matmul/1",
        &none,
        2,
        {LAYOUT(TN_F32, 400, 40), LAYOUT(TN_F32, 40, 600), LAYOUT(TN_F32, 400, 600)},
        1e-5,
        5});
    for (tn_dtype t = TN_F16; t <= TN_BF16; t++) { // with matrix units in parts
        if (getenv("TEST_LARGE"))                  // the last one shorter
            add_check(&(struct application){
                "base.matmul/1",
                &none,
                2,
                {LAYOUT(t, 144, 8200), LAYOUT(t, 8200, 528), LAYOUT(t, 144, 528)},
                1e-5,
                5});
        for (int64_t k = 1024; k <= 2048; k += 1024) {
            tn_layout a = LAYOUT(t, 80, k), b = LAYOUT(t, 96, k), c = LAYOUT(t, 80, 96);
            b = transposed(b, 0, 1);
            add_check(&(struct application){"base.matmul/1", &none, 2, {a, b, c}, 1e-5, 5});
        }
    }
    run_checks();
}

// Extents that are multiples of four, not of a tile; as many tiles as the larger kernels
// want, and so few that terms are in 2 and in 4 parts. Few rows, which are in strips of
// columns: terms in several parts.
Test(vulkan_products_of_matrices, products_read_four_elements_at_a_time)
{
    static const tn_matmul_attrs none = {0};
    static const struct {
        int64_t batches, m, k, n;
    } sizes[] = {{32, 132, 20, 132}, {16, 68, 20, 500},  {13, 36, 36, 260},
                 {1, 100, 68, 260},  {1, 100, 256, 132}, {1, 97, 512, 160},
                 {1, 1, 2100, 9},    {1, 3, 600, 21},    {1, 4, 1100, 40},
                 {1, 132, 8200, 516}}; // parts, the last one shorter: for GPUs
    size_t count = sizeof(sizes) / sizeof(sizes[0]) - (getenv("TEST_LARGE") ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        int64_t many = sizes[i].batches, m = sizes[i].m, k = sizes[i].k, n = sizes[i].n;
        for (int flip = 0; flip < 4; flip++) {
            tn_layout a = flip & 1 ? transposed(LAYOUT(TN_F32, many, k, m), 1, 2)
                                   : LAYOUT(TN_F32, many, m, k);
            tn_layout b =
                flip & 2 ? transposed(LAYOUT(TN_F32, n, k), 0, 1) : LAYOUT(TN_F32, k, n);
            add_check(&(struct application){
                "base.matmul/1", &none, 2, {a, b, LAYOUT(TN_F32, many, m, n)}, 1e-5, 5});
        }
    }
    run_checks();
}

// On matrix units, of subgroups or of workgroups (TENON_VULKAN_MATRICES): extents that are
// multiples of eight and others, tiles that reach over the edges, operands that lie
// anywhere. The sums have no rounding, so that the results' is that of the reference.
Test(vulkan_products_of_matrices, products_of_halves_on_matrix_units)
{
    static const tn_matmul_attrs none = {0};
    static const struct {
        int64_t batches, m, k, n, offset;
        int flips; // of the operands; the large ones are slow to check
    } sizes[] = {{2, 136, 264, 200, 8, 1}, {1, 129, 513, 131, 3, 1},
                 {3, 67, 641, 101, 0, 1},  {1, 520, 41, 520, 0, 1},
                 {1, 520, 40, 1032, 0, 1}, {1, 65, 33, 16257, 0, 3},
                 {1, 80, 32, 16272, 0, 3}, {2, 65, 641, 104, 8, 1}};
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16};
    if (!strstr(bench.info.features, "matrices"))
        cr_skip("the device has no matrix units");
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t many = sizes[i / 2].batches, m = sizes[i / 2].m, k = sizes[i / 2].k,
                n = sizes[i / 2].n;
        tn_dtype dtype = dtypes[i % 2];
        for (int flip = 0; flip < 4; flip += sizes[i / 2].flips) {
            tn_layout a = flip & 1 ? transposed(LAYOUT(dtype, many, k, m), 1, 2)
                                   : LAYOUT(dtype, many, m, k);
            tn_layout b =
                flip & 2 ? transposed(LAYOUT(dtype, n, k), 0, 1) : LAYOUT(dtype, k, n);
            a.offset = b.offset = sizes[i / 2].offset;
            add_check(&(struct application){.primitive = "base.matmul/1",
                                            .attrs = &none,
                                            .num_inputs = 2,
                                            .operands = {a, b, LAYOUT(dtype, many, m, n)},
                                            .limit = 5,
                                            .exact = true});
        }
        run_checks();
    }
}

// A few rows, or columns, and a large operand that is read by lines: terms and columns that
// fill no round, no slice and no tile; what has few rows lies in any way. The sums have no
// rounding. Without TEST_LARGE half of the sizes are of f16 and the other half of bf16; a
// poor device (tests/fixtures) gets the first way to lie alone.
Test(vulkan_products_of_matrices, products_of_few_rows_or_columns)
{
    static const tn_matmul_attrs none = {0};
    static const struct {
        int64_t few, k, many, offset; // of the large operand
        int first, step; // ways to lie; a software driver is slow with each kernel
    } sizes[] = {
        {1, 1032, 520, 0, 0, 3},  {1, 4104, 136, 8, 1, 4},   {2, 520, 1096, 0, 0, 5},
        {3, 1288, 408, 16, 0, 3}, {5, 2056, 1032, 8, 2, 5},  {8, 4104, 520, 0, 1, 5},
        {9, 1032, 2056, 8, 3, 4}, {16, 2056, 1032, 0, 1, 5}, {17, 1032, 520, 0, 1, 5},
        {1, 1033, 1031, 3, 4, 3}, {2, 1033, 1031, 1, 5, 5},  {6, 1033, 1031, 3, 0, 5},
        {14, 1033, 1031, 1, 1, 5}};
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16, TN_F32};
    bool is_large = getenv("TEST_LARGE") != NULL,
         is_poor = getenv("TEST_VULKAN_POOR") != NULL;
    for (size_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        tn_dtype t = dtypes[i % 3];
        int64_t m = sizes[i / 3].few, k = sizes[i / 3].k, n = sizes[i / 3].many;
        if (!is_large && t != TN_F32 && i / 3 % 2 == i % 3)
            continue;
        for (int lie = sizes[i / 3].first; lie < 8;
             lie += is_poor ? 8 : sizes[i / 3].step) {
            int64_t terms = lie & 1 ? k : k - 3; // along the columns: any number
            bool is_left = lie & 4;
            tn_layout x =
                lie & 2 ? transposed(LAYOUT(t, terms, m), 0, 1) : LAYOUT(t, m, terms);
            tn_layout w =
                lie & 1 ? transposed(LAYOUT(t, n, terms), 0, 1) : LAYOUT(t, terms, n);
            x.offset = lie & 2 ? 3 : sizes[i / 3].offset;
            w.offset = sizes[i / 3].offset;
            add_check(&(struct application){
                .primitive = "base.matmul/1",
                .attrs = &none,
                .num_inputs = 2,
                .operands = {is_left ? transposed(w, 0, 1) : x,
                             is_left ? transposed(x, 0, 1) : w,
                             is_left ? LAYOUT(t, n, m) : LAYOUT(t, m, n)},
                .limit = 2,
                .exact = true});
        }
        run_checks();
    }
}

// Memory between and around the rows of an operand is NaN, its elements are small integers,
// and infinities stand in the corners.
static void surround_with_nan(const tn_step *step, uint32_t input)
{
    const tn_value *value = tn_step_input(step, input);
    const tn_tensor tensor = {bench.memory[value->slot], value->layout};
    const int64_t *extent = value->layout.extent;
    memset(tensor.data, 0xff, (size_t)span(&value->layout)); // a NaN of each dtype
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t k = 0; k < extent[1]; k++) {
            bool is_corner =
                (i == 0 || i == extent[0] - 1) && (k == 0 || k == extent[1] - 1);
            double x = input == 1 && is_corner ? INFINITY : (double)random_between(-2, 2);
            tn_set_complex(&tensor, tn_offset_at(&value->layout, (int64_t[]){i, k}),
                           (tn_complex128){x, 0});
        }
}

Test(vulkan_products_of_matrices, products_of_few_rows_read_nothing_beside_their_operands)
{
    static const tn_matmul_attrs none = {0};
    static const struct {
        int64_t m, k, n;
    } sizes[] = {
        {1, 1032, 520}, {6, 2056, 1032}, {17, 1032, 520}, {520, 1032, 2}, {1032, 2056, 13}};
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16, TN_F32};
    for (size_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        tn_dtype t = dtypes[i % 3];
        int64_t m = sizes[i / 3].m, k = sizes[i / 3].k, n = sizes[i / 3].n;
        for (int flip = 0; flip < 2; flip++) {
            tn_layout a = LAYOUT(t, m, k + 8), b = LAYOUT(t, k, n + 8);
            if (flip) {
                a = transposed(LAYOUT(t, k, m + 8), 0, 1);
                b = transposed(LAYOUT(t, n, k + 8), 0, 1);
            }
            a.extent[0] = m;
            a.extent[1] = b.extent[0] = k;
            b.extent[1] = n;
            a.offset = b.offset = 8;
            const tn_step *step = add_check(&(struct application){
                "base.matmul/1", &none, 2, {a, b, LAYOUT(t, m, n)}, .exact = true});
            surround_with_nan(step, 0);
            surround_with_nan(step, 1);
        }
    }
    run_checks();
}
