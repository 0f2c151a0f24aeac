// SPDX-License-Identifier: MIT
// nn.group_norm/1 of f32, channels last: a sample is read for its means, for its variances
// and for the result, one sample after the other, so that the later reads are of a cache.
// Large samples are cut into splits of rows, by sizes alone, whose sums are added in order.
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/nn_attrs.h>
#include "kernels.h"

#define BLOCK 2048 // elements that one loop after the other works on; the most channels
#define SPLIT_ELEMENTS 16384
#define LARGE_SAMPLE (4 * SPLIT_ELEMENTS) // whose splits are shared by the threads

typedef union cpu_accumulator accumulator;

// Memory of a thread: a block, and values of channels, repeated for each of its rows.
struct group_room {
    float block[BLOCK], mean[BLOCK], scale[BLOCK], bias[BLOCK];
};

struct group_norm {
    const tn_cpu_call *call;
    const struct cpu_kernels *kernels;
    const float *x, *weight, *bias; // weight, bias: NULL without
    float *to;                      // NULL: a program takes the elements
    int64_t samples, rows, channels, groups;
    int64_t splits, split, step; // splits of a sample; rows of a split and of a block
    double eps;
    struct group_room *rooms; // by worker
    accumulator *sums;        // by split, or by worker, of each channel
};

// A pass over a split of a sample. `room` has what the pass reads of channels.
struct group_pass {
    const struct group_norm *s;
    int64_t sample;
    const struct group_room *room;
    bool squares; // of the difference from the mean are summed; else the elements
};

static void group_norm_extents(const tn_layout *x, int64_t *rows, int64_t *splits)
{
    int64_t channels = x->extent[x->rank - 1];
    *rows = 1;
    for (int32_t i = 1; i < x->rank - 1; i++)
        *rows *= x->extent[i];
    *splits = *rows * channels < LARGE_SAMPLE
                  ? 1
                  : (*rows * channels + SPLIT_ELEMENTS - 1) / SPLIT_ELEMENTS;
}

static void group_norm_sum(const struct group_pass *pass, int64_t split, float *block,
                           accumulator *sums)
{
    const struct group_norm *s = pass->s;
    cpu_map_fn *const *map = s->kernels->map[TN_F32];
    cpu_reduce_columns_fn *fold = s->kernels->reduce->columns[CPU_REDUCE_SUM][TN_F32];
    int64_t c = s->channels, first = split * s->split, end = first + s->split, n;
    const float *x = s->x + pass->sample * s->rows * c;
    memset(sums, 0, (size_t)c * sizeof(*sums));
    end = end < s->rows ? end : s->rows;
    if (!pass->squares) {
        fold(sums, x + first * c, end - first, c, c);
        return;
    }
    for (; first < end; first += n) {
        n = end - first < s->step ? end - first : s->step;
        map[TN_EXPR_SUB](block, (const void *[]){x + first * c, pass->room->mean}, n * c,
                         0);
        map[TN_EXPR_MUL](block, (const void *[]){block, block}, n * c, 0);
        fold(sums, block, n, c, c);
    }
}

static void group_norm_write(const struct group_pass *pass, int64_t split, float *block,
                             uint32_t worker)
{
    const struct group_norm *s = pass->s;
    cpu_map_fn *const *map = s->kernels->map[TN_F32];
    const struct group_room *room = pass->room;
    int64_t c = s->channels, first = split * s->split, end = first + s->split, n;
    end = end < s->rows ? end : s->rows;
    for (; first < end; first += n) {
        n = end - first < s->step ? end - first : s->step;
        int64_t at = (pass->sample * s->rows + first) * c;
        float *out = s->to ? s->to + at : block;
        map[CPU_OP_SUB_THEN_MUL](out, (const void *[]){s->x + at, room->mean, room->scale},
                                 n * c, 0);
        if (s->bias)
            map[TN_EXPR_ADD](out, (const void *[]){out, room->bias}, n * c, 0);
        if (!s->to)
            s->call->store(s->call, 0, at, n * c, block, worker);
    }
}

// The loops run over splits of one sample.
static void group_norm_sum_splits(void *context, int64_t begin, int64_t end,
                                  uint32_t worker)
{
    const struct group_pass *pass = context;
    const struct group_norm *s = pass->s;
    for (int64_t split = begin; split < end; split++)
        group_norm_sum(pass, split, s->rooms[worker].block, s->sums + split * s->channels);
}

static void group_norm_write_splits(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    const struct group_pass *pass = context;
    for (int64_t split = begin; split < end; split++)
        group_norm_write(pass, split, pass->s->rooms[worker].block, worker);
}

static void repeat_channels(const struct group_norm *s, float *values)
{
    for (int64_t i = s->channels; i < s->step * s->channels; i++)
        values[i] = values[i - s->channels];
}

// The mean of each group, of sums of its channels by splits, for each of its channels.
static void group_norm_means(const struct group_norm *s, const accumulator *sums,
                             float *means)
{
    int64_t each = s->channels / s->groups;
    for (int64_t first = 0; first < s->channels; first += each) {
        double sum = 0;
        for (int64_t split = 0; split < s->splits; split++)
            for (int64_t i = first; i < first + each; i++)
                sum += sums[split * s->channels + i].f;
        for (int64_t i = first; i < first + each; i++)
            means[i] = (float)(sum / (double)(s->rows * each));
    }
}

// Makes of the variances in room->scale the factor of each channel, and repeats it.
static void group_norm_factors(const struct group_norm *s, struct group_room *room)
{
    for (int64_t i = 0; i < s->channels; i++) {
        float scale = 1 / sqrtf(room->scale[i] + (float)s->eps);
        room->scale[i] = s->weight ? scale * s->weight[i] : scale;
        room->bias[i] = s->bias ? s->bias[i] : 0;
    }
    repeat_channels(s, room->scale);
    repeat_channels(s, room->bias);
}

// The loop runs over samples, each of one split.
static void group_norm_samples(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct group_norm *s = context;
    struct group_room *room = &s->rooms[worker];
    accumulator *sums = s->sums + worker * s->channels;
    struct group_pass pass = {.s = s, .room = room};
    for (pass.sample = begin; pass.sample < end; pass.sample++) {
        pass.squares = false;
        group_norm_sum(&pass, 0, room->block, sums);
        group_norm_means(s, sums, room->mean);
        repeat_channels(s, room->mean);
        pass.squares = true;
        group_norm_sum(&pass, 0, room->block, sums);
        group_norm_means(s, sums, room->scale);
        group_norm_factors(s, room);
        group_norm_write(&pass, 0, room->block, worker);
    }
}

static void group_norm_large_sample(const struct group_norm *s, int64_t sample)
{
    struct group_room *room = s->rooms; // threads read it, but for its block
    struct group_pass pass = {.s = s, .sample = sample, .room = room};
    s->call->parallel_for(s->call, s->splits, 1, group_norm_sum_splits, &pass);
    group_norm_means(s, s->sums, room->mean);
    repeat_channels(s, room->mean);
    pass.squares = true;
    s->call->parallel_for(s->call, s->splits, 1, group_norm_sum_splits, &pass);
    group_norm_means(s, s->sums, room->scale);
    group_norm_factors(s, room);
    s->call->parallel_for(s->call, s->splits, 1, group_norm_write_splits, &pass);
}

static const float *optional_floats(const tn_cpu_call *call, uint32_t i)
{
    bool given = i < call->num_inputs && call->inputs[i].data;
    return given ? first_element(&call->inputs[i]) : NULL;
}

static tn_status group_norm(const tn_cpu_call *call)
{
    const tn_group_norm_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout;
    struct group_norm s = {.call = call,
                           .kernels = kernel_variant(call),
                           .x = first_element(&call->inputs[0]),
                           .weight = optional_floats(call, 1),
                           .bias = optional_floats(call, 2),
                           .to = call->outputs[0].data ? first_element(&call->outputs[0])
                                                       : NULL,
                           .samples = x->extent[0],
                           .channels = x->extent[x->rank - 1],
                           .groups = attrs->groups,
                           .eps = attrs->eps,
                           .rooms = call->scratch};
    group_norm_extents(x, &s.rows, &s.splits);
    s.split = (s.rows + s.splits - 1) / s.splits;
    s.splits =
        (s.rows + s.split - 1) / s.split; // fewer, where rounding leaves splits no rows
    s.step = BLOCK / s.channels;
    s.sums = (accumulator *)(void *)(s.rooms + call->num_threads);
    if (s.splits == 1)
        call->parallel_for(call, s.samples, 1, group_norm_samples, &s);
    else
        for (int64_t sample = 0; sample < s.samples; sample++)
            group_norm_large_sample(&s, sample);
    return TN_OK;
}

static uint64_t group_norm_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    int64_t rows, splits;
    group_norm_extents(x, &rows, &splits);
    uint64_t sums = (uint64_t)splits > query->num_workers ? (uint64_t)splits
                                                          : (uint64_t)query->num_workers;
    return tn_saturated_multiply(sizeof(struct group_room), query->num_workers) +
           tn_saturated_multiply(sums,
                                 (uint64_t)x->extent[x->rank - 1] * sizeof(accumulator));
}

// Groups that are rows, and channels before other axes, go by row programs.
static int32_t group_norm_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    const tn_group_norm_attrs *attrs = query->attrs;
    int64_t rows, splits;
    group_norm_extents(x, &rows, &splits);
    return tn_axis(attrs->axis, x->rank) == x->rank - 1 && rows > 1 &&
           x->extent[x->rank - 1] <= BLOCK && x->extent[x->rank - 1] > 0;
}

#define F32 (TN_DTYPE_BIT(TN_F32))
static const tn_operand_rule rules[] = {{F32, TN_NEEDS_CONTIGUOUS, 0, 0},
                                        {F32, TN_NEEDS_CONTIGUOUS, 0, 0},
                                        {F32, TN_NEEDS_CONTIGUOUS, 0, 0},
                                        {F32, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = group_norm,
};
const tn_kernel group_norm_kernel = {
    .struct_size = sizeof(tn_kernel),
    .flags = TN_KERNEL_NO_COPIES,
    .primitive = "nn.group_norm/1",
    .family = TN_FAMILY_CPU,
    .name = "samples",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = group_norm_accepts,
    .scratch_size = group_norm_scratch,
    .payload = &payload,
};
