// SPDX-License-Identifier: MIT
// A character transformer: trained on a text, then asked for more of it. By AdamW with
// clipping.
#include "command.h"

#include <string.h>
#include <tenon/ops/base.h>
#include <tenon/ops/index.h>
#include <tenon/ops/nn.h>
#include <tenon/ops/random.h>

enum { LAYERS = 2, WIDTH = 64, HEADS = 4, CONTEXT = 64, BYTES = 256 };

// Scores of the next byte at each position of ids [batch, time].
static tn_array *scores(tn_net *n, tn_array *ids)
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
    return tn_net_loss(n, scores(n, batch[0]), batch[1]);
}

// Appends a byte to ids, of which `used` are there; beyond CONTEXT the first goes.
static int add_byte(struct course *t, int32_t ids[CONTEXT + 1], int used, uint32_t number)
{
    const uint32_t words[2] = {(uint32_t)t->options->seed, number};
    tn_scope *s = tn_scope_open(t->runtime);
    tn_net n = {.params = t->params, .scope = s};
    tn_array *x = tn_from_data(s, TN_I32, TN_SHAPE(1, CONTEXT), ids);
    tn_array *last = tn_index_at(s, scores(&n, x), "0, %", used - 1);
    tn_array *key = tn_from_data(s, TN_U32, TN_SHAPE(2), words);
    ids[used] = (int32_t)tn_item(s, tn_rng_categorical(s, key, last, NULL));
    int failed = failed_scope(s);
    tn_scope_close(s);
    return failed;
}

// Prints bytes that follow a new line, each drawn by its probability.
static int sample(struct course *t)
{
    int32_t ids[CONTEXT + 1] = {'\n'};
    const int64_t count = t->options->json ? 0 : t->options->sample;
    int failed = 0;
    for (int64_t i = 0, used = 1; i < count && !failed; i++) {
        failed = add_byte(t, ids, (int)used, (uint32_t)i);
        if (failed)
            return failed;
        char text[2] = {(char)ids[used], '\0'};
        if (text[0])
            show(stdout, text, 0);
        if (used < CONTEXT)
            used++;
        else
            memmove(ids, ids + 1, sizeof(ids) - sizeof(*ids));
    }
    if (count)
        printf("\n");
    return failed;
}

int train_transformer(struct asked *options)
{
    const struct network transformer = {
        .title = "A character transformer",
        .unit = "bytes",
        .loss = loss,
        .batch = 32,
        .epochs = 1,
        .steps = 1000,
        .every = 200,
        .trainer = {.optimiser = "adamw", .lr = 1e-3, .clip = 1},
    };
    struct course t;
    tn_table text = {0};
    if (!options->data)
        return misuse("no text to train on; expected tenon train transformer TEXT");
    int failed = training_open(&t, &transformer, options);
    if (!failed)
        failed = failed_call(tn_table_read(t.runtime, options->data, &text));
    if (!failed && (text.dtype != TN_U8 || text.shape.rank != 1))
        failed = fail("%s: %s of %d axes, expected a text", options->data,
                      tn_dtype_name(text.dtype), text.shape.rank);
    if (!failed && !options->classify)
        failed = training_run(&t, &text, 1, CONTEXT);
    if (!failed && !options->classify && !t.is_quiet)
        failed = training_reload(&t);
    if (!failed && !t.is_quiet)
        failed = sample(&t);
    training_close(&t);
    tn_table_finish(&text);
    return failed;
}
