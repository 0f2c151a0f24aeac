// SPDX-License-Identifier: MIT
// Shares the matrices of a call out to its threads.
#include "batch.h"

#include <pthread.h>

// The least operations that are worth a thread of their own.
#define WORK_OF_A_TASK 50e3

struct batch_job job_start(const tn_cpu_call *call, const char *name, job_run run,
                           const tn_layout *layout, int32_t core, double work)
{
    struct batch_job job = {.call = call,
                            .name = name,
                            .run = run,
                            .work = work,
                            .batch = job_batch(layout, core),
                            .dtype = call->inputs[0].layout.dtype};
    job.count = tn_layout_count(&job.batch);
    return job;
}

void room_add(struct batch_room *room, int part, uint64_t count, uint64_t bytes)
{
    room->at[part] = room->size;
    room->length[part] = (int64_t)count;
    uint64_t added = tn_saturated_multiply(count, bytes);
    added = tn_saturated_add(added, 63);
    room->size = tn_saturated_add(room->size, added - added % 64);
}

void room_add_work(struct batch_room *room, int part, tn_dtype dtype, const void *answer)
{
    // An f32 answer may be rounded down: one unit in the last place makes up for that.
    double length = tn_dtype_real(dtype) == TN_F32
                        ? (double)*(const float *)answer * (1 + 0x1p-22)
                        : *(const double *)answer;
    room->too_large |= !(length >= 0 && length < INT32_MAX);
    room_add(room, part, room->too_large ? 0 : (uint64_t)ceil(length) + 1,
             (uint64_t)tn_dtype_bytes(dtype));
}

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
        int64_t extent = job->batch.extent[job->batch.rank - i], position = index;
        int32_t axis = l->rank - core - i;
        if (i < job->batch.rank) { // the rest counts the first axis: no division
            position = index % extent;
            index /= extent;
        }
        if (axis >= 0 && l->extent[axis] > 1)
            offset += position * l->stride[axis];
    }
    return (struct matrix_view){
        .data = tn_element(tensor, offset),
        .dtype = l->dtype,
        .rows = core > 0 ? l->extent[l->rank - core] : 1,
        .columns = core == 2 ? l->extent[l->rank - 1] : 1,
        .row = core > 0 ? l->stride[l->rank - core] : 1,
        .column = core == 2 ? l->stride[l->rank - 1] : 1,
    };
}

// The first matrix that failed so far, and the result of its run.
struct batch_progress {
    struct batch_job *job;
    pthread_mutex_t lock;
    int64_t failed;
    int code;
};

// The call's scratch memory; "" where the call needs none.
static char *linalg_batch_scratch_of(const tn_cpu_call *call)
{
    static char nothing[1];
    return call->scratch ? call->scratch : nothing;
}

static void linalg_batch_run_range(void *context, int64_t begin, int64_t end,
                                   uint32_t worker)
{
    struct batch_progress *p = context;
    const struct batch_job *job = p->job;
    char *room = linalg_batch_scratch_of(job->call) + worker * job->room.size;
    int64_t some = 1;
    for (int64_t i = begin; i < end; i += some) {
        int64_t failed = i;
        some = !job->run_group               ? 1
               : end - i < job->small->lanes ? end - i
                                             : job->small->lanes;
        int code = job->run_group ? job->run_group(job, i, some, room, &failed)
                                  : job->run(job, i, room);
        if (code == 0)
            continue;
        pthread_mutex_lock(&p->lock);
        if (p->code == 0 || failed < p->failed) {
            p->failed = failed;
            p->code = code;
        }
        pthread_mutex_unlock(&p->lock);
        return; // this failure comes first in the range
    }
}

int job_run_all(struct batch_job *job, int64_t *out_index)
{
    struct batch_progress p = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    double grain = WORK_OF_A_TASK / (job->work + 100);
    if (job->run_group) // whole vectors, each about as long as one matrix
        grain = (double)job->small->lanes * (1 + floor(grain));
    if (job->count == 0)
        return 0;
    bool in_threads = job->count > 1 && job->call->parallel_for;
    bool is_limited = in_threads && job->lapack;
    if (is_limited)
        lapack_limit_threads();
    if (in_threads)
        job->call->parallel_for(job->call, job->count, grain < 1 ? 1 : (int64_t)grain,
                                linalg_batch_run_range, &p);
    else
        linalg_batch_run_range(&p, 0, job->count, 0);
    if (is_limited)
        lapack_free_threads();
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

const char *job_refused(int code)
{
    (void)code;
    return "is refused by LAPACK";
}

tn_status job_launch(struct batch_job *job, const char *(*explain)(int code))
{
    int64_t index = 0;
    if (job->room.too_large)
        return job->call->host->fail(job->call->host, TN_ERR_UNSUPPORTED,
                                     "%s: LAPACK's integers of 32 bits do not count its "
                                     "work array for matrices of this size",
                                     job->name);
    tn_status status =
        job->run_group ? TN_OK : lapack_enter(job->call, job->dtype, &job->lapack);
    if (status != TN_OK)
        return status;
    int code = job_run_all(job, &index);
    if (!job->run_group)
        lapack_leave();
    return code == 0 ? TN_OK : job_fail(job, index, explain(code));
}

static uint64_t output_space(const tn_layout *l)
{
    uint64_t bytes = tn_saturated_multiply((uint64_t)tn_layout_count(l),
                                           (uint64_t)tn_dtype_bytes(l->dtype));
    bytes = tn_saturated_add(bytes, 63);
    return bytes - bytes % 64;
}

static void make_contiguous(tn_layout *l)
{
    int64_t step = 1;
    l->offset = 0;
    for (int32_t i = l->rank - 1; i >= 0; i--) {
        l->stride[i] = step;
        step *= l->extent[i];
    }
}

tn_status job_define(const tn_cpu_call *call, tn_status (*launch)(const tn_cpu_call *call))
{
    tn_tensor outputs[LINALG_MOST_OUTPUTS];
    tn_cpu_call inner = *call;
    inner.scratch = linalg_batch_scratch_of(call);
    for (uint32_t i = 0; i < call->num_outputs; i++) {
        uint64_t bytes = output_space(&call->outputs[i].layout);
        outputs[i] = call->outputs[i];
        outputs[i].data = inner.scratch;
        make_contiguous(&outputs[i].layout);
        inner.scratch = (char *)inner.scratch + bytes;
        inner.scratch_size -= bytes;
    }
    inner.outputs = outputs;
    inner.parallel_for = NULL;
    tn_status status = launch(&inner);
    for (uint32_t i = 0; i < call->num_outputs && status == TN_OK; i++)
        tn_copy_region(&call->outputs[i], &outputs[i]);
    return status;
}

uint64_t job_define_scratch(const tn_kernel_query *query,
                            uint64_t (*scratch)(const tn_kernel_query *query))
{
    uint64_t size = scratch(query);
    for (uint32_t i = 0; i < query->num_outputs; i++)
        size = tn_saturated_add(size, output_space(&query->outputs[i]));
    return size;
}
