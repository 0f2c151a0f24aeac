// SPDX-License-Identifier: MIT
// One matrix in memory, of any strides.
//
// Threads. Pure functions.
#ifndef LINALG_MATRIX_H
#define LINALG_MATRIX_H

#include <tenon/ops/reference.h>
#include "../pack.h"

struct matrix_view {
    char *data; // of element (0, 0)
    tn_dtype dtype;
    int32_t reserved; // 0
    int64_t rows, columns;
    int64_t row, column; // distances of rows and of columns, in elements
};

// Contiguous matrices in `data`: by rows, as in C, and by columns, as in Fortran.
struct matrix_view matrix_by_rows(void *data, tn_dtype dtype, int64_t rows,
                                  int64_t columns);
struct matrix_view matrix_by_columns(void *data, tn_dtype dtype, int64_t rows,
                                     int64_t columns);
struct matrix_view matrix_transposed(struct matrix_view a);

static inline void *matrix_at(const struct matrix_view *a, int64_t i, int64_t j)
{
    return a->data + (i * a->row + j * a->column) * tn_dtype_bytes(a->dtype);
}

// Elements as numbers, for references.
tn_complex128 matrix_get(const struct matrix_view *a, int64_t i, int64_t j);
void matrix_set(const struct matrix_view *a, int64_t i, int64_t j, tn_complex128 value);

// Copies `from` to `to`, of the same dtype and extents; neither overlaps the other.
void matrix_copy(struct matrix_view to, struct matrix_view from);
// matrix_copy(), but false where there is NaN; `to` is then only partly written.
bool matrix_copy_numbers(struct matrix_view to, struct matrix_view from);
// matrix_copy() of the lower or the upper triangle; the other one is filled with zeros.
void matrix_copy_triangle(struct matrix_view to, struct matrix_view from, bool upper);
void matrix_conjugate(struct matrix_view a); // in place
bool matrix_is_finite(struct matrix_view a);
bool matrix_has_nan(struct matrix_view a);
void matrix_fill_nan(struct matrix_view a);
void matrix_fill_identity(struct matrix_view a);

#endif // LINALG_MATRIX_H
