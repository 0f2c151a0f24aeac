// SPDX-License-Identifier: MIT
// The training loop.
//
// Steps run in groups: within one, the arrays of each step belong to the group's scope and
// losses are not read, so that the host runs ahead of the device. At its end the state is
// kept, the losses are read, and the scope is closed.
#include "train.h"
#include "fail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

#define GROUP 50 // steps

// --- the step as a function ------------------------------------------------------------

enum { IN_IMAGES, IN_LABELS, IN_INDICES, IN_STATE, NUM_INPUTS = IN_STATE + LENET_STATE };
enum { OUT_LOSS, OUT_STATE, NUM_OUTPUTS = OUT_STATE + LENET_STATE };

static tn_status step_body(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct trainer *t = user;
    (void)num_inputs;
    (void)num_outputs;
    return lenet_step(trace,
                      &(struct lenet_step){.images = inputs[IN_IMAGES],
                                           .labels = inputs[IN_LABELS],
                                           .indices = inputs[IN_INDICES],
                                           .state = inputs + IN_STATE,
                                           .lr = t->options.lr},
                      &outputs[OUT_LOSS], outputs + OUT_STATE);
}

// Inputs: test images, indices, parameters. Output: the probability of each class.
static tn_status predict_body(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                              tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs;
    (void)num_outputs;
    (void)user;
    tn_array *images = tn_take(trace, inputs[0], inputs[1], 0);
    outputs[0] = tn_softmax(trace, lenet_scores(trace, inputs + 2, images), -1);
    return tn_scope_status(trace);
}

static int make_functions(struct trainer *t)
{
    uint32_t state[LENET_STATE]; // each step takes over the memory of the state it replaces
    for (uint32_t i = 0; i < LENET_STATE; i++)
        state[i] = IN_STATE + i;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = state, .num_donated = LENET_STATE};
    if (tn_function_create(t->runtime, step_body, t, &options, &t->step) ||
        tn_function_create(t->runtime, predict_body, t, NULL, &t->predict))
        return fail_library();
    return 0;
}

// --- data ------------------------------------------------------------------------------

static int upload(struct trainer *t, const struct bytes *bytes, tn_array **out_kept)
{
    tn_array *array = tn_from_data(t->scope, TN_U8, &bytes->shape, bytes->data);
    *out_kept = tn_keep(t->scope, array);
    return *out_kept ? 0 : fail_scope(t->scope);
}

static int load_data(struct trainer *t)
{
    int failed = image_set_read(t->options.data, "train", LENET_CLASSES, &t->train);
    if (!failed)
        failed = image_set_read(t->options.data, "t10k", LENET_CLASSES, &t->test);
    if (!failed && t->options.test && t->options.test < t->test.count)
        t->test.count = t->options.test;
    if (!failed && t->train.count > INT32_MAX)
        failed = fail("more than 2^31 training images");
    if (!failed && t->options.batch > t->train.count)
        failed =
            fail_usage("--batch %" PRId64 " is more than the %" PRId64 " training images",
                       t->options.batch, t->train.count);
    if (!failed)
        failed = upload(t, &t->train.images, &t->images);
    if (!failed)
        failed = upload(t, &t->train.labels, &t->labels);
    if (!failed)
        failed = upload(t, &t->test.images, &t->test_images);
    bytes_finish(&t->train.images);
    return failed;
}

// A number that depends on nothing but its three arguments (SplitMix64's mixing).
static uint64_t counted_random(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) ^ stream << 40 ^ counter;
    for (int i = 0; i < 2; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
    }
    return x;
}

// The order of the images in an epoch, from the seed and the epoch alone.
static void shuffle(struct trainer *t, uint64_t epoch)
{
    if (t->order_epoch == epoch + 1)
        return;
    for (int64_t i = 0; i < t->train.count; i++)
        t->order[i] = (int32_t)i;
    for (int64_t i = t->train.count - 1; i > 0; i--) {
        uint64_t random = counted_random((uint64_t)t->options.seed, epoch, (uint64_t)i);
        int64_t j = (int64_t)(random % (uint64_t)(i + 1));
        int32_t saved = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = saved;
    }
    t->order_epoch = epoch + 1;
}

// --- opening ---------------------------------------------------------------------------

static int initial_state(struct trainer *t)
{
    tn_array *state[LENET_STATE] = {NULL};
    tn_scope *scope = tn_scope_open(t->runtime);
    if (!scope)
        return fail_memory();
    tn_status status = lenet_init(scope, (uint64_t)t->options.seed, state);
    if (!status)
        status = tn_eval_n(scope, state, LENET_STATE);
    for (int i = 0; !status && i < LENET_STATE; i++) {
        t->state[i] = tn_keep(scope, state[i]);
        status = tn_scope_status(scope);
    }
    int failed = status ? fail_scope(scope) : 0;
    tn_scope_close(scope);
    return failed;
}

static void plan_steps(struct trainer *t)
{
    t->steps_per_epoch = (uint64_t)(t->train.count / t->options.batch);
    t->total = t->options.steps ? (uint64_t)t->options.steps
                                : (uint64_t)t->options.epochs * t->steps_per_epoch;
    if (t->total < t->done)
        t->total = t->done;
}

int trainer_open(struct trainer *t, const struct train_options *options)
{
    *t = (struct trainer){.options = *options};
    int failed = tn_runtime_open(NULL, &t->runtime) ? fail_library() : 0;
    if (!failed && !(t->scope = tn_scope_open(t->runtime)))
        failed = fail_memory();
    // The checkpoint first: it fixes the batch, and is quick to refuse.
    if (!failed && options->resume)
        failed = checkpoint_load(t, options->resume);
    if (!failed)
        failed = load_data(t);
    if (!failed && !(t->order = calloc((size_t)t->train.count, sizeof(*t->order))))
        failed = fail_memory();
    if (!failed && !options->resume)
        failed = initial_state(t);
    if (!failed)
        failed = make_functions(t);
    if (!failed)
        plan_steps(t);
    if (failed)
        trainer_close(t);
    return failed;
}

void trainer_close(struct trainer *t)
{
    tn_function_destroy(t->step);
    tn_function_destroy(t->predict);
    for (int i = 0; i < LENET_STATE; i++)
        tn_release(t->state[i]);
    tn_release(t->images);
    tn_release(t->labels);
    tn_release(t->test_images);
    tn_scope_close(t->scope);
    tn_runtime_close(t->runtime);
    image_set_finish(&t->train);
    image_set_finish(&t->test);
    free(t->order);
    *t = (struct trainer){0};
}

// --- the loop --------------------------------------------------------------------------

// One step: `state` is replaced by what the step makes of it.
static tn_status one_step(struct trainer *t, tn_scope *scope, tn_array **state,
                          tn_array **out_loss)
{
    uint64_t batch = (uint64_t)t->options.batch;
    shuffle(t, t->done / t->steps_per_epoch);
    const int32_t *indices = t->order + t->done % t->steps_per_epoch * batch;
    tn_array *inputs[NUM_INPUTS], *outputs[NUM_OUTPUTS] = {NULL};
    inputs[IN_IMAGES] = t->images;
    inputs[IN_LABELS] = t->labels;
    inputs[IN_INDICES] = tn_from_data(scope, TN_I32, TN_SHAPE((int64_t)batch), indices);
    memcpy(inputs + IN_STATE, state, sizeof(t->state));
    tn_status status =
        tn_function_call(t->step, scope, inputs, NUM_INPUTS, outputs, NUM_OUTPUTS);
    if (status)
        return status;
    memcpy(state, outputs + OUT_STATE, sizeof(t->state));
    *out_loss = outputs[OUT_LOSS];
    t->done++;
    return TN_OK;
}

static void report_step(struct trainer *t, uint64_t step, double loss)
{
    uint64_t epoch = (step - 1) / t->steps_per_epoch + 1;
    uint64_t epochs = (t->total + t->steps_per_epoch - 1) / t->steps_per_epoch;
    t->epoch_loss += loss;
    t->epoch_steps++;
    if (t->options.json)
        printf("{\"event\": \"step\", \"step\": %" PRIu64 ", \"epoch\": %" PRIu64
               ", \"loss\": %.9g}\n",
               step, epoch, loss);
    progress_show(&t->progress, step, epoch, epochs,
                  t->total <= 100 ? loss : t->epoch_loss / (double)t->epoch_steps);
}

// Takes the group's last state over into kept arrays, and gives the first ones back.
static int keep_state(struct trainer *t, tn_scope *scope, tn_array **state)
{
    for (int i = 0; i < LENET_STATE; i++) {
        if (state[i] == t->state[i])
            continue; // no step was done
        tn_array *kept = tn_keep(scope, state[i]);
        if (!kept)
            return fail_scope(scope);
        tn_release(t->state[i]);
        t->state[i] = kept;
    }
    return 0;
}

// Runs up to `most` steps within one epoch.
static int run_group(struct trainer *t, uint64_t most, const volatile int *stop)
{
    tn_array *state[LENET_STATE], *losses[GROUP];
    uint64_t first = t->done, n = 0;
    double begin = now_seconds();
    tn_scope *scope = tn_scope_open(t->runtime);
    if (!scope)
        return fail_memory();
    memcpy(state, t->state, sizeof(state));
    int failed = 0;
    while (!failed && n < most && !*stop) {
        if (one_step(t, scope, state, &losses[n]))
            failed = fail_scope(scope);
        else
            n++;
    }
    if (!failed)
        failed = keep_state(t, scope, state);
    for (uint64_t i = 0; !failed && i < n; i++) {
        double loss = tn_item(scope, losses[i]);
        if (tn_scope_status(scope))
            failed = fail_scope(scope);
        else if (!isfinite(loss))
            failed = fail("step %" PRIu64 " of %" PRIu64
                          ": the loss is no number: a lower --lr may help",
                          first + i + 1, t->total);
        else
            report_step(t, first + i + 1, loss);
    }
    tn_scope_close(scope);
    t->epoch_seconds += now_seconds() - begin;
    t->seconds += now_seconds() - begin;
    return failed;
}

// Test accuracy, a line about the epoch, and a checkpoint.
static int finish_epoch(struct trainer *t)
{
    struct evaluation evaluation;
    int failed = evaluate(t, &evaluation);
    if (failed)
        return failed;
    uint64_t epoch = t->done / t->steps_per_epoch;
    double loss = t->epoch_loss / (double)t->epoch_steps;
    double accuracy = (double)evaluation.right / (double)evaluation.count;
    double rate = (double)(t->epoch_steps * (uint64_t)t->options.batch) / t->epoch_seconds;
    evaluation_finish(&evaluation);
    progress_clear(&t->progress);
    if (t->options.json)
        printf("{\"event\": \"epoch\", \"epoch\": %" PRIu64 ", \"loss\": %.9g, "
               "\"accuracy\": %.9g, \"seconds\": %.6f, \"images_per_s\": %.1f}\n",
               epoch, loss, accuracy, t->epoch_seconds, rate);
    else
        printf("epoch %" PRIu64
               ": loss %.4f, test accuracy %.2f %%, %.1f s, %.0f images/s\n",
               epoch, loss, 100 * accuracy, t->epoch_seconds, rate);
    fflush(stdout);
    t->epoch_loss = t->epoch_seconds = 0;
    t->epoch_steps = 0;
    return checkpoint_save(t, t->options.save);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int trainer_run(struct trainer *t, const volatile int *stop)
{
    int failed = 0;
    bool saved = false;
    progress_begin(&t->progress, t->options.json, t->done, t->total,
                   (uint64_t)t->options.batch);
    while (!failed && t->done < t->total && !*stop) {
        uint64_t left = t->steps_per_epoch - t->done % t->steps_per_epoch;
        failed = run_group(t, least(least(left, GROUP), t->total - t->done), stop);
        saved = false;
        if (!failed && t->done % t->steps_per_epoch == 0) {
            failed = finish_epoch(t);
            saved = true;
        }
    }
    progress_clear(&t->progress);
    if (!failed && t->options.json)
        printf("{\"event\": \"trained\", \"steps\": %" PRIu64 ", \"seconds\": %.6f}\n",
               t->done - t->progress.first, t->seconds);
    if (!failed && !saved)
        failed = checkpoint_save(t, t->options.save);
    if (!failed && *stop && t->done < t->total)
        failed = fail("interrupted after step %" PRIu64 " of %" PRIu64
                      "; saved. Continue with: tenon train lenet --resume %s",
                      t->done, t->total, t->options.save);
    return failed;
}
