// SPDX-License-Identifier: MIT
// Factors and solutions of one large matrix by the threads of the call, with LAPACK's
// results; by LAPACK itself for a small matrix or a single thread. Matrices are by columns.
//
// Results are the same for any number of threads above one.
#ifndef LINALG_THREADS_H
#define LINALG_THREADS_H

#include "batch.h"

// Rows of the least matrix that threads factor.
#define LINALG_LEAST_THREADED 256

// Whether the job is one matrix for which the call has threads, and OpenBLAS none.
bool job_has_threads(const struct batch_job *job);

// Whether threads share a matrix of n rows of the job.
static inline bool threads_share(const struct batch_job *job, int64_t n)
{
    return n >= LINALG_LEAST_THREADED && job_has_threads(job);
}

// As getrf, getrs and potrf; *info likewise.
void threads_lu(const struct batch_job *job, int m, int n, void *a, int lda, int *pivots,
                int *info);
void threads_solve(const struct batch_job *job, const char *trans, int n, int k,
                   const void *factors, const int *pivots, void *b, int *info);
void threads_cholesky(const struct batch_job *job, bool upper, int n, void *a, int *info);
// As trsm from the right, with k rows of b and a square a of n rows; other arguments are
// fixed.
void threads_triangular(const struct batch_job *job, const char *uplo, const char *trans,
                        const char *diag, int k, int n, const void *a, int lda, void *b);

#endif // LINALG_THREADS_H
