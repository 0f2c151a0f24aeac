// SPDX-License-Identifier: MIT
// Faults: each allocation of the core fails in turn, while a graph is built,
// differentiated, evaluated and replayed. The call says "out of memory", nothing leaks (the
// address sanitizer watches), and the runtime works on.
#include "primitive/prim_set.h"
#include <tenon/control.h>

#include <tenon/retain.h>
#include "../support/common.h"

#include "base/memory.h"

static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *loss = un(s, "sum", un(s, "softmax", bin(s, "matmul", in[0], in[0])));
    tn_status status = tn_vjp(s, &loss, NULL, 1, &in[0], 1, &out[0]);
    return status;
}

static tn_status mapped(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    tn_array *y =
        bin(s, "add", un(s, "softmax", in[0]), un(s, "clip", un(s, "tanh", in[0])));
    out[0] = tn_expr(s, "y -> y * index", TN_IN(y), TN_NO_ATTRS);
    return TN_OK;
}

// Everything once. The result's element 0 when all went well.
static tn_status exercise(tn_runtime *rt, float *result)
{
    tn_function *f = NULL;
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_status status = tn_function_create(rt, body, NULL, NULL, &f);
    if (status == TN_OK) {
        tn_array *x = ramp(s, 4, 4, 0.5f, 0.25f), *y = NULL, *z = NULL, *gradient = NULL;
        y = bin(s, "add", bin(s, "multiply", x, tn_float(s, 2)), un(s, "transpose", x));
        y = un(s, "tanh", bin(s, "matmul", y, un(s, "exp", y)));
        z = un(s, "mean", tn_expr(s, "a, b -> k * a - b", TN_IN(y, x), tn_attrs("k", 3.0)));
        status = tn_vjp(s, &z, NULL, 1, &x, 1, &gradient);
        if (status == TN_OK)
            status = tn_eval(s, z, gradient, y);
        tn_array *replayed = NULL;
        if (status == TN_OK)
            status = tn_function_call(f, s, &gradient, 1, &replayed, 1);
        tn_array *kept = status == TN_OK ? tn_keep(s, replayed) : NULL;
        float out[16] = {0};
        if (kept)
            status = tn_read(s, gradient, out, sizeof(out));
        else
            status = status == TN_OK ? tn_scope_status(s) : status;
        *result = out[0];
        tn_release(kept);
    }
    tn_function_destroy(f);
    tn_scope_close(s);
    return status;
}

// Rules, expressions and decompositions, mapped; and the derivative of that.
static tn_status exercise_map(tn_runtime *rt, float *result)
{
    const int32_t in_axis = 1;
    float out[16] = {0};
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = ramp(s, 4, 4, 0.5f, 0.25f), *y = NULL, *gradient = NULL;
    tn_status status = tn_vmap_call(s, mapped, NULL, &x, &in_axis, 1, &y, NULL, 1);
    y = un(s, "sum", y);
    if (status == TN_OK)
        status = tn_vjp(s, &y, NULL, 1, &x, 1, &gradient);
    if (status == TN_OK)
        status = tn_read(s, gradient, out, sizeof(out));
    *result = out[0];
    tn_scope_close(s);
    return status;
}

static const tn_input_info number_inputs[] = {{"x", "what is multiplied", 0, 0}};
static const tn_primitive number = {.struct_size = sizeof(number),
                                    .id = "test.number/1",
                                    TN_INPUTS(number_inputs),
                                    .expr = "f32(x * index)"};

static tn_status numbered(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = un(s, "test.number", in[0]);
    return TN_OK;
}

// A primitive that counts elements, mapped: the scope has no text of its own before.
static tn_status exercise_numbers(tn_runtime *rt, float *result)
{
    const int32_t in_axis = 0;
    float out[16] = {0};
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = ramp(s, 4, 4, 0.5f, 0.25f), *y = NULL;
    tn_status status = tn_vmap_call(s, numbered, NULL, &x, &in_axis, 1, &y, NULL, 1);
    if (status == TN_OK)
        status = tn_read(s, y, out, sizeof(out));
    *result = out[15];
    tn_scope_close(s);
    return status;
}

static tn_status next_row(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_op(s, "dynamic_slice_update", TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
    return TN_OK;
}

// An array that was donated to a call that failed is what it was, or empty.
static void check_given(tn_scope *s, tn_array *x)
{
    float out[16];
    mem_fail_nth(0);
    tn_scope_clear_error(s);
    if (tn_read(s, x, out, sizeof(out)) != TN_OK) {
        check_says(tn_scope_error(s), "donated");
        return;
    }
    for (int i = 0; i < 16; i++)
        cr_assert(out[i] == (float)i);
}

static tn_status exercise_given(tn_runtime *rt, float *result)
{
    float out[16] = {0};
    tn_function *f = NULL;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_status status = tn_function_create(rt, next_row, NULL, &options, &f);
    if (status == TN_OK) {
        tn_array *in[] = {ramp(s, 4, 4, 0, 1), ramp(s, 1, 4, 100, 1), tn_i64(s, 2)}, *y;
        status = tn_eval_n(s, in, 3);
        bool is_there = status == TN_OK;
        if (is_there)
            status = tn_function_call(f, s, in, 3, &y, 1);
        if (status == TN_OK)
            status = tn_read(s, y, out, sizeof(out));
        else if (is_there)
            check_given(s, in[0]);
        *result = out[8];
    }
    tn_function_destroy(f);
    tn_scope_close(s);
    return status;
}

// Calls that carry on a kept array: one that others refer to, too, and then one that is
// ours alone. Whatever fails, `state` is ours.
static tn_status exercise_carried(tn_runtime *rt, float *result)
{
    float out[16] = {0};
    const uint32_t first = 0;
    tn_function *f = NULL;
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = &first,
                                         .num_donated = 1,
                                         .carried_to = &first};
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *state = tn_keep(s, ramp(s, 4, 4, 0, 1)), *other = NULL;
    tn_status status = tn_scope_status(s);
    if (status == TN_OK)
        status = tn_function_create(rt, next_row, NULL, &options, &f);
    if (status == TN_OK)
        other = tn_retain(NULL, state);
    for (int64_t i = 0; i < 2 && status == TN_OK; i++) {
        tn_array *in[] = {state, ramp(s, 1, 4, 100, 1), tn_i64(s, 2 * i)}, *next = NULL;
        status = tn_function_call(f, s, in, 3, &next, 1);
        state = status == TN_OK ? next : state;
    }
    if (status == TN_OK)
        status = tn_read(s, state, out, sizeof(out));
    *result = out[1] + out[8];
    tn_scope_close(s);
    tn_release(other);
    tn_release(state);
    tn_function_destroy(f);
    return status;
}

static tn_status above(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                       uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_expr(s, "x -> x > 1", TN_IN(in[0]), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status scaled(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = tn_expr(s, "x, w -> x * w", TN_IN(in[0], user), TN_NO_ATTRS);
    return TN_OK;
}

// A loop within a condition, and its gradient, which is made of scans.
static tn_status exercise_control(tn_runtime *rt, float *result)
{
    tn_scope *s = tn_scope_open(rt);
    if (!s)
        return TN_ERR_MEMORY;
    tn_array *x = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){6}), *y = NULL, *g = NULL;
    tn_array *w = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){0.5f});
    tn_array *large = tn_expr(s, "x -> x > 5", TN_IN(x), TN_NO_ATTRS);
    tn_status status = tn_while_call(s, above, scaled, w, 4, TN_ARRAYS(x), &y);
    if (status == TN_OK)
        status = tn_cond_call(s, large, scaled, scaled, w, TN_ARRAYS(y), &y, 1);
    if (status == TN_OK)
        status = tn_vjp(s, &y, NULL, 1, &w, 1, &g);
    if (status == TN_OK)
        status = tn_read(s, g, result, sizeof(*result));
    tn_scope_close(s);
    return status;
}

typedef tn_status (*exercise_fn)(tn_runtime *rt, float *result);

static void fail_each_allocation(exercise_fn exercise_it)
{
    tn_runtime *rt = open_with(NULL);
    float expected, got;
    must(NULL, prim_register(rt, NULL, &number));
    must(NULL, exercise_it(rt, &expected)); // plugins are loaded, plans are cached
    int64_t n = 1, fine = 0; // some failures are got over: only many in a row mean the end
    for (; fine < 40; n++) {
        mem_fail_nth(n);
        tn_status status = exercise_it(rt, &got);
        mem_fail_nth(0);
        fine = status == TN_OK ? fine + 1 : 0;
        if (status != TN_OK)
            check_status(status, TN_ERR_MEMORY);
        if (n % 16 == 0) {
            must(NULL, exercise_it(rt, &got));
            cr_assert(got == expected);
        }
    }
    fprintf(stderr, "# %d allocations with cached plans\n", (int)n);
    tn_runtime_close(rt);
}

Test(faults, each_allocation_may_fail)
{
    fail_each_allocation(exercise);
}

Test(faults, each_allocation_of_a_call_that_is_given_its_input_may_fail)
{
    fail_each_allocation(exercise_given);
}

Test(faults, each_allocation_of_calls_that_carry_an_array_on_may_fail)
{
    fail_each_allocation(exercise_carried);
}

Test(faults, each_allocation_of_a_loop_and_its_gradient_may_fail)
{
    fail_each_allocation(exercise_control);
}

Test(faults, each_allocation_of_a_map_may_fail)
{
    fail_each_allocation(exercise_map);
}

Test(faults, each_allocation_of_a_map_over_numbers_may_fail)
{
    fail_each_allocation(exercise_numbers);
}

// A runtime that has loaded what the exercise needs: others need not hash the same files.
static tn_runtime *open_keeper(void)
{
    float result;
    tn_runtime *rt = open_with(NULL);
    must(NULL, exercise(rt, &result));
    return rt;
}

Test(faults, each_allocation_of_a_first_evaluation_may_fail)
{
    tn_runtime *keeper = open_keeper();
    float expected = 0, got = 0;
    int64_t n = 1, fine = 0;
    for (; fine < 40;
         n += 3) { // a runtime each: every plan is new, every plugin loaded again
        tn_runtime *rt = open_with(NULL);
        tn_scope *s = tn_scope_open(rt);
        must(s, tn_eval(s, ramp(s, 1, 1, 0, 0))); // the device is open
        tn_scope_close(s);
        mem_fail_nth(n);
        tn_status status = exercise(rt, &got);
        mem_fail_nth(0);
        if (status != TN_OK) {
            tn_status again = exercise(rt, &got); // what failed once works now
            if (again != TN_OK)
                cr_fatal("allocation %d failed once, and later: %s", (int)n,
                         tn_last_error());
        }
        if (n == 1)
            expected = got;
        cr_assert(got == expected);
        tn_runtime_close(rt);
        fine = status == TN_OK ? fine + 1 : 0;
    }
    tn_runtime_close(keeper);
    fprintf(stderr, "# %d allocations with new plans\n", (int)n);
}

// --- a shortage is no defect -----------------------------------------------------------

// From finding plugins to a result. What failed for want of memory is told as that, is held
// against no plugin and no device, and works when it is tried again.
static bool survives(int64_t n)
{
    static const char *const variables[] = {"TENON_LOG=off", "TENON_BACKEND=cpu-blas?,null",
                                            NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    tn_runtime *rt = NULL;
    tn_plugin_info info = {.struct_size = sizeof(info)};
    float result = 0;
    mem_fail_nth(n);
    tn_status opened = tn_runtime_open(&options, &rt);
    tn_status status = opened == TN_OK ? exercise(rt, &result) : opened;
    mem_fail_nth(0);
    if (status != TN_OK && status != TN_ERR_MEMORY)
        cr_fatal("allocation %d: %s", (int)n, tn_last_error());
    for (uint64_t i = 0; opened == TN_OK && i < tn_plugin_count(rt); i++) {
        must(NULL, tn_plugin_get(rt, i, &info));
        if (info.state == TN_PLUGIN_REFUSED)
            cr_fatal("allocation %d: %s", (int)n, info.reason);
    }
    if (opened == TN_OK)
        must(NULL, exercise(rt, &result));
    tn_runtime_close(rt);
    return status == TN_OK;
}

Test(faults, a_shortage_is_held_against_nobody)
{
    int64_t n = 1, fine = 0;
    for (; fine < 30; n += 1 + n / 50) // closer where plugins are found
        fine = survives(n) ? fine + 1 : 0;
    fprintf(stderr, "# %d allocations\n", (int)n);
}

// Half a list is never taken for the whole one.
Test(faults, each_allocation_of_a_list_of_devices_may_fail)
{
    const char *const variables[] = {"TENON_PLUGINS_DISABLE=org.tenon.vulkan*",
                                     "TENON_LOG=off", NULL};
    tn_runtime *rt = open_with(variables);
    uint64_t expected = 0, count = 0;
    must(NULL, tn_devices(rt, NULL, &expected));
    tn_runtime_close(rt);
    cr_assert(expected > 1);
    tn_runtime *keeper = open_with(variables);
    must(NULL, tn_devices(keeper, NULL, &count));
    int64_t n = 1, fine = 0, num_failed = 0;
    for (; fine < 200; n++) { // failing to open devices is no failure here
        rt = open_with(variables);
        mem_fail_nth(n);
        tn_status status = tn_devices(rt, NULL, &count);
        mem_fail_nth(0);
        fine = status == TN_OK ? fine + 1 : 0;
        num_failed += status != TN_OK;
        must(NULL, tn_devices(rt, NULL, &count));
        cr_assert(eq(u64, count, expected));
        tn_runtime_close(rt);
    }
    tn_runtime_close(keeper);
    cr_assert(num_failed > 0);
}
