// SPDX-License-Identifier: MIT
// A classifier of images: trained, tested behind each epoch and at the end, on images that
// it has not seen, some of which are shown.
#include "command.h"

#include <inttypes.h>
#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>

enum { TEST_BATCH = 500, SHOWN = 5 };

struct classifier {
    struct course training; // first: reports have it
    scores_body scores;
    tn_table train[2], test[2];
};

static tn_array *confusion(tn_net *net, tn_array *const *batch, void *user)
{
    const struct classifier *c = user;
    return tn_net_confusion(net, c->scores(net, batch[0]), batch[1]);
}

// Test images by class and answer; gives how many are right.
static int test_images(struct classifier *c, int64_t counts[CLASSES][CLASSES],
                       int64_t *out_right)
{
    double shares[CLASSES][CLASSES];
    int failed = failed_call(tn_evaluate(c->training.params, confusion, c, c->test, 2,
                                         TEST_BATCH, shares[0], CLASSES * CLASSES));
    *out_right = 0;
    for (int i = 0; i < CLASSES && !failed; i++) {
        for (int j = 0; j < CLASSES; j++)
            counts[i][j] =
                (int64_t)(shares[i][j] * (double)c->test[0].shape.extent[0] + 0.5);
        *out_right += counts[i][i];
    }
    return failed;
}

static int report_epoch(struct course *t, uint64_t step, double loss, double seconds)
{
    struct classifier *c = (struct classifier *)t;
    int64_t counts[CLASSES][CLASSES], right;
    int failed = test_images(c, counts, &right);
    if (failed)
        return failed;
    double accuracy = (double)right / (double)c->test[0].shape.extent[0];
    double rate = (double)t->every * (double)t->options->batch / seconds;
    uint64_t epoch = step / t->every;
    if (t->options->json)
        printf("{\"event\": \"epoch\", \"epoch\": %" PRIu64 ", \"loss\": %.9g, "
               "\"accuracy\": %.9g, \"seconds\": %.6f, \"images_per_s\": %.1f}\n",
               epoch, loss, accuracy, seconds, rate);
    else
        printf("epoch %" PRIu64
               ": loss %.4f, test accuracy %.2f %%, %.1f s, %.0f images/s\n",
               epoch, loss, 100 * accuracy, seconds, rate);
    return 0;
}

// Probabilities of the classes of some images, and the images.
static int show_some(struct classifier *c)
{
    int64_t count = c->test[0].shape.extent[0], shown = count < SHOWN ? count : SHOWN;
    tn_scope *s = tn_scope_open(c->training.runtime);
    tn_net net = {.params = c->training.params, .scope = s};
    float p[SHOWN][CLASSES];
    int32_t rows[SHOWN];
    for (int i = 0; i < shown; i++)
        rows[i] = (int32_t)(i * (count / shown));
    tn_array *all = tn_from_data(s, TN_U8, &c->test[0].shape, c->test[0].data);
    tn_array *some = tn_take(s, all, tn_from_data(s, TN_I32, TN_SHAPE(shown), rows), 0);
    tn_read(s, tn_softmax(s, c->scores(&net, some), -1), p, (uint64_t)shown * sizeof(p[0]));
    int failed = failed_scope(s);
    tn_scope_close(s);
    if (!failed)
        answers_show(c->test, rows, (int)shown, p);
    return failed;
}

static int test_network(struct classifier *c)
{
    int64_t counts[CLASSES][CLASSES], right;
    int failed = test_images(c, counts, &right);
    if (failed)
        return failed;
    answers_print(counts, right, c->test[0].shape.extent[0], c->training.options->json);
    return c->training.options->json ? 0 : show_some(c);
}

static int read_data(struct classifier *c)
{
    const struct asked *o = c->training.options;
    int failed =
        o->classify ? 0 : images_read(c->training.runtime, o->data, "train", c->train);
    if (!failed)
        failed = images_read(c->training.runtime, o->data, "t10k", c->test);
    for (int i = 0; i < 2 && !failed && o->test; i++)
        if (o->test < c->test[i].shape.extent[0])
            c->test[i].shape.extent[0] = o->test;
    return failed;
}

int classifier_run(const struct network *network, scores_body scores, struct asked *options)
{
    struct classifier c = {.scores = scores};
    int failed = training_open(&c.training, network, options);
    c.training.report = report_epoch;
    if (!failed)
        failed = read_data(&c);
    if (!failed && !options->classify)
        failed = training_run(&c.training, c.train, 2, 0);
    if (!failed && !options->classify && !c.training.is_quiet)
        failed = training_reload(&c.training);
    if (!failed && !c.training.is_quiet)
        failed = test_network(&c);
    training_close(&c.training);
    for (int i = 0; i < 2; i++) {
        tn_table_finish(&c.train[i]);
        tn_table_finish(&c.test[i]);
    }
    return failed;
}
