// SPDX-License-Identifier: MIT
// Layers on several devices, for tests: runtimes on lists of devices, models with splits,
// and what is compared.
//
// TENON_TEST_LOADER says where the shared object of tests/fixtures/vulkan_loader.c is,
// which makes two devices of one where there is one, and takes memory and devices away.
#ifndef TESTS_LM_SPLIT_H
#define TESTS_LM_SPLIT_H

#include "../fixtures/vulkan_loader.h"
#include "fixture.h"
#include <dlfcn.h>
#include <unistd.h>

static struct vulkan_faults *faults;

static inline void load(void)
{
    void *loader = dlopen(getenv("TENON_TEST_LOADER"), RTLD_NOW | RTLD_GLOBAL);
    faults = loader ? dlsym(loader, "vulkan_faults") : NULL;
    if (!faults)
        cr_fatal("%s", dlerror());
    need_device("vulkan");
    *faults = (struct vulkan_faults){.least_devices = 2};
}

// Puts a runtime on these devices.
static inline void open_devices(const char *devices)
{
    char variable[96];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", devices);
    runtime = open_with((const char *const[]){variable, "TENON_FALLBACK=allow", NULL});
}

// A model of f32 caches, unless `cache` says others; see `format` of struct fixture.
static inline tn_lm *open_kind(struct fixture *f, const char *name, const char *split,
                               int64_t sequences, const char *cache, const char *format)
{
    tn_lm *lm = NULL;
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = POSITIONS + 40,
                                   .cache = cache ? cache : "f32",
                                   .sequences = sequences,
                                   .split = split};
    fixture_open(f, name);
    f->format = format;
    lm_must(tn_lm_open_source(runtime, &f->source, &options, &lm));
    return lm;
}

static inline tn_lm *open_split(struct fixture *f, const char *name, const char *split,
                                int64_t sequences)
{
    return open_kind(f, name, split, sequences, NULL, NULL);
}

// What is compared: a prompt of several chunks, each row, and steps behind it.
enum { PROMPT = 75, STEPS = 3, ROWS = PROMPT + STEPS, WIDTH = 16 };

static inline void infer_rows(tn_lm *lm, const struct fixture *f, float *out)
{
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer(sequence, f->ids, PROMPT, TN_LM_ALL_ROWS, out));
    for (int i = PROMPT; i < ROWS; i++)
        lm_must(tn_lm_infer(sequence, f->ids + i, 1, 0, out + (ptrdiff_t)i * WORDS));
    tn_lm_sequence_close(sequence);
}

// The devices of the parts, "vulkan:0 0-0, cpu-blas:0 1-1".
static inline void parts_text(const tn_lm *lm, char *out, size_t size)
{
    tn_lm_part parts[4] = {{.struct_size = sizeof(parts[0])}};
    uint64_t count = 4;
    size_t used = 0;
    *out = 0;
    lm_must(tn_lm_parts(lm, parts, &count));
    for (uint64_t i = 0; i < count && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s %d-%d", i ? ", " : "",
                             parts[i].device, (int)parts[i].first, (int)parts[i].end - 1);
}

static inline void check_parts(const tn_lm *lm, const char *expected)
{
    char text[256];
    parts_text(lm, text, sizeof(text));
    if (strcmp(text, expected) != 0)
        cr_fatal("the parts are %s, expected %s", text, expected);
}

static inline void rows_on(const char *devices, const char *name, const char *split,
                           const char *expected, float *out)
{
    struct fixture f;
    open_devices(devices);
    tn_lm *lm = open_split(&f, name, split, 1);
    infer_rows(lm, &f, out);
    check_parts(lm, expected);
    tn_lm_close(lm);
    cr_assert(eq(int, f.closed, 1));
    tn_runtime_close(runtime);
}

// Logits of each family that the file knows, wherever the layers are.
static inline void compare_known(const struct fixture *f, const char *what,
                                 const float *logits)
{
    int compared = 0;
    for (int r = 0; r < f->num_rows; r++)
        for (int i = 0; f->rows[r] < ROWS && i < WORDS; i++, compared++)
            cr_assert(
                le(dbl,
                   fabs((double)logits[f->rows[r] * WORDS + i] - (double)f->logits[r][i]),
                   1e-3),
                "%s: logit %d of position %d", what, i, f->rows[r]);
    cr_assert(gt(int, compared, 0));
}

#endif // TESTS_LM_SPLIT_H
