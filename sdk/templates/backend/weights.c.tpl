// SPDX-License-Identifier: @LICENSE@
// Quantised weights: a packing of q8_0, in which the blocks of two rows lie in turn, and the
// product that reads them so. Each block becomes floats once, for all rows of x. Applications
// pack weights when they load them, if the backend lists a packing of their format.
#include <string.h>
#include <tenon/ops/quant.h>
#include <tenon/ops/quant_attrs.h>
#include "backend.h"

#define PACKING "@ID@.pairs"

enum { PAIR = 2, BLOCK = TN_QUANT_BLOCK_q8_0, BYTES = TN_QUANT_BYTES_q8_0 };

// --- the packing -----------------------------------------------------------------------

static int64_t rows_bytes(const tn_packing *self, int64_t rows, int64_t columns)
{
    int64_t row = columns / BLOCK;
    (void)self;
    return row > INT64_MAX / BYTES || rows > INT64_MAX / (row * BYTES) ? -1
                                                                       : rows * row * BYTES;
}

// Copies the blocks of each pair in turn; the last row may have none beside it.
static void pack(const tn_packing *self, const uint8_t *plain, int64_t rows, int64_t columns,
                 uint8_t *packed)
{
    int64_t row = columns / BLOCK * BYTES;
    (void)self;
    for (int64_t first = 0; first < rows; first += PAIR) {
        int64_t count = rows - first < PAIR ? rows - first : PAIR;
        for (int64_t at = 0; at < row; at += BYTES)
            for (int64_t i = 0; i < count; i++, packed += BYTES)
                memcpy(packed, plain + (first + i) * row + at, BYTES);
    }
}

static void unpack(const tn_packing *self, const uint8_t *packed, int64_t rows,
                   int64_t columns, uint8_t *plain)
{
    int64_t row = columns / BLOCK * BYTES;
    (void)self;
    for (int64_t first = 0; first < rows; first += PAIR) {
        int64_t count = rows - first < PAIR ? rows - first : PAIR;
        for (int64_t at = 0; at < row; at += BYTES)
            for (int64_t i = 0; i < count; i++, packed += BYTES)
                memcpy(plain + (first + i) * row + at, packed, BYTES);
    }
}

const tn_packing packings[NUM_PACKINGS] = {
    {
        .struct_size = sizeof(tn_packing),
        .id = PACKING,
        .format = "q8_0",
        .group = PAIR,
        .rows_bytes = rows_bytes,
        .pack = pack,
        .unpack = unpack,
    },
};

// --- the product -----------------------------------------------------------------------

// One block of each row of the pair, times the terms of x that it is for.
static void multiply(const float *x, int64_t rows, int64_t terms, const uint8_t *blocks,
                     int64_t count, float *out, int64_t columns)
{
    float values[PAIR][BLOCK];
    for (int64_t i = 0; i < count; i++)
        tn_quant_decode_q8_0(blocks + i * BYTES, values[i]);
    for (int64_t row = 0; row < rows; row++, x += terms, out += columns)
        for (int64_t i = 0; i < count; i++) {
            float sum = 0;
            for (int k = 0; k < BLOCK; k++)
                sum += x[k] * values[i][k];
            out[i] += sum;
        }
}

static tn_status launch(const tn_cpu_call *call)
{
    const tn_layout *layout = &call->inputs[0].layout, *to = &call->outputs[0].layout;
    int64_t terms = layout->extent[layout->rank - 1], columns = to->extent[to->rank - 1];
    int64_t rows = 1;
    for (int32_t i = 0; i + 1 < to->rank; i++)
        rows *= to->extent[i];
    if (rows * columns == 0)
        return TN_OK;
    const float *x = (const float *)call->inputs[0].data + layout->offset;
    const uint8_t *blocks =
        (const uint8_t *)call->inputs[1].data + call->inputs[1].layout.offset;
    float *out = (float *)call->outputs[0].data + to->offset;
    memset(out, 0, (size_t)(rows * columns) * sizeof(float));
    for (int64_t first = 0; first < columns; first += PAIR) {
        int64_t count = columns - first < PAIR ? columns - first : PAIR;
        for (int64_t k = 0; k < terms; k += BLOCK, blocks += count * BYTES)
            multiply(x + k, rows, terms, blocks, count, out + first, columns);
    }
    return TN_OK;
}

static int32_t accepts(const tn_kernel_query *query)
{
    const tn_quant_matmul_attrs *attrs = query->attrs;
    return strcmp(attrs->format, PACKING) == 0;
}

static const tn_cpu_kernel payload = {.struct_size = sizeof(payload), .launch = launch};
static const tn_operand_rule operands[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, 0, 0},
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS, 0, 0},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, 0, 0},
};
static const tn_kernel product = {
    .struct_size = sizeof(product),
    .primitive = "quant.quantized_matmul/1",
    .family = TN_FAMILY_CPU,
    .name = "pairs",
    .priority = 500,
    TN_OPERANDS(operands),
    .accepts = accepts,
    .payload = &payload,
};

static const tn_kernel *const kernels[] = {&product};
static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .kernels = kernels,
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
};

// Pack "quant" finds the packing by its id, wherever weights that are packed so are used.
const void *query_weights(const char *id)
{
    static const char *const list[] = {TN_IFACE_PACKING(PACKING), NULL};
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return list;
    if (strcmp(id, TN_IFACE_PACKING(PACKING)) == 0)
        return &packings[0];
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}
