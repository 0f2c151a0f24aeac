// SPDX-License-Identifier: MIT
// base.convolve/1 of f32 and f64: sums of products over the windows of the longer vector,
// with zeros around, whose outputs the lanes of vectors share out.
#include "kernels.h"

#define LEAST_OUTPUTS 256
#define LEAST_TERMS 4
#define PIECE_PRODUCTS 65536
#define MOST_LANES 16

struct convolving {
    const tn_cpu_call *call;
    const struct cpu_windows_kernels *kernels;
    bool is_f64;
    int64_t n, m, left, count; // of the longer and the shorter vector, zeros, of outputs
    int64_t lanes, part;
    const void *x;
    void *out;
    struct cpu_windows windows;
};

// The layout of the call's scratch memory, in elements: rows of x, of outputs, and v.
static int64_t rows_of_x(const struct convolving *c)
{
    return (c->part + c->m - 1) * c->lanes;
}
static int64_t count_scratch(const struct convolving *c)
{
    return rows_of_x(c) + c->part * c->lanes + c->m;
}

static void cpu_convolve_measure(const tn_layout *a, const tn_layout *v, int64_t count,
                                 int64_t lanes, struct convolving *c)
{
    int64_t n = a->extent[0], m = v->extent[0];
    c->n = n < m ? m : n;
    c->m = n < m ? n : m;
    c->count = count;
    // Outputs are every overlap, as many as the longer vector has, or whole overlaps.
    c->left = count == c->n + c->m - 1 ? c->m - 1 : count == c->n ? c->m / 2 : 0;
    c->is_f64 = a->dtype == TN_F64;
    c->lanes = lanes;
    c->part = (count + lanes - 1) / lanes;
}

// For each REAL: the loops over rows of x, and over outputs.
#define MOVES(REAL)                                                                        \
    static void fill_##REAL(const struct convolving *c, int64_t begin, int64_t end)        \
    {                                                                                      \
        const REAL *x = c->x;                                                              \
        REAL *rows = (REAL *)c->windows.rows;                                              \
        for (int64_t row = begin; row < end; row++)                                        \
            for (int64_t lane = 0; lane < c->lanes; lane++) {                              \
                int64_t at = lane * c->part + row - c->left;                               \
                rows[row * c->lanes + lane] = at >= 0 && at < c->n ? x[at] : 0;            \
            }                                                                              \
    }                                                                                      \
    static void gather_##REAL(const struct convolving *c, int64_t begin, int64_t end)      \
    {                                                                                      \
        const REAL *rows = c->windows.out;                                                 \
        REAL *out = c->out;                                                                \
        for (int64_t row = begin; row < end; row++)                                        \
            for (int64_t lane = 0; lane < c->lanes; lane++)                                \
                if (lane * c->part + row < c->count)                                       \
                    out[lane * c->part + row] = rows[row * c->lanes + lane];               \
    }                                                                                      \
    static void reverse_##REAL(REAL *to, const REAL *v, int64_t m)                         \
    {                                                                                      \
        for (int64_t i = 0; i < m; i++)                                                    \
            to[i] = v[m - 1 - i];                                                          \
    }
MOVES(float)
MOVES(double)
#undef MOVES

static void fill_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct convolving *c = context;
    (void)worker;
    (c->is_f64 ? fill_double : fill_float)(c, begin, end);
}

static void sum_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct convolving *c = context;
    (void)worker;
    (c->is_f64 ? c->kernels->sum_f64 : c->kernels->sum_f32)(&c->windows, begin, end);
    (c->is_f64 ? gather_double : gather_float)(c, begin, end);
}

static tn_status cpu_convolve(const tn_cpu_call *call)
{
    const tn_tensor *a = &call->inputs[0], *v = &call->inputs[1];
    struct convolving c = {.call = call,
                           .kernels = kernel_variant(call)->windows,
                           .out = first_element(&call->outputs[0])};
    int64_t lanes = a->layout.dtype == TN_F64 ? c.kernels->lanes_f64 : c.kernels->lanes_f32;
    cpu_convolve_measure(&a->layout, &v->layout, call->outputs[0].layout.extent[0], lanes,
                         &c);
    bool is_shorter = a->layout.extent[0] < v->layout.extent[0];
    const void *shorter = first_element(is_shorter ? a : v);
    int64_t size = c.is_f64 ? 8 : 4, in_rows = rows_of_x(&c);
    char *scratch = call->scratch, *reversed = scratch + (in_rows + c.part * lanes) * size;
    c.x = first_element(is_shorter ? v : a);
    c.windows = (struct cpu_windows){
        .rows = scratch, .v = reversed, .out = scratch + in_rows * size, .m = c.m};
    if (c.is_f64)
        reverse_double((double *)(void *)reversed, shorter, c.m);
    else
        reverse_float((float *)(void *)reversed, shorter, c.m);
    call->parallel_for(call, c.part + c.m - 1, PIECE_PRODUCTS / lanes, fill_rows, &c);
    call->parallel_for(call, c.part, 1 + PIECE_PRODUCTS / (c.m * lanes), sum_rows, &c);
    return TN_OK;
}

static uint64_t convolve_scratch(const tn_kernel_query *query)
{
    struct convolving c;
    // A part is longer where vectors have fewer lanes, and there are fewer of them.
    cpu_convolve_measure(&query->inputs[0], &query->inputs[1], query->outputs[0].extent[0],
                         MOST_LANES, &c);
    int64_t elements = count_scratch(&c) + 2 * MOST_LANES;
    return tn_saturated_multiply((uint64_t)elements, c.is_f64 ? 8 : 4);
}

static int32_t convolve_accepts(const tn_kernel_query *query)
{
    int64_t n = query->inputs[0].extent[0], m = query->inputs[1].extent[0];
    return query->outputs[0].extent[0] >= LEAST_OUTPUTS && (n < m ? n : m) >= LEAST_TERMS;
}

#define FLOATS (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64))
static const tn_operand_rule rules[] = {{FLOATS, TN_NEEDS_CONTIGUOUS, 0, 0}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = cpu_convolve,
};
const tn_kernel convolve_kernel = {
    .struct_size = sizeof(tn_kernel),
    .flags = TN_KERNEL_SAME_DTYPE,
    .primitive = "base.convolve/1",
    .family = TN_FAMILY_CPU,
    .name = "windows",
    .priority = 500,
    TN_OPERANDS(rules),
    .accepts = convolve_accepts,
    .scratch_size = convolve_scratch,
    .payload = &payload,
};
