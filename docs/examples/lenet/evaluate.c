// SPDX-License-Identifier: MIT
// What the network says of the test images: accuracy, confusion matrix, examples.
#include "train.h"
#include "fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_BATCH 500

static const char *const classes[LENET_CLASSES] = {
    "t-shirt", "trouser", "pullover", "dress", "coat",
    "sandal",  "shirt",   "sneaker",  "bag",   "boot",
};

// --- evaluating ------------------------------------------------------------------------

static void take_answers(const struct trainer *t, const float *probabilities, int64_t first,
                         int64_t count, struct evaluation *e)
{
    const uint8_t *labels = t->test.labels.data;
    for (int64_t i = 0; i < count; i++) {
        const float *p = probabilities + i * LENET_CLASSES;
        int best = 0;
        for (int k = 1; k < LENET_CLASSES; k++)
            if (p[k] > p[best])
                best = k;
        int truth = labels[first + i];
        e->answers[first + i] = (uint8_t)best;
        e->certainty[first + i] = p[best];
        e->confusion[truth][best]++;
        e->right += truth == best;
    }
}

static int evaluate_batch(struct trainer *t, int64_t first, int64_t count,
                          struct evaluation *e)
{
    int32_t indices[TEST_BATCH];
    float probabilities[TEST_BATCH * LENET_CLASSES];
    tn_array *inputs[2 + LENET_PARAMS], *output = NULL;
    tn_scope *scope = tn_scope_open(t->runtime);
    if (!scope)
        return fail_memory();
    for (int64_t i = 0; i < count; i++)
        indices[i] = (int32_t)(first + i);
    inputs[0] = t->test_images;
    inputs[1] = tn_from_data(scope, TN_I32, TN_SHAPE(count), indices);
    memcpy(inputs + 2, t->state, LENET_PARAMS * sizeof(*inputs));
    tn_status status =
        tn_function_call(t->predict, scope, inputs, COUNT(inputs), &output, 1);
    if (!status)
        status = tn_read(scope, output, probabilities,
                         (uint64_t)count * LENET_CLASSES * sizeof(float));
    if (!status)
        take_answers(t, probabilities, first, count, e);
    int failed = status ? fail_scope(scope) : 0;
    tn_scope_close(scope);
    return failed;
}

int evaluate(struct trainer *t, struct evaluation *out)
{
    struct evaluation e = {.count = t->test.count};
    e.answers = malloc((size_t)e.count);
    e.certainty = malloc((size_t)e.count * sizeof(float));
    int failed = e.answers && e.certainty ? 0 : fail_memory();
    for (int64_t first = 0; !failed && first < e.count; first += TEST_BATCH) {
        int64_t left = e.count - first;
        failed = evaluate_batch(t, first, left < TEST_BATCH ? left : TEST_BATCH, &e);
    }
    if (failed)
        evaluation_finish(&e);
    else
        *out = e;
    return failed;
}

void evaluation_finish(struct evaluation *e)
{
    free(e->answers);
    free(e->certainty);
    *e = (struct evaluation){0};
}

// --- printing --------------------------------------------------------------------------

static void print_json(const struct evaluation *e)
{
    printf("{\"event\": \"test\", \"accuracy\": %.9g, \"images\": %" PRId64
           ", \"confusion\": [",
           (double)e->right / (double)e->count, e->count);
    for (int i = 0; i < LENET_CLASSES; i++) {
        printf("%s[", i ? ", " : "");
        for (int j = 0; j < LENET_CLASSES; j++)
            printf("%s%" PRId64, j ? ", " : "", e->confusion[i][j]);
        printf("]");
    }
    printf("]}\n");
}

int evaluation_print(const struct trainer *t, const struct evaluation *e)
{
    if (t->options.json) {
        print_json(e);
        return 0;
    }
    printf(
        "\nTest images by what they are (rows) and what the network says (columns):\n\n");
    printf("%9s", "");
    for (int j = 0; j < LENET_CLASSES; j++)
        printf(" %8s", classes[j]);
    for (int i = 0; i < LENET_CLASSES; i++) {
        printf("\n%9s", classes[i]);
        for (int j = 0; j < LENET_CLASSES; j++)
            printf(" %8" PRId64, e->confusion[i][j]);
    }
    printf("\n\ntest accuracy %.2f %% (%" PRId64 " of %" PRId64 ")\n",
           100 * (double)e->right / (double)e->count, e->right, e->count);
    return 0;
}

#define SHOWN 5       // images in a row
#define SIDE 28       // pixels of an image
#define CELL_WIDTH 14 // characters of a small picture
#define CELL_HEIGHT 7

// The mean of the pixels behind one character, as a character of that darkness.
static char shade(const uint8_t *image, int row, int column)
{
    static const char shades[] = " .:-=+*#%@";
    const int rows = SIDE / CELL_HEIGHT, columns = SIDE / CELL_WIDTH;
    int sum = 0;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            sum += image[(row * rows + y) * SIDE + column * columns + x];
    return shades[sum / (rows * columns) * 9 / 255];
}

void evaluation_show_images(const struct trainer *t, const struct evaluation *e)
{
    const uint8_t *images = t->test.images.data, *labels = t->test.labels.data;
    int64_t count = e->count < SHOWN ? e->count : SHOWN, apart = e->count / count;
    if (t->options.json)
        return;
    printf("\n");
    for (int row = 0; row < CELL_HEIGHT; row++) {
        for (int64_t i = 0; i < count; i++) {
            for (int column = 0; column < CELL_WIDTH; column++)
                putchar(shade(images + i * apart * SIDE * SIDE, row, column));
            printf("  ");
        }
        printf("\n");
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t image = i * apart;
        printf("test image %5" PRId64 ": the network says %s (%.1f %%); it is %s\n", image,
               classes[e->answers[image]], 100 * (double)e->certainty[image],
               classes[labels[image]]);
    }
}
