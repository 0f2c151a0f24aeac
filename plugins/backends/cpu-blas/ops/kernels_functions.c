// SPDX-License-Identifier: MIT
// base.{cbrt,gamma,lgamma}/1: one loop where the expressions take a pass for each
// instruction. Other dtypes and layouts take the expressions. Prologue and epilogue run
// block by block.
#include "kernels.h"

#define BLOCK 2048 // elements
#define PIECE_ELEMENTS 16384
#define BLOCK_BYTES (BLOCK * sizeof(double))

struct mapped {
    const tn_cpu_call *call;
    cpu_map_fn *map;
    const char *from; // NULL: a prologue gives the elements
    char *to;         // NULL: an epilogue takes them
    uint32_t size;
};

static void map_blocks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct mapped *m = context;
    const tn_cpu_call *call = m->call;
    char *block = m->from && m->to ? NULL : (char *)call->scratch + worker * BLOCK_BYTES;
    for (int64_t n; begin < end; begin += n) {
        n = end - begin < BLOCK ? end - begin : BLOCK;
        const void *in = m->from ? m->from + begin * m->size : block;
        char *out = m->to ? m->to + begin * m->size : block;
        if (!m->from)
            call->load(call, 0, begin, n, block, worker);
        m->map(out, &in, n, 0);
        if (!m->to)
            call->store(call, 0, begin, n, block, worker);
    }
}

static tn_status map_all(const tn_cpu_call *call, cpu_map_fn *map)
{
    const tn_tensor *in = &call->inputs[0], *out = &call->outputs[0];
    struct mapped m = {.call = call,
                       .map = map,
                       .from = in->data ? first_element(in) : NULL,
                       .to = out->data ? first_element(out) : NULL,
                       .size = cpu_dtype_size(in->layout.dtype)};
    call->parallel_for(call, count_elements(&out->layout), PIECE_ELEMENTS, map_blocks, &m);
    return TN_OK;
}

static uint64_t block_scratch(const tn_kernel_query *query)
{
    return query->fused ? tn_saturated_multiply(BLOCK_BYTES, query->num_workers) : 0;
}

static tn_status cbrt_launch(const tn_cpu_call *call)
{
    const struct cpu_function_kernels *functions = kernel_variant(call)->functions;
    bool is_f64 = call->inputs[0].layout.dtype == TN_F64;
    return map_all(call, is_f64 ? functions->cbrt_f64 : functions->cbrt_f32);
}

static tn_status gamma_launch(const tn_cpu_call *call)
{
    return map_all(call, kernel_variant(call)->functions->gamma_f32);
}

static tn_status lgamma_launch(const tn_cpu_call *call)
{
    return map_all(call, kernel_variant(call)->functions->lgamma_f64);
}

#define RULE(dtypes)                                                                       \
    {                                                                                      \
        {dtypes, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0},                                \
        {                                                                                  \
            dtypes, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES, 0                               \
        }                                                                                  \
    }
static const tn_operand_rule cbrt_rules[] =
    RULE(TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
static const tn_operand_rule gamma_rules[] = RULE(TN_DTYPE_BIT(TN_F32));
static const tn_operand_rule lgamma_rules[] = RULE(TN_DTYPE_BIT(TN_F64));

#define RECORD(id)                                                                         \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id##_launch,                                                             \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .flags = TN_KERNEL_NO_COPIES,                                                      \
        .primitive = "base." #id "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "loop",                                                                    \
        .priority = 500,                                                                   \
        TN_OPERANDS(id##_rules),                                                           \
        .scratch_size = block_scratch,                                                     \
        .payload = &id##_payload,                                                          \
    }
RECORD(cbrt);
RECORD(gamma);
RECORD(lgamma);
#undef RECORD
