// SPDX-License-Identifier: MIT
// What the tests of libtenon-train share: a folder, parameters that are given, a training.
#include "support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tenon/file.h>

tn_runtime *rt;
#define TEMPLATE "/tmp/tenon-train-XXXXXX"
static char folder[] = TEMPLATE;
char path_text[4][256];

void train_begin(void)
{
    cr_assert(eq(int, tn_runtime_open(NULL, &rt), TN_OK), "%s", tn_last_error());
    memcpy(folder, TEMPLATE, sizeof(folder)); // a worker may have what the one before left
    cr_assert(mkdtemp(folder) != NULL);
}

void train_finish(void)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert(eq(int, system(command), 0));
    cr_assert(eq(int, tn_runtime_close(rt), TN_OK), "%s", tn_last_error());
}

char *in_folder(int slot, const char *name)
{
    snprintf(path_text[slot], sizeof(path_text[slot]), "%s/%s", folder, name);
    return path_text[slot];
}

char *write_file(int slot, const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(in_folder(slot, name), "wb");
    cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    return path_text[slot];
}

void must(tn_status status)
{
    if (status != TN_OK)
        cr_fatal("%s", tn_train_error());
}

void must_scope(const tn_scope *s)
{
    if (tn_scope_status(s))
        cr_fatal("%s", tn_scope_error(s));
}

tn_array *filled(tn_scope *s, const tn_shape *shape, double k, double scale)
{
    float data[128];
    for (int i = 0; i < 128; i++)
        data[i] = (float)(scale * 0.4 * sin(0.7 * i + k));
    return tn_from_data(s, TN_F32, shape, data);
}

tn_params *given(const char *const *names, const tn_shape *const *shapes, int count)
{
    static const char *const keys[] = {"format", "step", "seed", "optimiser"};
    static const char *const texts[] = {"tenon.train/1", "0", "1", ""};
    const tn_save_options options = {
        .struct_size = sizeof(options), .keys = keys, .texts = texts, .num_texts = 4};
    tn_array *arrays[32];
    tn_params *params;
    tn_scope *s = tn_scope_open(rt);
    for (int i = 0; i < count; i++)
        arrays[i] = filled(s, shapes[i], i, 1);
    tn_save(s, in_folder(0, "given.safetensors"), arrays, names, (uint64_t)count, &options);
    must_scope(s);
    tn_scope_close(s);
    must(tn_params_create(rt, 1, &params));
    must(tn_params_load(params, path_text[0]));
    return params;
}

// --- a training ------------------------------------------------------------------------

tn_array *small_loss(tn_net *n, tn_array *const *batch, void *user)
{
    (void)user;
    tn_array *h = tn_net_norm(n, "norm", tn_net_linear(n, "in", batch[0], 6));
    h = tn_net_dropout(n, tn_op(n->scope, "nn.relu", TN_IN(h), TN_NO_ATTRS), 0.3);
    return tn_net_loss(n, tn_net_linear(n, "out", h, 3), batch[1]);
}

void small_load(struct small *m)
{
    must(tn_loader_create(m->tables, 2, &(tn_loader_options){.batch = BATCH, .seed = 7},
                          &m->loader));
}

void small_open(struct small *m, const char *optimiser, double lr)
{
    for (int i = 0; i < ROWS; i++) {
        m->y[i] = (unsigned char)(i % 3);
        for (int k = 0; k < 4; k++)
            m->x[i][k] = (float)sin(i * 1.3 + k) + (float)(m->y[i] == k);
    }
    m->tables[0] = (tn_table){TN_F32, 0, {.rank = 2, .extent = {ROWS, 4}}, m->x};
    m->tables[1] = (tn_table){TN_U8, 0, {.rank = 1, .extent = {ROWS}}, m->y};
    small_load(m);
    must(tn_params_create(rt, 3, &m->params));
    must(tn_trainer_create(
        m->params, small_loss, NULL,
        &(tn_trainer_options){.optimiser = optimiser, .lr = lr, .clip = 1}, &m->trainer));
}

void small_close(struct small *m)
{
    tn_trainer_destroy(m->trainer);
    tn_params_destroy(m->params);
    tn_loader_destroy(m->loader);
}

double reported;
static int32_t quiet(uint64_t step, double loss, void *user)
{
    (void)step, (void)user;
    reported = loss;
    return 0;
}

tn_status fit(struct small *m, uint64_t steps, const char *save)
{
    return tn_fit(
        m->trainer, m->loader,
        &(tn_fit_options){.steps = steps, .every = 4, .save = save, .report = quiet});
}

size_t read_bytes(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(out, 1, room, file) : 0;
    if (file)
        fclose(file);
    return size;
}
