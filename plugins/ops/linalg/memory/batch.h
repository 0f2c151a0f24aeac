// SPDX-License-Identifier: MIT
// Matrices of a call, one after the other, in threads.
//
// Threads. A job belongs to one call; its `run` is called by several threads at once.
#ifndef LINALG_BATCH_H
#define LINALG_BATCH_H

#include "cpu/linalg/small.h"
#include "lapack.h"
#include "matrix.h"

struct batch_job;
// Computes matrix `index` with the `room` of this thread. Returns 0, or what went wrong:
// such as LAPACK's info.
typedef int (*job_run)(const struct batch_job *job, int64_t index, char *room);

// The same for `count` matrices from `index` on, of which `*out_failed` is the first that
// went wrong: small ones, side by side (group.c).
typedef int (*job_run_group)(const struct batch_job *job, int64_t index, int64_t count,
                             char *room, int64_t *out_failed);

// Parts of a thread's room, in an order that is the primitive's own, the last for groups,
// and LAPACK's lengths of work arrays.
enum { ROOM_PARTS = 10, ROOM_GROUP = ROOM_PARTS - 1 };
struct batch_room {
    uint64_t at[ROOM_PARTS], size;
    int64_t length[ROOM_PARTS]; // of a work array: elements
    bool too_large;             // a work array is longer than LAPACK's integers count
};

struct batch_job {
    const tn_cpu_call *call;
    const char *name;            // the primitive's, for messages
    const struct lapack *lapack; // NULL: not used
    job_run run;
    job_run_group run_group;           // NULL: none
    const struct small_kernels *small; // NULL: not used
    struct batch_room room;
    int64_t count;    // matrices
    double work;      // about how many operations one takes
    tn_layout batch;  // the axes that count matrices; no strides
    tn_dtype dtype;   // of the matrices
    int32_t reserved; // 0
};

// A job on the matrices that `layout` has in its last `core` axes, each of which takes
// about `work` operations.
struct batch_job job_start(const tn_cpu_call *call, const char *name, job_run run,
                           const tn_layout *layout, int32_t core, double work);

// Adds part `part` to a room: `count` elements of `bytes`.
void room_add(struct batch_room *room, int part, uint64_t count, uint64_t bytes);
// Likewise a work array, of as many elements as LAPACK answered: of dtype `dtype`, whose
// first element says how many.
void room_add_work(struct batch_room *room, int part, tn_dtype dtype, const void *answer);

// Adds the part of groups where matrices of n rows, with k columns beside them, are small
// enough: it has a length then.
void room_add_group(struct batch_room *room, tn_dtype dtype, int64_t n, int64_t k);
// Lets a job whose room has that part use it. `run` is NULL where LAPACK computes all.
void job_use_groups(struct batch_job *job, job_run_group run);
// The group of n rows and k columns beside them in a thread's room.
struct small_group job_group(const struct batch_job *job, char *room, int64_t n, int64_t k);
// Where an operand has `count` matrices from `index` on; lanes behind have the last one.
struct small_matrices job_matrices(const struct batch_job *job, const tn_tensor *tensor,
                                   int32_t core, int64_t index, int64_t count);
// The first of `count` lanes with a pivot of 0 and no NaN: its code, or 0.
int job_group_zero(const struct small_answer *answer, int64_t index, int64_t count,
                   int64_t *out_failed);
// NaN for each matrix of output 0 whose lane has one.
void job_group_fill_nan(const struct batch_job *job, int32_t core, int64_t index,
                        int64_t count, const struct small_answer *answer);

// The axes of `layout` in front of its last `core`: those of a job.
tn_layout job_batch(const tn_layout *layout, int32_t core);

// The matrix of an operand with number `index` of the job; `core` axes are its own: 1 for a
// vector, which is a column, 0 for a number. Axes in front broadcast.
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

// The message for a code that no input gives.
const char *job_refused(int code);

// A kernel's or a reference's launch with LAPACK, or in groups without: finds it, runs the
// job, and tells of a failed matrix what `explain` says of its code.
tn_status job_launch(struct batch_job *job, const char *(*explain)(int code));

// Runs a launch as a reference: outputs of any layout are computed in scratch memory first;
// `launch` gets the rest of the scratch memory.
tn_status job_define(const tn_cpu_call *call, tn_status (*launch)(const tn_cpu_call *call));
uint64_t job_define_scratch(const tn_kernel_query *query,
                            uint64_t (*scratch)(const tn_kernel_query *query));

#endif // LINALG_BATCH_H
