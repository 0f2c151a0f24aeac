// SPDX-License-Identifier: MIT
// Several devices: nodes that the first cannot run go to the next, values travel, and the
// policies about it hold. Needs a Vulkan device (a software one will do); else skipped.
#include "../support/common.h"

static const char *backend; // a Vulkan one that is here, or NULL

static tn_runtime *open_list(const char *list, const char *more)
{
    char variable[128];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", list);
    return open_with((const char *const[]){variable, more, NULL});
}

static void find_backend(void)
{
    static const char *const names[] = {"vulkan-jit", "vulkan"};
    for (int i = 0; i < 2 && !backend; i++) {
        tn_runtime *rt = open_list(names[i], NULL);
        tn_scope *s = tn_scope_open(rt);
        if (tn_eval(s, ramp(s, 1, 1, 0, 0)) == TN_OK)
            backend = names[i];
        tn_scope_close(s);
        tn_runtime_close(rt);
    }
    if (!backend)
        cr_skip("no Vulkan device is here");
}

TestSuite(devices, .init = find_backend);

// matmul is kept off the first device, so that work goes to and fro.
static const char *keep_off(char text[160])
{
    snprintf(text, 160, "TENON_KERNELS=base.matmul@%s=!*", backend);
    return text;
}

static tn_array *mixed(tn_scope *s)
{
    tn_array *x = ramp(s, 8, 8, -1, 0.03f), *y = un(s, "tanh", x);
    tn_array *p = bin(s, "matmul", y, un(s, "transpose", x));
    tn_array *q = bin(s, "add", p, bin(s, "multiply", y, tn_float(s, 0.5)));
    return bin(s, "subtract", bin(s, "matmul", q, p), y);
}

Test(devices, values_travel_between_devices)
{
    char list[64], kernels[160];
    snprintf(list, sizeof(list), "%s,cpu-blas", backend);
    tn_runtime *two = open_list(list, keep_off(kernels)),
               *one = open_list("cpu-blas", NULL);
    tn_scope *a = tn_scope_open(two), *b = tn_scope_open(one);
    float got[64], want[64];
    for (int round = 0; round < 2; round++) {
        tn_array *x = mixed(a), *y = mixed(b);
        must(a, tn_read(a, x, got, sizeof(got)));
        must(b, tn_read(b, y, want, sizeof(want)));
        for (int i = 0; i < 64; i++) // tanh differs by a few ulp between devices
            cr_assert(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])));
    }
    cr_assert(stats_of(two).transfers >= 4);
    tn_scope_close(a);
    tn_scope_close(b);
    tn_runtime_close(two);
    tn_runtime_close(one);
}

Test(devices, what_the_only_device_cannot_run_is_an_error)
{
    char kernels[160];
    tn_runtime *rt = open_list(backend, keep_off(kernels));
    tn_scope *s = tn_scope_open(rt);
    check_status(tn_eval(s, mixed(s)), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "base.matmul");
    check_says(tn_scope_error(s), backend);
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(devices, fallback_may_be_forbidden)
{
    char list[64], first[128], kernels[160];
    snprintf(list, sizeof(list), "%s,cpu-blas", backend);
    snprintf(first, sizeof(first), "TENON_BACKEND=%s", list);
    tn_runtime *rt = open_with(
        (const char *const[]){first, keep_off(kernels), "TENON_FALLBACK=error", NULL});
    tn_scope *s = tn_scope_open(rt);
    check_status(tn_eval(s, mixed(s)), TN_ERR_UNSUPPORTED);
    check_says(tn_scope_error(s), "TENON_FALLBACK");
    tn_scope_close(s);
    tn_runtime_close(rt);
}

Test(devices, the_reasons_name_device_kernel_and_candidates)
{
    char list[64], kernels[160];
    char *json = NULL;
    snprintf(list, sizeof(list), "%s,cpu-blas", backend);
    tn_runtime *rt = open_list(list, keep_off(kernels));
    tn_scope *s = tn_scope_open(rt);
    tn_array *z = mixed(s);
    must(s, tn_explain(s, &z, 1, &json));
    check_says(json, "\"cpu-blas:0\"");
    check_says(json, backend);
    check_says(json, "TENON_KERNELS says");
    tn_text_free(json);
    tn_scope_close(s);
    tn_runtime_close(rt);
}
