// SPDX-License-Identifier: MIT
// Extents and layouts.
#include "../check.h"
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

static void types_are_counted_and_printed(void **state)
{
    (void)state;
    char text[TYPE_TEXT];
    tn_type type = TYPE(TN_F32, 256, 512), scalar = {.dtype = TN_I8};
    assert_int_equal(type_elements(&type), 131072);
    assert_int_equal(type_bytes(&type), 524288);
    assert_string_equal(type_print(&type, text), "f32[256, 512]");
    assert_string_equal(shape_print(&type, text), "[256, 512]");
    assert_int_equal(type_elements(&scalar), 1);
    assert_string_equal(type_print(&scalar, text), "i8[]");
    tn_type huge = TYPE(TN_F64, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                        INT64_MIN, INT64_MIN, INT64_MIN);
    assert_true(strlen(type_print(&huge, text)) > 160);
}

static void types_that_cannot_be_are_refused(void **state)
{
    (void)state;
    tn_type good = TYPE(TN_F32, 0, 5);
    assert_int_equal(type_check(&good), TN_OK);
    tn_type largest = TYPE(TN_U8, INT64_MAX);
    assert_int_equal(type_check(&largest), TN_OK);
    tn_type too_large = TYPE(TN_U16, INT64_MAX / 2 + 1);
    assert_int_equal(type_check(&too_large), TN_ERR_ARGUMENT);
    assert_non_null(strstr(fail_text(), "63 bits"));
    tn_type hidden = TYPE(TN_U8, 0, INT64_MAX, 2); // no element, but strides overflow
    assert_int_equal(type_check(&hidden), TN_ERR_ARGUMENT);
    tn_type negative = TYPE(TN_F32, 4, -1);
    assert_int_equal(type_check(&negative), TN_ERR_ARGUMENT);
    assert_non_null(strstr(fail_text(), "-1"));
    tn_type ranked = {.dtype = TN_F32, .rank = 9};
    assert_int_equal(type_check(&ranked), TN_ERR_ARGUMENT);
    tn_type ranked_below = {.dtype = TN_F32, .rank = -1};
    assert_int_equal(type_check(&ranked_below), TN_ERR_ARGUMENT);
    tn_type unknown = {.dtype = 77};
    assert_int_equal(type_check(&unknown), TN_ERR_ARGUMENT);
}

static void shapes_broadcast_as_in_numpy(void **state)
{
    (void)state;
    tn_type a = TYPE(TN_F32, 4, 1, 3), b = TYPE(TN_I8, 5, 1), out = {.dtype = TN_F64};
    assert_int_equal(shape_broadcast(&a, &b, &out), TN_OK);
    tn_type wanted = TYPE(TN_F64, 4, 5, 3);
    assert_true(type_equal(&out, &wanted));
    tn_type empty = TYPE(TN_F32, 0), one = TYPE(TN_F32, 1);
    assert_int_equal(shape_broadcast(&empty, &one, &out), TN_OK);
    assert_int_equal(out.extent[0], 0);
    tn_type c = TYPE(TN_F32, 2, 3), d = TYPE(TN_F32, 4), before = out;
    assert_int_equal(shape_broadcast(&c, &d, &out), TN_ERR_ARGUMENT);
    assert_string_equal(fail_text(),
                        "shapes [2, 3] and [4] do not broadcast: 3 against 4 at "
                        "axis 1 from the end");
    assert_memory_equal(&out, &before, sizeof(out));
}

static void layouts_know_whether_they_have_gaps(void **state)
{
    (void)state;
    tn_type type = TYPE(TN_F32, 2, 3, 4);
    tn_layout layout = layout_contiguous(&type);
    assert_int_equal(layout.stride[0], 12);
    assert_int_equal(layout.stride[2], 1);
    assert_true(layout_is_contiguous(&layout));
    layout.offset = 7;
    assert_true(layout_is_contiguous(&layout));
    layout.stride[0] = 24;
    assert_false(layout_is_contiguous(&layout));
    layout.extent[0] = 1; // nobody walks it
    assert_true(layout_is_contiguous(&layout));
    layout.extent[2] = 0;
    layout.stride[1] = 99;
    assert_true(layout_is_contiguous(&layout));
}

static void broadcasting_a_layout_repeats_by_stride_0(void **state)
{
    (void)state;
    tn_type row = TYPE(TN_F32, 1, 3), wide = TYPE(TN_F32, 5, 2, 3);
    tn_layout layout = layout_contiguous(&row);
    layout.offset = 6;
    tn_layout out = layout_broadcast(&layout, &wide);
    assert_int_equal(out.rank, 3);
    assert_int_equal(out.offset, 6);
    assert_int_equal(out.stride[0], 0);
    assert_int_equal(out.stride[1], 0);
    assert_int_equal(out.stride[2], 1);
    assert_int_equal(layout_elements(&out), 30);
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

static void collapsed_layouts_walk_the_same_elements(void **state)
{
    (void)state;
    unsigned seed = 20260101;
    print_message("# seed %u\n", seed);
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
            assert_int_equal(collapsed[k].rank, collapsed[0].rank);
            assert_int_equal(layout_elements(&collapsed[k]), count);
            for (int64_t i = 0; i < count; i++)
                assert_int_equal(element_at(&collapsed[k], i), element_at(&layouts[k], i));
        }
    }
}

static void a_contiguous_pair_collapses_to_one_axis(void **state)
{
    (void)state;
    tn_type type = TYPE(TN_F32, 4, 1, 5, 6);
    tn_layout a = layout_contiguous(&type), b = a, scalar = {.dtype = TN_F32};
    layouts_collapse((tn_layout *[]){&a, &b}, 2);
    assert_int_equal(a.rank, 1);
    assert_int_equal(b.extent[0], 120);
    layouts_collapse((tn_layout *[]){&scalar}, 1);
    assert_int_equal(scalar.rank, 0);
    layouts_collapse(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_counted_and_printed),
        cmocka_unit_test(types_that_cannot_be_are_refused),
        cmocka_unit_test(shapes_broadcast_as_in_numpy),
        cmocka_unit_test(layouts_know_whether_they_have_gaps),
        cmocka_unit_test(broadcasting_a_layout_repeats_by_stride_0),
        cmocka_unit_test(collapsed_layouts_walk_the_same_elements),
        cmocka_unit_test(a_contiguous_pair_collapses_to_one_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
