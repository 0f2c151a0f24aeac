// SPDX-License-Identifier: MIT
// Part of `speed`: attention of decoding steps, one query a head over caches of f16 whose
// lengths are on the device. Layers depend on each other and have caches of their own.
#include <stdio.h>
#include <stdlib.h>
#include <tenon/ops/nn_attrs.h>
#include <tenon/ops/quant_attrs.h>
#include <time.h>
#include "speed.h"

enum { MOST_SEQUENCES = 32 };

struct shape {
    const char *name;
    int64_t layers, heads, groups, depth, capacity;
    int32_t length;
    int64_t sequences; // 0: one, with a cache of its own
};

// Microseconds of a layer, the least of several rounds, with the kernels of this shape that
// a plan gets behind 16 runs.
static double settled_layer(int64_t layers)
{
    enum { ROUNDS = 15 };
    const int runs = quick ? 1 : 32;
    const struct timespec pause = {.tv_nsec = quick ? 1000000 : 700000000};
    double least = 1e30;
    if (vb_compile(&bench) || vb_submit(&bench, runs))
        exit(1);
    nanosleep(&pause, NULL);
    for (int i = 0; i < (quick ? 1 : ROUNDS); i++) {
        uint64_t begin = vb_now_ns();
        if (vb_submit(&bench, runs))
            exit(1);
        double us = (double)(vb_now_ns() - begin) * 1e-3 / runs / (double)layers;
        least = us < least ? us : least;
    }
    vb_clear(&bench);
    return least;
}

static uint32_t slot_of_numbers(int64_t count, int32_t first, int32_t step)
{
    int32_t values[MOST_SEQUENCES];
    uint32_t slot = device_slot((uint64_t)count * sizeof(*values));
    for (int64_t i = 0; i < count; i++)
        values[i] = first + (int32_t)i * step;
    if (bench.backend->buffer_write(bench.device, bench.bindings[slot].buffer, 0, values,
                                    (uint64_t)count * sizeof(*values)))
        exit(1);
    return slot;
}

static void attend(const struct shape *s)
{
    static const tn_attention_attrs one = {.is_causal = 1};
    static const tn_quant_cached_attention_attrs several = {.is_causal = 1, .format = ""};
    int64_t sequences = s->sequences ? s->sequences : 1, layers = quick ? 2 : s->layers;
    tn_layout q = dense(TN_F16, 4, (int64_t[]){sequences, s->heads, 1, s->depth});
    tn_layout k =
        dense(TN_F16, 4, (int64_t[]){sequences, s->groups, s->capacity, s->depth});
    tn_layout none = {.dtype = TN_DTYPE_NONE}, numbers = dense(TN_I32, 1, &sequences);
    uint32_t lengths = slot_of_numbers(sequences, s->length, 0);
    uint32_t slots = slot_of_numbers(sequences, 0, 1);
    uint32_t rows[2] = {device_slot(bytes_of(&q)), device_slot(bytes_of(&q))};
    for (int64_t i = 0; i < layers; i++) {
        tn_step *step = vb_step(&bench, 5, 1);
        vb_set(step, 0, rows[i % 2], &q);
        vb_set(step, 1, device_slot(bytes_of(&k)), &k);
        vb_set(step, 2, device_slot(bytes_of(&k)), &k);
        vb_set(step, 3, s->sequences ? lengths : 0, s->sequences ? &numbers : &none);
        vb_set(step, 4, s->sequences ? slots : lengths, &numbers);
        vb_set(step, 5, rows[(i + 1) % 2], &q);
        step->attrs = s->sequences ? (const void *)&several : &one;
        if (!vb_use_kernel(&bench, step,
                           s->sequences ? "quant.cached_attention/1"
                                        : "nn.scaled_dot_product_attention/1")) {
            fprintf(stderr, "%s: no kernel\n", s->name);
            exit(1);
        }
    }
    report(s->name, settled_layer(layers), "us");
}

void decoding(void)
{
    static const struct shape shapes[] = {
        {"32 heads of 128, 545 keys", 32, 32, 32, 128, 1024, 545, 0},
        {"9 heads over 3 of 64, 545 keys", 32, 9, 3, 64, 1024, 545, 0},
        {"32 heads of 128, 81 keys, times 32", 8, 32, 32, 128, 256, 81, 32}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        attend(&shapes[i]);
}
