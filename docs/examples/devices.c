// SPDX-License-Identifier: MIT
// Devices: an application lists them, chooses for its user what the environment leaves
// open, and says why a choice cannot be had.
//
// Prints:
//   cpu-blas:0 is there
//   on cpu-blas: 3
//   on cpu-bals: TENON_BACKEND: backend 'cpu-bals' is not known; did you mean cpu-blas? ...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

// Asks the drivers of every installed backend, which may take a moment.
static tn_status list(tn_runtime *runtime)
{
    uint64_t count = 0;
    tn_status status = tn_devices(runtime, NULL, &count);
    tn_device_summary *devices = calloc(count + 1, sizeof(*devices));
    if (!devices)
        status = TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        devices[i].struct_size = sizeof(*devices);
    if (status == TN_OK)
        status = tn_devices(runtime, devices, &count);
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        if (strcmp(devices[i].backend, "cpu-blas") == 0)
            printf("%s:%u is there\n", devices[i].backend, devices[i].index);
    free(devices);
    return status;
}

// A variable given here comes before the environment's.
static void add_on(const char *backend)
{
    char choice[64];
    const char *const variables[] = {choice, NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    tn_runtime *runtime;
    snprintf(choice, sizeof(choice), "TENON_BACKEND=%s", backend);
    if (tn_runtime_open(&options, &runtime)) {
        printf("on %s: %s\n", backend, tn_last_error());
        return;
    }
    tn_scope *s = tn_scope_open(runtime);
    double sum = tn_item(s, tn_add(s, tn_f32(s, 1), tn_f32(s, 2)));
    if (tn_scope_status(s))
        printf("on %s: %s\n", backend, tn_scope_error(s));
    else
        printf("on %s: %g\n", backend, sum);
    tn_scope_close(s);
    tn_runtime_close(runtime);
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime) || list(runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_runtime_close(runtime);
    add_on("cpu-blas");
    add_on("cpu-bals");
    return 0;
}
