// SPDX-License-Identifier: MIT
// base.eye/1: rows of zeros, and a one in each. An epilogue gets a few rows at a time.
#include <string.h>
#include "kernels.h"

#define PIECE_ELEMENTS 16384
#define BLOCK_BYTES 16384 // that an epilogue gets at a time

struct diagonal {
    const tn_cpu_call *call;
    int64_t columns, k;
    uint32_t size;
    char *to; // NULL: an epilogue takes the elements
    tn_complex128 one;
};

// Writes elements [first, first + n).
static void cpu_eye_write_elements(const struct diagonal *d, char *to, int64_t first,
                                   int64_t n)
{
    memset(to, 0, (size_t)n * d->size);
    for (int64_t row = first / d->columns; row * d->columns < first + n; row++) {
        int64_t column = row + d->k, at = row * d->columns + column - first;
        if (column >= 0 && column < d->columns && at >= 0 && at < n)
            memcpy(to + at * d->size, &d->one, d->size);
    }
}

static void write_range(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct diagonal *d = context;
    char block[BLOCK_BYTES];
    if (d->to) {
        cpu_eye_write_elements(d, d->to + begin * d->size, begin, end - begin);
        return;
    }
    int64_t most = BLOCK_BYTES / d->size;
    for (int64_t n; begin < end; begin += n) {
        n = end - begin < most ? end - begin : most;
        cpu_eye_write_elements(d, block, begin, n);
        d->call->store(d->call, 0, begin, n, block, worker);
    }
}

static tn_status cpu_eye(const tn_cpu_call *call)
{
    const tn_eye_attrs *attrs = call->attrs;
    const tn_tensor *out = &call->outputs[0];
    int64_t rows = out->layout.extent[0], columns = out->layout.extent[1];
    struct diagonal d = {.call = call,
                         .columns = columns,
                         .k = attrs->k < -rows     ? -rows
                              : attrs->k > columns ? columns
                                                   : attrs->k,
                         .size = cpu_dtype_size(out->layout.dtype),
                         .to = out->data ? first_element(out) : NULL};
    const float one = 1;
    const void *in = &one;
    cpu_map_fn *cast = kernel_variant(call)->cast[TN_F32][out->layout.dtype];
    if (cast)
        cast(&d.one, &in, 1, 0);
    else
        memcpy(&d.one, &one, sizeof(one));
    call->parallel_for(call, rows * columns, PIECE_ELEMENTS, write_range, &d);
    return TN_OK;
}

static const tn_operand_rule rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cpu_eye,
};
const tn_kernel eye_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "base.eye/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(rules),
    .payload = &payload,
};
