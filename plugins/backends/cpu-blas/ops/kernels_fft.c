// SPDX-License-Identifier: MIT
// The discrete Fourier transforms of pack fft along rows. The plan of a length is made when
// the step is compiled. An even number of real numbers is transformed as half as many
// complex ones, an odd number as complex ones, in memory of the worker. Threads take rows;
// long rows they share.
#include <string.h>
#include <tenon/ops/fft_attrs.h>
#include "kernels.h"

#define PIECE_ELEMENTS 16384 // transformed at least by a piece of a parallel loop
#define SHARED_LENGTH 65536  // rows of so many complex numbers are shared by threads

enum kind { COMPLEX, OF_REAL, TO_REAL };

// One step. Bytes are multiples of CPU_FFT_ALIGNMENT.
struct fft_step {
    enum kind kind;
    bool is_f64, is_inverse, is_half, is_shared;
    double scale;
    int64_t n, length;           // of a row; of the plan: n, or n / 2 where is_half
    int64_t rows, block;         // rows that are transformed together
    uint64_t plan_bytes, making; // of the plan; of scratch memory for making it
    uint64_t run_bytes; // of a run; behind it lies room for odd rows of real numbers
    uint64_t between;   // of scratch memory that workers share, where is_shared
    uint64_t each;      // of that of each worker
    cpu_fft_fn *run;
    cpu_fft_stage_fn *run_stage;
    cpu_fft_fold_fn *fold;
    const struct cpu_fft *plan;
    const void *factors; // where is_half
};

// A launch.
struct fft_run {
    const struct fft_step *step;
    const char *in;
    char *out, *scratch;
    bool by_unit; // scratch memory is that of the unit, as there are fewer than workers
};

static uint64_t cpu_fft_aligned(uint64_t bytes)
{
    return tn_saturated_add(bytes, CPU_FFT_ALIGNMENT - 1) / CPU_FFT_ALIGNMENT *
           CPU_FFT_ALIGNMENT;
}

static int64_t number_bytes(const struct fft_step *s)
{
    return s->is_f64 ? 2 * sizeof(double) : 2 * sizeof(float);
}

static int64_t cpu_fft_row_length(enum kind kind, const tn_layout *in, const tn_layout *out)
{
    const tn_layout *x = kind == TO_REAL ? out : in;
    return x->extent[x->rank - 1];
}

static struct fft_step cpu_fft_describe(enum kind kind, const tn_layout *in,
                                        const tn_layout *out)
{
    struct fft_step s = {.kind = kind, .n = cpu_fft_row_length(kind, in, out), .rows = 1};
    s.is_f64 = tn_dtype_real(in->dtype) == TN_F64;
    s.is_half = kind != COMPLEX && s.n % 2 == 0;
    s.length = s.is_half ? s.n / 2 : s.n;
    for (int32_t i = 0; i < in->rank - 1; i++)
        s.rows *= in->extent[i];
    // Rows in lanes of vectors; longer ones are divided over the lanes each.
    s.block = s.length <= CPU_FFT_MAX_LANES ? 2 * CPU_FFT_LANE_BYTES / number_bytes(&s) : 1;
    const struct cpu_fft_rows of = {s.length, s.rows, s.is_f64};
    struct cpu_fft_size size = cpu_fft_measure(&of);
    s.plan_bytes = cpu_fft_aligned(size.plan);
    s.making = size.scratch;
    s.run_bytes = s.each = cpu_fft_aligned(size.scratch);
    s.is_shared =
        size.stage > 0 && s.length >= SHARED_LENGTH && (kind == COMPLEX || s.is_half);
    if (s.is_shared) {
        s.between = cpu_fft_aligned(size.between);
        s.each = cpu_fft_aligned(size.stage);
    }
    if (kind != COMPLEX && !s.is_half)
        s.each += cpu_fft_aligned((uint64_t)(s.block * s.n * number_bytes(&s)));
    return s;
}

static int64_t cpu_fft_count_units(const struct fft_step *s)
{
    return (s->rows + s->block - 1) / s->block;
}

// --- rows --------------------------------------------------------------------------------

static struct cpu_fft_call cpu_fft_call_of(const struct fft_step *s, const void *in,
                                           void *out, int64_t rows, int64_t in_row,
                                           int64_t out_row, void *scratch)
{
    return (struct cpu_fft_call){.plan = s->plan,
                                 .in = in,
                                 .out = out,
                                 .rows = rows,
                                 .in_row = in_row,
                                 .out_row = out_row,
                                 .scale = s->kind == OF_REAL && s->is_half ? s->scale / 2
                                                                           : s->scale,
                                 .is_inverse = s->is_inverse,
                                 .scratch = scratch};
}

static void cpu_fft_transform(const struct fft_step *s, const void *in, void *out,
                              int64_t rows, int64_t in_row, int64_t out_row, void *scratch)
{
    const struct cpu_fft_call call =
        cpu_fft_call_of(s, in, out, rows, in_row, out_row, scratch);
    s->run(&call);
}

// Rows of numbers in `in` and those of half as many complex ones.
static struct cpu_fft_fold fold_of(const struct fft_step *s, const void *in, void *out,
                                   int64_t rows)
{
    return (struct cpu_fft_fold){.half = s->length,
                                 .factors = s->factors,
                                 .in = in,
                                 .out = out,
                                 .rows = rows,
                                 .in_row = s->length + 1,
                                 .out_row = s->length + (s->kind == OF_REAL),
                                 .is_inverse = s->kind == TO_REAL,
                                 .end = s->length / 2 + 1};
}

static void transform_halves(const struct fft_step *s, const void *in, void *out,
                             int64_t rows, void *scratch)
{
    struct cpu_fft_fold fold = fold_of(s, s->kind == OF_REAL ? out : in, out, rows);
    if (s->plan->kind == CPU_FFT_LANES || s->plan->kind == CPU_FFT_RADER) {
        struct cpu_fft_call call =
            cpu_fft_call_of(s, in, out, rows, s->length + (s->kind == TO_REAL),
                            s->length + (s->kind == OF_REAL), scratch);
        call.factors = s->factors;
        s->run(&call);
        return;
    }
    if (s->kind == OF_REAL)
        cpu_fft_transform(s, in, out, rows, s->length, s->length + 1, scratch);
    s->fold(&fold);
    if (s->kind == TO_REAL)
        cpu_fft_transform(s, out, out, rows, s->length, s->length, scratch);
}

// Rows of an odd number of real numbers, through complex ones in `room`.
#define ODD_ROWS(T, NAME)                                                                  \
    static void of_real_##NAME(const T *in, T *room, int64_t count)                        \
    {                                                                                      \
        for (int64_t i = 0; i < count; i++) {                                              \
            room[2 * i] = in[i];                                                           \
            room[2 * i + 1] = 0;                                                           \
        }                                                                                  \
    }                                                                                      \
    static void to_real_##NAME(const T *room, T *out, int64_t count)                       \
    {                                                                                      \
        for (int64_t i = 0; i < count; i++)                                                \
            out[i] = room[2 * i];                                                          \
    }                                                                                      \
    static void mirror_##NAME(const T *in, T *room, int64_t n)                             \
    {                                                                                      \
        memcpy(room, in, (size_t)(n + 1) * sizeof(T));                                     \
        room[1] = 0;                                                                       \
        for (int64_t k = 1; k <= n / 2; k++) {                                             \
            room[2 * (n - k)] = in[2 * k];                                                 \
            room[2 * (n - k) + 1] = -in[2 * k + 1];                                        \
        }                                                                                  \
    }
ODD_ROWS(float, f32)
ODD_ROWS(double, f64)

static void transform_odd(const struct fft_step *s, const char *in, char *out, int64_t rows,
                          char *scratch)
{
    char *room = scratch + s->run_bytes;
    int64_t n = s->n, size = number_bytes(s), kept = (n / 2 + 1) * size;
    if (s->kind == OF_REAL) {
        if (s->is_f64)
            of_real_f64((const double *)in, (double *)room, rows * n);
        else
            of_real_f32((const float *)in, (float *)room, rows * n);
    }
    for (int64_t r = 0; r < rows && s->kind == TO_REAL; r++) {
        const char *from = in + r * kept;
        char *to = room + r * n * size;
        if (s->is_f64)
            mirror_f64((const double *)from, (double *)to, n);
        else
            mirror_f32((const float *)from, (float *)to, n);
    }
    cpu_fft_transform(s, room, room, rows, n, n, scratch);
    for (int64_t r = 0; r < rows && s->kind == OF_REAL; r++)
        memcpy(out + r * kept, room + r * n * size, (size_t)kept);
    if (s->kind == OF_REAL)
        return;
    if (s->is_f64)
        to_real_f64((const double *)room, (double *)out, rows * n);
    else
        to_real_f32((const float *)room, (float *)out, rows * n);
}

static int64_t cpu_fft_row_bytes(const struct fft_step *s, bool real)
{
    return (s->kind == COMPLEX ? 2 * s->n
            : real             ? s->n
                               : 2 * (s->n / 2 + 1)) *
           number_bytes(s) / 2;
}

static void cpu_fft_run_units(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct fft_run *r = context;
    const struct fft_step *s = r->step;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit * s->block, left = s->rows - row;
        int64_t rows = left < s->block ? left : s->block;
        const char *in = r->in + row * cpu_fft_row_bytes(s, s->kind == OF_REAL);
        char *out = r->out + row * cpu_fft_row_bytes(s, s->kind == TO_REAL);
        char *scratch = r->scratch + (r->by_unit ? (uint64_t)unit : worker) * s->each;
        if (s->kind == COMPLEX)
            cpu_fft_transform(s, in, out, rows, s->n, s->n, scratch);
        else if (s->is_half)
            transform_halves(s, in, out, rows, scratch);
        else
            transform_odd(s, in, out, rows, scratch);
    }
}

// --- rows that threads share -------------------------------------------------------------

struct shared {
    const struct fft_step *step;
    struct cpu_fft_call call; // of one row
    struct cpu_fft_fold fold;
    bool is_row_stage;
    char *scratch; // of the workers
};

static void cpu_fft_run_part(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct shared *x = context;
    const struct cpu_fft_stage stage = {.call = &x->call,
                                        .is_row_stage = x->is_row_stage,
                                        .begin = begin,
                                        .end = end,
                                        .scratch = x->scratch + worker * x->step->each};
    x->step->run_stage(&stage);
}

static void run_fold(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct shared *x = context;
    struct cpu_fft_fold fold = x->fold;
    (void)worker;
    fold.begin = begin;
    fold.end = end;
    x->step->fold(&fold);
}

static void share_row(const tn_cpu_call *call, const struct fft_run *r, int64_t row)
{
    const struct fft_step *s = r->step;
    const char *in = r->in + row * cpu_fft_row_bytes(s, s->kind == OF_REAL);
    char *out = r->out + row * cpu_fft_row_bytes(s, s->kind == TO_REAL);
    struct shared x = {.step = s, .scratch = r->scratch + s->between};
    x.fold = fold_of(s, s->kind == OF_REAL ? out : in, out, 1);
    x.call = cpu_fft_call_of(s, s->kind == TO_REAL ? out : in, out, 1, 0, 0, r->scratch);
    if (s->kind == TO_REAL)
        call->parallel_for(call, x.fold.end, PIECE_ELEMENTS, run_fold, &x);
    for (int stage = 0; stage < 2; stage++) {
        int64_t blocks = cpu_fft_blocks(s->plan, stage);
        x.is_row_stage = stage;
        call->parallel_for(call, blocks, 1 + PIECE_ELEMENTS / (s->length / blocks),
                           cpu_fft_run_part, &x);
    }
    if (s->kind == OF_REAL)
        call->parallel_for(call, x.fold.end, PIECE_ELEMENTS, run_fold, &x);
}

// --- the kernels -------------------------------------------------------------------------

static tn_status fft_launch(const tn_cpu_call *call)
{
    struct fft_run run = {.step = call->state,
                          .in = first_element(&call->inputs[0]),
                          .out = first_element(&call->outputs[0]),
                          .scratch = call->scratch};
    const struct fft_step *s = run.step;
    int64_t units = cpu_fft_count_units(s);
    run.by_unit = units < (int64_t)call->num_threads;
    for (int64_t row = 0; row < s->rows && s->is_shared; row++)
        share_row(call, &run, row);
    if (units > 0 && !s->is_shared)
        call->parallel_for(call, units, 1 + PIECE_ELEMENTS / (s->block * s->n),
                           cpu_fft_run_units, &run);
    return TN_OK;
}

// The plan and its tables lie behind the step.
static tn_status fft_prepare(const tn_cpu_call *call, enum kind kind, bool is_inverse,
                             double scale, void **out_state)
{
    const tn_host *host = call->host;
    const struct cpu_kernels *kernels = kernel_variant(call);
    struct fft_step d =
        cpu_fft_describe(kind, &call->inputs[0].layout, &call->outputs[0].layout);
    uint64_t head = cpu_fft_aligned(sizeof(d)), factors = 0;
    if (d.is_half)
        factors = (uint64_t)(d.length / 2 + 1) * (uint64_t)number_bytes(&d);
    uint64_t bytes = tn_saturated_add(tn_saturated_add(head, d.plan_bytes), factors);
    char *memory = host->alloc(host, bytes, CPU_FFT_ALIGNMENT);
    void *scratch = memory ? host->alloc(host, d.making, CPU_FFT_ALIGNMENT) : NULL;
    if (!scratch) {
        host->free(host, memory);
        return TN_ERR_MEMORY; // alloc has reported it
    }
    d.is_inverse = is_inverse;
    d.scale = scale;
    d.run = d.is_f64 ? kernels->fft_f64 : kernels->fft_f32;
    d.run_stage = d.is_f64 ? kernels->fft_stage_f64 : kernels->fft_stage_f32;
    d.fold = d.is_f64 ? kernels->fft_fold_f64 : kernels->fft_fold_f32;
    const struct cpu_fft_rows of = {d.length, d.rows, d.is_f64};
    d.plan = cpu_fft_plan(memory + head, &of, d.run, scratch);
    d.factors = memory + head + d.plan_bytes;
    if (d.is_half)
        cpu_fft_unpack_factors(memory + head + d.plan_bytes, d.length, d.is_f64);
    host->free(host, scratch);
    memcpy(memory, &d, sizeof(d));
    *out_state = memory;
    return TN_OK;
}

static void fft_finish(const tn_host *host, void *state)
{
    host->free(host, state);
}

static uint64_t fft_scratch(enum kind kind, const tn_kernel_query *query)
{
    struct fft_step s = cpu_fft_describe(kind, &query->inputs[0], &query->outputs[0]);
    uint64_t units = (uint64_t)cpu_fft_count_units(&s), count = query->num_workers;
    if (!s.is_shared && units < count)
        count = units;
    return tn_saturated_add(s.between, tn_saturated_multiply(s.each, count));
}

// Beyond it products of indices of a plan do not fit.
static int32_t fft_accepts(enum kind kind, const tn_kernel_query *query)
{
    return cpu_fft_row_length(kind, &query->inputs[0], &query->outputs[0]) <= INT32_MAX;
}

#define COMPLEX_SET (TN_DTYPE_BIT(TN_COMPLEX64) | TN_DTYPE_BIT(TN_COMPLEX128))
#define REAL_SET (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64))
#define RECORD(id, kind, attrs_type, inverse, from, to)                                    \
    static tn_status id##_prepare(const tn_cpu_call *call, void **out_state)               \
    {                                                                                      \
        const attrs_type *attrs = call->attrs;                                             \
        return fft_prepare(call, kind, inverse, attrs->scale, out_state);                  \
    }                                                                                      \
    static uint64_t id##_scratch(const tn_kernel_query *query)                             \
    {                                                                                      \
        return fft_scratch(kind, query);                                                   \
    }                                                                                      \
    static int32_t id##_accepts(const tn_kernel_query *query)                              \
    {                                                                                      \
        return fft_accepts(kind, query);                                                   \
    }                                                                                      \
    static const tn_operand_rule id##_rules[] = {                                          \
        {.dtypes = from, .needs = TN_NEEDS_CONTIGUOUS},                                    \
        {.dtypes = to, .needs = TN_NEEDS_CONTIGUOUS},                                      \
    };                                                                                     \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = fft_launch,                                                              \
        .prepare = id##_prepare,                                                           \
        .finish = fft_finish,                                                              \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "fft." #id "/1",                                                      \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "planned",                                                                 \
        .priority = 500,                                                                   \
        TN_OPERANDS(id##_rules),                                                           \
        .accepts = id##_accepts,                                                           \
        .scratch_size = id##_scratch,                                                      \
        .payload = &id##_payload,                                                          \
    }
RECORD(dft, COMPLEX, tn_dft_attrs, attrs->inverse != 0, COMPLEX_SET, COMPLEX_SET);
RECORD(dft_of_real, OF_REAL, tn_dft_of_real_attrs, false, REAL_SET, COMPLEX_SET);
RECORD(dft_to_real, TO_REAL, tn_dft_to_real_attrs, true, COMPLEX_SET, REAL_SET);
#undef RECORD
