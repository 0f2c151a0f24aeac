// SPDX-License-Identifier: MIT
// Stages of kernels, scratch memory of references, and fused operands, through the whole
// core: operators and kernels of the test's own, some of them wrong, registered by hand.
#include "primitive/prim_set.h"
#include "../support/common.h"

#include <string.h>
#include <tenon/kernel.h>
#include <tenon/ops/reference.h>

// --- operators -------------------------------------------------------------------------

static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// x + add, by way of scratch memory.
static tn_status add_number(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t at[TN_MAX_RANK] = {0}, count = tn_layout_count(&y->layout);
    double *kept = call->scratch, add = tn_get_f64(&call->inputs[1], 0);
    if (call->scratch_size < (uint64_t)count * sizeof(double) || (uintptr_t)kept % 64)
        return call->host->fail(call->host, TN_ERR_INTERNAL, "%llu bytes of scratch at %p",
                                (unsigned long long)call->scratch_size, call->scratch);
    for (int64_t i = 0; i < count; i++) {
        kept[i] = tn_get_f64(x, tn_offset_at(&x->layout, at)) + add;
        tn_index_next(y->layout.rank, y->layout.extent, at);
    }
    memset(at, 0, sizeof(at));
    for (int64_t i = 0; i < count; i++) {
        tn_set_f64(y, tn_offset_at(&y->layout, at), kept[i]);
        tn_index_next(y->layout.rank, y->layout.extent, at);
    }
    return TN_OK;
}

static uint64_t scratch_of(const tn_kernel_query *query)
{
    return (uint64_t)tn_layout_count(&query->outputs[0]) * sizeof(double);
}

static const tn_input_info inputs[] = {{.name = "x", .doc = "what is added to"},
                                       {.name = "y", .doc = "a scalar"}};
static const tn_primitive plus = {.struct_size = sizeof(plus),
                                  .id = "acme.plus/1",
                                  .doc = "x + y",
                                  TN_INPUTS(inputs),
                                  .infer = same_type,
                                  .reference = add_number,
                                  .reference_scratch = scratch_of};

// --- a kernel with stages --------------------------------------------------------------

// What the kernel did, and shall do.
static struct {
    int prepared, finished, launched;
    int refused_rank; // prepare fails for an x of this rank
    bool saw_number;  // prepare has seen the value of y
    double number;    // which it was, the last one
    bool stores_wrong;
} seen;

struct state {
    int32_t rank;
    const float *number; // y, where it is the same in each run
};

static tn_status prepare(const tn_cpu_call *call, void **out_state)
{
    const tn_layout *x = &call->inputs[0].layout;
    if (x->rank == seen.refused_rank)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED, "no table for rank %d",
                                x->rank);
    struct state *state = call->host->alloc(call->host, sizeof(*state), 0);
    if (!state)
        return TN_ERR_MEMORY;
    const tn_tensor *y = &call->inputs[1];
    *state =
        (struct state){x->rank, y->data ? (const float *)y->data + y->layout.offset : NULL};
    seen.prepared++;
    seen.number = state->number ? (double)*state->number : 0;
    seen.saw_number |= seen.number == 3;
    *out_state = state;
    return TN_OK;
}

static void finish(const tn_host *host, void *state)
{
    const float *number = ((const struct state *)state)->number;
    seen.finished++;
    if (number) // is there as long as the state
        seen.number = (double)*number;
    host->free(host, state);
}

static void run(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const tn_cpu_call *call = context;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    const tn_tensor *y = &call->inputs[1];
    float add = ((const float *)y->data)[y->layout.offset];
    for (int64_t i = begin; i < end; i++) {
        float value;
        if (x->data)
            value = ((const float *)x->data)[i];
        else
            call->load(call, 0, i, 1, &value, worker);
        value += add + (seen.stores_wrong ? 1 : 0);
        if (out->data)
            ((float *)out->data)[i] = value;
        else
            call->store(call, 0, i, 1, &value, worker);
    }
}

static tn_status launch(const tn_cpu_call *call)
{
    seen.launched++;
    if (!call->state ||
        ((const struct state *)call->state)->rank != call->inputs[0].layout.rank)
        return call->host->fail(call->host, TN_ERR_INTERNAL, "the state is another step's");
    call->parallel_for(call, tn_layout_count(&call->outputs[0].layout), 4, run,
                       (void *)(uintptr_t)call);
    return TN_OK;
}

static const tn_operand_rule rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(payload), .launch = launch, .prepare = prepare, .finish = finish};
static const tn_kernel kernel = {.struct_size = sizeof(kernel),
                                 .primitive = "acme.plus/1",
                                 .family = TN_FAMILY_CPU,
                                 .name = "staged",
                                 .priority = 500,
                                 TN_OPERANDS(rules),
                                 .payload = &payload};

static tn_runtime *open_staged(const char *variable)
{
    tn_runtime *rt =
        open_with((const char *const[]){"TENON_BACKEND=cpu-blas", variable, NULL});
    memset(&seen, 0, sizeof(seen));
    seen.refused_rank = -1;
    must(NULL, prim_register(rt, NULL, &plus));
    must(NULL, kernel_register(rt, &(struct provider){.id = "com.acme.kernels"}, &kernel));
    return rt;
}

static tn_array *added(tn_scope *s, tn_array *x, double number)
{
    return bin(s, "acme.plus", x, tn_scalar(s, tn_array_type(x)->dtype, number));
}

static void expect(tn_scope *s, tn_array *x, float first, float last)
{
    float got[12];
    must(s, tn_read(s, x, got, sizeof(got)));
    if (got[0] != first || got[11] != last)
        cr_fatal("got %g ... %g, expected %g ... %g", (double)got[0], (double)got[11],
                 (double)first, (double)last);
}

// --- tests -----------------------------------------------------------------------------

Test(stages, each_step_has_a_state_until_its_plan_goes)
{
    tn_runtime *rt = open_staged("TENON_CHECK=0");
    for (int round = 0; round < 3; round++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = ramp(s, 3, 4, 1, 1), *y = added(s, x, 3);
        tn_array *z = added(s, un(s, "sum", ramp(s, 3, 4, 0, 1)), 3);
        must(s, tn_eval(s, y, z));
        expect(s, y, 4, 15);
        tn_scope_close(s);
    }
    cr_assert(eq(int, seen.prepared, 2)); // the plan is in the cache
    cr_assert(eq(int, seen.launched, 6));
    cr_assert(eq(int, seen.finished, 0));
    cr_assert(eq(int, tn_runtime_close(rt), TN_OK));
    cr_assert(eq(int, seen.finished, 2));
}

Test(stages, a_number_of_the_graph_is_known_to_prepare)
{
    tn_runtime *rt = open_staged("TENON_CHECK=0");
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 3, 4, 1, 1), *number = un(s, "sum", x);
    must(s, tn_eval(s, bin(s, "acme.plus", x, number)));
    cr_assert(seen.saw_number == false); // computed in the run
    expect(s, added(s, x, 3), 4, 15);
    cr_assert(seen.saw_number);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

static tn_status add_captured(tn_scope *s, tn_array *const *in, uint64_t num_in,
                              tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = bin(s, "acme.plus", in[0], *(tn_array **)user);
    return tn_scope_status(s);
}

static void expect_call(tn_runtime *rt, tn_function *function, float first)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = ramp(s, 3, 4, 1, 1), *y = NULL;
    must(s, tn_function_call(function, s, &x, 1, &y, 1));
    expect(s, y, first, first + 11);
    tn_scope_close(s);
}

// Two functions of one graph have a state each, with what they captured: a computed array,
// and a part of one.
Test(stages, what_a_function_captured_is_known_to_prepare)
{
    tn_runtime *rt = open_staged("TENON_CHECK=0");
    tn_scope *s = tn_scope_open(rt);
    tn_array *row = ramp(s, 1, 4, 4, 1), *captured[2];
    tn_function *functions[2];
    captured[0] = un(s, "sum", tn_from_data(s, TN_F32, TN_SHAPE(3), (float[]){5, 6, 7}));
    captured[1] =
        tn_op(s, "reshape",
              TN_IN(tn_op(s, "slice", TN_IN(row),
                          tn_attrs("start", TN_INTS(0, 2), "stop", TN_INTS(1, 3)))),
              tn_attrs("shape", &(tn_ints){.given = 1}));
    must(s, tn_eval_async(s, captured[0], captured[1], row));
    for (int i = 0; i < 2; i++) {
        captured[i] = tn_keep(s, captured[i]);
        must(NULL, tn_function_create(rt, add_captured, &captured[i], NULL, &functions[i]));
    }
    tn_scope_close(s);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            expect_call(rt, functions[i], i == 0 ? 19 : 7);
            cr_assert(eq(int, seen.prepared, round == 0 ? i + 1 : 2));
            if (round == 0)
                cr_assert(seen.number == (i == 0 ? 18 : 6), "%g", seen.number);
        }
    for (int i = 0; i < 2; i++)
        tn_release(captured[i]);
    for (int i = 0; i < 2; i++) {
        tn_function_destroy(functions[i]);
        cr_assert(eq(int, seen.finished, i + 1));
        cr_assert(seen.number == (i == 0 ? 18 : 6), "%g", seen.number);
    }
    tn_runtime_close(rt);
}

// What was prepared before the failure is finished, and the application can go on.
Test(stages, a_prepare_that_fails_half_way_loses_nothing)
{
    tn_runtime *rt = open_staged("TENON_CHECK=0");
    tn_scope *s = tn_scope_open(rt);
    seen.refused_rank = 1;
    tn_array *x = ramp(s, 3, 4, 1, 1), *y = added(s, x, 3);
    tn_array *flat =
        tn_op(s, "reshape", TN_IN(un(s, "negative", y)), tn_attrs("shape", TN_INTS(12)));
    tn_array *z = added(s, flat, 3);
    check_status(tn_eval(s, y, z), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "no table for rank 1");
    cr_assert(eq(int, seen.prepared, 1));
    cr_assert(eq(int, seen.finished, 1));
    tn_scope_clear_error(s);
    expect(s, y, 4, 15);
    seen.refused_rank = -1;
    expect(s, z, -1, -12);
    tn_scope_close(s);
    cr_assert(eq(int, tn_runtime_close(rt), TN_OK));
    cr_assert(eq(int, seen.finished, seen.prepared));
}

Test(stages, a_reference_gets_its_scratch_memory)
{
    tn_runtime *rt = open_staged("TENON_CHECK=1");
    tn_scope *s = tn_scope_open(rt);
    double got[2];
    const double values[] = {1, 2};
    tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(2), values); // the kernel has f32 only
    must(s, tn_read(s, added(s, x, 0.5), got, sizeof(got)));
    cr_assert(got[0] == 1.5 && got[1] == 2.5);
    cr_assert(eq(int, seen.launched, 0));
    expect(s, added(s, ramp(s, 3, 4, 1, 1), 3), 4, 15); // compared with the reference
    cr_assert(stats_of(rt).checked > 0);
    cr_assert(eq(u64, stats_of(rt).differing, 0));
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(stages, a_check_finds_a_wrong_kernel_between_two_programs)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        tn_runtime *rt = open_staged("TENON_CHECK=1");
        tn_scope *s = tn_scope_open(rt);
        seen.stores_wrong = wrong;
        tn_array *x = un(s, "negative", ramp(s, 3, 4, 1, 1));
        tn_array *y = bin(s, "multiply", added(s, x, 3), ramp(s, 1, 4, 2, 1));
        uint64_t before = stats_of(rt).steps;
        must(s, tn_eval(s, y));
        cr_assert(eq(u64, stats_of(rt).steps - before, 2)); // and the number is written
        cr_assert(eq(u64, stats_of(rt).differing, wrong));
        if (!wrong)
            expect(s, y, 4, -45);
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
}
