// SPDX-License-Identifier: MIT
// Runs over the matrices of a call, in threads.
//
// Threads. A job belongs to one call; its `run` is called by several threads at once.
#ifndef LINALG_BATCH_H
#define LINALG_BATCH_H

#include "cpu/linalg/small.h"
#include "lapack.h"
#include "matrix.h"

struct batch_job;
// Computes matrix `index` with the `room` of this thread. Returns 0, or a code of the
// failure, such as LAPACK's info.
typedef int (*job_run)(const struct batch_job *job, int64_t index, char *room);

// Computes `count` small matrices from `index` on side by side (group.c). Returns the code
// of the first one that failed, whose number is *out_failed.
typedef int (*job_run_group)(const struct batch_job *job, int64_t index, int64_t count,
                             char *room, int64_t *out_failed);

// Parts of a thread's room; each primitive defines their order, the last part is for
// groups. And the lengths of LAPACK's work arrays.
enum { ROOM_PARTS = 10, ROOM_GROUP = ROOM_PARTS - 1 };
struct batch_room {
    uint64_t at[ROOM_PARTS], size;
    int64_t length[ROOM_PARTS]; // elements of a work array
    bool too_large;             // a length exceeds LAPACK's integers
};

struct batch_job {
    const tn_cpu_call *call;
    const char *name;            // the primitive's, for messages
    const struct lapack *lapack; // NULL: not used
    job_run run;
    job_run_group run_group;           // NULL: no groups
    const struct small_kernels *small; // NULL: not used
    struct batch_room room;
    int64_t count;    // matrices
    double work;      // approximate operations for a matrix
    tn_layout batch;  // axes in front of the matrices' own; no strides
    tn_dtype dtype;   // of the matrices
    int32_t reserved; // 0
};

// A job on the matrices in the last `core` axes of `layout`, each of which takes about
// `work` operations.
struct batch_job job_start(const tn_cpu_call *call, const char *name, job_run run,
                           const tn_layout *layout, int32_t core, double work);

// Adds part `part` to a room: `count` elements of `bytes`.
void room_add(struct batch_room *room, int part, uint64_t count, uint64_t bytes);
// room_add() for a work array of `dtype`, whose length LAPACK has written to its first
// element.
void room_add_work(struct batch_room *room, int part, tn_dtype dtype, const void *answer);

// Adds the part for groups where matrices of n rows, with k columns beside them, are small
// enough; otherwise that part stays empty.
void room_add_group(struct batch_room *room, tn_dtype dtype, int64_t n, int64_t k);
// Lets a job whose room has a part for groups use it. `run` is NULL where LAPACK computes
// all.
void job_use_groups(struct batch_job *job, job_run_group run);
// The group in a thread's room, of matrices of n rows with k columns beside them.
struct small_group job_group(const struct batch_job *job, char *room, int64_t n, int64_t k);
// The memory of `count` matrices of an operand from `index` on; further lanes repeat the
// last.
struct small_matrices job_matrices(const struct batch_job *job, const tn_tensor *tensor,
                                   int32_t core, int64_t index, int64_t count);
// The code of the first of `count` lanes with a pivot of 0 and no NaN, or 0.
int job_group_zero(const struct small_answer *answer, int64_t index, int64_t count,
                   int64_t *out_failed);
// Fills each matrix of output 0 whose lane has NaN with NaN.
void job_group_fill_nan(const struct batch_job *job, int32_t core, int64_t index,
                        int64_t count, const struct small_answer *answer);

// The axes of `layout` in front of its last `core` axes.
tn_layout job_batch(const tn_layout *layout, int32_t core);

// Matrix `index` of the job in an operand, whose last `core` axes are the matrix: 1 for a
// vector, which is a column, 0 for a number. Axes in front broadcast.
struct matrix_view job_matrix(const struct batch_job *job, const tn_tensor *tensor,
                              int32_t core, int64_t index);

// Runs the job for all its matrices. Returns the code of the first one that failed, with
// its number in *out_index; 0: none failed. Uses the call's threads, or, for a reference,
// this one.
int job_run_all(struct batch_job *job, int64_t *out_index);

// The bytes of scratch memory of a job with `room` bytes for each thread: the query's
// threads, but no more than matrices.
uint64_t job_scratch(const tn_kernel_query *query, int64_t count, uint64_t room);

// Records "linalg.inv: matrix 3 of 8 ..." followed by `what`. Returns TN_ERR_ARGUMENT.
tn_status job_fail(const struct batch_job *job, int64_t index, const char *what);

// The message for a code that no input causes.
const char *job_refused(int code);

// The launch of a kernel or reference: finds LAPACK unless groups suffice, runs the job,
// and reports a failed matrix with the text that `explain` gives for its code.
tn_status job_launch(struct batch_job *job, const char *(*explain)(int code));

// Runs a launch as a reference: computes outputs of any layout in scratch memory first, and
// gives `launch` the rest of that memory.
tn_status job_define(const tn_cpu_call *call, tn_status (*launch)(const tn_cpu_call *call));
uint64_t job_define_scratch(const tn_kernel_query *query,
                            uint64_t (*scratch)(const tn_kernel_query *query));

#endif // LINALG_BATCH_H
