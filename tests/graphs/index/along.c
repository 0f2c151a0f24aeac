// SPDX-License-Identifier: MIT
// take_along_axis and put_along_axis by the kernels of cpu-blas, against plain loops; and
// long rows that several threads sort, against one thread.
#include "../support/common.h"

#include <string.h>

enum { MOST = 1 << 18 };
static uint32_t seed = 1;

static int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525 + 1013904223;
    return low + (int64_t)((seed >> 8) % (uint32_t)(high - low + 1));
}

static tn_runtime *open_threads(const char *threads)
{
    return open_with((const char *const[]){"TENON_BACKEND=cpu-blas", threads, NULL});
}

static tn_array *as(tn_scope *s, tn_array *x, tn_dtype dtype)
{
    return tn_op(s, "astype", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

static tn_array *of_numbers(tn_scope *s, tn_dtype dtype, const tn_shape *shape,
                            const int64_t *numbers)
{
    return as(s, tn_from_data(s, TN_I64, shape, numbers), dtype);
}

static void read_numbers(tn_scope *s, tn_array *x, int64_t *out, int64_t count)
{
    must(s, tn_read(s, as(s, x, TN_I64), out, (uint64_t)count * sizeof(*out)));
}

// --- along an axis ----------------------------------------------------------------------

struct along_case {
    int64_t outer, n, inner, count;
    bool one_value;
};

static const struct along_case along_cases[] = {
    {3, 7, 1, 11, false},        {3, 7, 5, 4, false},   {1, 9, 300, 6, true},
    {2, 5, 4000, 9, false}, // columns for several threads
    {1, 40000, 1, 70000, false}, {70, 600, 1, 3, true}, {4, 3, 2, 0, false},
};
static const tn_dtype dtypes[] = {TN_BOOL, TN_F16, TN_F32, TN_I64, TN_U8};
static const tn_dtype index_dtypes[] = {TN_I64, TN_I32, TN_I16, TN_U64, TN_U32};

static int64_t x[MOST], at[MOST], values[MOST], got[MOST], want[MOST];

// The place of an index in front of its axis; -1: out of range.
static int64_t place_of(int64_t index, int64_t n, bool clamp)
{
    int64_t front = index < 0 ? index + n : index;
    if (clamp)
        return front < 0 ? 0 : front < n ? front : n - 1;
    return front >= 0 && front < n ? front : -1;
}

static void want_along(const struct along_case *c, bool put)
{
    if (put)
        memcpy(want, x, (size_t)(c->outer * c->n * c->inner) * sizeof(*x));
    for (int64_t i = 0; i < c->outer * c->count * c->inner; i++) {
        int64_t outer = i / (c->count * c->inner), column = i % c->inner;
        int64_t place = place_of(at[i], c->n, !put);
        int64_t element = (outer * c->n + place) * c->inner + column;
        if (!put)
            want[i] = x[element];
        else if (place >= 0)
            want[element] = values[c->one_value ? 0 : i];
    }
}

static void check_along(tn_runtime *rt, const struct along_case *c, tn_dtype dtype,
                        tn_dtype index_dtype, bool put)
{
    tn_scope *s = tn_scope_open(rt);
    int64_t size = c->outer * c->n * c->inner, count = c->outer * c->count * c->inner;
    int64_t low = tn_is_signed(index_dtype) ? -c->n - 1 : 0,
            top = dtype == TN_BOOL ? 1 : 99;
    for (int64_t i = 0; i < size; i++)
        x[i] = draw(0, top);
    for (int64_t i = 0; i < count; i++) {
        at[i] = index_dtype == TN_I16 ? draw(low < -99 ? -99 : low, c->n < 99 ? c->n : 99)
                                      : draw(low, c->n);
        values[i] = draw(0, top);
    }
    const tn_shape one = {0}, *shape = TN_SHAPE(c->outer, c->n, c->inner),
                   *indices = TN_SHAPE(c->outer, c->count, c->inner);
    tn_array *in[3] = {of_numbers(s, dtype, shape, x),
                       of_numbers(s, index_dtype, indices, at),
                       of_numbers(s, dtype, c->one_value ? &one : indices, values)};
    must(s, tn_eval(s, in[0], in[1], in[2]));
    const tn_attr_list axis = tn_attrs("axis", (int64_t)1);
    tn_array *y = put ? tn_op(s, "put_along_axis", TN_IN(in[0], in[1], in[2]), axis)
                      : tn_op(s, "take_along_axis", TN_IN(in[0], in[1]), axis);
    int64_t results = put ? size : count;
    uint64_t before = stats_of(rt).steps;
    must(s, tn_eval(s, y));
    cr_assert(eq(u64, stats_of(rt).steps - before, results > 0));
    read_numbers(s, y, got, results);
    want_along(c, put);
    for (int64_t i = 0; i < results; i++)
        cr_assert(got[i] == want[i],
                  "%s of %s by %s, %lld x %lld: [%lld] is %lld, not %lld",
                  put ? "put" : "take", tn_dtype_name(dtype), tn_dtype_name(index_dtype),
                  (long long)c->n, (long long)c->inner, (long long)i, (long long)got[i],
                  (long long)want[i]);
    tn_scope_close(s);
}

Test(along, kernels_are_as_plain_loops)
{
    tn_runtime *rt = open_threads("TENON_THREADS=5");
    for (size_t i = 0; i < sizeof(along_cases) / sizeof(along_cases[0]); i++)
        for (int d = 0; d < 5; d++)
            for (int put = 0; put < 2; put++)
                check_along(rt, &along_cases[i], dtypes[d], index_dtypes[(d + (int)i) % 5],
                            put);
    tn_runtime_close(rt);
}

// Of u64 the upper half is no negative number: clamped to the last, or dropped.
Test(along, indices_beyond_all_numbers_are_out_of_range)
{
    tn_runtime *rt = open_threads("TENON_THREADS=1");
    tn_scope *s = tn_scope_open(rt);
    const uint64_t far[] = {UINT64_MAX, UINT64_C(1) << 63, 1};
    const float numbers[] = {1, 2, 3, 4};
    float taken[3], put[4];
    tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(4), numbers);
    tn_array *index = tn_from_data(s, TN_U64, TN_SHAPE(3), far);
    tn_array *b = tn_from_data(s, TN_F32, TN_SHAPE(3), numbers);
    must(s, tn_read(s, tn_op(s, "take_along_axis", TN_IN(a, index), TN_NO_ATTRS), taken,
                    sizeof(taken)));
    must(s, tn_read(s, tn_op(s, "put_along_axis", TN_IN(a, index, b), TN_NO_ATTRS), put,
                    sizeof(put)));
    cr_assert(taken[0] == 4 && taken[1] == 4 && taken[2] == 2);
    cr_assert(put[0] == 1 && put[1] == 3 && put[2] == 3 && put[3] == 4);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

static tn_status put_body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_op(s, "put_along_axis", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// What is donated is written over, not copied.
Test(along, a_donated_array_is_put_into)
{
    tn_runtime *rt = open_threads("TENON_THREADS=1");
    tn_scope *s = tn_scope_open(rt);
    enum { N = 1 << 18 };
    static float numbers[N], out[N];
    const uint32_t donated[] = {0};
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = donated, .num_donated = 1};
    tn_function *function;
    must(NULL, tn_function_create(rt, put_body, NULL, &options, &function));
    tn_array *in[3] = {tn_from_data(s, TN_F32, TN_SHAPE(N), numbers),
                       tn_from_data(s, TN_I64, TN_SHAPE(2), ((int64_t[]){5, -1})),
                       tn_from_data(s, TN_F32, TN_SHAPE(2), ((float[]){7, 8}))};
    must(s, tn_eval(s, in[0], in[1], in[2]));
    uint64_t held = stats_of(rt).buffer_bytes;
    for (int round = 0; round < 3; round++) {
        tn_array *y;
        must(s, tn_function_call(function, s, in, 3, &y, 1));
        in[0] = y;
    }
    must(s, tn_read(s, in[0], out, sizeof(out)));
    cr_assert(stats_of(rt).buffer_peak < held + sizeof(numbers) / 2);
    cr_assert(out[5] == 7 && out[N - 1] == 8 && out[4] == 0);
    tn_function_destroy(function);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

// --- long rows --------------------------------------------------------------------------

// The elements in order and their places, one array behind the other.
static void sort_by(const char *threads, tn_dtype dtype, const tn_shape *shape,
                    int64_t axis, int descending, int64_t count, double *out)
{
    static double numbers[MOST];
    tn_runtime *rt = open_threads(threads);
    tn_scope *s = tn_scope_open(rt);
    uint32_t begin = seed;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = draw(0, 2000) == 0 ? (double)NAN : (double)draw(-99, 99) / 4;
    for (int64_t i = 0; i < count && dtype == TN_U32; i++) // as evenly as random words
        numbers[i] = (double)(i * 2654435761 & 0xffff0000);
    seed = begin; // the next call has the same
    tn_array *a = as(s, tn_from_data(s, TN_F64, shape, numbers), dtype);
    tn_attr_list list = tn_attrs("axis", axis, "descending", (int64_t)descending);
    tn_array *sorted = as(s, tn_op(s, "sort", TN_IN(a), list), TN_F64);
    tn_array *places = as(s, tn_op(s, "argsort", TN_IN(a), list), TN_F64);
    must(s, tn_read(s, sorted, out, (uint64_t)count * sizeof(*out)));
    must(s, tn_read(s, places, out + count, (uint64_t)count * sizeof(*out)));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(along, long_rows_are_sorted_by_several_threads)
{
    static const struct {
        tn_dtype dtype;
        tn_shape shape;
        int64_t axis;
    } rows[] = {{TN_F32, {1, 0, {65536}}, 0},    {TN_F64, {1, 0, {100001}}, 0},
                {TN_I8, {2, 0, {1, 200000}}, 1}, {TN_I64, {2, 0, {90000, 2}}, 0},
                {TN_F16, {2, 0, {2, 81921}}, 1}, {TN_U32, {1, 0, {262144}}, 0}};
    static double one[2 * MOST], several[2 * MOST];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t count = 1;
        for (int32_t k = 0; k < rows[i].shape.rank; k++)
            count *= rows[i].shape.extent[k];
        sort_by("TENON_THREADS=1", rows[i].dtype, &rows[i].shape, rows[i].axis, i % 2,
                count, one);
        sort_by("TENON_THREADS=7", rows[i].dtype, &rows[i].shape, rows[i].axis, i % 2,
                count, several);
        cr_assert(memcmp(one, several, (size_t)count * 2 * sizeof(*one)) == 0, "%s %lld",
                  tn_dtype_name(rows[i].dtype), (long long)count);
        seed++;
    }
}
