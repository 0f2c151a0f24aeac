// SPDX-License-Identifier: MIT
// libtenon-train: layers beside PyTorch, training that is resumed to the bit, loaders,
// derivatives.
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "check.h"
#include "support.h"

TestSuite(train, .init = train_begin, .fini = train_finish, .timeout = 100);

// --- layers -----------------------------------------------------------------------------

static void near(tn_scope *s, tn_array *array, const double *wanted, int count)
{
    const float *got = tn_data(s, array);
    must_scope(s);
    for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) < 2e-6))
            cr_fatal("element %d is %.8g, PyTorch's %.8g", i, got[i], wanted[i]);
}

Test(train, an_lstm_is_that_of_pytorch_with_its_gradient)
{
    static const double wanted[] = {
        -0.1235346, 0.1501192, 0.0934725, 0.1199251, -0.2276501, 0.2035983,
        0.1197971,  0.0876854, 0.0450846, 0.031899,  0.2350691,  0.1169447,
        -0.1283057, 0.151775,  0.0932464, 0.1183191, -0.2266487, 0.2014536,
        0.1208729,  0.0878019, 0.0461138, 0.0316365, 0.2345699,  0.1173204};
    static const double slopes[] = {-0.0550119, -0.0741101, -0.0583532,
                                    -0.023793,  -0.0679093, -0.0800868};
    static const char *const names[] = {"l.bias_hh", "l.bias_ih", "l.weight_hh",
                                        "l.weight_ih"};
    tn_params *params = given(names,
                              (const tn_shape *const[]){TN_SHAPE(16), TN_SHAPE(16),
                                                        TN_SHAPE(16, 4), TN_SHAPE(16, 3)},
                              4);
    tn_scope *s = tn_scope_open(rt);
    tn_net n = {.params = params, .scope = s};
    tn_array *x = filled(s, TN_SHAPE(2, 3, 3), 9, 2), *slope = NULL;
    tn_array *y = tn_net_lstm(&n, "l", x, 4);
    near(s, y, wanted, 24);
    tn_array *squares = tn_expr(s, "y -> y * y", TN_IN(y), TN_NO_ATTRS);
    tn_array *loss = tn_op(s, "base.sum", TN_IN(squares), TN_NO_ATTRS);
    tn_vjp(s, &loss, NULL, 1, &x, 1, &slope);
    near(s, slope, slopes, 6);
    tn_scope_close(s);
    tn_params_destroy(params);
}

Test(train, attention_is_that_of_pytorch)
{
    static const double wanted[] = {
        -0.0609194, 0.6915491, 0.1072269,  0.273472,  -0.0704518, 0.7151165,
        0.0723478,  0.3156323, -0.0562188, 0.6919749, 0.101724,   0.2834162,
        -0.1166103, 0.7801443, -0.0040349, 0.3945436, -0.0510986, 0.693541,
        0.0936525,  0.2970604, -0.0817334, 0.729375,  0.0567601,  0.3307481};
    static const char *const names[] = {"b2.a.q.weight",   "b2.a.k.weight", "b2.a.v.weight",
                                        "b2.a.out.weight", "b2.a.q.bias",   "b2.a.k.bias",
                                        "b2.a.v.bias",     "b2.a.out.bias"};
    const tn_shape *w = TN_SHAPE(4, 4), *b = TN_SHAPE(4);
    tn_params *params = given(names, (const tn_shape *const[]){w, w, w, w, b, b, b, b}, 8);
    tn_scope *s = tn_scope_open(rt);
    tn_net n = {.params = params, .scope = s};
    tn_net_enter(&n, "b%", 2);
    near(s, tn_net_attention(&n, "a", filled(s, TN_SHAPE(2, 3, 4), 9, 1), 2, 1), wanted,
         24);
    tn_net_leave(&n);
    cr_assert(eq(str, n.path, ""));
    tn_scope_close(s);
    tn_params_destroy(params);
}

// --- training ---------------------------------------------------------------------------

Test(train, what_is_resumed_is_the_same_to_the_bit)
{
    static char whole[1 << 16], parts[1 << 16];
    struct small a, b, c;
    small_open(&a, "adamw", 0.05);
    must(fit(&a, 10, in_folder(0, "whole")));
    small_open(&b, "adamw", 0.05);
    must(fit(&b, 6, in_folder(1, "parts")));
    small_open(&c, "adamw", 0.05);
    must(tn_params_load(c.params, path_text[1]));
    cr_assert(eq(u64, tn_params_step(c.params), 6));
    must(fit(&c, 10, path_text[1]));
    size_t size = read_bytes(path_text[0], whole, sizeof(whole));
    cr_assert(gt(sz, size, 1000));
    cr_assert(eq(sz, read_bytes(path_text[1], parts, sizeof(parts)), size));
    cr_assert(memcmp(whole, parts, size) == 0);
    cr_assert(eq(u64, tn_params_count(a.params), 6));
    cr_assert(eq(u64, tn_params_elements(a.params), 4 * 6 + 6 + 2 * 6 + 6 * 3 + 3));
    cr_assert(eq(str, (char *)(uintptr_t)tn_params_name(a.params, 0), "in.weight"));
    small_close(&a), small_close(&b), small_close(&c);
}

Test(train, initialisers_have_their_distributions)
{
    enum { OUT = 64, IN = 3 * 3 * 8, COUNT = OUT * IN };
    static const struct {
        const char *name;
        double scale, deviation, most; // most: of |x|; 0: any
    } rows[] = {
        {"zeros", 1, 0, 0},
        {"ones", 1, 0, 1},
        {"normal", 0.5, 0.5, 0},
        {"uniform", 0.3, 0.3 / 1.7320508, 0.3},
        {"xavier", 1, 0.2100420 / 1.7320508, 0.2100420}, // sqrt(6 / (72 + 64))
        {"he", 2, 2 * 0.1666667, 0},                     // sqrt(2 / 72)
    };
    tn_params *params;
    must(tn_params_create(rt, 11, &params));
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        tn_scope *s = tn_scope_open(rt);
        tn_net n = {.params = params, .scope = s};
        const float *x = tn_data(s, tn_net_param(&n, rows[r].name, TN_SHAPE(OUT, 3, 3, 8),
                                                 rows[r].name, rows[r].scale));
        double mean = 0, squares = 0, most = 0;
        must_scope(s);
        for (int i = 0; i < COUNT; i++) {
            mean += (double)x[i] / COUNT;
            squares += (double)x[i] * x[i] / COUNT;
            most = fmax(most, fabs((double)x[i]));
        }
        double deviation = sqrt(fmax(squares - mean * mean, 0)), wanted = rows[r].deviation;
        cr_assert(fabs(deviation - wanted) <= 0.05 * wanted + 1e-6, "%s: %g, expected %g",
                  rows[r].name, deviation, wanted);
        cr_assert(fabs(mean - (r == 1)) <= 0.06 * wanted + 1e-6, "%s: %g", rows[r].name,
                  mean);
        if (rows[r].most > 0)
            cr_assert(most <= rows[r].most * 1.000001 && most > 0.99 * rows[r].most, "%s",
                      rows[r].name);
        tn_scope_close(s);
    }
    tn_params_destroy(params);
}

Test(train, every_optimiser_lowers_the_loss)
{
    static const struct {
        const char *name;
        double lr;
    } rows[] = {{"adam", 0.05},
                {"adamw", 0.05},
                {"amsgrad", 0.05},
                {"adamax", 0.05},
                {"adagrad", 0.1},
                {"adadelta", 5},
                {"rmsprop", 0.02},
                {"rmsprop_momentum", 0.02},
                {"rmsprop_centered", 0.02},
                {"sgd", 0.3},
                {"lion", 0.02},
                {"adafactor", 0.1},
                {"adafactor_vector", 0.1},
                {"muon", 0.05}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct small m;
        small_open(&m, rows[i].name, rows[i].lr);
        must(fit(&m, 4, NULL));
        double first = reported;
        must(fit(&m, 80, NULL));
        cr_assert(reported < 0.8 * first, "%s: %g behind %g", rows[i].name, reported,
                  first);
        small_close(&m);
    }
}

static tn_array *warm_up(tn_scope *s, tn_array *step, void *user)
{
    (void)user;
    return tn_op(s, "optim.linear_schedule", TN_IN(step),
                 tn_attrs("init", 0.0, "end", 0.1, "steps", 10));
}

Test(train, a_schedule_is_part_of_the_step)
{
    struct small m;
    small_open(&m, "sgd", 0);
    tn_trainer_destroy(m.trainer);
    must(tn_trainer_create(m.params, small_loss, NULL,
                           &(tn_trainer_options){.optimiser = "sgd", .schedule = warm_up},
                           &m.trainer));
    float before[24], after[24];
    must(fit(&m, 1, NULL)); // at rate 0
    tn_scope *s = tn_scope_open(rt);
    tn_read(s, tn_params_array(m.params, "in.weight"), before, sizeof(before));
    must(fit(&m, 1, NULL));
    must(fit(&m, 2, NULL));
    tn_scope *t = tn_scope_open(rt);
    tn_read(t, tn_params_array(m.params, "in.weight"), after, sizeof(after));
    must_scope(s), must_scope(t);
    struct small fresh;
    small_open(&fresh, "sgd", 1);
    must(fit(&fresh, 1, NULL));
    cr_assert(memcmp(before, after, sizeof(before)) != 0);
    tn_scope_close(s), tn_scope_close(t);
    small_close(&m), small_close(&fresh);
}

// --- data -------------------------------------------------------------------------------

Test(train, an_epoch_has_each_row_once_and_seeking_repeats_it)
{
    struct small m;
    uint64_t seen[2][8];
    small_open(&m, "adam", 0);
    cr_assert(eq(u64, tn_loader_batches(m.loader), ROWS / BATCH));
    tn_loader_destroy(m.loader);
    for (int i = 0; i < ROWS; i++)
        m.x[i][0] = (float)i;
    small_load(&m);
    for (int round = 0; round < 2; round++) {
        uint64_t rows = 0;
        tn_loader_seek(m.loader, 100); // elsewhere, then back to where an epoch begins
        tn_loader_seek(m.loader, 8);
        for (int k = 0; k < 8; k++) {
            tn_array *batch[2];
            float x[BATCH][4];
            tn_scope *s = tn_scope_open(rt);
            tn_loader_next(m.loader, s, batch);
            tn_read(s, batch[0], x, sizeof(x));
            must_scope(s);
            tn_scope_close(s);
            seen[round][k] = 0;
            for (int i = 0; i < BATCH; i++)
                seen[round][k] |= UINT64_C(1) << (int)x[i][0];
            rows = k % 4 ? rows | seen[round][k] : seen[round][k];
            if (k % 4 == 3)
                cr_assert(eq(int, __builtin_popcountll(rows), 4 * BATCH));
        }
    }
    cr_assert(memcmp(seen[0], seen[1], sizeof(seen[0])) == 0);
    cr_assert(memcmp(seen[0], seen[0] + 4, 4 * sizeof(seen[0][0])) != 0);
    small_close(&m);
}

static int count_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert(tasks != NULL);
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

Test(train, a_loader_has_a_thread_of_its_own)
{
    struct small m;
    small_open(&m, "adam", 0);
    int with = count_threads();
    tn_loader_destroy(m.loader);
    for (int i = 0; i < 1000 && count_threads() == with; i++)
        usleep(1000); // joined, and soon not listed
    int without = count_threads();
    small_load(&m);
    cr_assert(eq(int, count_threads(), with));
    cr_assert(eq(int, without + 1, with));
    small_close(&m);
}

Test(train, windows_of_a_text_are_followed_by_one_byte_more)
{
    const tn_table text = {
        TN_U8, 0, {.rank = 1, .extent = {11}}, (void *)(uintptr_t) "abcdefghijk"};
    tn_loader *loader;
    tn_array *batch[2];
    int32_t x[2][4], y[2][4];
    must(
        tn_loader_create(&text, 1, &(tn_loader_options){.batch = 2, .window = 4}, &loader));
    tn_scope *s = tn_scope_open(rt);
    tn_loader_next(loader, s, batch);
    tn_read(s, batch[0], x, sizeof(x));
    tn_read(s, batch[1], y, sizeof(y));
    must_scope(s);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++)
            cr_assert(eq(int, y[i][k], x[i][k] + 1), "%d %d", i, k);
    tn_scope_close(s);
    tn_loader_destroy(loader);
    cr_assert(tn_loader_create(&text, 1, &(tn_loader_options){.batch = 8, .window = 4},
                               &loader) != TN_OK);
    check_says(tn_train_error(), "the data have 7 samples, fewer than a batch of 8");
}

Test(train, a_plot_shows_finite_numbers)
{
    char text[1 << 12] = "";
    const double values[] = {3, NAN, 1, 2};
    must(tn_plot_svg(in_folder(0, "plot.svg"), "a < b", values, 4));
    read_bytes(path_text[0], text, sizeof(text) - 1);
    check_says(text, "a &#60; b");
    check_says(text, "points=\"48.0,48.0 410.7,312.0 592.0,180.0 \"");
    cr_assert(tn_plot_svg("/no/folder/x.svg", NULL, values, 4) != TN_OK);
    check_says(tn_train_error(), "/no/folder/x.svg: ");
}
