// SPDX-License-Identifier: MIT
// Prompts with images, for tests: what make_images.py wrote of a small model that reads
// them, the model itself, and its images.
#ifndef TESTS_LM_IMAGES_H
#define TESTS_LM_IMAGES_H

#include "fixture.h"
#include <math.h>
#include <tenon/lm_image.h>

#define MOST_IMAGES 2
#define MOST_POSITIONS 192
#define WIDTH 16
#define MARK 1 // the token
#define MOST_KNOWN 5

// A prompt with images, and what it should give.
struct known {
    char name[32], prompt[64];
    int is_split, num_images, num_ids;
    int64_t height[MOST_IMAGES], width[MOST_IMAGES];
    int32_t ids[MOST_POSITIONS];
    int64_t feature[3];
    float features[3][WIDTH];
    int num_rows;
    int64_t row[MOST_KNOWN];
    float rows[MOST_KNOWN][WORDS];
};

static char tokens[WORDS][32];
static struct known known[6];
static int num_known;

static inline FILE *open_fixture(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", getenv("TEST_LM_FIXTURES"), name);
    FILE *file = fopen(path, "r");
    if (!file)
        cr_fatal("%s: cannot be opened", path);
    return file;
}

static inline void read_floats(FILE *file, int count, float *out)
{
    for (int i = 0; i < count; i++)
        cr_assert(eq(int, fscanf(file, " %f", &out[i]), 1));
}

static inline void read_case(FILE *file)
{
    struct known *k = &known[num_known++];
    char word[16];
    *k = (struct known){.num_images = 0};
    cr_assert(eq(int,
                 fscanf(file, " %31s %d %d %d %63[^\n]", k->name, &k->is_split,
                        &k->num_images, &k->num_ids, k->prompt),
                 5));
    for (int i = 0; i < k->num_images; i++)
        cr_assert(eq(int, fscanf(file, " size %ld %ld", &k->height[i], &k->width[i]), 2));
    cr_assert(eq(int, fscanf(file, " %15s", word), 1));
    for (int i = 0; i < k->num_ids; i++)
        cr_assert(eq(int, fscanf(file, " %d", &k->ids[i]), 1));
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, fscanf(file, " feature %ld", &k->feature[i]), 1));
        read_floats(file, WIDTH, k->features[i]);
    }
    while (fscanf(file, " row %ld", &k->row[k->num_rows]) == 1)
        read_floats(file, WORDS, k->rows[k->num_rows++]);
}

static inline void read_cases(void)
{
    char word[16];
    FILE *file = open_fixture("idefics3_cases.txt");
    cr_assert(eq(int, fscanf(file, " %15s", word), 1));
    for (int i = 0; i < WORDS; i++)
        cr_assert(eq(int, fscanf(file, " %31s", tokens[i]), 1));
    num_known = 0;
    while (num_known < 6 && fscanf(file, " %15s", word) == 1)
        read_case(file);
    cr_assert(eq(int, num_known, 6));
    fclose(file);
}

// --- the model -------------------------------------------------------------------------

struct reader {
    struct fixture f;
    tn_text texts[WORDS], merges[1];
    int64_t types[WORDS];
    tn_lm *lm;
};

static inline void add_list(struct fixture *f, const char *key, uint32_t kind,
                            const void *data, uint64_t count)
{
    fixture_set(f, key, "0");
    for (uint64_t i = 0; i < f->list.count; i++)
        if (strcmp(f->keys[i], key) == 0)
            f->pairs[i] = (tn_metadata){f->keys[i], data, count, kind, TN_METADATA_LIST};
}

// The model's source, with its vocabulary.
static inline void reader_prepare(struct reader *r)
{
    fixture_open(&r->f, "idefics3");
    for (int i = 0; i < WORDS; i++) {
        r->texts[i] = (tn_text){tokens[i], strlen(tokens[i])};
        r->types[i] = i < 10 ? 3 : 1; // control tokens come first
    }
    r->merges[0] = (tn_text){"Ċ Ċ", strlen("Ċ Ċ")};
    fixture_set(&r->f, "tokenizer.ggml.model", "gpt2");
    fixture_set(&r->f, "tokenizer.ggml.pre", "gpt-2");
    fixture_set(&r->f, "tokenizer.ggml.eos_token_id", "8");
    add_list(&r->f, "tokenizer.ggml.tokens", TN_METADATA_TEXT, r->texts, WORDS);
    add_list(&r->f, "tokenizer.ggml.token_type", TN_METADATA_INTEGER, r->types, WORDS);
    add_list(&r->f, "tokenizer.ggml.merges", TN_METADATA_TEXT, r->merges, 1);
}

static inline void reader_open(struct reader *r, bool is_split)
{
    const tn_lm_options options = {
        .struct_size = sizeof(options), .context = 256, .cache = "f32"};
    reader_prepare(r);
    fixture_set(&r->f, "tenon.vision.splits", is_split ? "1" : "0");
    lm_must(tn_lm_open_source(runtime, &r->f.source, &options, &r->lm));
}

static inline void reader_close(struct reader *r)
{
    tn_lm_close(r->lm);
    cr_assert(eq(int, r->f.closed, 1));
}

// The pixels of make_images.py, for free().
static inline uint8_t *pixels_of(int64_t height, int64_t width)
{
    char name[64];
    int64_t count = height * width * 3;
    snprintf(name, sizeof(name), "pixels %ld %ld", height, width);
    int32_t *drawn = malloc((size_t)count * sizeof(*drawn));
    uint8_t *pixels = malloc((size_t)count);
    fixture_numbers(name, count, drawn);
    for (int64_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)(drawn[i] & 255);
    free(drawn);
    return pixels;
}

static inline tn_lm_image *image_of(tn_lm *lm, int64_t height, int64_t width)
{
    tn_lm_image *image = NULL;
    uint8_t *pixels = pixels_of(height, width);
    lm_must(tn_lm_image_make(lm, pixels, height, width, &image));
    free(pixels);
    return image;
}

static inline void compare(const char *what, int64_t row, const float *got,
                           const float *expected, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= 1e-4))
            cr_fatal("%s: number %d of row %ld is %.7g, expected %.7g", what, i, row,
                     (double)got[i], (double)expected[i]);
}

static inline void check_rows(const struct known *k, tn_lm_image *const *images)
{
    for (int i = 0; i < 3; i++) {
        int64_t row = k->feature[i];
        int at = 0;
        tn_lm_image_info info = {.struct_size = sizeof(info)};
        for (tn_lm_image_describe(images[at], &info); row >= info.tokens;
             tn_lm_image_describe(images[at], &info)) {
            row -= info.tokens;
            at++;
        }
        compare(k->name, k->feature[i], tn_lm_image_rows(images[at]) + row * WIDTH,
                k->features[i], WIDTH);
    }
}

#endif // TESTS_LM_IMAGES_H
