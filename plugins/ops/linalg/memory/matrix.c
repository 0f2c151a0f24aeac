// SPDX-License-Identifier: MIT
// Copies of matrices. Elements are moved as words of their size; a transposition goes by
// blocks that fit the nearest cache.
#include "matrix.h"

// Rows and columns up to which a triangle is copied by elements, as calls of memset and
// memcpy take longer for short rows.
#define SMALL_TRIANGLE 6

// Rows and columns of a block: the elements of a cache line.
static int64_t block_of(struct matrix_view a)
{
    return 64 / tn_dtype_bytes(a.dtype);
}

struct matrix_view matrix_by_rows(void *data, tn_dtype dtype, int64_t rows, int64_t columns)
{
    return (struct matrix_view){data, dtype, 0, rows, columns, columns, 1};
}

struct matrix_view matrix_by_columns(void *data, tn_dtype dtype, int64_t rows,
                                     int64_t columns)
{
    return (struct matrix_view){data, dtype, 0, rows, columns, 1, rows};
}

struct matrix_view matrix_transposed(struct matrix_view a)
{
    return (struct matrix_view){a.data, a.dtype, 0, a.columns, a.rows, a.column, a.row};
}

tn_complex128 matrix_get(const struct matrix_view *a, int64_t i, int64_t j)
{
    const tn_tensor one = {.data = matrix_at(a, i, j), .layout = {.dtype = a->dtype}};
    return tn_get_complex(&one, 0);
}

void matrix_set(const struct matrix_view *a, int64_t i, int64_t j, tn_complex128 value)
{
    const tn_tensor one = {.data = matrix_at(a, i, j), .layout = {.dtype = a->dtype}};
    tn_set_complex(&one, 0, value);
}

// Integer words that may alias the floats that they copy.
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;
typedef struct matrix_word128 {
    uint64_t word[2];
} __attribute__((may_alias)) word128;

// COPY_BLOCK(T): elements [i0, i1) x [j0, j1), each a T.
#define COPY_BLOCK(T)                                                                      \
    for (int64_t i = i0; i < i1; i++)                                                      \
        for (int64_t j = j0; j < j1; j++)                                                  \
    ((T *)to->data)[i * to->row + j * to->column] =                                        \
        ((const T *)from->data)[i * from->row + j * from->column]

// 4 x 4 elements of a matrix by columns, `from` apart, to one by rows, `to` apart.
static inline void transpose_32(word32 *out, int64_t to, const word32 *in, int64_t from)
{
    typedef uint32_t v4 __attribute__((vector_size(16), aligned(4), may_alias));
    v4 a = *(const v4 *)in, b = *(const v4 *)(in + from);
    v4 c = *(const v4 *)(in + 2 * from), d = *(const v4 *)(in + 3 * from);
    v4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    v4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    *(v4 *)out = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(v4 *)(out + to) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(v4 *)(out + 2 * to) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(v4 *)(out + 3 * to) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

static inline void transpose_64(word64 *out, int64_t to, const word64 *in, int64_t from)
{
    typedef uint64_t v2 __attribute__((vector_size(16), aligned(8), may_alias));
    for (int k = 0; k < 4; k += 2, in += 2 * from, out += 2) {
        v2 a = *(const v2 *)in, b = *(const v2 *)(in + from);
        v2 c = *(const v2 *)(in + 2), d = *(const v2 *)(in + from + 2);
        *(v2 *)out = __builtin_shufflevector(a, b, 0, 2);
        *(v2 *)(out + to) = __builtin_shufflevector(a, b, 1, 3);
        *(v2 *)(out + 2 * to) = __builtin_shufflevector(c, d, 0, 2);
        *(v2 *)(out + 3 * to) = __builtin_shufflevector(c, d, 1, 3);
    }
}

// Copies whole squares of 4 x 4 elements of a block, where rows of `to` and columns of
// `from` are adjacent elements; i0 ends up behind them.
#define COPY_SQUARES(T, transpose)                                                         \
    for (; i0 + 4 <= i1; i0 += 4)                                                          \
        for (int64_t j = j0; j + 4 <= j1; j += 4)                                          \
    transpose((T *)to->data + i0 * to->row + j, to->row,                                   \
              (const T *)from->data + i0 + j * from->column, from->column)

static void linalg_matrix_copy_elements(const struct matrix_view *to,
                                        const struct matrix_view *from, int64_t i0,
                                        int64_t i1, int64_t j0, int64_t j1)
{
    switch (tn_dtype_bytes(to->dtype)) {
    case 4:
        COPY_BLOCK(word32);
        break;
    case 8:
        COPY_BLOCK(word64);
        break;
    default:
        COPY_BLOCK(word128);
    }
}

static void linalg_matrix_copy_block(const struct matrix_view *to,
                                     const struct matrix_view *from, int64_t i0, int64_t i1,
                                     int64_t j0, int64_t j1)
{
    int64_t bytes = tn_dtype_bytes(to->dtype), first = i0;
    if (to->column == 1 && from->row == 1 && bytes <= 8) {
        if (bytes == 4)
            COPY_SQUARES(word32, transpose_32);
        else
            COPY_SQUARES(word64, transpose_64);
        if ((j1 - j0) % 4 != 0)
            linalg_matrix_copy_elements(to, from, first, i0, j1 - (j1 - j0) % 4, j1);
    }
    linalg_matrix_copy_elements(to, from, i0, i1, j0, j1);
}

static int64_t lesser_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Whether rows have adjacent elements and follow each other without gaps.
static bool matrix_is_contiguous(struct matrix_view a)
{
    return a.column == 1 && a.row == a.columns;
}

void matrix_copy(struct matrix_view to, struct matrix_view from)
{
    int64_t bytes = tn_dtype_bytes(to.dtype);
    if (to.column != 1) {
        to = matrix_transposed(to);
        from = matrix_transposed(from);
    }
    if (to.column == 1 && from.column == 1) {
        if (matrix_is_contiguous(to) && matrix_is_contiguous(from)) {
            to.columns *= to.rows;
            to.rows = 1;
        }
        for (int64_t i = 0; i < to.rows && to.columns > 0; i++)
            memcpy(matrix_at(&to, i, 0), matrix_at(&from, i, 0),
                   (size_t)(to.columns * bytes));
        return;
    }
    int64_t block = block_of(to);
    for (int64_t i = 0; i < to.rows; i += block)
        for (int64_t j = 0; j < to.columns; j += block)
            linalg_matrix_copy_block(&to, &from, i, lesser_of(i + block, to.rows), j,
                                     lesser_of(j + block, to.columns));
}

static void fill_zeros_in_row(const struct matrix_view *a, int64_t i, int64_t first,
                              int64_t end)
{
    size_t bytes = (size_t)tn_dtype_bytes(a->dtype);
    if (a->column == 1 && first < end)
        memset(matrix_at(a, i, first), 0, (size_t)(end - first) * bytes);
    else
        for (int64_t j = first; j < end; j++)
            memset(matrix_at(a, i, j), 0, bytes);
}

// Copies the part of a block, from row i and column j on, that lies in the triangle.
static void copy_block_of_triangle(const struct matrix_view *to,
                                   const struct matrix_view *from, int64_t i, int64_t j,
                                   bool upper)
{
    int64_t rows = lesser_of(i + block_of(*to), to->rows);
    int64_t columns = lesser_of(j + block_of(*to), to->columns);
    if (i != j) {
        linalg_matrix_copy_block(to, from, i, rows, j, columns);
        return;
    }
    for (; i < rows; i++)
        linalg_matrix_copy_block(to, from, i, i + 1, upper ? lesser_of(i, columns) : j,
                                 upper ? columns : lesser_of(i + 1, columns));
}

// COPY_TRIANGLE(T, zero): copies a triangle of elements of type T, and zeros the rest.
#define COPY_TRIANGLE(T, zero)                                                             \
    for (int64_t i = 0; i < to->rows; i++)                                                 \
        for (int64_t j = 0; j < to->columns; j++)                                          \
    ((T *)to->data)[i * to->row + j * to->column] =                                        \
        (upper ? j >= i : j <= i)                                                          \
            ? ((const T *)from->data)[i * from->row + j * from->column]                    \
            : (zero)

static void matrix_copy_small_triangle(const struct matrix_view *to,
                                       const struct matrix_view *from, bool upper)
{
    switch (tn_dtype_bytes(to->dtype)) {
    case 4:
        COPY_TRIANGLE(word32, 0);
        break;
    case 8:
        COPY_TRIANGLE(word64, 0);
        break;
    default:
        COPY_TRIANGLE(word128, (word128){{0}});
    }
}

void matrix_copy_triangle(struct matrix_view to, struct matrix_view from, bool upper)
{
    if (to.rows <= SMALL_TRIANGLE && to.columns <= SMALL_TRIANGLE) {
        matrix_copy_small_triangle(&to, &from, upper);
        return;
    }
    size_t bytes = (size_t)tn_dtype_bytes(to.dtype);
    if (to.column != 1) { // by rows of the destination
        to = matrix_transposed(to);
        from = matrix_transposed(from);
        upper = !upper;
    }
    bool by_rows = to.column == 1 && from.column == 1;
    for (int64_t i = 0; i < to.rows; i++) {
        int64_t first = upper ? lesser_of(i, to.columns) : 0;
        int64_t end = upper ? to.columns : lesser_of(i + 1, to.columns);
        fill_zeros_in_row(&to, i, 0, first);
        fill_zeros_in_row(&to, i, end, to.columns);
        if (by_rows && first < end)
            memcpy(matrix_at(&to, i, first), matrix_at(&from, i, first),
                   (size_t)(end - first) * bytes);
    }
    int64_t block = block_of(to);
    for (int64_t i = 0; i < to.rows && !by_rows; i += block)
        for (int64_t j = upper ? i : 0; upper ? j < to.columns : j <= i; j += block)
            copy_block_of_triangle(&to, &from, i, j, upper);
}

void matrix_conjugate(struct matrix_view a)
{
    if (!tn_is_complex(a.dtype))
        return;
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.columns; j++)
            if (tn_dtype_real(a.dtype) == TN_F32)
                ((tn_complex64 *)matrix_at(&a, i, j))->im *= -1;
            else
                ((tn_complex128 *)matrix_at(&a, i, j))->im *= -1;
}

// Finds a number whose bits without the sign exceed `most`, as NaN's do: the difference is
// negative.
#define FIND(T, sign, most)                                                                \
    {                                                                                      \
        T least = 0;                                                                       \
        for (int64_t j = 0; j < count; j++)                                                \
            least |= (most) - (((const T *)words)[j] & (sign));                            \
        return least < 0;                                                                  \
    }
typedef int32_t __attribute__((may_alias)) signed32;
typedef int64_t __attribute__((may_alias)) signed64;

static bool find_in(const void *words, int64_t count, bool single, bool nan_only)
{
    if (single)
        FIND(signed32, INT32_MAX, INT32_C(0x7f800000) - !nan_only)
    FIND(signed64, INT64_MAX, INT64_C(0x7ff0000000000000) - !nan_only)
}

static bool find_special(struct matrix_view a, bool nan_only)
{
    bool single = tn_dtype_real(a.dtype) == TN_F32, found = false;
    int64_t parts = tn_is_complex(a.dtype) ? 2 : 1;
    if (a.column != 1)
        a = matrix_transposed(a);
    if (matrix_is_contiguous(a)) {
        a.columns *= a.rows;
        a.rows = a.columns > 0;
    }
    for (int64_t i = 0; i < a.rows && !found; i++) {
        if (a.column == 1) {
            found = find_in(matrix_at(&a, i, 0), a.columns * parts, single, nan_only);
            continue;
        }
        for (int64_t j = 0; j < a.columns; j++)
            found |= find_in(matrix_at(&a, i, j), parts, single, nan_only);
    }
    return found;
}

// Searches rows of `from` for NaN while it copies them, a few at a time.
bool matrix_copy_numbers(struct matrix_view to, struct matrix_view from)
{
    if (from.column != 1) {
        to = matrix_transposed(to);
        from = matrix_transposed(from);
    }
    int64_t block = block_of(to);
    for (int64_t i = 0; i < from.rows; i += block) {
        struct matrix_view some = from, part = to;
        some.rows = part.rows = lesser_of(block, from.rows - i);
        some.data = matrix_at(&from, i, 0);
        part.data = matrix_at(&to, i, 0);
        if (matrix_has_nan(some))
            return false;
        matrix_copy(part, some);
    }
    return true;
}

bool matrix_is_finite(struct matrix_view a)
{
    return !find_special(a, false);
}

bool matrix_has_nan(struct matrix_view a)
{
    return find_special(a, true);
}

void matrix_fill_nan(struct matrix_view a)
{
    double part = tn_is_complex(a.dtype) ? NAN : 0;
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.columns; j++)
            matrix_set(&a, i, j, (tn_complex128){NAN, part});
}

void matrix_fill_identity(struct matrix_view a)
{
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.columns; j++)
            matrix_set(&a, i, j, (tn_complex128){i == j, 0});
}
