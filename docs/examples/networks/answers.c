// SPDX-License-Identifier: MIT
// What a classifier says of test images, in print.
#include "command.h"

#include <inttypes.h>

static const char *const classes[CLASSES] = {
    "t-shirt", "trouser", "pullover", "dress", "coat",
    "sandal",  "shirt",   "sneaker",  "bag",   "boot",
};

static void print_json(int64_t counts[CLASSES][CLASSES], int64_t right, int64_t all)
{
    printf("{\"event\": \"test\", \"accuracy\": %.9g, \"images\": %" PRId64
           ", \"confusion\": [",
           (double)right / (double)all, all);
    for (int i = 0; i < CLASSES; i++) {
        printf("%s[", i ? ", " : "");
        for (int j = 0; j < CLASSES; j++)
            printf("%s%" PRId64, j ? ", " : "", counts[i][j]);
        printf("]");
    }
    printf("]}\n");
}

void answers_print(int64_t counts[CLASSES][CLASSES], int64_t right, int64_t all, bool json)
{
    if (json) {
        print_json(counts, right, all);
        return;
    }
    printf(
        "\nTest images by what they are (rows) and what the network says (columns):\n\n");
    printf("%9s", "");
    for (int j = 0; j < CLASSES; j++)
        printf(" %8s", classes[j]);
    for (int i = 0; i < CLASSES; i++) {
        printf("\n%9s", classes[i]);
        for (int j = 0; j < CLASSES; j++)
            printf(" %8" PRId64, counts[i][j]);
    }
    printf("\n\ntest accuracy %.2f %% (%" PRId64 " of %" PRId64 ")\n",
           100 * (double)right / (double)all, right, all);
}

enum { CELL_WIDTH = 14, CELL_HEIGHT = 7 }; // characters of a small picture

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

void answers_show(const tn_table test[2], const int32_t *rows, int count,
                  float p[][CLASSES])
{
    const uint8_t *images = test[0].data, *labels = test[1].data;
    printf("\n");
    for (int row = 0; row < CELL_HEIGHT; row++) {
        for (int i = 0; i < count; i++) {
            for (int column = 0; column < CELL_WIDTH; column++)
                putchar(shade(images + (int64_t)rows[i] * SIDE * SIDE, row, column));
            printf("  ");
        }
        printf("\n");
    }
    for (int i = 0; i < count; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = p[i][k] > p[i][best] ? k : best;
        printf("test image %5" PRId32 ": the network says %s (%.1f %%); it is %s\n",
               rows[i], classes[best], 100 * (double)p[i][best], classes[labels[rows[i]]]);
    }
}
