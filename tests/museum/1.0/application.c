// SPDX-License-Identifier: MIT
// An application: evaluates an operator, differentiates it, and asks a plugin for an
// interface of its own.
#include <stdio.h>
#include <string.h>
#include <tenon/plugin.h>
#include <tenon/tenon.h>

typedef struct greeting {
    uint32_t struct_size;
    uint32_t flags;
    const char *(*hello)(void);
} greeting;

static int compute(tn_scope *scope)
{
    const float data[] = {1, 2, 3};
    float out[3], slope[3];
    tn_array *x = tn_from_data(scope, TN_F32, TN_SHAPE(3), data);
    tn_array *y =
        tn_op(scope, "museum.axpby", TN_IN(x, x), tn_attrs("alpha", 2, "beta", 3));
    tn_array *z = tn_op(scope, "museum.cube", TN_IN(y), TN_NO_ATTRS);
    tn_array *loss = tn_op(scope, "base.sum", TN_IN(z), TN_NO_ATTRS), *gradient = NULL;
    tn_vjp(scope, &loss, NULL, 1, &x, 1, &gradient);
    if (tn_read(scope, z, out, sizeof(out)) ||
        tn_read(scope, gradient, slope, sizeof(slope)))
        return fprintf(stderr, "%s\n", tn_scope_error(scope)), 1;
    printf("%g %g %g, %g %g %g\n", (double)out[0], (double)out[1], (double)out[2],
           (double)slope[0], (double)slope[1], (double)slope[2]);
    return 0;
}

int main(void)
{
    tn_runtime *runtime = NULL;
    const void *table = NULL;
    const tn_host *host = NULL;
    if (tn_runtime_open(NULL, &runtime) ||
        tn_interface_find(runtime, "com.museum.greeting/1", &table, &host))
        return fprintf(stderr, "%s\n", tn_last_error()), 1;
    const greeting *greeting = table;
    tn_plugin_info info = {.struct_size = sizeof(info)};
    printf("%s; %llu plugins", greeting->hello(),
           (unsigned long long)tn_plugin_count(runtime));
    if (tn_plugin_get(runtime, 0, &info))
        return fprintf(stderr, "%s\n", tn_last_error()), 1;
    printf(", the first is %s\n", info.id);
    tn_scope *scope = tn_scope_open(runtime);
    int failed = compute(scope);
    tn_scope_close(scope);
    tn_runtime_close(runtime);
    return failed;
}
