// SPDX-License-Identifier: MIT
// The discrete cosine transform (DCT-II) along the last axis. Its kernel has a state for
// each step, the table of cosines, made once when the step is compiled; and it takes the
// elementwise work behind it in.
#include <math.h>
#include <tenon/checked.h>
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

static tn_status infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *x = &infer->types[0];
    if (!tn_is_float(x->dtype) || x->rank < 1)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x is %s of rank %d, expected a float of rank 1 or more",
                                 tn_dtype_name(x->dtype), x->rank);
    types[0] = *x;
    return TN_OK;
}

// The factor of element i in frequency k, of n elements.
static double factor(int64_t i, int64_t k, int64_t n)
{
    return cos(3.14159265358979323846 * ((double)i + 0.5) * (double)k / (double)n);
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, last = x->layout.rank - 1, n = x->layout.extent[last];
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do {
        int64_t k = index[last];
        double sum = 0;
        for (index[last] = 0; index[last] < n; index[last]++)
            sum +=
                tn_get_f64(x, tn_offset_at(&x->layout, index)) * factor(index[last], k, n);
        index[last] = k;
        tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

// --- the kernel --------------------------------------------------------------------------

static int64_t row_of(const tn_layout *x)
{
    return x->extent[x->rank - 1];
}

static tn_status prepare(const tn_cpu_call *call, void **out_state)
{
    int64_t n = row_of(&call->inputs[0].layout);
    uint64_t bytes = tn_saturated_multiply((uint64_t)n, (uint64_t)n * sizeof(float));
    float *table = call->host->alloc(call->host, tn_saturated_add(bytes, 1), 64);
    if (!table)
        return TN_ERR_MEMORY; // alloc has said so
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++)
            table[k * n + i] = (float)factor(i, k, n);
    *out_state = table;
    return TN_OK;
}

static void finish(const tn_host *host, void *state)
{
    host->free(host, state);
}

// Rows of x. Where the output passes through a program, each row is made in the worker's
// part of the scratch memory, and stored from there.
static void transform(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const tn_cpu_call *call = context;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    const float *table = call->state;
    int64_t n = row_of(&x->layout);
    for (int64_t row = begin; row < end; row++) {
        const float *from = (const float *)x->data + x->layout.offset + row * n;
        float *to = out->data ? (float *)out->data + out->layout.offset + row * n
                              : (float *)call->scratch + worker * n;
        for (int64_t k = 0; k < n; k++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += (double)from[i] * (double)table[k * n + i];
            to[k] = (float)sum;
        }
        if (!out->data)
            call->store(call, 0, row * n, n, to, worker);
    }
}

static tn_status launch(const tn_cpu_call *call)
{
    int64_t count = tn_layout_count(&call->inputs[0].layout);
    int64_t n = row_of(&call->inputs[0].layout);
    if (count > 0)
        call->parallel_for(call, count / n, 1 + 100000 / (n * n), transform, (void *)call);
    return TN_OK;
}

static uint64_t scratch(const tn_kernel_query *query)
{
    uint64_t row = (uint64_t)row_of(&query->inputs[0]) * sizeof(float);
    return query->fused ? tn_saturated_multiply(row, query->num_workers) : 0;
}

static const tn_operand_rule rules[] = {
    {.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_CONTIGUOUS},
    {.dtypes = TN_DTYPE_BIT(TN_F32), .flags = TN_OPERAND_FUSES},
};
static TN_STAGED_CPU_KERNEL(table, "acme.cosine/1", prepare, launch, finish,
                            TN_OPERANDS(rules), .scratch_size = scratch);

TN_OP(cosine, "acme.cosine/1", (x), .infer = infer, .reference = reference,
      .doc = "The discrete cosine transform (DCT-II) of x along its last axis.");

TN_PACK("com.acme.cosine", "1.0.0", "Acme", TN_PRIMITIVES(&cosine), TN_KERNELS(&table));
