// SPDX-License-Identifier: MIT
// nonzero, boolean_mask and unique_all on each backend, against loops in C: masks around
// the borders of words and tiles; all, none, the first or the last element; bounds below,
// at and above the number of true ones. TENON_TEST_BACKEND says on which backend.
#include "../support/common.h"

#include <string.h>
#include <tenon/ops/reference.h>

enum { MOST = 1100000, MOST_BYTES = MOST * 4 };

static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static uint64_t state = 88172645463325252;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 11;
}

enum true_ones { NONE, ALL, FIRST, LAST, QUARTER, RARE, HALF_OF_TILES };

static const struct {
    int64_t a, b; // extents of the mask; b 0: of rank 1
    enum true_ones which;
    int64_t inner; // of a row
    tn_dtype dtype;
    double fill;
} rows[] = {
    {1, 0, ALL, 1, TN_F32, -1},
    {1, 1, NONE, 2, TN_I8, -128.5},
    {31, 0, QUARTER, 1, TN_BOOL, 0.5},
    {3, 11, LAST, 3, TN_U16, 65535},
    {255, 0, QUARTER, 4, TN_F16, 65504},
    {4, 64, ALL, 1, TN_COMPLEX128, 2.5},
    {257, 0, FIRST, 5, TN_COMPLEX64, -7},
    {4095, 0, QUARTER, 1, TN_I64, -1e18},
    {64, 64, ALL, 2, TN_F64, NAN},
    {4097, 0, LAST, 8, TN_U8, 255},
    {90, 91, NONE, 1, TN_BF16, INFINITY},
    {12288, 0, HALF_OF_TILES, 3, TN_F32, 0},
    {37, 1013, QUARTER, 4, TN_F32, -0.0},
    {1048577, 0, RARE, 1, TN_U32, 7}, // more tiles than are scanned in one round
    {1099999, 0, QUARTER, 1, TN_I16, 3},
};

static bool is_true(enum true_ones which, int64_t i, int64_t n)
{
    return which == ALL || (which == FIRST && i == 0) || (which == LAST && i == n - 1) ||
           (which == QUARTER && draw() % 4 == 0) || (which == RARE && draw() % 999 == 0) ||
           (which == HALF_OF_TILES && i / 4096 % 2);
}

static unsigned char mask[MOST], elements[MOST_BYTES + 16], got[MOST_BYTES + 65536];
static int64_t places[MOST], got_places[2][MOST + 16];

static void check_count(tn_scope *s, tn_array *count, int64_t expected, size_t row)
{
    int64_t n;
    must(s, tn_read(s, count, &n, sizeof(n)));
    cr_assert(eq(i64, n, expected), "%s, row %zu", backend(), row);
}

static void check_nonzero(tn_scope *s, size_t row, const tn_array *m, int64_t count,
                          int64_t size)
{
    int64_t rank = rows[row].b ? 2 : 1, fill = (int64_t)-INT32_MAX - 9;
    tn_array *out[3];
    must(s, tn_op_n(s, "nonzero", &m, 1, tn_attrs("size", size, "fill_value", (double)fill),
                    out, (uint32_t)rank + 1));
    for (int64_t axis = 0; axis < rank; axis++)
        must(s, tn_read(s, out[axis], got_places[axis], (uint64_t)size * sizeof(int64_t)));
    check_count(s, out[rank], count, row);
    for (int64_t i = 0; i < size; i++)
        for (int64_t axis = 0; axis < rank; axis++) {
            int64_t b = rank == 2 ? rows[row].b : 1, place = places[i < count ? i : 0];
            int64_t expected = i >= count ? fill : axis == 0 ? place / b : place % b;
            if (got_places[axis][i] != expected)
                cr_fatal("%s, row %zu, size %lld: got %lld at %lld, expected %lld",
                         backend(), row, (long long)size, (long long)got_places[axis][i],
                         (long long)i, (long long)expected);
        }
}

static void check_mask(tn_scope *s, size_t row, const tn_array *x, const tn_array *m,
                       int64_t count, int64_t size)
{
    size_t bytes = (size_t)(tn_dtype_bytes(rows[row].dtype) * rows[row].inner);
    const tn_array *both[] = {x, m};
    unsigned char fill[64];
    tn_tensor filled = {fill, {.dtype = rows[row].dtype}};
    for (int64_t i = 0; i < rows[row].inner; i++)
        tn_set_f64(&filled, i, rows[row].fill);
    tn_array *out[2];
    must(s, tn_op_n(s, "boolean_mask", both, 2,
                    tn_attrs("size", size, "fill_value", rows[row].fill), out, 2));
    must(s, tn_read(s, out[0], got, (uint64_t)size * bytes));
    check_count(s, out[1], count, row);
    for (int64_t i = 0; i < size; i++) {
        const unsigned char *from = i < count ? elements + (size_t)places[i] * bytes : fill;
        if (memcmp(got + (size_t)i * bytes, from, bytes) != 0)
            cr_fatal("%s, row %zu, size %lld: other bytes at %lld", backend(), row,
                     (long long)size, (long long)i);
    }
}

static void open_backend(void)
{
    need_device(backend());
    runtime = open_on(backend());
}

TestSuite(chosen, .init = open_backend, .fini = teardown);

Test(chosen, true_elements_come_in_order)
{
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        int64_t b = rows[row].b, n = rows[row].a * (b ? b : 1), count = 0;
        size_t bytes = (size_t)(n * rows[row].inner * tn_dtype_bytes(rows[row].dtype));
        cr_assert(le(sz, bytes, sizeof(elements)));
        for (int64_t i = 0; i < n; i++) {
            mask[i] = is_true(rows[row].which, i, n);
            if (mask[i])
                places[count++] = i;
        }
        for (size_t i = 0; i < bytes; i++)
            elements[i] = rows[row].dtype == TN_BOOL ? draw() & 1 : (unsigned char)draw();
        int64_t sizes[] = {count, count + 3, count - 1, 1, 0};
        for (size_t k = 0; k < (row < 10 ? 5 : 2); k++) {
            if (sizes[k] < 0)
                continue;
            tn_scope *s = tn_scope_open(runtime);
            const tn_array *m = b ? tn_from_data(s, TN_BOOL, TN_SHAPE(rows[row].a, b), mask)
                                  : tn_from_data(s, TN_BOOL, TN_SHAPE(n), mask);
            const tn_array *x =
                b ? tn_from_data(s, rows[row].dtype,
                                 TN_SHAPE(rows[row].a, b, rows[row].inner), elements)
                  : tn_from_data(s, rows[row].dtype, TN_SHAPE(n, rows[row].inner),
                                 elements);
            check_nonzero(s, row, m, count, sizes[k]);
            check_mask(s, row, x, m, count, sizes[k]);
            tn_scope_close(s);
        }
    }
}
