// SPDX-License-Identifier: MIT
// Parts of arrays by NumPy's notation (<tenon/ops/index.h>), beside NumPy's results of
// numpy.arange(24).reshape(2, 3, 4).
#include "../support/common.h"

#include <tenon/ops/index.h>

// clang-format off
static const struct row {
    const char *index, *extents, *values;
} rows[] = {
    {"0", "3 4", "0 1 2 3 4 5 6 7 8 9 10 11"},
    {"-1", "3 4", "12 13 14 15 16 17 18 19 20 21 22 23"},
    {"1, 2, 3", "", "23"},
    {"-2, -3, -4", "", "0"},
    {"...", "2 3 4", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {"", "2 3 4", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {"..., -1", "2 3", "3 7 11 15 19 23"},
    {"1, ...", "3 4", "12 13 14 15 16 17 18 19 20 21 22 23"},
    {"1:", "1 3 4", "12 13 14 15 16 17 18 19 20 21 22 23"},
    {"0:1", "1 3 4", "0 1 2 3 4 5 6 7 8 9 10 11"},
    {"-1:", "1 3 4", "12 13 14 15 16 17 18 19 20 21 22 23"},
    {":, :2", "2 2 4", "0 1 2 3 4 5 6 7 12 13 14 15 16 17 18 19"},
    {":, ::2", "2 2 4", "0 1 2 3 8 9 10 11 12 13 14 15 20 21 22 23"},
    {":, ::-1", "2 3 4", "8 9 10 11 4 5 6 7 0 1 2 3 20 21 22 23 16 17 18 19 12 13 14 15"},
    {":, ::-2", "2 2 4", "8 9 10 11 0 1 2 3 20 21 22 23 12 13 14 15"},
    {":, -2:, 1:3", "2 2 2", "5 6 9 10 17 18 21 22"},
    {"..., ::-1, 0", "2 3", "8 4 0 20 16 12"},
    {"None", "1 2 3 4", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {"..., None", "2 3 4 1", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {":, None, 1", "2 1 4", "4 5 6 7 16 17 18 19"},
    {"0, None, ..., None", "1 3 4 1", "0 1 2 3 4 5 6 7 8 9 10 11"},
    {"None, 1, None, -1", "1 1 4", "20 21 22 23"},
    {":, 2:1", "2 0 4", ""},
    {"100:", "0 3 4", ""},
    {"  1 , : , -1  ", "3", "15 19 23"},
    {":, 5:0:-1", "2 2 4", "8 9 10 11 4 5 6 7 20 21 22 23 16 17 18 19"},
    {":, -1::-2", "2 2 4", "8 9 10 11 0 1 2 3 20 21 22 23 12 13 14 15"},
    {":, :-3:-1", "2 2 4", "8 9 10 11 4 5 6 7 20 21 22 23 16 17 18 19"},
    {"..., 1, :", "2 4", "4 5 6 7 16 17 18 19"},
    {"::-1, ..., 1::2", "2 3 2", "13 15 17 19 21 23 1 3 5 7 9 11"},
};
// clang-format on

static const struct refused {
    const char *index, *says;
} refused[] = {
    {"2", "got \"2\", expected whole numbers within the axis"},
    {"0, -4", "got \"-4\""},
    {":, :, :, 0", "index \":, :, :, 0\" of an array of rank 3: got \"0\", expected"},
    {"x", "got \"x\""},
    {"0, 5", "(axis 1 has 3)"},
    {"%", "and a number for each %"},
    {"0 1", "got \"0 1\""},
    {":, ::0", "got \"::0\""},
    {"..., ...", "got \"...\""},
    {"0,, 1", "got \", 1\""},
    {"None, None, None, None, None, None", "the result has rank 9, expected at most 8"},
};

TestSuite(notation, .init = setup, .fini = teardown);

static tn_array *counted(tn_scope *s)
{
    float data[24];
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
    return tn_from_data(s, TN_F32, TN_SHAPE(2, 3, 4), data);
}

static void print_number(char *out, size_t size, size_t *used, long long number)
{
    *used +=
        (size_t)snprintf(out + *used, size - *used, "%s%lld", *used ? " " : "", number);
}

Test(notation, parts_are_those_of_numpy)
{
    tn_scope *s = tn_scope_open(runtime);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_array *y = tn_index(s, counted(s), rows[i].index);
        const tn_type *type = tn_array_type(y);
        char extents[64] = "", values[128] = "";
        size_t used = 0;
        int64_t count = 1;
        for (int32_t k = 0; k < type->rank; k++) {
            print_number(extents, sizeof(extents), &used, type->extent[k]);
            count *= type->extent[k];
        }
        must(s, tn_scope_status(s));
        cr_assert(eq(str, extents, (char *)(uintptr_t)rows[i].extents), "%s",
                  rows[i].index);
        const float *data = tn_data(s, y);
        used = 0;
        for (int64_t k = 0; k < count; k++)
            print_number(values, sizeof(values), &used, (long long)data[k]);
        cr_assert(eq(str, values, (char *)(uintptr_t)rows[i].values), "%s", rows[i].index);
    }
    cr_assert(eq(dbl, tn_item(s, tn_index_at(s, counted(s), "%, %, %", 1, -1, 2)), 22));
    tn_array *y = tn_index_at(s, counted(s), "0, %:%:%, %", 2, 0, -1, -2);
    cr_assert(eq(dbl, tn_item(s, tn_index(s, y, "0")), 10));
    cr_assert(eq(dbl, tn_item(s, tn_index(s, y, "1")), 6));
    cr_assert(eq(i64, tn_array_type(y)->extent[0], 2));
    tn_scope_close(s);
}

Test(notation, what_cannot_be_read_is_told)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *y = tn_index(s, counted(s), refused[i].index);
        cr_assert(y == NULL, "%s", refused[i].index);
        check_says(tn_scope_error(s), refused[i].says);
        const tn_type *type = tn_array_type(y); // of a failed array: nothing crashes
        cr_assert(eq(i64, type->extent[type->rank - 1], 1));
        cr_assert(tn_index(s, y, "..., -1") == NULL);
        tn_scope_close(s);
    }
}
