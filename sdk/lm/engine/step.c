// SPDX-License-Identifier: MIT
// One step of a model: its graph, built by the architecture's plugin once for each number
// of positions, and its run.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base_attrs.h>
#include "../base/fail.h"
#include "caches.h"
#include "devices.h"
#include "low_rank.h"
#include "step.h"
#include "weights.h"

// Inputs of a plan: tokens; the rows whose logits are wanted; CURSOR_INPUTS positions for
// each part; the caches; and, if the step has rows of images, these and a mask of their
// positions.
enum { IN_TOKENS, IN_LAST, IN_CURSORS };
enum { CURSOR_POSITION, CURSOR_LENGTH, CURSOR_START, CURSOR_SLOTS, CURSOR_INPUTS };
enum { NUM_GIVEN = 2 };

// Index of the first cache among the inputs.
static uint64_t first_cache(const tn_lm *model)
{
    return IN_CURSORS + CURSOR_INPUTS * (uint64_t)model->division.count;
}

// --- building --------------------------------------------------------------------------

struct engine_step {
    tn_model_step base; // first: slots get its address
    tn_lm *model;
    tn_scope *scope;
    int64_t device;                          // the device of the part that is built
    tn_array *const *trained, *const *given; // see lm_build
    struct lm_gathered *gathered;
};

static struct lm_weight *engine_step_weight_of(const tn_model_step *base, const char *name,
                                               uint32_t flag)
{
    const struct engine_step *step = (const struct engine_step *)(const void *)base;
    struct lm_weight *weight = lm_weight_find(&step->model->weights, name, step->device);
    if (!weight || (flag ? !(weight->flags & flag) : weight->flags != 0))
        tn_scope_fail(step->scope, TN_ERR_INTERNAL,
                      "%s: uses the weight %s, which it does not list %s",
                      step->model->plugin, name,
                      flag == TN_MODEL_PRODUCT ? "for products"
                      : flag == TN_MODEL_ROWS  ? "for rows"
                                               : "to be read whole");
    else
        return weight;
    return NULL;
}

static tn_array *engine_step_weight(const tn_model_step *base, const char *name)
{
    struct lm_weight *weight = engine_step_weight_of(base, name, 0);
    return weight ? weight->plain : NULL;
}

static bool is_half(const tn_array *array)
{
    const tn_type *type = tn_array_type(array);
    return type->dtype == TN_F16 || type->dtype == TN_BF16;
}

// x times the matrix that holds this weight's rows and those joined with it. Equal products
// of a step are computed once.
static tn_array *whole_product(const struct engine_step *step, tn_array *x,
                               const struct lm_weight *weight)
{
    if (weight->packed)
        return tn_op(step->scope, "quant.quantized_matmul/1", TN_IN(x, weight->product),
                     tn_attrs("format", weight->packed));
    if (is_half(weight->product))
        return tn_op(step->scope, "quant.quantized_matmul/1", TN_IN(x, weight->product),
                     TN_NO_ATTRS);
    tn_array *turned =
        tn_op(step->scope, "base.transpose/1", TN_IN(weight->product), TN_NO_ATTRS);
    return tn_op(step->scope, "base.matmul/1", TN_IN(x, turned), TN_NO_ATTRS);
}

// Gathers the sums of the squares of a product's input, by column, where they are asked
// for.
static void engine_step_gather(const struct engine_step *step, tn_array *x,
                               const char *name)
{
    struct lm_gathered *g = step->gathered;
    const tn_type *type = g ? tn_array_type(x) : NULL;
    if (!type || g->count == g->room)
        return;
    tn_array *rows = tn_op(step->scope, "base.reshape/1", TN_IN(x),
                           tn_attrs("shape", TN_INTS(-1, type->extent[type->rank - 1])));
    tn_array *squares = tn_expr(step->scope, "x -> x * x", TN_IN(rows), TN_NO_ATTRS);
    struct lm_sum *sum = &g->sums[g->count++];
    snprintf(sum->name, sizeof(sum->name), "%s", name);
    sum->squares =
        tn_op(step->scope, "base.sum/1", TN_IN(squares), tn_attrs("axis", TN_INTS(0)));
    sum->columns = type->extent[type->rank - 1];
    sum->rows = type->extent[0] * (type->rank > 2 ? type->extent[1] : 1);
}

// Sum over the processes of a product of which each has some columns of the weight.
static tn_array *whole_sum(const struct engine_step *step, tn_array *product,
                           const char *name)
{
    const struct lm_partial *partial = &step->model->partial;
    return partial->has && partial->has(name)
               ? tn_op(step->scope, "dist.all_reduce/1", TN_IN(product),
                       tn_attrs("group", partial->group))
               : product;
}

// Logits of all processes, where each has some rows of the output's matrix.
static tn_array *whole_logits(const struct engine_step *step, tn_array *product,
                              const char *name)
{
    const struct lm_partial *partial = &step->model->partial;
    int64_t size = lm_output_shares(partial, name);
    const tn_type *type = size > 1 ? tn_array_type(product) : NULL;
    if (!type)
        return product;
    tn_scope *s = step->scope;
    int64_t words = type->extent[type->rank - 1];
    tn_ints extents = {.count = (uint32_t)type->rank, .given = 1};
    const tn_ints *shape = &extents;
    memcpy(extents.value, type->extent, sizeof(extents.value));
    extents.value[type->rank - 1] = words * size;
    tn_array *all = tn_op(s, "dist.all_gather/1", TN_IN(product),
                          tn_attrs("group", partial->group, "size", size));
    all =
        tn_op(s, "base.reshape/1", TN_IN(all), tn_attrs("shape", TN_INTS(size, -1, words)));
    all = tn_op(s, "base.transpose/1", TN_IN(all), tn_attrs("axes", TN_INTS(1, 0, 2)));
    return tn_op(s, "base.reshape/1", TN_IN(all), tn_attrs("shape", shape));
}

static tn_array *engine_step_experts(const tn_model_step *base, tn_array *x, tn_array *ids,
                                     const char *name)
{
    const struct engine_step *step = (const struct engine_step *)(const void *)base;
    struct lm_weight *weight = engine_step_weight_of(base, name, TN_MODEL_PRODUCT);
    if (!weight)
        return NULL;
    engine_step_gather(step, x, name);
    tn_array *product =
        tn_op(step->scope, "quant.experts_matmul/1", TN_IN(x, weight->product, ids),
              tn_attrs("format", weight->packed ? weight->packed : ""));
    return whole_sum(step, product, name);
}

static tn_array *engine_step_product(const tn_model_step *base, tn_array *x,
                                     const char *name)
{
    const struct engine_step *step = (const struct engine_step *)(const void *)base;
    struct lm_weight *weight = engine_step_weight_of(base, name, TN_MODEL_PRODUCT);
    if (!weight)
        return NULL;
    engine_step_gather(step, x, name);
    tn_array *product = whole_sum(step, whole_product(step, x, weight), name);
    product = whole_logits(step, product, name);
    if (weight->count != 0)
        product = tn_op(step->scope, "base.slice/1", TN_IN(product),
                        tn_attrs("start", TN_INTS(0, weight->first), "stop",
                                 TN_INTS(TN_SLICE_END, weight->first + weight->count)));
    return lm_adapted(&step->model->adapter, step->scope, step->trained, name, x, product);
}

static tn_array *engine_step_rows(const tn_model_step *base, tn_array *ids,
                                  const char *name)
{
    const struct engine_step *step = (const struct engine_step *)(const void *)base;
    struct lm_weight *weight = engine_step_weight_of(base, name, TN_MODEL_ROWS);
    if (!weight)
        return NULL;
    tn_array *rows =
        weight->format
            ? tn_op(step->scope, "quant.quantized_take/1", TN_IN(weight->rows, ids),
                    tn_attrs("format", weight->format))
            : tn_op(step->scope, "base.take/1", TN_IN(weight->rows, ids), TN_NO_ATTRS);
    if (is_half(rows))
        rows = tn_op(step->scope, "base.astype/1", TN_IN(rows), tn_attrs("dtype", "f32"));
    if (!step->given || ids != base->input)
        return rows;
    return tn_expr(step->scope, "r, g, is -> select(is > 0, g, f32(r))",
                   TN_IN(rows, step->given[0], step->given[1]), TN_NO_ATTRS);
}

static tn_array *engine_step_constant(const tn_model_step *base, tn_dtype dtype,
                                      const tn_shape *shape, const void *data)
{
    const struct engine_step *step = (const struct engine_step *)(const void *)base;
    return tn_from_data(step->scope, dtype, shape, data);
}

// Builds the layers of one part; base->input is its input.
static tn_status build_part(struct engine_step *step, tn_model_step *base, int64_t index,
                            const struct lm_cursor *cursor, tn_array *last)
{
    tn_lm *model = step->model;
    const struct lm_part *part = &model->division.parts[index];
    bool is_last = index == model->division.count - 1;
    tn_array **caches =
        base->caches + (part->first - model->first) * model->facts->num_caches;
    tn_status status = lm_scope_on(&model->division, index, step->scope);
    if (status != TN_OK)
        return status;
    step->device = part->device;
    step->base.first = part->first;
    step->base.end = part->end;
    step->base.input = base->input;
    step->base.position = cursor->position;
    step->base.length = cursor->length;
    step->base.start = cursor->start;
    step->base.slots = base->slots ? cursor->slots : NULL;
    step->base.last = is_last ? last : NULL;
    step->base.caches = caches;
    step->base.output = NULL;
    status = model->ops->build(model->host, model->self, &step->base);
    if (status != TN_OK)
        return tn_scope_fail(step->scope, status, "%s: %s", model->plugin, tn_last_error());
    base->input = base->output = step->base.output;
    base->hidden = step->base.hidden;
    return tn_scope_status(step->scope);
}

tn_status lm_build(tn_lm *model, tn_scope *scope, tn_model_step *base,
                   const struct lm_cursor *cursors, tn_array *const *trained,
                   tn_array *const *given, struct lm_gathered *gathered)
{
    const tn_host_graph *graph = model->host->query(model->host, TN_HOST_GRAPH);
    tn_build build = {.struct_size = sizeof(build)};
    if (!graph)
        return tn_scope_fail(scope, TN_ERR_INTERNAL, "the host has no " TN_HOST_GRAPH);
    tn_status status = graph->build(model->host, scope, &build);
    if (status != TN_OK)
        return status;
    struct engine_step step = {*base, model, scope, 0, trained, given, gathered};
    step.base.struct_size = sizeof(step.base);
    step.base.build = &build;
    step.base.context = model->context;
    step.base.sequences = base->sequences ? base->sequences : 1;
    step.base.weight = engine_step_weight;
    step.base.product = engine_step_product;
    step.base.rows = engine_step_rows;
    step.base.constant = engine_step_constant;
    step.base.experts = engine_step_experts;
    for (int64_t i = 0; i < model->division.count && status == TN_OK; i++)
        status = build_part(&step, base, i, &cursors[i], base->last);
    return status;
}

// The body of a plan's function.
static tn_status build_step(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct lm_plan *plan = user;
    const tn_lm *model = plan->model;
    uint64_t num_caches = (uint64_t)(model->end - model->first) * model->facts->num_caches;
    tn_array **caches = outputs;
    memcpy(caches, inputs + first_cache(model), num_caches * sizeof(*caches));
    bool has_rows = num_inputs > first_cache(model) + num_caches;
    int64_t sequences = tn_array_type(inputs[IN_CURSORS + CURSOR_POSITION])->extent[0];
    bool has_slots = model->slots > 1 || model->cache_format;
    struct lm_cursor cursors[LM_MOST_DEVICES];
    for (int64_t i = 0; i < model->division.count; i++) {
        tn_array *const *at = inputs + IN_CURSORS + CURSOR_INPUTS * i;
        cursors[i] = (struct lm_cursor){at[CURSOR_POSITION], at[CURSOR_LENGTH],
                                        at[CURSOR_START], at[CURSOR_SLOTS]};
    }
    tn_model_step step = {.count = tn_array_type(inputs[IN_TOKENS])->extent[0] / sequences,
                          .capacity = model->capacity,
                          .input = inputs[IN_TOKENS],
                          .last = plan->kind == LM_LAST_ROW ? inputs[IN_LAST] : NULL,
                          .caches = caches,
                          .sequences = sequences,
                          .slots = has_slots ? cursors[0].slots : NULL,
                          .cache_format = model->cache_format};
    tn_status status =
        lm_build(plan->model, scope, &step, cursors, NULL,
                 has_rows ? inputs + first_cache(model) + num_caches : NULL, NULL);
    if (status == TN_OK && plan->kind == LM_HIDDEN && !step.hidden)
        return tn_scope_fail(scope, TN_ERR_UNSUPPORTED,
                             "%s gives no hidden state, of which embeddings are made",
                             plan->model->plugin);
    if (num_outputs > num_caches)
        outputs[num_caches] = plan->kind == LM_HIDDEN ? step.hidden : step.output;
    return status;
}

void lm_plans_destroy(tn_lm *model)
{
    for (int i = 0; i < LM_KINDS; i++) {
        tn_function_destroy(model->plans[i].function);
        model->plans[i].function = NULL;
    }
}

tn_status lm_plans_make(tn_lm *model)
{
    uint64_t count = (uint64_t)(model->end - model->first) * model->facts->num_caches;
    uint32_t *donated = lm_alloc(2 * count, sizeof(*donated));
    if (!donated)
        return TN_ERR_MEMORY;
    uint32_t *outputs = donated + count;
    for (uint64_t i = 0; i < count; i++) {
        donated[i] = (uint32_t)(first_cache(model) + i);
        outputs[i] = (uint32_t)i;
    }
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated,
                                         .num_donated = count,
                                         .carried_to = outputs};
    tn_status status = TN_OK;
    for (int i = 0; i < LM_KINDS && status == TN_OK; i++) {
        model->plans[i].model = model;
        model->plans[i].kind = (enum lm_kind)i;
        status =
            lm_fail_core(tn_function_create(model->runtime, build_step, &model->plans[i],
                                            &options, &model->plans[i].function));
    }
    free(donated);
    if (status != TN_OK)
        lm_plans_destroy(model);
    return status;
}

// --- running ---------------------------------------------------------------------------

// Input of a chunk: tokens or hidden states, with zeros behind the valid positions, and at
// positions whose rows are given.
static tn_array *chunk_input(const tn_lm *model, tn_scope *scope, const void *input,
                             int64_t valid, int64_t count, bool has_rows)
{
    int64_t width = model->first > 0 ? model->facts->width : 1;
    uint64_t size = 4 * (uint64_t)width; // of i32, or f32
    char *padded = NULL;
    if (valid < count || has_rows) {
        padded = lm_alloc((uint64_t)count, size);
        if (!padded) {
            tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for a chunk");
            return NULL;
        }
        memcpy(padded, input, (uint64_t)valid * size);
        for (int64_t i = 0; has_rows && i < valid; i++)
            if (((int32_t *)(void *)padded)[i] < 0)
                ((int32_t *)(void *)padded)[i] = 0;
    }
    const void *data = padded ? padded : input;
    tn_array *array = model->first > 0
                          ? tn_from_data(scope, TN_F32, TN_SHAPE(count, width), data)
                          : tn_from_data(scope, TN_I32, TN_SHAPE(count), data);
    free(padded);
    return array;
}

// Inputs for rows of images: the rows, with zeros at other positions, and a mask of their
// positions.
static void put_rows(const struct lm_chunk *c, tn_scope *scope, tn_array **given)
{
    int64_t width = c->sequences[0]->model->facts->width;
    float *rows = lm_alloc((uint64_t)(c->count * (width + 1)), sizeof(*rows));
    if (!rows) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for the rows of an image");
        return;
    }
    float *which = rows + c->count * width;
    for (int64_t i = 0; i < c->valid; i++) {
        if (!c->rows[i])
            continue;
        memcpy(rows + i * width, c->rows[i], (uint64_t)width * sizeof(*rows));
        which[i] = 1;
    }
    given[0] = tn_from_data(scope, TN_F32, TN_SHAPE(c->count, width), rows);
    given[1] = tn_from_data(scope, TN_F32, TN_SHAPE(c->count, 1), which);
    free(rows);
}

// Whether the outputs, of `row` elements each, are adjacent in memory and in order.
static bool are_in_order(float *const *outputs, int64_t num_outputs, uint64_t row)
{
    for (int64_t i = 0; i < num_outputs; i++)
        if (!outputs[i] || outputs[i] != outputs[0] + (uint64_t)i * row)
            return false;
    return true;
}

// Copies a plan's result beside the caches, without fillers, to the outputs: `rows` rows
// each.
static tn_status engine_step_read_rows(tn_scope *scope, tn_array *array, int64_t rows,
                                       float *const *outputs, int64_t num_outputs)
{
    const tn_type *type = tn_array_type(array);
    if (!array)
        return lm_fail_scope(scope);
    uint64_t row = (uint64_t)rows * (uint64_t)type->extent[1];
    if (type->extent[0] == rows * num_outputs && are_in_order(outputs, num_outputs, row)) {
        tn_read(scope, array, outputs[0], (uint64_t)num_outputs * row * sizeof(float));
        return lm_fail_scope(scope);
    }
    const float *data = tn_data(scope, array);
    for (int64_t i = 0; data && i < num_outputs; i++)
        if (outputs[i])
            memcpy(outputs[i], data + (uint64_t)i * row, row * sizeof(float));
    return lm_fail_scope(scope);
}

// Number of sequences of the plan: a power of two. The sequences behind the given ones are
// fillers: their positions write nothing, and they have no keys.
static int64_t sequences_of_plan(const struct lm_chunk *c)
{
    int64_t count = 1;
    while (count < c->num_sequences)
        count *= 2;
    return count;
}

// Uploads the position of each sequence to the device of each part.
static void cursors_write(const struct lm_chunk *c, tn_scope *scope, int64_t count,
                          tn_array **inputs)
{
    const tn_lm *model = c->sequences[0]->model;
    int32_t position[LM_MOST_TOGETHER], length[LM_MOST_TOGETHER] = {0};
    int32_t slot[LM_MOST_TOGETHER] = {0}, last[LM_MOST_TOGETHER];
    for (int64_t i = 0; i < count; i++) {
        bool is_given = i < c->num_sequences;
        position[i] =
            is_given ? (int32_t)c->sequences[i]->length : -1 - (int32_t)model->capacity;
        length[i] = is_given ? position[i] + (int32_t)c->count : 0;
        slot[i] = is_given ? (int32_t)c->sequences[i]->slot : -1;
        last[i] = (int32_t)(i * c->count + c->valid - 1);
    }
    for (int64_t i = 0; i < model->division.count; i++) {
        tn_array **at = inputs + IN_CURSORS + CURSOR_INPUTS * i;
        lm_scope_on(&model->division, i, scope);
        at[CURSOR_POSITION] = tn_from_data(scope, TN_I32, TN_SHAPE(count), position);
        at[CURSOR_LENGTH] = tn_from_data(scope, TN_I32, TN_SHAPE(count), length);
        at[CURSOR_START] = tn_from_data(scope, TN_I32, TN_SHAPE(4),
                                        (const int32_t[]){0, 0, position[0], 0});
        at[CURSOR_SLOTS] = tn_from_data(scope, TN_I32, TN_SHAPE(count), slot);
    }
    inputs[IN_LAST] = tn_from_data(scope, TN_I32, TN_SHAPE(count), last);
}

// Number of inputs of a chunk's plan.
static uint64_t num_inputs(const struct lm_chunk *c)
{
    const tn_lm_sequence *sequence = c->sequences[0];
    return first_cache(sequence->model) + sequence->caches->count +
           (c->rows ? NUM_GIVEN : 0);
}

// Runs the plan with the caches, whose lock is held.
static tn_status engine_step_call_plan(const struct lm_chunk *c, tn_scope *scope,
                                       tn_array **inputs)
{
    tn_lm *model = c->sequences[0]->model;
    struct lm_caches *caches = c->sequences[0]->caches;
    uint64_t first = first_cache(model), count = num_inputs(c);
    tn_array **outputs = inputs + count;
    tn_status status = lm_caches_check(caches);
    if (status != TN_OK)
        return status;
    memcpy(inputs + first, caches->arrays, caches->count * sizeof(*inputs));
    tn_function_call(model->plans[c->kind].function, scope, inputs, count, outputs,
                     caches->count + (c->kind != LM_NOTHING));
    status = lm_fail_scope(scope);
    if (status == TN_OK)
        memcpy(caches->arrays, outputs, caches->count * sizeof(*outputs));
    else
        lm_caches_note(caches, status);
    return status;
}

static tn_status run_chunk(const struct lm_chunk *c, tn_scope *scope, tn_array **inputs)
{
    const tn_lm *model = c->sequences[0]->model;
    struct lm_caches *caches = c->sequences[0]->caches;
    int64_t count = sequences_of_plan(c);
    lm_scope_on(&model->division, 0, scope);
    inputs[IN_TOKENS] = chunk_input(model, scope, c->input, c->num_sequences * c->valid,
                                    count * c->count, c->rows != NULL);
    if (c->rows)
        put_rows(c, scope, inputs + first_cache(model) + caches->count);
    cursors_write(c, scope, count, inputs);
    tn_status status = lm_fail_scope(scope);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&caches->lock);
    status = engine_step_call_plan(c, scope, inputs);
    pthread_mutex_unlock(&caches->lock);
    tn_array *made = inputs[num_inputs(c) + caches->count];
    if (status == TN_OK && c->kind != LM_NOTHING)
        status = engine_step_read_rows(scope, made, c->kind == LM_LAST_ROW ? 1 : c->valid,
                                       c->outputs, c->num_sequences);
    return status;
}

tn_status lm_step_here(const struct lm_chunk *chunk)
{
    const tn_lm *model = chunk->sequences[0]->model;
    uint64_t arrays =
        first_cache(model) + 2 * chunk->sequences[0]->caches->count + NUM_GIVEN + 1;
    tn_array **inputs = lm_alloc(arrays, sizeof(tn_array *));
    if (!inputs)
        return TN_ERR_MEMORY;
    tn_scope *scope = tn_scope_open(model->runtime);
    tn_status status = scope ? run_chunk(chunk, scope, inputs) : lm_fail_scope(scope);
    tn_scope_close(scope);
    free(inputs);
    return status == TN_ERR_DEVICE ? lm_tell_lost(model, status) : status;
}

tn_status lm_step_begin(const struct lm_chunk *chunk, struct lm_pending *out)
{
    struct lm_remote *remote = chunk->sequences[0]->model->remote;
    *out = (struct lm_pending){.remote = remote};
    return remote ? remote->begin(remote, chunk, out) : lm_step_here(chunk);
}

tn_status lm_step_end(struct lm_pending *pending)
{
    struct lm_remote *remote = pending->remote;
    return remote ? remote->end(remote, pending) : TN_OK;
}

tn_status lm_step(const struct lm_chunk *chunk)
{
    struct lm_pending pending;
    tn_status status = lm_step_begin(chunk, &pending);
    return status == TN_OK ? lm_step_end(&pending) : status;
}
