// SPDX-License-Identifier: MIT
// Computes small matrices of a job side by side, one in each lane of a vector.
//
// LAPACK computes none of them, so the bits of a matrix depend neither on threads nor on
// matrices beside it. vmap relies on that where a matrix is nearly singular.
#include "batch.h"

#include <pthread.h>
#include "cpu/instruction_sets.h"

#define MOST_COLUMNS 64
#define LEAST_COUNT 4 // least matrices of a job that use lanes

void room_add_group(struct batch_room *room, tn_dtype dtype, int64_t n, int64_t k)
{
    if (!tn_is_complex(dtype) && n > 0 && n <= SMALL_MOST_ROWS && k >= 0 &&
        k <= MOST_COLUMNS)
        room_add(room, ROOM_GROUP, (uint64_t)(n * (n + k)) + 1, SMALL_VECTOR);
}

#define VARIANT(name, single, one)                                                         \
    ((single) ? (one) ? &small_kernels_f32_one_##name : &small_kernels_f32_##name          \
     : (one)  ? &small_kernels_f64_one_##name                                              \
              : &small_kernels_f64_##name)

#ifdef CPU_BUILD_X86
static uint32_t features; // of the processor

// Read once, as a virtual machine takes microseconds to answer.
static void linalg_group_read_features(void)
{
    features = cpu_features();
}

// The features that TENON_CPU allows.
static uint32_t allowed_features(const tn_host *host)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *text = host->config(host, "TENON_CPU");
    pthread_once(&once, linalg_group_read_features);
    if (text && strcmp(text, "baseline") == 0)
        return 0;
    return text && strcmp(text, "avx2") == 0 ? features & CPU_HAS_AVX2 : features;
}
#endif

// The variant for this processor: for f32 (`single`) or f64, for `one` matrix or a group.
static const struct small_kernels *linalg_group_pick(const tn_host *host, bool single,
                                                     bool one)
{
#ifdef CPU_BUILD_X86
    uint32_t has = allowed_features(host);
    if (has & CPU_HAS_AVX512)
        return VARIANT(avx512, single, one);
    if (has & CPU_HAS_AVX2)
        return VARIANT(avx2, single, one);
#else
    (void)host;
#endif
    return VARIANT(baseline, single, one);
}

void job_use_groups(struct batch_job *job, job_run_group run)
{
    if (job->room.length[ROOM_GROUP] == 0)
        return;
    job->small =
        linalg_group_pick(job->call->host, job->dtype == TN_F32, job->count < LEAST_COUNT);
    job->run_group = run;
}

struct small_group job_group(const struct batch_job *job, char *room, int64_t n, int64_t k)
{
    uintptr_t at = (uintptr_t)(room + job->room.at[ROOM_GROUP]);
    size_t gap = (SMALL_VECTOR - at % SMALL_VECTOR) % SMALL_VECTOR;
    return (struct small_group){(unsigned char *)room + job->room.at[ROOM_GROUP] + gap, n,
                                k};
}

// The distance in bytes of adjacent matrices along the last axis of the batch.
static int64_t linalg_group_step_of(const struct batch_job *job, const tn_layout *l,
                                    int32_t core)
{
    int32_t axis = l->rank - core - 1;
    return job->batch.rank > 0 && axis >= 0 && l->extent[axis] > 1
               ? l->stride[axis] * tn_dtype_bytes(l->dtype)
               : 0;
}

struct small_matrices job_matrices(const struct batch_job *job, const tn_tensor *tensor,
                                   int32_t core, int64_t index, int64_t count)
{
    int64_t inner = job->batch.rank > 0 ? job->batch.extent[job->batch.rank - 1] : 1;
    int64_t step = linalg_group_step_of(job, &tensor->layout, core),
            position = index % inner;
    struct matrix_view view = job_matrix(job, tensor, core, index);
    struct small_matrices matrices = {.row = view.row, .column = view.column};
    for (int64_t lane = 0; lane < SMALL_MOST_LANES; lane++) {
        matrices.at[lane] = view.data;
        if (lane + 1 >= count)
            continue;
        if (++position < inner) {
            view.data += step;
        } else {
            view = job_matrix(job, tensor, core, index + lane + 1);
            position = 0;
        }
    }
    return matrices;
}

int job_group_zero(const struct small_answer *answer, int64_t index, int64_t count,
                   int64_t *out_failed)
{
    for (int64_t lane = 0; lane < count; lane++) {
        if (answer->zero[lane] == 0 || answer->nan[lane])
            continue;
        *out_failed = index + lane;
        return answer->zero[lane];
    }
    return 0;
}

void job_group_fill_nan(const struct batch_job *job, int32_t core, int64_t index,
                        int64_t count, const struct small_answer *answer)
{
    for (int64_t lane = 0; lane < count; lane++)
        if (answer->nan[lane])
            matrix_fill_nan(job_matrix(job, &job->call->outputs[0], core, index + lane));
}
