// SPDX-License-Identifier: MIT
// Extents and layouts.
#include "check.h"
#include "base/fail.h"
#include "base/shape.h"

static tn_type type_of(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    tn_type type = {.dtype = dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        type.extent[i] = extent[i];
    return type;
}
#define TYPE(dtype, ...)                                                                   \
    type_of(dtype, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

Test(shape, types_are_counted_and_printed)
{
    char text[TYPE_TEXT];
    tn_type type = TYPE(TN_F32, 256, 512), scalar = {.dtype = TN_I8};
    cr_assert(eq(i64, type_elements(&type), 131072));
    cr_assert(eq(u64, type_bytes(&type), 524288));
    cr_assert(eq(str, type_print(&type, text), "f32[256, 512]"));
    cr_assert(eq(str, shape_print(&type, text), "[256, 512]"));
    cr_assert(eq(i64, type_elements(&scalar), 1));
    cr_assert(eq(str, type_print(&scalar, text), "i8[]"));
    tn_type huge = TYPE(TN_F64, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                        INT64_MIN, INT64_MIN, INT64_MIN);
    cr_assert(strlen(type_print(&huge, text)) > 160);
}

Test(shape, types_that_cannot_be_are_refused)
{
    tn_type good = TYPE(TN_F32, 0, 5);
    check_status(type_check(&good), TN_OK);
    tn_type largest = TYPE(TN_U8, INT64_MAX);
    check_status(type_check(&largest), TN_OK);
    tn_type too_large = TYPE(TN_U16, INT64_MAX / 2 + 1);
    check_status(type_check(&too_large), TN_ERR_ARGUMENT);
    check_says(fail_text(), "63 bits");
    tn_type hidden = TYPE(TN_U8, 0, INT64_MAX, 2); // no element, but strides overflow
    check_status(type_check(&hidden), TN_ERR_ARGUMENT);
    tn_type negative = TYPE(TN_F32, 4, -1);
    check_status(type_check(&negative), TN_ERR_ARGUMENT);
    check_says(fail_text(), "-1");
    tn_type ranked = {.dtype = TN_F32, .rank = 9};
    check_status(type_check(&ranked), TN_ERR_ARGUMENT);
    tn_type ranked_below = {.dtype = TN_F32, .rank = -1};
    check_status(type_check(&ranked_below), TN_ERR_ARGUMENT);
    tn_type unknown = {.dtype = 77};
    check_status(type_check(&unknown), TN_ERR_ARGUMENT);
}

Test(shape, shapes_broadcast_as_in_numpy)
{
    tn_type a = TYPE(TN_F32, 4, 1, 3), b = TYPE(TN_I8, 5, 1), out = {.dtype = TN_F64};
    check_status(shape_broadcast(&a, &b, &out), TN_OK);
    tn_type wanted = TYPE(TN_F64, 4, 5, 3);
    cr_assert(type_equal(&out, &wanted));
    tn_type empty = TYPE(TN_F32, 0), one = TYPE(TN_F32, 1);
    check_status(shape_broadcast(&empty, &one, &out), TN_OK);
    cr_assert(eq(i64, out.extent[0], 0));
    tn_type c = TYPE(TN_F32, 2, 3), d = TYPE(TN_F32, 4), before = out;
    check_status(shape_broadcast(&c, &d, &out), TN_ERR_ARGUMENT);
    cr_assert(eq(str, fail_text(),
                 "shapes [2, 3] and [4] do not broadcast: 3 against 4 at "
                 "axis 1 from the end"));
    cr_assert(eq(mem, bytes_of(&out, sizeof(out)), bytes_of(&before, sizeof(out))));
}

Test(shape, layouts_know_whether_they_have_gaps)
{
    tn_type type = TYPE(TN_F32, 2, 3, 4);
    tn_layout layout = layout_contiguous(&type);
    cr_assert(eq(i64, layout.stride[0], 12));
    cr_assert(eq(i64, layout.stride[2], 1));
    cr_assert(layout_is_contiguous(&layout));
    layout.offset = 7;
    cr_assert(layout_is_contiguous(&layout));
    layout.stride[0] = 24;
    cr_assert(not(layout_is_contiguous(&layout)));
    layout.extent[0] = 1; // nobody walks it
    cr_assert(layout_is_contiguous(&layout));
    layout.extent[2] = 0;
    layout.stride[1] = 99;
    cr_assert(layout_is_contiguous(&layout));
}

Test(shape, broadcasting_a_layout_repeats_by_stride_0)
{
    tn_type row = TYPE(TN_F32, 1, 3), wide = TYPE(TN_F32, 5, 2, 3);
    tn_layout layout = layout_contiguous(&row);
    layout.offset = 6;
    tn_layout out = layout_broadcast(&layout, &wide);
    cr_assert(eq(int, out.rank, 3));
    cr_assert(eq(i64, out.offset, 6));
    cr_assert(eq(i64, out.stride[0], 0));
    cr_assert(eq(i64, out.stride[1], 0));
    cr_assert(eq(i64, out.stride[2], 1));
    cr_assert(eq(i64, layout_elements(&out), 30));
}

// --- collapse, against walking every element -------------------------------------------

static int64_t element_at(const tn_layout *layout, int64_t index)
{
    int64_t at = layout->offset;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        at += index % layout->extent[i] * layout->stride[i];
        index /= layout->extent[i];
    }
    return at;
}

Test(shape, collapsed_layouts_walk_the_same_elements)
{
    unsigned seed = 20260101;
    fprintf(stderr, "# seed %u\n", seed);
    for (int round = 0; round < 2000; round++) {
        tn_layout layouts[3] = {0}, collapsed[3];
        int32_t rank = rand_r(&seed) % (TN_MAX_RANK + 1);
        for (int k = 0; k < 3; k++) {
            layouts[k].rank = rank;
            int64_t stride = 1;
            for (int32_t i = rank - 1; i >= 0; i--) {
                layouts[k].extent[i] = k ? layouts[0].extent[i] : 1 + rand_r(&seed) % 3;
                layouts[k].stride[i] = rand_r(&seed) % 8 ? stride : 5;
                stride *= layouts[k].extent[i];
            }
            collapsed[k] = layouts[k];
        }
        layouts_collapse((tn_layout *[]){&collapsed[0], &collapsed[1], &collapsed[2]}, 3);
        int64_t count = layout_elements(&layouts[0]);
        for (int k = 0; k < 3; k++) {
            cr_assert(eq(int, collapsed[k].rank, collapsed[0].rank));
            cr_assert(eq(i64, layout_elements(&collapsed[k]), count));
            for (int64_t i = 0; i < count; i++)
                cr_assert(
                    eq(i64, element_at(&collapsed[k], i), element_at(&layouts[k], i)));
        }
    }
}

Test(shape, a_contiguous_pair_collapses_to_one_axis)
{
    tn_type type = TYPE(TN_F32, 4, 1, 5, 6);
    tn_layout a = layout_contiguous(&type), b = a, scalar = {.dtype = TN_F32};
    layouts_collapse((tn_layout *[]){&a, &b}, 2);
    cr_assert(eq(int, a.rank, 1));
    cr_assert(eq(i64, b.extent[0], 120));
    layouts_collapse((tn_layout *[]){&scalar}, 1);
    cr_assert(eq(int, scalar.rank, 0));
    layouts_collapse(NULL, 0);
}
