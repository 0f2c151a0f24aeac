// SPDX-License-Identifier: MIT
// The training step of two layers that one process saves and another one runs: its inputs,
// and a few steps of it.
#ifndef TESTS_GRAPHS_GRAPH_STEP_H
#define TESTS_GRAPHS_GRAPH_STEP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../support/common.h"
#include <tenon/graph_file.h>

// Inputs: parameters, first and second moments, then x, the labels, the step and the
// learning rate. Outputs: the state, then the loss.
enum { PARAMS = 4, STATE = 3 * PARAMS, STEPS = 3 };

static inline uint64_t size_of(const tn_type *type)
{
    uint64_t bytes = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        bytes *= (uint64_t)type->extent[i];
    return bytes;
}

static inline void *read_bytes(tn_scope *s, tn_array *array)
{
    uint64_t size = size_of(tn_array_type(array));
    void *data = calloc(size + 1, 1);
    must(s, tn_read(s, array, data, size));
    return data;
}

static const tn_type train_types[STATE + 4] = {
    {TN_F32, 2, {8, 16}}, {TN_F32, 1, {16}}, {TN_F32, 2, {16, 4}}, {TN_F32, 1, {4}},
    {TN_F32, 2, {8, 16}}, {TN_F32, 1, {16}}, {TN_F32, 2, {16, 4}}, {TN_F32, 1, {4}},
    {TN_F32, 2, {8, 16}}, {TN_F32, 1, {16}}, {TN_F32, 2, {16, 4}}, {TN_F32, 1, {4}},
    {TN_F32, 2, {5, 8}},  {TN_I64, 1, {5}},  {TN_F32, 0},          {TN_F32, 0}};

static inline tn_array *train_input(tn_scope *s, int i)
{
    float values[128];
    const tn_type *type = &train_types[i];
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, sizeof(shape.extent));
    for (int k = 0; k < 128; k++)
        values[k] = i >= PARAMS && i < STATE ? 0 : 0.3F * sinf((float)(k * 7 + i));
    const int64_t labels[] = {0, 3, 1, 2, 2};
    return tn_from_data(s, type->dtype, &shape, i == STATE + 1 ? (void *)labels : values);
}

// Runs the step a few times, and writes the state behind the last one.
static inline void train(tn_scope *s, const tn_graph_signature *signature, const char *path)
{
    tn_function *f = NULL;
    tn_array *in[STATE + 4], *out[STATE + 1];
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = signature->donated,
                                         .num_donated = signature->num_donated};
    must(NULL, tn_function_create(runtime, tn_graph_body, (void *)(uintptr_t)signature,
                                  &options, &f));
    for (int i = 0; i < STATE + 2; i++)
        in[i] = train_input(s, i);
    for (int step = 1; step <= STEPS; step++) {
        in[STATE + 2] = tn_f32(s, (float)step);
        in[STATE + 3] = tn_f32(s, 0.1F / (float)step);
        must(s, tn_function_call(f, s, in, STATE + 4, out, STATE + 1));
        memcpy(in, out, STATE * sizeof(*in));
    }
    FILE *file = fopen(path, "wb");
    for (int i = 0; i <= STATE; i++) {
        void *data = read_bytes(s, out[i]);
        fwrite(data, 1, size_of(tn_array_type(out[i])), file);
        free(data);
    }
    fclose(file);
    tn_function_destroy(f);
}

#endif // TESTS_GRAPHS_GRAPH_STEP_H
