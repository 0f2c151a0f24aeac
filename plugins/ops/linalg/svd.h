// SPDX-License-Identifier: MIT
// Singular values and vectors of one matrix, by LAPACK's gesdd (divide and conquer).
//
// Memory of a by rows is memory of its transpose by columns, so LAPACK gives the factors
// exchanged and transposed: a's own by rows, without a copy.
//
// Threads. Pure functions over the memory that they are given.
#ifndef LINALG_SVD_H
#define LINALG_SVD_H

#include "memory/batch.h"

// Parts of the room, of which svd_room_add fills those in front of SVD_PARTS.
enum { SVD_MATRIX, SVD_WORK, SVD_REALS, SVD_INTEGERS, SVD_PARTS };

// Adds the parts that svd_run needs for matrices of m x n; jobz as LAPACK's: "N", "S", "A".
void svd_room_add(struct batch_room *room, tn_dtype dtype, const char *jobz, int64_t m,
                  int64_t n);

// Memory without gaps that receives the factors by rows: s of min(m, n), and for "S" and
// "A" u and vh. Returns 0, SVD_NOT_FINITE without calling LAPACK, or LAPACK's info.
enum { SVD_NOT_FINITE = INT32_MIN };
int svd_run(const struct batch_job *job, struct matrix_view a, const char *jobz, void *s,
            void *u, void *vh, char *room);

// The message for a code of svd_run, after "matrix 3 of 8".
const char *svd_explain(int code);

#endif // LINALG_SVD_H
