// SPDX-License-Identifier: MIT
// What a backend measures of launches: that baked code computes the same, that a wrong
// constant in it is found, and that measuring changes no result. TENON_TEST_PLUGIN tells.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/launches.h>
#include <tenon/tenon.h>
#include "assertion.h"

enum { COUNT = 4096 };

static tn_runtime *runtime;
static const tn_launches *launches;
static const tn_host *host;
static float numbers[COUNT];

// What is wanted, and what came.
static struct seen {
    bool is_wrong; // the told words are changed before they are baked
    bool is_equal; // launches are told to be equal
    uint32_t wanted, measured, wholes;
    uint64_t differing;
    double folded_ns, baked_ns;
} seen;

static uint64_t want(void *context, const tn_planned_launch *launch)
{
    uint32_t *push = (uint32_t *)(uintptr_t)launch->push;
    cr_assert(context == &seen && launch->num_push > 0);
    if (seen.is_wrong)
        push[0] /= 2; // how many elements there are
    seen.wanted++;
    return seen.is_equal ? 1 : seen.wanted;
}

static void take(void *context, uint64_t number, const tn_launch_cost *cost)
{
    cr_assert(context == &seen);
    cr_assert(cost->struct_size == sizeof(*cost));
    if (number == 0) { // before the segment's launches
        cr_assert(seen.measured == 0 && cost->folded_ns > 0 && cost->baked_ns > 0);
        seen.wholes++;
        return;
    }
    cr_assert(number == seen.measured + 1);
    if (cost->reason)
        cr_fatal("the code %s", cost->reason);
    cr_assert(cost->baked_bytes > 0);
    seen.measured++;
    seen.differing += cost->differing;
    seen.folded_ns = cost->folded_ns;
    seen.baked_ns = cost->baked_ns;
}

static void begin(void)
{
    const void *table;
    if (tn_runtime_open(NULL, &runtime) ||
        tn_provider_load(runtime, TN_IFACE_LAUNCHES, getenv("TENON_TEST_PLUGIN"), &table,
                         &host))
        cr_fatal("%s", tn_last_error());
    launches = table;
    seen = (struct seen){.is_wrong = false};
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i % 97) / 64 - 0.5f;
}

static void end(void)
{
    tn_runtime_close(runtime);
}

TestSuite(measured, .init = begin, .fini = end);

// Evaluates exp(x * 2) + 1 and looks at all of it. `shift`: makes another program each
// time.
static void evaluate(double shift)
{
    float got[COUNT];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), numbers);
    tn_array *y = tn_expr(s, "x -> exp(x * 2) + shift", TN_IN(x), tn_attrs("shift", shift));
    if (!y || tn_eval(s, y) || tn_read(s, y, got, sizeof(got)))
        cr_fatal("%s", tn_scope_error(s));
    for (int i = 0; i < COUNT; i++)
        if (!(fabs(got[i] - (exp(2.0 * (double)numbers[i]) + shift)) < 1e-4))
            cr_fatal("[%d] is %g", i, (double)got[i]);
    tn_scope_close(s);
}

Test(measured, baked_code_computes_the_same)
{
    cr_assert(launches->measure(host, want, take, &seen) == TN_OK);
    evaluate(1.5);
    cr_assert(seen.wanted == 1 && seen.measured == 1 && seen.differing == 0);
    cr_assert(seen.wholes == 1);
    cr_assert(seen.folded_ns > 0 && seen.baked_ns > 0);
    evaluate(1.5); // the same plan: it was measured
    cr_assert(seen.measured == 1);
}

Test(measured, a_wrong_constant_is_found_and_changes_no_result)
{
    seen.is_wrong = true;
    cr_assert(launches->measure(host, want, take, &seen) == TN_OK);
    evaluate(1.5);
    cr_assert(seen.measured == 1);
    cr_assert(seen.differing > COUNT && seen.differing <= COUNT * sizeof(float) / 2);
}

Test(measured, nothing_is_measured_for_nobody)
{
    cr_assert(launches->measure(host, want, take, &seen) == TN_OK);
    cr_assert(launches->measure(host, NULL, take, &seen) == TN_OK);
    evaluate(1.5);
    cr_assert(launches->measure(host, want, NULL, &seen) == TN_OK);
    evaluate(2.5);
    cr_assert(launches->measure(host, NULL, NULL, NULL) == TN_OK);
    evaluate(3.5);
    cr_assert(seen.wanted == 0 && seen.measured == 0);
}

static tn_status add_body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                          uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    for (int i = 0; i < 2; i++)
        out[i] = tn_expr(s, "x -> x + 1", TN_IN(in[i]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// Both inputs are donated, and written over. The launches are equal: one is measured.
Test(measured, runs_that_are_timed_leave_values_as_they_were)
{
    float got[COUNT];
    const uint32_t donated[] = {0, 1};
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = donated, .num_donated = 2};
    tn_function *function;
    tn_array *in[2], *out[2];
    seen.is_equal = true;
    cr_assert(launches->measure(host, want, take, &seen) == TN_OK);
    cr_assert(tn_function_create(runtime, add_body, NULL, &options, &function) == TN_OK);
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++)
        in[i] = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), numbers);
    if (tn_function_call(function, s, in, 2, out, 2))
        cr_fatal("%s", tn_scope_error(s));
    for (int i = 0; i < 2; i++) {
        cr_assert(tn_read(s, out[i], got, sizeof(got)) == TN_OK);
        for (int k = 0; k < COUNT; k++)
            if (got[k] != numbers[k] + 1)
                cr_fatal("result %d [%d] is %g", i, k, (double)got[k]);
    }
    cr_assert(seen.wanted == 2 && seen.measured == 1 && seen.wholes == 1);
    cr_assert(seen.differing == 0);
    tn_function_destroy(function);
    tn_scope_close(s);
}
