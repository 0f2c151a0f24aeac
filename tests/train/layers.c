// SPDX-License-Identifier: MIT
// Each layer beside PyTorch: its result, and what derivatives by x and by parameters are.
// States of layers: what they become, in checkpoints, and without training.
#include <math.h>
#include <string.h>
#include "support.h"

TestSuite(layers, .init = train_begin, .fini = train_finish, .timeout = 100);

// --- beside PyTorch ---------------------------------------------------------------------

static tn_array *group_norm(tn_net *n, const char *name, tn_array *x)
{
    return tn_net_group_norm(n, name, x, 2);
}

// Layers of a width, and layers without parameters.
typedef tn_array *(*named_layer)(tn_net *n, const char *name, tn_array *x);
typedef tn_array *(*wide_layer)(tn_net *n, const char *name, tn_array *x, int64_t width);
typedef tn_array *(*window_layer)(tn_net *n, tn_array *x, int64_t size, int64_t stride,
                                  int64_t padding);
typedef tn_array *(*adaptive_layer)(tn_net *n, tn_array *x, int64_t size);
typedef tn_array *(*global_layer)(tn_net *n, tn_array *x);

#define SIZE(...)                                                                          \
    {                                                                                      \
        .rank = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .extent = { __VA_ARGS__ }      \
    }
static const struct layer_row {
    const char *name;
    tn_shape x;
    tn_net_conv_options conv;
    named_layer named;
    wide_layer wide;
    int64_t width;
    window_layer window;
    int64_t size, stride, padding;
    adaptive_layer adaptive;
    global_layer global;
} rows[] = {
    {"conv1d",
     SIZE(2, 7, 3),
     {.outputs = 4, .size = TN_INTS(3), .stride = TN_INTS(2), .padding = TN_INTS(1)}},
    {"conv1d of groups",
     SIZE(2, 9, 4),
     {.outputs = 6, .size = TN_INTS(3), .dilation = TN_INTS(2), .groups = 2, .no_bias = 1}},
    {"conv2d",
     SIZE(2, 5, 6, 2),
     {.outputs = 3,
      .size = TN_INTS(3, 2),
      .stride = TN_INTS(2, 1),
      .padding = TN_INTS(1, 0)}},
    {"conv3d", SIZE(1, 4, 3, 4, 2), {.outputs = 2, .size = TN_INTS(2)}},
    {"transpose of conv1d",
     SIZE(2, 5, 3),
     {.outputs = 4,
      .size = TN_INTS(3),
      .stride = TN_INTS(2),
      .padding = TN_INTS(1),
      .output_padding = TN_INTS(1),
      .transposes = 1}},
    {"transpose of conv2d",
     SIZE(1, 3, 4, 4),
     {.outputs = 2,
      .size = TN_INTS(3),
      .stride = TN_INTS(2),
      .groups = 2,
      .transposes = 1}},
    {"transpose of conv3d",
     SIZE(1, 2, 3, 2, 2),
     {.outputs = 3, .size = TN_INTS(2), .stride = TN_INTS(2), .transposes = 1}},
    {"batch norm", SIZE(4, 3, 3, 2), .named = tn_net_batch_norm},
    {"batch norm of vectors", SIZE(6, 3), .named = tn_net_batch_norm},
    {"instance norm", SIZE(2, 5, 3), .named = tn_net_instance_norm},
    {"group norm", SIZE(2, 3, 3, 4), .named = group_norm},
    {"layer norm", SIZE(2, 3, 5), .named = tn_net_norm},
    {"max pool", SIZE(1, 7, 6, 2), .window = tn_net_max_pool, 3, 2, 1},
    {"max pool of vectors", SIZE(2, 8, 3), .window = tn_net_max_pool, 2, 0, 0},
    {"average pool", SIZE(1, 7, 6, 2), .window = tn_net_avg_pool, 3, 2, 1},
    {"average pool of volumes", SIZE(1, 4, 4, 2, 2), .window = tn_net_avg_pool, 2, 2, 0},
    {"adaptive average pool", SIZE(1, 7, 5, 2), .adaptive = tn_net_adaptive_avg_pool},
    {"adaptive max pool", SIZE(1, 7, 5, 2), .adaptive = tn_net_adaptive_max_pool},
    {"global average pool", SIZE(2, 4, 5, 3), .global = tn_net_global_avg_pool},
    {"global max pool", SIZE(2, 4, 5, 3), .global = tn_net_global_max_pool},
    {"lstm", SIZE(2, 4, 3), .wide = tn_net_lstm, 2},
    {"gru", SIZE(2, 4, 3), .wide = tn_net_gru, 4},
    {"rnn", SIZE(2, 4, 3), .wide = tn_net_rnn, 4},
    {"linear", SIZE(2, 4, 3), .wide = tn_net_linear, 5},
};
enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]) };

// What PyTorch makes of them.
static const struct layer_numbers {
    const char *name;
    double result, by_x, by_params;
} numbers[] = {
#include "layers.inc.h"
};

static tn_array *apply_row(const struct layer_row *r, tn_net *n, tn_array *x)
{
    return r->named      ? r->named(n, "l", x)
           : r->wide     ? r->wide(n, "l", x, r->width)
           : r->window   ? r->window(n, x, r->size, r->stride, r->padding)
           : r->adaptive ? r->adaptive(n, x, 3)
           : r->global   ? r->global(n, x)
                         : tn_net_conv(n, "l", x, &r->conv);
}

// The sum of element i times sin(1 + i).
static double checksum(tn_scope *s, tn_array *array)
{
    const tn_type *type = tn_array_type(array);
    const float *values = tn_data(s, array);
    double sum = 0;
    int64_t count = 1;
    must_scope(s);
    for (int32_t i = 0; i < type->rank; i++)
        count *= type->extent[i];
    for (int64_t i = 0; i < count; i++)
        sum += values[i] * sin(1.0 + (double)i);
    return sum;
}

// Names and shapes of what a layer has, made by applying it once.
enum { MOST = 8 };
static int list_params(const struct layer_row *r, tn_params *made, const char **names,
                       tn_shape *shapes, const tn_shape **list)
{
    tn_scope *s = tn_scope_open(rt);
    tn_net n = {.params = made, .scope = s, .training = 1};
    apply_row(r, &n, filled(s, &r->x, 9, 1));
    must_scope(s);
    tn_scope_close(s);
    int count = 0;
    for (uint64_t i = 0; tn_params_name(made, i); i++) {
        names[count] = tn_params_name(made, i);
        const tn_type *type = tn_array_type(tn_params_array(made, names[count]));
        shapes[count].rank = type->rank;
        memcpy(shapes[count].extent, type->extent, sizeof(type->extent));
        list[count] = &shapes[count];
        count++;
    }
    return count;
}

static void near_to(const char *name, const char *what, double got, double wanted)
{
    // f32 of some hundred terms near 1
    cr_assert(fabs(got - wanted) < 2e-6 * (10 + fabs(wanted)),
              "%s: %s: %.8g, PyTorch's %.8g", name, what, got, wanted);
}

Test(layers, are_those_of_pytorch_with_their_derivatives)
{
    cr_assert(eq(sz, sizeof(numbers) / sizeof(numbers[0]), NUM_ROWS));
    for (int r = 0; r < NUM_ROWS; r++) {
        const char *names[MOST], *name = rows[r].name;
        tn_shape shapes[MOST] = {{0}};
        const tn_shape *list[MOST];
        tn_params *made;
        cr_assert(eq(int, strcmp(name, numbers[r].name), 0));
        must(tn_params_create(rt, 1, &made));
        int count = list_params(&rows[r], made, names, shapes, list);
        tn_params *params = given(names, list, count);
        while (count && strstr(names[count - 1], "running_")) // no derivatives by states
            count--;
        tn_scope *s = tn_scope_open(rt);
        tn_net n = {.params = params, .scope = s, .training = 1};
        tn_array *wrt[1 + MOST] = {filled(s, &rows[r].x, 9, 1)}, *slopes[1 + MOST];
        tn_array *y = apply_row(&rows[r], &n, wrt[0]);
        near_to(name, "result", checksum(s, y), numbers[r].result);
        tn_array *squares = tn_expr(s, "y -> y * y", TN_IN(y), TN_NO_ATTRS);
        tn_array *loss = tn_op(s, "base.sum", TN_IN(squares), TN_NO_ATTRS);
        for (int i = 0; i < count; i++)
            wrt[1 + i] = tn_params_array(params, names[i]);
        tn_vjp(s, &loss, NULL, 1, wrt, 1 + (uint64_t)count, slopes);
        near_to(name, "derivative by x", checksum(s, slopes[0]), numbers[r].by_x);
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += (i + 1) * checksum(s, slopes[1 + i]);
        near_to(name, "derivatives by parameters", sum, numbers[r].by_params);
        tn_scope_close(s);
        tn_params_destroy(params);
        tn_params_destroy(made);
    }
}

// --- states -----------------------------------------------------------------------------

// A residual block with a batch norm, and a state that nothing changes.
static tn_array *block_loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    tn_net_state(n, "fixed", TN_SHAPE(3), "ones");
    tn_array *x = tn_net_batch_norm(n, "norm", tn_net_linear(n, "in", batch[0], 2));
    x = tn_op(n->scope, "base.add", TN_IN(x, batch[0]), TN_NO_ATTRS);
    return tn_op(n->scope, "base.mean", TN_IN(tn_net_linear(n, "out", x, 1)), TN_NO_ATTRS);
}

static void block_steps(tn_params *params, int count)
{
    tn_trainer *trainer;
    must(tn_trainer_create(params, block_loss, NULL,
                           &(tn_trainer_options){.optimiser = "adam", .lr = 0.1},
                           &trainer));
    for (int i = 0; i < count; i++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *batch = filled(s, TN_SHAPE(4, 2), 9, 1), *loss;
        tn_trainer_step(trainer, s, &batch, 1, &loss);
        tn_item(s, loss);
        must_scope(s);
        tn_scope_close(s);
    }
    tn_trainer_destroy(trainer);
}

// All elements of a small array, and zeros behind them.
static void read_state(tn_params *params, const char *name, float out[4])
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *array = tn_params_array(params, name);
    const tn_type *type = tn_array_type(array);
    uint64_t size = sizeof(float);
    for (int32_t i = 0; i < type->rank; i++)
        size *= (uint64_t)type->extent[i];
    memset(out, 0, 4 * sizeof(*out));
    tn_read(s, array, out, size);
    must_scope(s);
    tn_scope_close(s);
}

Test(layers, a_state_follows_the_steps_and_is_resumed_to_the_bit)
{
    static const char *const all[] = {
        "fixed",     "in.weight",         "in.bias",          "norm.weight",
        "norm.bias", "norm.running_mean", "norm.running_var", "out.weight",
        "out.bias"};
    tn_params *whole, *part, *resumed;
    float first[4], one[4], other[4], fixed[4], variance[4];
    must(tn_params_create(rt, 5, &whole));
    must(tn_params_create(rt, 5, &part));
    must(tn_params_create(rt, 5, &resumed));
    block_steps(part, 1);
    read_state(part, "norm.running_mean", first);
    read_state(part, "norm.running_var", variance);
    block_steps(part, 1);
    must(tn_params_save(part, in_folder(1, "part")));
    must(tn_params_load(resumed, in_folder(1, "part")));
    block_steps(resumed, 3);
    block_steps(whole, 5);
    cr_assert(eq(u64, tn_params_count(whole), 9));
    cr_assert(eq(u64, tn_params_elements(whole), 2 * 2 + 2 + 2 + 2 + 2 + 1));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        float got[4], wanted[4];
        read_state(resumed, all[i], got);
        read_state(whole, all[i], wanted);
        cr_assert(memcmp(got, wanted, sizeof(got)) == 0, "%s", all[i]);
    }
    read_state(whole, "fixed", fixed);
    cr_assert(fixed[0] == 1 && fixed[2] == 1);
    read_state(whole, "norm.running_mean", other);
    read_state(part, "norm.running_mean", one);
    cr_assert(first[0] != 0 && one[0] != first[0] && other[0] != one[0]);
    cr_assert(variance[0] > 0.9 && variance[0] < 1, "%g", variance[0]);
    tn_params_destroy(whole), tn_params_destroy(part), tn_params_destroy(resumed);
}

Test(layers, without_training_batch_norm_uses_what_runs)
{
    static const char *const names[] = {"n.weight", "n.bias", "n.running_mean",
                                        "n.running_var"};
    const tn_shape *two = TN_SHAPE(2);
    tn_params *params = given(names, (const tn_shape *const[]){two, two, two, two}, 4);
    tn_scope *s = tn_scope_open(rt);
    tn_net n = {.params = params, .scope = s};
    // Element i of array k is 0.4 sin(0.7 i + k); the second variance is positive.
    const float *y =
        tn_data(s, tn_net_batch_norm(&n, "n", filled(s, TN_SHAPE(3, 2), 9, 1)));
    must_scope(s);
    double variance = 0.4 * sin(3), mean = 0.4 * sin(2), weight = 0.4 * sin(0),
           bias = 0.4 * sin(1), x = 0.4 * sin(9);
    cr_assert(fabs(y[0] - ((x - mean) / sqrt(variance + 1e-5) * weight + bias)) < 1e-6);
    tn_scope_close(s);
    tn_params_destroy(params);
}
