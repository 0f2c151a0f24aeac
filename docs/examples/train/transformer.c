// SPDX-License-Identifier: MIT
// A character transformer: trained on a text, saved, loaded, and asked for more of it.
//
//   ./transformer TEXT [STEPS [CHECKPOINT]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base.h>
#include <tenon/ops/index.h>
#include <tenon/ops/nn.h>
#include <tenon/train.h>

enum { LAYERS = 2, WIDTH = 64, HEADS = 4, CONTEXT = 64, BATCH = 32, BYTES = 256 };

// Scores of the next byte at each position of ids [batch, time].
static tn_array *forward(tn_net *n, tn_array *ids)
{
    tn_scope *s = n->scope;
    int64_t time = tn_array_type(ids)->extent[1];
    tn_array *places = tn_arange(s, &(tn_arange_options){.stop = (double)time, .step = 1});
    tn_array *x = tn_add(s, tn_net_embedding(n, "bytes", ids, BYTES, WIDTH),
                         tn_net_embedding(n, "places", places, CONTEXT, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        tn_net_enter(n, "block%", i);
        tn_array *a = tn_net_norm(n, "norm1", x);
        x = tn_add(s, x, tn_net_attention(n, "attention", a, HEADS, 1));
        a = tn_net_linear(n, "up", tn_net_norm(n, "norm2", x), 4 * WIDTH);
        x = tn_add(s, x, tn_net_linear(n, "down", tn_gelu(s, a, NULL), WIDTH));
        tn_net_leave(n);
    }
    return tn_net_linear(n, "scores", tn_net_norm(n, "norm", x), BYTES);
}

static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    return tn_net_loss(n, forward(n, batch[0]), batch[1]);
}

static tn_status train(tn_params *params, const tn_table *text, int steps, const char *path)
{
    tn_loader *loader = NULL;
    tn_trainer *trainer = NULL;
    const tn_loader_options data = {.batch = BATCH, .window = CONTEXT, .seed = 1};
    const tn_trainer_options adam = {.optimiser = "adam", .lr = 1e-3};
    const tn_fit_options fit = {.steps = (uint64_t)steps, .save = path, .every = 50};
    tn_status status = tn_loader_create(text, 1, &data, &loader) ||
                       tn_trainer_create(params, loss, NULL, &adam, &trainer) ||
                       tn_fit(trainer, loader, &fit);
    tn_trainer_destroy(trainer);
    tn_loader_destroy(loader);
    return status;
}

// Prints bytes that follow a new line, each drawn by its probability.
static tn_status sample(tn_runtime *runtime, tn_params *params)
{
    int32_t ids[CONTEXT] = {'\n'};
    tn_status status = TN_OK;
    for (int i = 0, used = 1; i < 200 && !status; i++, used += used < CONTEXT) {
        tn_scope *s = tn_scope_open(runtime);
        tn_net n = {.params = params, .scope = s};
        tn_array *x = tn_from_data(s, TN_I32, TN_SHAPE(1, CONTEXT), ids);
        tn_array *p = tn_softmax(s, tn_index_at(s, forward(&n, x), "0, %", used - 1), -1);
        const float *values = tn_data(s, p);
        double left = rand() / (RAND_MAX + 1.0);
        int byte = 0;
        while (values && byte < BYTES - 1 && (left -= values[byte]) >= 0)
            byte++;
        if (used == CONTEXT)
            memmove(ids, ids + 1, sizeof(ids) - sizeof(*ids));
        ids[used < CONTEXT ? used : CONTEXT - 1] = byte;
        putchar(byte);
        if ((status = tn_scope_status(s)))
            fprintf(stderr, "%s\n", tn_scope_error(s));
        tn_scope_close(s);
    }
    return status;
}

int main(int argc, char **argv)
{
    tn_runtime *runtime;
    tn_params *params = NULL, *loaded = NULL;
    tn_table text = {0};
    const char *path = argc > 3 ? argv[3] : "transformer.safetensors";
    if (argc < 2 || tn_runtime_open(NULL, &runtime))
        return fprintf(stderr, "usage: transformer TEXT [STEPS [CHECKPOINT]]\n"), 2;
    tn_status status =
        tn_table_read(runtime, argv[1], &text) || tn_params_create(runtime, 1, &params) ||
        train(params, &text, argc > 2 ? atoi(argv[2]) : 1000, path) ||
        tn_params_create(runtime, 1, &loaded) || tn_params_load(loaded, path);
    if (status)
        fprintf(stderr, "%s\n", tn_train_error());
    else
        status = sample(runtime, loaded);
    tn_params_destroy(loaded);
    tn_params_destroy(params);
    tn_table_finish(&text);
    tn_runtime_close(runtime);
    return status != TN_OK;
}
