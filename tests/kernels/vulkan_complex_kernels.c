// SPDX-License-Identifier: MIT
// Kernels of a Vulkan backend on complex numbers, and on what is only moved, against the
// references of the primitives.
#include "check.h"

#include <tenon/ops/base_attrs.h>
#include "vulkan_check.h"

TestSuite(vulkan_complex_kernels, .init = begin_checks, .fini = end_checks);

static const tn_dtype complex_dtypes[] = {TN_COMPLEX64, TN_COMPLEX128};

Test(vulkan_complex_kernels, reductions_agree_with_the_reference)
{
    static const char *const ids[] = {"base.sum/1", "base.mean/1", "base.prod/1"};
    static const tn_reduce_attrs all = {0}, last = {.axis = INTS(-1)},
                                 first = {.axis = INTS(0)}, middle = {.axis = INTS(1)};
    for (int i = 0; i < 6; i++) {
        tn_dtype t = complex_dtypes[i / 3];
        tn_layout one = row_major(t, 0, NULL), cube = LAYOUT(t, 5, 37, 9);
        tn_layout many = LAYOUT(t, i % 3 == 2 ? 90 : 100000); // in parts; products grow
        const struct application list[] = {
            {ids[i % 3], &all, 1, {many, one}, 2e-5, 0},
            {ids[i % 3], &last, 1, {cube, LAYOUT(t, 5, 37)}, 1e-5, 0},
            {ids[i % 3], &first, 1, {transposed(cube, 0, 1), LAYOUT(t, 5, 9)}, 1e-5, 0},
            {ids[i % 3], &middle, 1, {LAYOUT(t, 3, 0, 2), LAYOUT(t, 3, 2)}, 0, 0},
        };
        for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
            if (k != 3 || i % 3 != 1) // a mean of nothing is NaN
                add_check(&list[k]);
    }
    run_checks();
}

Test(vulkan_complex_kernels, products_of_matrices_agree_with_the_reference)
{
    static const tn_matmul_attrs none = {0};
    for (int i = 0; i < 2; i++) {
        tn_dtype t = complex_dtypes[i];
        const struct application list[] = {
            {"base.matmul/1",
             &none,
             2,
             {LAYOUT(t, 3, 5), LAYOUT(t, 5, 7), LAYOUT(t, 3, 7)},
             1e-5,
             0},
            {"base.matmul/1",
             &none,
             2,
             {transposed(LAYOUT(t, 33, 17), 0, 1), transposed(LAYOUT(t, 20, 33), 0, 1),
              LAYOUT(t, 17, 20)},
             1e-5,
             0},
            // Enough for the larger tiles; batches are broadcast.
            {"base.matmul/1",
             &none,
             2,
             {LAYOUT(t, 8, 70, 21), LAYOUT(t, 21, 80), LAYOUT(t, 8, 70, 80)},
             1e-5,
             0},
            {"base.matmul/1",
             &none,
             2,
             {LAYOUT(t, 9), LAYOUT(t, 9, 4), LAYOUT(t, 4)},
             1e-5,
             0},
        };
        for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
            add_check(&list[k]);
    }
    run_checks();
}

Test(vulkan_complex_kernels, scatters_agree_with_the_reference)
{
    static const tn_take_attrs first = {.axis = 0};
    for (int i = 0; i < 2; i++) {
        tn_dtype t = complex_dtypes[i];
        const struct application list[] = {
            // searched; sorted, with rows of few updates and of many
            {"base.scatter_add/1",
             &first,
             3,
             {LAYOUT(t, 8, 3), LAYOUT(TN_I32, 20), LAYOUT(t, 20, 3), LAYOUT(t, 8, 3)},
             1e-5,
             11},
            {"base.scatter_add/1",
             &first,
             3,
             {LAYOUT(t, 300, 5), LAYOUT(TN_I16, 900), LAYOUT(t, 900, 5), LAYOUT(t, 300, 5)},
             1e-5,
             200},
            {"base.scatter_add/1",
             &first,
             3,
             {LAYOUT(t, 300, 5), LAYOUT(TN_I16, 900), LAYOUT(t, 900, 5), LAYOUT(t, 300, 5)},
             1e-5,
             2},
        };
        for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
            add_check(&list[k]);
    }
    run_checks();
}

// By the size of an element: 1, 8 and 16 bytes, so the dtypes that are only stored, too.
Test(vulkan_complex_kernels, what_is_moved_keeps_its_bits)
{
    static const tn_dtype dtypes[] = {TN_F8_E4M3, TN_F8_E5M2, TN_COMPLEX64, TN_COMPLEX128};
    static const tn_take_attrs middle = {.axis = 1};
    static const tn_concatenate_attrs axis = {.axis = 1};
    static const tn_slice_attrs slice = {
        .start = INTS(1, -2), .stop = INTS(6, -9), .step = INTS(2, -3)};
    static const tn_dynamic_slice_attrs sizes = {.sizes = INTS(2, 1, 6)};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        tn_dtype t = dtypes[i];
        const struct application list[] = {
            {"base.take/1",
             &middle,
             2,
             {LAYOUT(t, 3, 9, 5), LAYOUT(TN_I32, 2, 6), LAYOUT(t, 3, 2, 6, 5)},
             .limit = 12,
             .exact = true},
            {"base.concatenate/1",
             &axis,
             3,
             {LAYOUT(t, 4, 3, 2), transposed(LAYOUT(t, 2, 5, 4), 0, 2), LAYOUT(t, 4, 1, 2),
              LAYOUT(t, 4, 9, 2)},
             .exact = true},
            {"base.slice_update/1",
             &slice,
             2,
             {LAYOUT(t, 7, 10), LAYOUT(t, 3, 3), LAYOUT(t, 7, 10)},
             .exact = true},
            {"base.dynamic_slice/1",
             &sizes,
             2,
             {LAYOUT(t, 5, 3, 6), LAYOUT(TN_I32, 2), LAYOUT(t, 2, 1, 6)},
             .limit = 9,
             .exact = true},
            {"base.dynamic_slice_update/1",
             NULL,
             3,
             {LAYOUT(t, 7, 10), LAYOUT(t, 3, 4), LAYOUT(TN_I32, 2), LAYOUT(t, 7, 10)},
             .limit = 14,
             .exact = true},
        };
        for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
            add_check(&list[k]);
    }
    run_checks();
}
