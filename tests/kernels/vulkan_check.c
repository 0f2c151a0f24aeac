// SPDX-License-Identifier: MIT
// Applications of primitives on a Vulkan backend, compared with the references.
#include "check.h"

#include <math.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/reference.h>
#include <tenon/ops/stages.h>
#include "../sanitized.h"
#include "vulkan_check.h"

struct vulkan_bench bench;
const tn_plugin *packs[3];
uint64_t seed;
static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

int64_t random_between(int64_t low, int64_t high)
{
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

// --- layouts ---------------------------------------------------------------------------

tn_layout row_major(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    tn_layout layout = {.dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        layout.extent[i] = extent[i];
        layout.stride[i] = stride;
        stride *= extent[i];
    }
    return layout;
}

tn_layout transposed(tn_layout layout, int32_t a, int32_t b)
{
    int64_t extent = layout.extent[a], stride = layout.stride[a];
    layout.extent[a] = layout.extent[b];
    layout.stride[a] = layout.stride[b];
    layout.extent[b] = extent;
    layout.stride[b] = stride;
    return layout;
}

uint64_t span(const tn_layout *layout)
{
    int64_t last = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->stride[i] > 0 && layout->extent[i] > 0)
            last += (layout->extent[i] - 1) * layout->stride[i];
    return (uint64_t)((last + 1) * tn_dtype_bytes(layout->dtype));
}

static double draw_number(void)
{
    return (double)random_between(-64, 64) / 32;
}

void fill(unsigned char *memory, tn_dtype dtype, uint64_t bytes, int64_t limit)
{
    tn_tensor tensor = {memory, {.dtype = dtype}};
    int64_t n = (int64_t)bytes / tn_dtype_bytes(dtype);
    bool positive = tn_dtype_in(dtype, TN_UNSIGNED_DTYPES) || dtype == TN_BOOL;
    for (int64_t i = 0; i < n; i++) {
        if (tn_is_complex(dtype))
            tn_set_complex(&tensor, i, (tn_complex128){draw_number(), draw_number()});
        else if (tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES))
            tn_set_f64(&tensor, i, draw_number());
        else
            tn_set_i64(&tensor, i,
                       random_between(positive ? 0 : -limit, dtype == TN_BOOL ? 1 : limit));
    }
}

// --- one application against its reference ---------------------------------------------

static const tn_primitive *find_primitive(const char *id)
{
    for (int k = 0; k < 3 && packs[k]; k++) {
        const tn_ops *ops = packs[k]->query(TN_IFACE_OPS);
        for (uint32_t i = 0; i < ops->num_primitives; i++)
            if (strcmp(ops->primitives[i]->id, id) == 0)
                return ops->primitives[i];
    }
    cr_fatal("no primitive %s", id);
    return NULL;
}

struct check {
    tn_step *step;
    double tolerance;
    bool exact;
    tn_tensor want; // computed before the run, which may overwrite inputs
};
static struct check checks[VB_MAX_STEPS];
static uint32_t num_checks;
#define GUARD 256 // bytes before and after an output
#define CANARY 0xa5

// An output of its own, or the first input with room for the canaries around it.
static void set_output(tn_step *step, const struct application *a)
{
    const tn_layout *layout = &a->operands[a->num_inputs];
    uint64_t bytes = span(layout) + 2 * GUARD;
    uint32_t slot = vb_slot(&bench, bytes);
    tn_value *out = (tn_value *)(uintptr_t)step->outputs;
    memset(bench.memory[slot], CANARY, bytes);
    vb_set(step, a->num_inputs, slot, layout);
    out->offset = GUARD;
    if (a->in_place) {
        fill(bench.memory[slot] + GUARD, layout->dtype, span(layout), a->limit);
        *(tn_value *)(uintptr_t)step->inputs = *out;
    }
}

tn_step *add_check(const struct application *a)
{
    tn_step *step = vb_step(&bench, a->num_inputs, 1);
    step->primitive = find_primitive(a->primitive);
    step->attrs = a->attrs;
    step->label = a->primitive;
    for (uint32_t i = a->in_place; i < a->num_inputs; i++) {
        uint64_t bytes = span(&a->operands[i]);
        uint32_t slot = vb_slot(&bench, bytes);
        fill(bench.memory[slot], a->operands[i].dtype, bytes, a->limit);
        vb_set(step, i, slot, &a->operands[i]);
    }
    set_output(step, a);
    if (!vb_use_kernel(&bench, step, a->primitive))
        cr_fatal("%s: no kernel", a->primitive);
    checks[num_checks++] = (struct check){step, a->tolerance, a->exact, {NULL, {0}}};
    return step;
}

// mean and logsumexp are decompositions: here they are as loops. Values are small enough
// for the sum of exponentials as it stands.
static void reduce_plainly(const tn_step *step, const tn_tensor *x, const tn_tensor *want)
{
    const tn_reduce_attrs *attrs = step->attrs;
    bool is_mean = strcmp(step->primitive->id, "base.mean/1") == 0;
    uint32_t set = tn_axis_set(&attrs->axis, x->layout.rank);
    int64_t n = tn_layout_count(&want->layout), index[TN_MAX_RANK] = {0};
    tn_complex128 *sums = calloc((size_t)n, sizeof(*sums));
    cr_assert(ne(ptr, sums, NULL));
    do {
        int64_t at = 0;
        for (int32_t i = 0; i < x->layout.rank; i++)
            if (!(set >> i & 1))
                at = at * x->layout.extent[i] + index[i];
        tn_complex128 value = tn_get_complex(x, tn_offset_at(&x->layout, index));
        sums[at].re += is_mean ? value.re : exp(value.re);
        sums[at].im += value.im;
    } while (tn_index_next(x->layout.rank, x->layout.extent, index));
    double count = (double)tn_layout_count(&x->layout) / (double)n;
    for (int64_t i = 0; i < n; i++)
        tn_set_complex(want, i,
                       (tn_complex128){is_mean ? sums[i].re / count : log(sums[i].re),
                                       sums[i].im / count});
    free(sums);
}

static uint64_t scratch_of(const tn_step *step, const tn_tensor *inputs,
                           const tn_tensor *want)
{
    tn_layout layouts[6];
    const tn_kernel_query query = {.struct_size = sizeof(query),
                                   .inputs = layouts,
                                   .outputs = &want->layout,
                                   .attrs = step->attrs,
                                   .num_inputs = step->num_inputs,
                                   .num_outputs = 1,
                                   .num_workers = 1};
    for (uint32_t i = 0; i < step->num_inputs; i++)
        layouts[i] = inputs[i].layout;
    return step->primitive->reference_scratch ? step->primitive->reference_scratch(&query)
                                              : 0;
}

static void compute_reference(const tn_step *step, const tn_tensor *want)
{
    tn_tensor inputs[6];
    for (uint32_t i = 0; i < step->num_inputs; i++)
        inputs[i] = (tn_tensor){bench.memory[tn_step_input(step, i)->slot] +
                                    tn_step_input(step, i)->offset,
                                tn_step_input(step, i)->layout};
    if (!step->primitive->reference) {
        reduce_plainly(step, &inputs[0], want);
        return;
    }
    uint64_t size = scratch_of(step, inputs, want);
    tn_cpu_call call = {.struct_size = sizeof(call),
                        .host = &vb_host,
                        .inputs = inputs,
                        .scratch = size ? malloc(size) : NULL,
                        .scratch_size = size,
                        .outputs = want,
                        .attrs = step->attrs,
                        .num_inputs = step->num_inputs,
                        .num_outputs = 1,
                        .num_threads = 1,
                        .parallel_for = tn_loop_here};
    if (step->primitive->reference(&call) != TN_OK)
        cr_fatal("%s: reference: %s", step->label, vb_failure);
    free(call.scratch);
}

// Sanitizers look at the host, and take minutes for the references of large products and
// convolutions, which agree in the build without.
static bool has_reference(const tn_step *step)
{
    enum { MOST = 1 << 12 }; // elements
    for (uint32_t i = 0; i < step->num_inputs; i++)
        if (tn_layout_count(&tn_step_input(step, i)->layout) > MOST)
            return !IS_SANITIZED;
    return !IS_SANITIZED || tn_layout_count(&tn_step_output(step, 0)->layout) <= MOST;
}

static void compute_want(struct check *check)
{
    const tn_layout *layout = &tn_step_output(check->step, 0)->layout;
    if (!has_reference(check->step))
        return;
    check->want = (tn_tensor){calloc(1, span(layout) + 16), *layout};
    cr_assert(ne(ptr, check->want.data, NULL));
    compute_reference(check->step, &check->want);
}

static double tolerance_of(const struct check *check)
{
    tn_dtype dtype = check->want.layout.dtype;
    double stored = dtype == TN_F16 ? 2e-3 : dtype == TN_BF16 ? 1.6e-2 : 0;
    return check->exact
               ? 0
               : check->tolerance * (tn_dtype_real(dtype) == TN_F64 ? 1e-8 : 1) + stored;
}

static void compare(const struct check *check)
{
    const tn_value *out = tn_step_output(check->step, 0);
    const unsigned char *memory = bench.memory[out->slot];
    uint64_t bytes = span(&out->layout);
    tn_tensor got = {bench.memory[out->slot] + GUARD, out->layout};
    double tolerance = tolerance_of(check);
    int64_t count = check->want.data ? tn_layout_count(&out->layout) : 0;
    for (int64_t i = 0; i < count; i++) {
        tn_complex128 x = tn_get_complex(&got, i), y = tn_get_complex(&check->want, i);
        bool same = x.im == y.im && (x.re == y.re || (isnan(x.re) && isnan(y.re)));
        if (!same &&
            !(hypot(x.re - y.re, x.im - y.im) <= tolerance * (1 + hypot(y.re, y.im))))
            cr_fatal("%s of %s, seed %llu: element %lld is (%.9g, %.9g), expected (%.9g, "
                     "%.9g)",
                     check->step->label,
                     tn_dtype_name(tn_step_input(check->step, 0)->layout.dtype),
                     (unsigned long long)seed, (long long)i, x.re, x.im, y.re, y.im);
    }
    for (uint64_t i = 0; i < GUARD; i++) {
        cr_assert(eq(u8, memory[i], CANARY));
        cr_assert(eq(u8, memory[GUARD + bytes + i], CANARY));
    }
}

static void forget_checks(void)
{
    for (uint32_t i = 0; i < num_checks; i++)
        free(checks[i].want.data);
    num_checks = 0;
    vb_clear(&bench);
}

void run_checks(void)
{
    for (uint32_t i = 0; i < num_checks; i++)
        compute_want(&checks[i]);
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (uint32_t i = 0; i < num_checks; i++)
        compare(&checks[i]);
    forget_checks();
}

void begin_checks(void)
{
    seed = check_seed(1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
    packs[0] = vb_load(check_getenv("TENON_TEST_BASE"));
    packs[1] = vb_load(check_getenv("TENON_TEST_NN"));
    if (getenv("TENON_TEST_LINALG"))
        packs[2] = vb_load(getenv("TENON_TEST_LINALG"));
}

void end_checks(void)
{
    cr_assert(vb_end(&bench));
}
