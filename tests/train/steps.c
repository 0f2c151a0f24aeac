// SPDX-License-Identifier: MIT
// Fifty steps of a small transformer by AdamW with clipping: the losses are PyTorch's.
#include <math.h>
#include "support.h"

TestSuite(steps, .init = train_begin, .fini = train_finish, .timeout = 100);

enum { VOCABULARY = 7, TIME = 6, TEXTS = 4, WHOLE = 8 };

static const struct {
    const char *name;
    tn_shape shape;
} block[] = {
    {"bytes.weight", {.rank = 2, .extent = {7, 8}}},
    {"places.weight", {.rank = 2, .extent = {6, 8}}},
    {"n1.weight", {.rank = 1, .extent = {8}}},
    {"n1.bias", {.rank = 1, .extent = {8}}},
    {"a.q.weight", {.rank = 2, .extent = {8, 8}}},
    {"a.q.bias", {.rank = 1, .extent = {8}}},
    {"a.k.weight", {.rank = 2, .extent = {8, 8}}},
    {"a.k.bias", {.rank = 1, .extent = {8}}},
    {"a.v.weight", {.rank = 2, .extent = {8, 8}}},
    {"a.v.bias", {.rank = 1, .extent = {8}}},
    {"a.out.weight", {.rank = 2, .extent = {8, 8}}},
    {"a.out.bias", {.rank = 1, .extent = {8}}},
    {"up.weight", {.rank = 2, .extent = {16, 8}}},
    {"up.bias", {.rank = 1, .extent = {16}}},
    {"down.weight", {.rank = 2, .extent = {8, 16}}},
    {"down.bias", {.rank = 1, .extent = {8}}},
    {"scores.weight", {.rank = 2, .extent = {7, 8}}},
    {"scores.bias", {.rank = 1, .extent = {7}}},
};
enum { NUM_BLOCK = sizeof(block) / sizeof(block[0]) };

static tn_array *block_loss(tn_net *n, tn_array *const *batch, void *user)
{
    static const int32_t counted[] = {0, 1, 2, 3, 4, 5};
    tn_scope *s = n->scope;
    (void)user;
    tn_array *places = tn_from_data(s, TN_I32, TN_SHAPE(TIME), counted);
    tn_array *x = tn_op(s, "base.add",
                        TN_IN(tn_net_embedding(n, "bytes", batch[0], VOCABULARY, WHOLE),
                              tn_net_embedding(n, "places", places, TIME, WHOLE)),
                        TN_NO_ATTRS);
    tn_array *y = tn_net_attention(n, "a", tn_net_norm(n, "n1", x), 2, 1);
    x = tn_op(s, "base.add", TN_IN(x, y), TN_NO_ATTRS);
    y = tn_op(s, "nn.gelu", TN_IN(tn_net_linear(n, "up", x, 2 * WHOLE)), TN_NO_ATTRS);
    x = tn_op(s, "base.add", TN_IN(x, tn_net_linear(n, "down", y, WHOLE)), TN_NO_ATTRS);
    return tn_net_loss(n, tn_net_linear(n, "scores", x, VOCABULARY), batch[1]);
}

static double block_step(tn_trainer *trainer, int step)
{
    int32_t x[TEXTS][TIME], y[TEXTS][TIME];
    for (int b = 0; b < TEXTS; b++)
        for (int t = 0; t < TIME; t++) {
            x[b][t] = (5 * b + 3 * t + t * t + step) % VOCABULARY;
            y[b][t] = (5 * b + 3 * (t + 1) + (t + 1) * (t + 1) + step) % VOCABULARY;
        }
    tn_scope *s = tn_scope_open(rt);
    tn_array *loss = NULL, *batch[2] = {tn_from_data(s, TN_I32, TN_SHAPE(TEXTS, TIME), x),
                                        tn_from_data(s, TN_I32, TN_SHAPE(TEXTS, TIME), y)};
    tn_trainer_step(trainer, s, batch, 2, &loss);
    double value = tn_item(s, loss);
    must_scope(s);
    tn_scope_close(s);
    return value;
}

Test(steps, fifty_steps_of_a_transformer_are_those_of_pytorch)
{
    // Of steps 1, 2, 5, 10, 20 and 50.
    static const struct {
        int step;
        double loss;
    } wanted[] = {{1, 3.028909},  {2, 2.584459},  {5, 2.013885},
                  {10, 1.857926}, {20, 1.834127}, {50, 1.105923}};
    const char *names[NUM_BLOCK];
    const tn_shape *shapes[NUM_BLOCK];
    tn_trainer *trainer;
    for (int i = 0; i < NUM_BLOCK; i++) {
        names[i] = block[i].name;
        shapes[i] = &block[i].shape;
    }
    tn_params *params = given(names, shapes, NUM_BLOCK);
    must(tn_trainer_create(params, block_loss, NULL,
                           &(tn_trainer_options){.optimiser = "adamw",
                                                 .lr = 0.01,
                                                 .clip = 1,
                                                 .attrs = tn_attrs("weight_decay", 0.1)},
                           &trainer));
    for (int step = 1, next = 0; step <= 50; step++) {
        double loss = block_step(trainer, step - 1);
        if (step != wanted[next].step)
            continue;
        cr_assert(fabs(loss - wanted[next].loss) < 2e-5 * step,
                  "step %d: %.7f, PyTorch's %.7f", step, loss, wanted[next].loss);
        next++;
    }
    tn_trainer_destroy(trainer);
    tn_params_destroy(params);
}
