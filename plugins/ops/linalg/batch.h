// SPDX-License-Identifier: MIT
// Matrices of a call, one after the other, in threads.
//
// Threads. A job belongs to one call; its `run` is called by several threads at once.
#ifndef LINALG_BATCH_H
#define LINALG_BATCH_H

#include "lapack.h"
#include "matrix.h"

struct batch_job;
// Computes matrix `index` with the `room` of this thread. Returns 0, or what went wrong:
// such as LAPACK's info.
typedef int (*job_run)(const struct batch_job *job, int64_t index, char *room);

struct batch_job {
    const tn_cpu_call *call;
    const char *name;            // the primitive's, for messages
    const struct lapack *lapack; // NULL: not used
    job_run run;
    uint64_t room;    // bytes for each thread
    int64_t count;    // matrices
    double work;      // about how many operations one takes
    tn_layout batch;  // the axes that count matrices; no strides
    tn_dtype dtype;   // of the matrices
    int32_t reserved; // 0
};

// The axes of `layout` in front of its last `core`: those of a job.
tn_layout job_batch(const tn_layout *layout, int32_t core);

// The matrix of an operand with number `index` of the job; `core` axes are its own: 1 for a
// vector, which is a column. Axes in front broadcast.
struct matrix_view job_matrix(const struct batch_job *job, const tn_tensor *tensor,
                              int32_t core, int64_t index);

// Runs the job for all its matrices. Of those that fail the first one is told by its number
// in `*out_index`, and what its `run` returned is given; 0: none failed. Threads: those of
// the call, or, of a reference, this one.
int job_run_all(struct batch_job *job, int64_t *out_index);

// The bytes of scratch memory that a job with `room` for each thread takes: of the query's
// threads no more than there are matrices.
uint64_t job_scratch(const tn_kernel_query *query, int64_t count, uint64_t room);

// Records "linalg.inv: matrix 3 of 8 ..." with what went wrong. TN_ERR_ARGUMENT.
tn_status job_fail(const struct batch_job *job, int64_t index, const char *what);

// A kernel's or a reference's launch with LAPACK: finds it, runs the job, and tells of a
// failed matrix what `explain` says of its code.
tn_status job_launch(struct batch_job *job, const char *(*explain)(int code));

#endif // LINALG_BATCH_H
