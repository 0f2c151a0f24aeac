// SPDX-License-Identifier: MIT
// Devices that are named: where operations run and data goes, what is built of them, and
// what travels. The second device, null, computes nothing: the tests look at places.
#include "device/device.h"
#include "../support/common.h"

#include <tenon/control.h>

static void open_two(void)
{
    runtime = open_with((const char *const[]){"TENON_BACKEND=cpu-blas,null", NULL});
}

TestSuite(named, .init = open_two, .fini = teardown);

static int count_in(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

// Steps that run on the device, as the plan has them.
static int steps_on(tn_scope *s, tn_array *y, const char *device)
{
    char *json = NULL, name[64];
    must(s, tn_explain(s, &y, 1, &json));
    snprintf(name, sizeof(name), "\"device\": \"%s\"", device);
    char *segments = strstr(json, "\"segments\"");
    cr_assert(ne(ptr, segments, NULL));
    *segments = 0; // nodes and leaves are in front
    int count = count_in(json, name);
    tn_text_free(json);
    return count;
}

Test(named, operations_run_where_the_scope_says)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1);
    must(s, tn_scope_device(s, "null"));
    tn_array *y = un(s, "exp", x);
    must(s, tn_scope_device(s, "cpu-blas:0"));
    tn_array *z = un(s, "tanh", y);
    must(s, tn_scope_device(s, "null:0"));
    z = un(s, "sum", z);
    must(s, tn_scope_device(s, NULL));
    z = un(s, "negative", z);
    cr_assert(eq(int, steps_on(s, z, "null:0"), 2));
    cr_assert(eq(int, steps_on(s, z, "cpu-blas:0"), 2 + 1)); // and x
    must(s, tn_eval(s, z));
    tn_scope_close(s);
}

Test(named, data_goes_there_and_copies_stay_there)
{
    tn_scope *s = tn_scope_open(runtime);
    must(s, tn_scope_device(s, "null"));
    tn_array *x = ramp(s, 2, 3, 0, 1), *t = un(s, "transpose", x);
    float got[6];
    uint64_t before = stats_of(runtime).transfers;
    must(s, tn_read(s, t, got, sizeof(got))); // needs a copy
    must(s, tn_scope_device(s, NULL));
    must(s, tn_read(s, un(s, "transpose", x), got, sizeof(got)));
    cr_assert(eq(u64, stats_of(runtime).transfers, before));
    tn_scope_close(s);
}

static tn_status batch_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    must(s, tn_scope_device(s, "null"));
    out[0] = un(s, "exp", in[0]);
    must(s, tn_scope_device(s, NULL));
    return tn_scope_status(s);
}

Test(named, what_is_derived_or_batched_runs_there_too)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *g;
    must(s, tn_scope_device(s, "null"));
    tn_array *y = un(s, "sum", un(s, "exp", x));
    must(s, tn_scope_device(s, NULL));
    must(s, tn_vjp(s, &y, NULL, 1, &x, 1, &g));
    cr_assert(ge(int, steps_on(s, g, "null:0"), 1));
    cr_assert(eq(int, steps_on(s, g, "cpu-blas:0"), 1)); // x alone
    must(s, tn_vmap_call(s, batch_body, NULL, &x, NULL, 1, &g, NULL, 1));
    cr_assert(eq(int, steps_on(s, g, "null:0"), 1));
    cr_assert(eq(int, steps_on(s, g, "cpu-blas:0"), 1));
    must(s, tn_scope_device(s, "null")); // without rows, so it is built of several
    g = tn_expr(s, "x -> x / sum(x)", TN_IN(x), TN_NO_ATTRS);
    cr_assert(ge(int, steps_on(s, g, "null:0"), 2));
    cr_assert(eq(int, steps_on(s, g, "cpu-blas:0"), 1));
    tn_scope_close(s);
}

// exp on the second device, whose result is negated on that of the scope around.
static tn_status exp_elsewhere(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                               tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    tn_scope_device(s, "null");
    tn_array *y = un(s, "exp", inputs[0]);
    tn_scope_device(s, NULL);
    outputs[0] = un(s, "negative", y);
    return tn_scope_status(s);
}

Test(named, a_graph_in_place_keeps_the_devices_that_its_body_chose)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y = NULL;
    const tn_graph *graph = NULL;
    must(s, tn_graph_trace(s, exp_elsewhere, NULL, tn_array_type(x), 1, 1, NULL, &graph));
    must(s, tn_graph_call(s, graph, &x, 1, &y, 1));
    cr_assert(eq(int, steps_on(s, y, "null:0"), 1));
    cr_assert(eq(int, steps_on(s, y, "cpu-blas:0"), 1 + 1)); // and x
    must(s, tn_scope_device(s, "null"));
    must(s, tn_graph_call(s, graph, &x, 1, &y, 1));
    cr_assert(eq(int, steps_on(s, y, "null:0"), 2));
    tn_scope_close(s);
}

Test(named, a_device_that_is_not_there_is_an_error)
{
    tn_scope *s = tn_scope_open(runtime);
    check_status(tn_scope_device(s, "vulkan:7"), TN_ERR_NOT_FOUND);
    check_says(tn_scope_error(s), "\"vulkan:7\"");
    check_says(tn_scope_error(s), "cpu-blas:0, null:0");
    check_says(tn_scope_error(s), "TENON_BACKEND");
    tn_scope_clear_error(s);
    check_status(tn_scope_device(s, "nul"), TN_ERR_NOT_FOUND);
    tn_scope_clear_error(s);
    check_status(tn_scope_device(s, ""), TN_ERR_NOT_FOUND);
    tn_scope_clear_error(s);
    check_status(tn_scope_device(NULL, "null"), TN_ERR_ARGUMENT);
    tn_scope_close(s);
}

// As a device that comes first and cannot: by TENON_FALLBACK.
Test(named, what_it_cannot_run_falls_back_or_fails)
{
    static const char *const policies[] = {"allow", "error"};
    for (int i = 0; i < 2; i++) {
        char policy[64];
        struct device **devices;
        uint32_t count;
        snprintf(policy, sizeof(policy), "TENON_FALLBACK=%s", policies[i]);
        tn_runtime *rt =
            open_with((const char *const[]){"TENON_BACKEND=null,cpu-blas", policy,
                                            "TENON_KERNELS=base.matmul@cpu-blas=!*", NULL});
        must(NULL, devices_open(rt, &devices, &count));
        devices[1]->runs_reference = false;
        tn_scope *s = tn_scope_open(rt);
        must(s, tn_scope_device(s, "cpu-blas"));
        tn_array *x = ramp(s, 2, 2, 0, 1), *y = bin(s, "matmul", x, x);
        tn_status status = tn_eval(s, y);
        check_status(status, i == 0 ? TN_OK : TN_ERR_UNSUPPORTED);
        if (i == 1) {
            check_says(tn_scope_error(s), "cpu-blas:0 cannot run it");
            check_says(tn_scope_error(s), "forbids null:0");
        }
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
}

static tn_array *captured; // kept

static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    must(s, tn_scope_device(s, user));
    tn_array *turned = un(s, "transpose", captured); // a view of it, too
    out[0] = bin(s, "add", bin(s, "multiply", in[0], captured), turned);
    return tn_scope_status(s);
}

Test(named, what_a_function_captured_travels_once)
{
    tn_function *function;
    tn_scope *s = tn_scope_open(runtime);
    captured = tn_keep(s, ramp(s, 3, 3, 0, 1));
    must(s, tn_scope_device(s, "null"));
    tn_array *x = ramp(s, 3, 3, 0, 1), *out;
    must(NULL, tn_function_create(runtime, body, "null", NULL, &function));
    must(s, tn_function_call(function, s, &x, 1, &out, 1));
    uint64_t first = stats_of(runtime).transfers;
    cr_assert(ge(u64, first, 1));
    for (int i = 0; i < 5; i++) {
        x = out; // on the second device already
        must(s, tn_function_call(function, s, &x, 1, &out, 1));
    }
    cr_assert(eq(u64, stats_of(runtime).transfers, first));
    must(s, tn_scope_device(s, NULL)); // from the first device only the input travels
    x = ramp(s, 3, 3, 0, 1);
    must(s, tn_function_call(function, s, &x, 1, &out, 1));
    uint64_t second = stats_of(runtime).transfers;
    for (int i = 0; i < 3; i++)
        must(s, tn_function_call(function, s, &x, 1, &out, 1));
    cr_assert(eq(u64, stats_of(runtime).transfers, second + 3));
    tn_scope_close(s);
    tn_function_destroy(function);
    tn_release(captured);
}
