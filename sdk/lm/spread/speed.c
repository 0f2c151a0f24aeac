// SPDX-License-Identifier: MIT
// Measures how fast a process runs layers, on one layer of the model, which may be the
// first layer that the process loads anyway.
#include <stdlib.h>
#include <time.h>
#include "../engine/weights.h"
#include "spread.h"

#define STEPS 3 // measured steps, behind one that makes the plan

static double spread_speed_seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

// Gives the least time of a step of one position, in seconds.
static tn_status time_steps(tn_lm *model, const void *input, float *output, double *out)
{
    tn_lm_sequence *sequence;
    tn_status status = tn_lm_sequence_open(model, &sequence);
    if (status != TN_OK)
        return status;
    for (int i = 0; i <= STEPS && status == TN_OK; i++) {
        double begin = spread_speed_seconds();
        status = tn_lm_infer_tensor(sequence, input, 1, 0, output);
        double took = spread_speed_seconds() - begin;
        if (i == 1 || (i > 1 && took < *out))
            *out = took;
    }
    tn_lm_sequence_close(sequence);
    return status;
}

tn_status lm_spread_speed(tn_lm *model, int64_t layer, double *out)
{
    const tn_model_facts *facts = model->facts;
    uint64_t bytes = 0;
    double took = 0;
    int64_t row = facts->width > facts->vocabulary ? facts->width : facts->vocabulary;
    tn_status status = tn_lm_ensure_shard(model, layer, layer);
    void *zeros = lm_alloc((uint64_t)facts->width, sizeof(float));
    float *output = lm_alloc((uint64_t)row, sizeof(float));
    if (status == TN_OK)
        status =
            zeros && output ? lm_weights_bytes(model, layer, &bytes, NULL) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = time_steps(model, zeros, output, &took);
    free(zeros);
    free(output);
    if (status == TN_OK)
        *out = (double)bytes / (took > 1e-9 ? took : 1e-9);
    return status;
}
