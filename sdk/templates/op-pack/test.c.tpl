// SPDX-License-Identifier: @LICENSE@
// Calls the operator and its derivative as an application does, through @NAME@.h, which the build
// makes from the plugin. After a failure functions return NULL, and the scope keeps the failure.
#include <stdio.h>
#include <tenon/tenon.h>
#include "@NAME@.h"

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_scope *scope = tn_scope_open(runtime);
    tn_array *x = tn_f32(scope, 3), *y = tn_f32(scope, 5), *slope = NULL;
    tn_array *out = @NAME@_@OP@(scope, x, y, 4, 2);
    tn_vjp(scope, &out, NULL, 1, &x, 1, &slope);
    double value = tn_item(scope, out), derivative = tn_item(scope, slope);
    int wrong = value != 22 || derivative != 4;
    if (wrong)
        fprintf(stderr, "got %g and slope %g, expected 22 and 4. %s\n", value, derivative,
                tn_scope_error(scope));
    tn_scope_close(scope);
    tn_runtime_close(runtime);
    return wrong;
}
