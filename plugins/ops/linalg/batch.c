// SPDX-License-Identifier: MIT
// Shares the matrices of a call out to its threads.
#include "batch.h"

#include <pthread.h>

// Operations that are worth a thread of their own.
#define WORK_OF_A_TASK 50e3

tn_layout job_batch(const tn_layout *layout, int32_t core)
{
    tn_layout batch = {.rank = layout->rank - core};
    for (int32_t i = 0; i < batch.rank; i++)
        batch.extent[i] = layout->extent[i];
    return batch;
}

struct matrix_view job_matrix(const struct batch_job *job, const tn_tensor *tensor,
                              int32_t core, int64_t index)
{
    const tn_layout *l = &tensor->layout;
    int64_t offset = l->offset;
    for (int32_t i = 1; i <= job->batch.rank; i++) {
        int64_t extent = job->batch.extent[job->batch.rank - i];
        int32_t axis = l->rank - core - i;
        if (axis >= 0 && l->extent[axis] > 1)
            offset += index % extent * l->stride[axis];
        index /= extent;
    }
    return (struct matrix_view){
        .data = tn_element(tensor, offset),
        .dtype = l->dtype,
        .rows = l->extent[l->rank - core],
        .columns = core == 2 ? l->extent[l->rank - 1] : 1,
        .row = l->stride[l->rank - core],
        .column = core == 2 ? l->stride[l->rank - 1] : 1,
    };
}

// The first matrix that failed so far, and what its run returned.
struct batch_progress {
    struct batch_job *job;
    pthread_mutex_t lock;
    int64_t failed;
    int code;
};

static void body(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    struct batch_progress *p = context;
    char *room = (char *)p->job->call->scratch + worker * p->job->room;
    for (int64_t i = begin; i < end; i++) {
        int code = p->job->run(p->job, i, room);
        if (code == 0)
            continue;
        pthread_mutex_lock(&p->lock);
        if (p->code == 0 || i < p->failed) {
            p->failed = i;
            p->code = code;
        }
        pthread_mutex_unlock(&p->lock);
        return; // the rest of the range is behind the first one
    }
}

int job_run_all(struct batch_job *job, int64_t *out_index)
{
    struct batch_progress p = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    double grain = WORK_OF_A_TASK / (job->work + 100);
    if (job->count == 0)
        return 0;
    if (job->count == 1 || !job->call->parallel_for)
        body(&p, 0, job->count, 0);
    else
        job->call->parallel_for(job->call, job->count, grain < 1 ? 1 : (int64_t)grain, body,
                                &p);
    *out_index = p.failed;
    return p.code;
}

uint64_t job_scratch(const tn_kernel_query *query, int64_t count, uint64_t room)
{
    uint64_t workers = query->num_workers;
    if (workers == 0 || count <= 1)
        workers = 1;
    return tn_saturated_multiply(workers, room);
}

tn_status job_fail(const struct batch_job *job, int64_t index, const char *what)
{
    const tn_host *host = job->call->host;
    return host->fail(host, TN_ERR_ARGUMENT, "%s: matrix %" PRId64 " of %" PRId64 " %s",
                      job->name, index, job->count, what);
}

tn_status job_launch(struct batch_job *job, const char *(*explain)(int code))
{
    int64_t index = 0;
    tn_status status = lapack_enter(job->call, job->dtype, &job->lapack);
    if (status != TN_OK)
        return status;
    int code = job_run_all(job, &index);
    lapack_leave();
    return code == 0 ? TN_OK : job_fail(job, index, explain(code));
}
