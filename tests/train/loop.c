// SPDX-License-Identifier: MIT
// The loop of libtenon-train: what it calls, where it stops, what it draws; notes of
// checkpoints; a network over all rows.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support.h"

TestSuite(loop, .init = train_begin, .fini = train_finish, .timeout = 100);

// --- what it calls ----------------------------------------------------------------------

static struct {
    uint64_t steps[64], reports[16];
    double losses[64];
    int num_steps, num_reports;
    volatile int32_t stop;
    int stop_behind; // 0: never
} seen;

static void see_step(uint64_t step, double loss, void *user)
{
    cr_assert(user == &seen && seen.num_steps < 64);
    seen.losses[seen.num_steps] = loss;
    seen.steps[seen.num_steps++] = step;
}

static int32_t see_report(uint64_t step, double loss, void *user)
{
    double sum = 0;
    int first = seen.num_reports ? (int)seen.reports[seen.num_reports - 1] : 0;
    cr_assert(user == &seen && seen.num_reports < 16);
    for (int i = first; i < (int)step; i++)
        sum += seen.losses[i];
    cr_assert(fabs(loss - sum / ((double)step - first)) < 1e-12);
    seen.reports[seen.num_reports++] = step;
    if (seen.stop_behind && (int)step >= seen.stop_behind)
        seen.stop = 1;
    return step == 12; // ends the loop
}

static tn_status see(struct small *m, uint64_t steps, const char *save)
{
    return tn_fit(m->trainer, m->loader,
                  &(tn_fit_options){.steps = steps,
                                    .every = 4,
                                    .save = save,
                                    .plot = in_folder(3, "losses.svg"),
                                    .report = see_report,
                                    .each = see_step,
                                    .stop = &seen.stop,
                                    .user = &seen});
}

Test(loop, each_step_is_told_in_order_and_a_report_may_end_it)
{
    static char picture[1 << 12];
    struct small m;
    memset((void *)&seen, 0, sizeof(seen));
    small_open(&m, "adam", 0.1);
    must(see(&m, 40, NULL));
    cr_assert(eq(int, seen.num_steps, 12));
    for (int i = 0; i < 12; i++)
        cr_assert(eq(u64, seen.steps[i], (uint64_t)i + 1));
    cr_assert(eq(int, seen.num_reports, 3));
    cr_assert(eq(u64, seen.reports[2], 12));
    size_t size = read_bytes(path_text[3], picture, sizeof(picture) - 1);
    int points = 0;
    for (char *at = strstr(picture, "points="); at && (at = strchr(at, ',')); at++)
        points++;
    cr_assert(size > 500 && points == 12, "%d points", points);
    small_close(&m);
}

Test(loop, what_is_stopped_is_saved_and_goes_on_to_the_bit)
{
    static char whole[1 << 14], parts[1 << 14];
    struct small a, b;
    memset((void *)&seen, 0, sizeof(seen));
    small_open(&a, "adam", 0.1);
    must(see(&a, 10, in_folder(0, "whole")));
    memset((void *)&seen, 0, sizeof(seen));
    seen.stop = 1;
    small_open(&b, "adam", 0.1);
    must(see(&b, 10, in_folder(1, "parts")));
    cr_assert(eq(int, seen.num_steps, 0)); // before the first step
    cr_assert(access(path_text[1], F_OK) != 0);
    seen.stop = 0;
    seen.stop_behind = 4;
    must(see(&b, 10, path_text[1]));
    cr_assert(eq(u64, tn_params_step(b.params), 4));
    memset((void *)&seen, 0, sizeof(seen));
    small_close(&b);
    small_open(&b, "adam", 0.1);
    must(tn_params_load(b.params, path_text[1]));
    must(fit(&b, 10, path_text[1]));
    size_t size = read_bytes(path_text[0], whole, sizeof(whole));
    cr_assert(eq(sz, read_bytes(path_text[1], parts, sizeof(parts)), size));
    cr_assert(memcmp(whole, parts, size) == 0);
    small_close(&a), small_close(&b);
}

// What is written to stdout while `call` runs.
static void drawn_lines(struct small *m, char *text, size_t room)
{
    fflush(stdout);
    int saved = dup(1);
    cr_assert(saved >= 0 && freopen(in_folder(2, "drawn"), "w", stdout));
    tn_status status = tn_fit(m->trainer, m->loader,
                              &(tn_fit_options){.steps = 3, .every = 2, .progress = 1});
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    must(status);
    text[read_bytes(path_text[2], text, room - 1)] = '\0';
}

Test(loop, progress_has_epoch_step_loss_rate_and_time)
{
    char text[2048] = "";
    struct small m;
    small_open(&m, "adam", 0.1);
    drawn_lines(&m, text, sizeof(text));
    check_says(text, "epoch 1/1  step 1/3  loss ");
    check_says(text, "epoch 1/1  step 3/3  loss ");
    check_says(text, " samples/s  0:00 left\n");
    cr_assert(strpbrk(text, "\r\x1b") == NULL); // no terminal
    cr_assert(tn_fit(m.trainer, m.loader, &(tn_fit_options){.steps = 9, .progress = 3}) !=
              TN_OK);
    check_says(tn_train_error(), "progress is 3, expected 0 to 2");
    small_close(&m);
}

// --- notes ------------------------------------------------------------------------------

Test(loop, notes_are_saved_with_the_parameters)
{
    char key[8], long_text[300];
    struct small m, other;
    small_open(&m, "adam", 0.1);
    must(tn_params_set_note(m.params, "network", "small"));
    must(tn_params_set_note(m.params, "batch", "4"));
    must(tn_params_set_note(m.params, "batch", "5 rows, \"quoted\""));
    must(fit(&m, 1, in_folder(0, "noted")));
    small_open(&other, "adam", 0.1);
    must(tn_params_load(other.params, path_text[0]));
    cr_assert(eq(str, (char *)(uintptr_t)tn_params_note(other.params, "network"), "small"));
    cr_assert(eq(str, (char *)(uintptr_t)tn_params_note(other.params, "batch"),
                 "5 rows, \"quoted\""));
    cr_assert(tn_params_note(other.params, "lr") == NULL);
    cr_assert(eq(u64, tn_params_seed(other.params), 3));
    for (int i = 2; i < 16; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        must(tn_params_set_note(m.params, key, ""));
    }
    memset(long_text, 'x', sizeof(long_text));
    long_text[299] = '\0';
    cr_assert(tn_params_set_note(m.params, "k16", "") != TN_OK);
    check_says(tn_train_error(), "16 notes before");
    cr_assert(tn_params_set_note(m.params, "two words", "") != TN_OK);
    cr_assert(tn_params_set_note(m.params, "k2", long_text) != TN_OK);
    check_says(tn_train_error(), "note 'k2': a key of 2 bytes, a text of 299");
    small_close(&m), small_close(&other);
}

// --- all rows ---------------------------------------------------------------------------

static tn_array *scores_of(tn_net *n, tn_array *const *batch)
{
    tn_array *h = tn_net_norm(n, "norm", tn_net_linear(n, "in", batch[0], 6));
    h = tn_op(n->scope, "nn.relu", TN_IN(h), TN_NO_ATTRS);
    return tn_net_linear(n, "out", h, 3);
}

// 0: accuracy, 1: confusion, 2: another layer, 3: a vector of the wrong length.
static tn_array *measure(tn_net *n, tn_array *const *batch, void *user)
{
    const int kind = *(const int *)user;
    cr_assert(eq(int, n->training, 0));
    tn_array *scores = scores_of(n, batch);
    if (kind == 2)
        return tn_net_linear(n, "more", scores, 1);
    return kind == 0   ? tn_net_accuracy(n, scores, batch[1])
           : kind == 1 ? tn_net_confusion(n, scores, batch[1])
                       : scores;
}

Test(loop, a_network_over_all_rows)
{
    struct small m;
    int kind = 0;
    double accuracy, one, shares[9], right = 0, rows[3] = {0};
    small_open(&m, "adam", 0.1);
    cr_assert(tn_evaluate(m.params, measure, &kind, m.tables, 2, 7, &accuracy, 1) != TN_OK);
    check_says(tn_train_error(), "parameter 'in.weight' is not in the set");
    must(fit(&m, 60, NULL));
    must(tn_evaluate(m.params, measure, &kind, m.tables, 2, 7, &accuracy, 1)); // 7, 7, 7, 3
    must(tn_evaluate(m.params, measure, &kind, m.tables, 2, ROWS, &one, 1));
    cr_assert(fabs(accuracy - one) < 1e-6 && one > 0.6 && one <= 1, "%g %g", accuracy, one);
    kind = 1;
    must(tn_evaluate(m.params, measure, &kind, m.tables, 2, 5, shares, 9));
    for (int i = 0; i < 3; i++) {
        right += shares[4 * i];
        for (int j = 0; j < 3; j++)
            rows[i] += shares[3 * i + j];
        cr_assert(fabs(rows[i] - 1.0 / 3) < 1e-6); // as many of each label
    }
    cr_assert(fabs(right - one) < 1e-6);
    kind = 2;
    cr_assert(tn_evaluate(m.params, measure, &kind, m.tables, 2, 5, &one, 1) != TN_OK);
    check_says(tn_train_error(), "parameter 'more.weight' is not in the set");
    kind = 3;
    cr_assert(tn_evaluate(m.params, measure, &kind, m.tables, 2, 5, &one, 1) != TN_OK);
    check_says(tn_train_error(), "tn_evaluate: 15 numbers of f32, expected 1 of f32");
    cr_assert(tn_evaluate(m.params, measure, &kind, m.tables, 2, 0, &one, 1) != TN_OK);
    check_says(tn_train_error(), "24 rows in batches of 0, expected at least 1");
    cr_assert(eq(u64, tn_params_count(m.params), 6)); // nothing was added
    must(fit(&m, 61, NULL));
    small_close(&m);
}
