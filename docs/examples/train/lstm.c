// SPDX-License-Identifier: MIT
// A classifier by LSTM: images, read row by row, in classes.
//
//   ./lstm FOLDER [STEPS]     (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...)
#include <stdio.h>
#include <stdlib.h>
#include <tenon/ops/base.h>
#include <tenon/ops/index.h>
#include <tenon/train.h>

enum { WIDTH = 128, CLASSES = 10, BATCH = 64 };

// Scores of images [n, rows, columns] of bytes: what is left in the LSTM behind the last
// row.
static tn_array *forward(tn_net *n, tn_array *images)
{
    tn_array *x = tn_expr(n->scope, "x -> f32(x) / 255", TN_IN(images), TN_NO_ATTRS);
    tn_array *h = tn_net_lstm(n, "lstm", x, WIDTH);
    return tn_net_linear(n, "scores", tn_index(n->scope, h, ":, -1"), CLASSES);
}

static tn_array *loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    return tn_net_loss(n, forward(n, batch[0]), batch[1]);
}

static tn_status read_images(tn_runtime *runtime, const char *folder, const char *set,
                             tn_table tables[2])
{
    static const char *const kinds[2] = {"images-idx3", "labels-idx1"};
    tn_status status = TN_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s-%s-ubyte", folder, set, kinds[i]);
        status = tn_table_read(runtime, path, &tables[i]);
    }
    return status;
}

static tn_status train(tn_params *params, const tn_table *tables, uint64_t steps)
{
    tn_loader *loader = NULL;
    tn_trainer *trainer = NULL;
    const tn_loader_options data = {.batch = BATCH, .seed = 1};
    const tn_trainer_options adam = {.optimiser = "adam", .lr = 2e-3, .clip = 1};
    const tn_fit_options fit = {.steps = steps, .plot = "lstm.svg"};
    tn_status status = tn_loader_create(tables, 2, &data, &loader) ||
                       tn_trainer_create(params, loss, NULL, &adam, &trainer) ||
                       tn_fit(trainer, loader, &fit);
    tn_trainer_destroy(trainer);
    tn_loader_destroy(loader);
    return status;
}

// The share of images whose class is found.
static tn_status test(tn_runtime *runtime, tn_params *params, const tn_table *tables)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_net n = {.params = params, .scope = s};
    tn_array *x = tn_from_data(s, tables[0].dtype, &tables[0].shape, tables[0].data);
    tn_array *y = tn_from_data(s, tables[1].dtype, &tables[1].shape, tables[1].data);
    double accuracy = tn_item(s, tn_net_accuracy(&n, forward(&n, x), y));
    tn_status status = tn_scope_status(s);
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    else
        printf("accuracy %.4f of %lld images\n", accuracy,
               (long long)tables[0].shape.extent[0]);
    tn_scope_close(s);
    return status;
}

int main(int argc, char **argv)
{
    tn_runtime *runtime;
    tn_params *params = NULL;
    tn_table tables[4] = {{0}};
    if (argc < 2 || tn_runtime_open(NULL, &runtime))
        return fprintf(stderr, "usage: lstm FOLDER [STEPS]\n"), 2;
    tn_status status = read_images(runtime, argv[1], "train", tables) ||
                       read_images(runtime, argv[1], "t10k", tables + 2) ||
                       tn_params_create(runtime, 1, &params) ||
                       train(params, tables, argc > 2 ? strtoull(argv[2], NULL, 10) : 1000);
    if (status)
        fprintf(stderr, "%s\n", tn_train_error());
    else
        status = test(runtime, params, tables + 2);
    tn_params_destroy(params);
    for (int i = 0; i < 4; i++)
        tn_table_finish(&tables[i]);
    tn_runtime_close(runtime);
    return status != TN_OK;
}
