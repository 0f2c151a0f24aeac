// SPDX-License-Identifier: MIT
// Training of adapters: a step is one function of a window of tokens and of the state; its
// results are written over the old state.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dist.h>
#include <tenon/lm_adapter.h>
#include <time.h>
#include "../base/fail.h"
#include "../base/random.h"
#include "../engine/devices.h"
#include "../engine/low_rank.h"
#include "../engine/sequence.h"
#include "../engine/step.h"
#include "../engine/weights.h"
#include "adapter.h"
#include "train.h"

// Inputs of a step before the state, which is the parameters and two moments of each.
enum { IN_TOKENS, IN_NEXT, IN_NUMBER, IN_STATE };
enum { OUT_LOSS, OUT_STATE };

struct training {
    tn_lm *model;
    tn_lm_training how;
    uint64_t num_parameters; // down and up of each item
    tn_array **state;        // kept: 3 * num_parameters
    tn_function *step;
    int64_t share; // windows of a step that this process reads, from `first` on
    int64_t first;
    int32_t size; // of the group; 1: this process alone
    uint64_t random;
    struct timespec began;
};

// --- the step --------------------------------------------------------------------------

// Caches of zeros, as a sequence begins with.
static tn_status make_caches(const tn_lm *model, tn_scope *scope, int64_t capacity,
                             tn_array **out)
{
    uint32_t each = model->facts->num_caches;
    for (int64_t layer = 0; layer < model->facts->layers; layer++) {
        tn_type types[TN_MODEL_CACHES];
        lm_scope_on(&model->division, lm_part_of(&model->division, layer), scope);
        tn_status status =
            model->ops->caches(model->host, model->self, layer, capacity, types);
        if (status != TN_OK)
            return tn_scope_fail(scope, status, "%s: %s", model->plugin, tn_last_error());
        for (uint32_t i = 0; i < each; i++) {
            tn_ints shape = {.count = (uint32_t)types[i].rank, .given = 1};
            memcpy(shape.value, types[i].extent, sizeof(shape.value));
            *out++ = tn_op(scope, "base.full/1", NULL, 0,
                           tn_attrs("shape", &shape, "dtype", types[i].dtype));
        }
    }
    return tn_scope_status(scope);
}

tn_array *lm_build_window(tn_lm *model, tn_scope *scope, tn_array *tokens, int32_t count,
                          tn_array *const *trained, struct lm_gathered *gathered)
{
    uint64_t num_caches = (uint64_t)model->facts->layers * model->facts->num_caches;
    const int32_t zero = 0;
    tn_array **caches = lm_alloc(num_caches, sizeof(*caches));
    if (!caches) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for the caches of a window");
        return NULL;
    }
    tn_model_step step = {
        .count = count, .capacity = count, .input = tokens, .caches = caches};
    struct lm_cursor cursors[LM_MOST_DEVICES];
    for (int64_t i = 0; i < model->division.count; i++) {
        lm_scope_on(&model->division, i, scope);
        cursors[i] = (struct lm_cursor){
            .position = tn_from_data(scope, TN_I32, TN_SHAPE(1), &zero),
            .length = tn_from_data(scope, TN_I32, TN_SHAPE(1), &count),
            .start = tn_from_data(scope, TN_I32, TN_SHAPE(4), (const int32_t[4]){0})};
    }
    if (make_caches(model, scope, count, caches) == TN_OK)
        lm_build(model, scope, &step, cursors, trained, NULL, gathered);
    free(caches);
    return step.output;
}

static tn_array *window_loss(const struct training *t, tn_scope *scope, tn_array *tokens,
                             tn_array *next, tn_array *const *parameters)
{
    tn_array *logits =
        lm_build_window(t->model, scope, tokens, (int32_t)t->how.window, parameters, NULL);
    tn_array *losses = tn_op(scope, "nn.cross_entropy/1", TN_IN(logits, next), TN_NO_ATTRS);
    return tn_op(scope, "base.mean/1", TN_IN(losses), TN_NO_ATTRS);
}

// Window `number` of arrays that hold several windows.
static tn_array *adapt_train_row_of(const struct training *t, tn_scope *scope,
                                    tn_array *rows, int64_t number)
{
    int64_t at = number * t->how.window;
    return tn_op(scope, "base.slice/1", TN_IN(rows),
                 tn_attrs("start", TN_INTS(at), "stop", TN_INTS(at + t->how.window)));
}

// The mean of this process's windows.
static tn_array *mean_loss(const struct training *t, tn_scope *scope,
                           tn_array *const *inputs)
{
    tn_array *sum = NULL;
    for (int64_t i = 0; i < t->share; i++) {
        tn_array *loss = window_loss(
            t, scope, adapt_train_row_of(t, scope, inputs[IN_TOKENS], i),
            adapt_train_row_of(t, scope, inputs[IN_NEXT], i), inputs + IN_STATE);
        sum = sum ? tn_expr(scope, "a, b -> a + b", TN_IN(sum, loss), TN_NO_ATTRS) : loss;
    }
    return t->share == 1 ? sum
                         : tn_expr(scope, "sum -> sum / n", TN_IN(sum),
                                   tn_attrs("n", (double)t->share));
}

// The mean over the members of the group.
static tn_array *mean_of_group(const struct training *t, tn_scope *scope, tn_array *array)
{
    return t->size == 1 ? array
                        : tn_op(scope, "dist.all_reduce/1", TN_IN(array),
                                tn_attrs("reduction", "mean", "group", t->how.group));
}

static tn_status build_training(tn_scope *scope, tn_array *const *inputs,
                                uint64_t num_inputs, tn_array **outputs,
                                uint64_t num_outputs, void *user)
{
    const struct training *t = user;
    uint64_t n = t->num_parameters;
    tn_array *const *state = inputs + IN_STATE;
    (void)num_inputs;
    (void)num_outputs;
    tn_array *loss = mean_loss(t, scope, inputs);
    tn_array **gradients = lm_alloc(n, sizeof(*gradients));
    if (!gradients)
        return tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for gradients");
    tn_vjp(scope, &loss, NULL, 1, state, n, gradients);
    for (uint64_t i = 0; i < n && tn_scope_status(scope) == TN_OK; i++) {
        tn_array *updated[3], *gradient = mean_of_group(t, scope, gradients[i]);
        tn_op_n(
            scope, "nn.adam/1",
            TN_IN(state[i], gradient, state[n + i], state[2 * n + i], inputs[IN_NUMBER]),
            tn_attrs("lr", t->how.rate), updated, 3);
        for (uint64_t k = 0; k < 3; k++)
            outputs[OUT_STATE + k * n + i] = updated[k];
    }
    free(gradients);
    outputs[OUT_LOSS] = mean_of_group(t, scope, loss);
    return tn_scope_status(scope);
}

// --- the adapter that a training begins with --------------------------------------------

// Whether the training names this weight.
static bool is_trained(const tn_lm_training *how, const char *name, uint8_t *used)
{
    bool found = false;
    for (uint64_t i = 0; i < how->num_weights; i++) {
        char middle[TN_MODEL_NAME + 16];
        const char *behind = strstr(name, ".");
        behind = behind && !strncmp(name, "blk.", 4) ? strstr(behind + 1, ".") : NULL;
        snprintf(middle, sizeof(middle), ".%s.weight", how->weights[i]);
        if (behind && strcmp(behind, middle) == 0) {
            found = true;
            used[i] = 1;
        }
    }
    return found;
}

// Whether a weight is a matrix: experts' weights have one axis more.
static bool adapt_train_is_matrix(const tn_lm *model, const char *name)
{
    tn_type type;
    const char *format;
    return model->source.find(&model->source, name, &type, &format) && type.rank == 2;
}

static tn_array *adapt_train_uniform(struct training *t, tn_scope *scope, int64_t rows,
                                     int64_t columns)
{
    float *values = lm_alloc((uint64_t)(rows * columns), sizeof(*values));
    if (!values) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for an adapter");
        return NULL;
    }
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = (float)((2 * lm_next_share(&t->random) - 1) / sqrt((double)columns));
    tn_array *array = tn_from_data(scope, TN_F32, TN_SHAPE(rows, columns), values);
    free(values);
    return array;
}

static tn_status begin_item(struct training *t, tn_scope *scope, const char *name,
                            struct lm_low_rank *item)
{
    tn_type type;
    const char *format;
    const tn_lm_source *source = &t->model->source;
    source->find(source, name, &type, &format);
    snprintf(item->name, sizeof(item->name), "%s", name);
    const struct lm_division *division = &t->model->division;
    lm_scope_on(division, lm_part_of(division, lm_product_find(t->model, name)->part),
                scope);
    item->down = tn_keep(scope, adapt_train_uniform(t, scope, t->how.rank, type.extent[1]));
    item->up =
        tn_keep(scope, tn_op(scope, "base.full/1", NULL, 0,
                             tn_attrs("shape", TN_INTS(type.extent[0], t->how.rank))));
    return lm_fail_scope(scope);
}

static tn_status begin_items(struct training *t, tn_scope *scope, struct lm_adapter *out,
                             uint8_t *used)
{
    const struct lm_weights *weights = &t->model->weights;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < weights->count && status == TN_OK; i++)
        if (weights->items[i].flags & TN_MODEL_PRODUCT && !weights->items[i].is_absent &&
            adapt_train_is_matrix(t->model, weights->items[i].name) &&
            is_trained(&t->how, weights->items[i].name, used))
            status =
                begin_item(t, scope, weights->items[i].name, &out->items[out->count++]);
    for (uint64_t i = 0; i < t->how.num_weights && status == TN_OK; i++)
        if (!used[i])
            status =
                lm_fail(TN_ERR_ARGUMENT, "no product has a weight blk.N.%s.weight to adapt",
                        t->how.weights[i]);
    return status;
}

static tn_status begin_adapter(struct training *t)
{
    struct lm_adapter adapter = {.alpha = t->how.alpha, .scale = 1};
    uint8_t *used = lm_alloc(t->how.num_weights, 1);
    tn_scope *scope = tn_scope_open(t->model->runtime);
    adapter.items = lm_alloc(t->model->weights.count, sizeof(*adapter.items));
    tn_status status = !used || !adapter.items ? TN_ERR_MEMORY : lm_fail_scope(scope);
    if (status == TN_OK)
        status = begin_items(t, scope, &adapter, used);
    if (status == TN_OK)
        status = lm_adapter_use(t->model, &adapter);
    lm_adapter_free(&adapter);
    tn_scope_close(scope);
    free(used);
    return status;
}

// --- training --------------------------------------------------------------------------

// Makes the state: the adapter's parameters, and their moments as zeros.
static tn_status make_state(struct training *t)
{
    const struct lm_adapter *adapter = &t->model->adapter;
    uint64_t n = t->num_parameters = 2 * adapter->count;
    tn_scope *scope = tn_scope_open(t->model->runtime);
    tn_status status = lm_fail_scope(scope);
    t->state = lm_alloc(3 * n, sizeof(*t->state));
    for (uint64_t i = 0; i < n && status == TN_OK && t->state; i++) {
        tn_array *kept = i % 2 ? adapter->items[i / 2].up : adapter->items[i / 2].down;
        for (uint64_t k = 0; k < 3; k++)
            t->state[k * n + i] =
                tn_keep(scope, tn_expr(scope, k ? "x -> 0 * x" : "x -> x + 0", TN_IN(kept),
                                       TN_NO_ATTRS));
        status = lm_fail_scope(scope);
    }
    tn_scope_close(scope);
    return status == TN_OK && !t->state ? TN_ERR_MEMORY : status;
}

// Makes the step's function. In a group the state is not donated: it has to outlive a step
// that fails.
static tn_status adapt_train_make_step(struct training *t)
{
    uint64_t count = 3 * t->num_parameters;
    uint32_t *donated = lm_alloc(2 * count, sizeof(*donated));
    if (!donated)
        return TN_ERR_MEMORY;
    uint32_t *outputs = donated + count;
    for (uint64_t i = 0; i < count; i++) {
        donated[i] = (uint32_t)(IN_STATE + i);
        outputs[i] = (uint32_t)(OUT_STATE + i);
    }
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated,
                                         .num_donated = t->size == 1 ? count : 0,
                                         .carried_to = outputs};
    tn_status status =
        tn_function_create(t->model->runtime, build_training, t, &options, &t->step);
    free(donated);
    return lm_fail_core(status);
}

// Takes the state behind a step. In a group the new arrays are kept, and the old ones
// released.
static tn_status take_state(struct training *t, tn_scope *scope, tn_array *const *outputs)
{
    uint64_t count = 3 * t->num_parameters;
    for (uint64_t i = 0; i < count && t->size > 1; i++) {
        tn_array *kept = tn_keep(scope, outputs[i]);
        if (!kept)
            return lm_fail_scope(scope);
        tn_release(t->state[i]);
        t->state[i] = kept;
    }
    if (t->size == 1)
        memcpy(t->state, outputs, count * sizeof(*outputs));
    return TN_OK;
}

// Runs one step. `ids` holds the windows behind each other, each with one token more than
// how.window; `arrays` has room for inputs and outputs.
static tn_status adapt_train_run_step(struct training *t, const int32_t *ids,
                                      int64_t number, tn_array **arrays, double *out_loss)
{
    uint64_t count = 3 * t->num_parameters;
    tn_array **outputs = arrays + IN_STATE + count;
    int64_t window = t->how.window, room = t->share * window;
    float step = (float)number;
    int32_t *rows = lm_alloc(2 * (uint64_t)room, sizeof(*rows));
    tn_scope *scope = tn_scope_open(t->model->runtime);
    tn_status status = rows ? lm_fail_scope(scope) : TN_ERR_MEMORY;
    for (int64_t i = 0; i < t->share && status == TN_OK; i++) {
        const int32_t *from = ids + i * (window + 1);
        memcpy(rows + i * window, from, (size_t)window * sizeof(*rows));
        memcpy(rows + room + i * window, from + 1, (size_t)window * sizeof(*rows));
    }
    if (status == TN_OK) {
        arrays[IN_TOKENS] = tn_from_data(scope, TN_I32, TN_SHAPE(room), rows);
        arrays[IN_NEXT] = tn_from_data(scope, TN_I32, TN_SHAPE(room), rows + room);
        arrays[IN_NUMBER] = tn_from_data(scope, TN_F32, TN_SCALAR, &step);
        memcpy(arrays + IN_STATE, t->state, count * sizeof(*arrays));
        tn_function_call(t->step, scope, arrays, IN_STATE + count, outputs,
                         OUT_STATE + count);
        status = lm_fail_scope(scope);
    }
    if (status == TN_OK)
        status = take_state(t, scope, outputs + OUT_STATE);
    if (status == TN_OK) {
        *out_loss = tn_item(scope, outputs[OUT_LOSS]);
        status = lm_fail_scope(scope);
    }
    tn_scope_close(scope);
    free(rows);
    return status;
}

static double seconds_since(const struct timespec *began)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began->tv_sec) +
           1e-9 * (double)(now.tv_nsec - began->tv_nsec);
}

static tn_status fail_loss(const tn_lm_trained *now)
{
    return lm_fail(TN_ERR_REFUSED, "step %" PRId64 " of %" PRId64 ": the loss is %g: %s",
                   now->step, now->steps, lm_unsigned_nan(now->loss),
                   now->step > 1 ? "a lower rate may help"
                                 : "weights of the model, or of its adapter, are NaN or "
                                   "infinite, or too large");
}

// Draws the windows of a step, the same on all members, and copies those of this one.
static void draw_windows(struct training *t, const int32_t *ids, uint64_t count,
                         int32_t *out)
{
    int64_t width = t->how.window + 1;
    uint64_t starts = count - (uint64_t)t->how.window; // 1 or more
    for (int64_t i = 0; i < t->how.batch; i++) {
        uint64_t start = (uint64_t)(lm_next_share(&t->random) * (double)starts);
        if (i >= t->first && i < t->first + t->share)
            memcpy(out + (i - t->first) * width, ids + start, (size_t)width * sizeof(*out));
    }
}

// Sets *ends on all members of the group if one of them has set it.
static tn_status any_ends(const struct training *t, int32_t *ends)
{
    if (t->size == 1)
        return TN_OK;
    tn_scope *scope = tn_scope_open(t->model->runtime);
    tn_array *mine = tn_from_data(scope, TN_I32, TN_SHAPE(1), ends);
    tn_read(scope,
            tn_op(scope, "dist.all_reduce/1", TN_IN(mine),
                  tn_attrs("reduction", "maximum", "group", t->how.group)),
            ends, sizeof(*ends));
    tn_status status = lm_fail_scope(scope);
    tn_scope_close(scope);
    return status;
}

static tn_status adapt_train_run_steps(struct training *t, const int32_t *ids,
                                       uint64_t count)
{
    uint64_t room = IN_STATE + OUT_STATE + 6 * t->num_parameters;
    tn_array **arrays = lm_alloc(room, sizeof(*arrays));
    int32_t *windows =
        lm_alloc((uint64_t)(t->share * (t->how.window + 1)), sizeof(*windows));
    tn_status status = arrays && windows ? TN_OK : TN_ERR_MEMORY;
    int32_t ended = 0;
    for (int64_t i = 1; i <= t->how.steps && status == TN_OK && !ended; i++) {
        tn_lm_trained now = {.struct_size = sizeof(now), .step = i, .steps = t->how.steps};
        draw_windows(t, ids, count, windows);
        status = adapt_train_run_step(t, windows, i, arrays, &now.loss);
        if (status == TN_OK && !isfinite(now.loss))
            status = fail_loss(&now);
        now.seconds = seconds_since(&t->began);
        if (status == TN_OK && t->how.progress)
            ended = t->how.progress(t->how.context, &now) != 0;
        if (status == TN_OK)
            status = any_ends(t, &ended);
    }
    free(windows);
    free(arrays);
    return status;
}

// Moves the trained parameters to the model's adapter, unless one is NaN or infinite.
static tn_status take_parameters(struct training *t)
{
    tn_status status = lm_adapter_check_numbers(t->model, t->state);
    if (status != TN_OK)
        return status;
    struct lm_adapter *adapter = &t->model->adapter;
    for (uint64_t i = 0; i < t->num_parameters; i++) {
        struct lm_low_rank *item = &adapter->items[i / 2];
        tn_array **mine = i % 2 ? &item->up : &item->down, *before = *mine;
        *mine = t->state[i];
        t->state[i] = before;
    }
    lm_plans_destroy(t->model);
    return lm_plans_make(t->model);
}

// Finds which windows of a step this process computes.
static tn_status find_share(struct training *t)
{
    tn_group_facts facts = {.size = 1};
    const tn_dist *dist = NULL;
    const tn_host *host = NULL;
    tn_status status = TN_OK;
    if (t->how.group)
        status = tn_interface_find(t->model->runtime, TN_IFACE_DIST, (const void **)&dist,
                                   &host);
    if (status == TN_OK && dist)
        status = dist->find(host, t->how.group, &facts, sizeof(facts));
    if (status != TN_OK)
        return lm_fail_core(status);
    t->size = facts.size;
    t->how.batch = t->how.batch ? t->how.batch : facts.size;
    if (t->how.batch < 1 || t->how.batch % facts.size != 0)
        return lm_fail(TN_ERR_ARGUMENT,
                       "a batch of %" PRId64
                       " windows for %d processes, expected a positive multiple",
                       t->how.batch, facts.size);
    t->share = t->how.batch / facts.size;
    t->first = facts.rank * t->share;
    return TN_OK;
}

static tn_status check_training(struct training *t, const tn_lm_training *how,
                                uint64_t count)
{
    static const char *const usual[] = {"attn_q", "attn_v"};
    const tn_lm *model = t->model;
    tn_lm_training *mine = &t->how;
    tn_status status = lm_read_struct(mine, sizeof(*mine), how, how ? how->struct_size : 0,
                                      "tn_lm_training");
    if (status != TN_OK)
        return status;
    if (!mine->weights) {
        mine->weights = usual;
        mine->num_weights = COUNT(usual);
    }
    mine->rank = mine->rank ? mine->rank : 8;
    mine->alpha = mine->alpha != 0 ? mine->alpha : 2 * (double)mine->rank;
    mine->window = mine->window ? mine->window : 128;
    mine->steps = mine->steps ? mine->steps : 100;
    mine->rate = mine->rate != 0 ? mine->rate : 3e-4;
    if (lm_check_here(model))
        return TN_ERR_UNSUPPORTED;
    if (model->first > 0 || model->end < model->facts->layers)
        return lm_fail(TN_ERR_ARGUMENT,
                       "layers %" PRId64 " to %" PRId64 " of %" PRId64
                       " are loaded, expected all",
                       model->first, model->end - 1, model->facts->layers);
    if (mine->rank < 1 || mine->rank > 65536 || mine->window < 1 || mine->steps < 1 ||
        mine->window > model->context || !(mine->rate > 0) || mine->flags)
        return lm_fail(TN_ERR_ARGUMENT,
                       "rank %" PRId64 ", %" PRId64 " steps of %" PRId64
                       " tokens, rate %g, flags 0x%x: expected positive numbers, a window "
                       "of at most %" PRId64 " tokens, and no flags",
                       mine->rank, mine->steps, mine->window, mine->rate, mine->flags,
                       model->context);
    if (count < 2)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%" PRIu64 " tokens to train on, expected two or more", count);
    if ((uint64_t)mine->window > count - 1)
        mine->window = (int64_t)count - 1;
    return find_share(t);
}

tn_status tn_lm_train_adapter(tn_lm *model, const int32_t *ids, uint64_t count,
                              const tn_lm_training *how)
{
    struct training t = {.model = model};
    clock_gettime(CLOCK_MONOTONIC, &t.began);
    tn_status status = lm_adapter_check(model);
    if (status == TN_OK)
        status = check_training(&t, how, count);
    if (status == TN_OK)
        status = lm_check_ids(model, ids, (int64_t)count);
    t.random = t.how.seed;
    if (status == TN_OK && model->adapter.count == 0)
        status = begin_adapter(&t);
    if (status == TN_OK)
        status = make_state(&t);
    if (status == TN_OK)
        status = adapt_train_make_step(&t);
    if (status == TN_OK)
        status = adapt_train_run_steps(&t, ids, count);
    struct lm_failure first = {TN_OK, ""};
    lm_failure_note(&first, status);
    // Parameters that were reached are kept, also where a later step failed.
    if (t.step)
        lm_failure_note(&first, take_parameters(&t));
    tn_function_destroy(t.step);
    for (uint64_t i = 0; t.state && i < 3 * t.num_parameters; i++)
        tn_release(t.state[i]);
    free(t.state);
    return lm_failure_tell(&first);
}
