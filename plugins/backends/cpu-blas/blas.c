// SPDX-License-Identifier: MIT
// Opens OpenBLAS, and has memory kept for it: once for each device.
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include "openblas.h"

static struct blas library;
static bool found;

static void open_library(void)
{
    // Never closed: its threads live as long as the process.
    void *handle = openblas_dlopen("libopenblas.so.0");
    if (!handle)
        return;
    *(void **)&library.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&library.dgemm = dlsym(handle, "cblas_dgemm");
    found = library.sgemm && library.dgemm;
}

const struct blas *blas_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return found ? &library : NULL;
}

// A device's launches run one after the other.
static tn_status prepare(tn_device *device)
{
    char message[OPENBLAS_MESSAGE];
    if (device->blas_callers > 0)
        return TN_OK;
    openblas_warn(device->host);
    tn_status status = openblas_reserve(device->num_threads, message);
    if (status != TN_OK)
        return device->kernel_host.table.fail(&device->kernel_host.table, status, "%s",
                                              message);
    device->blas_callers = device->num_threads;
    return TN_OK;
}

tn_status blas_enter(const tn_cpu_call *call, const struct blas **out_blas)
{
    const struct blas *blas = blas_open();
    if (!blas)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "libopenblas.so.0 is not installed");
    tn_status status = prepare(cpu_device_of(call->host));
    if (status != TN_OK)
        return status;
    openblas_enter();
    *out_blas = blas;
    return TN_OK;
}

void blas_leave(void)
{
    openblas_leave();
}

void blas_close(tn_device *device)
{
    if (device->blas_callers > 0)
        openblas_release(device->blas_callers);
    device->blas_callers = 0;
}

bool blas_is_threaded(void)
{
    const struct openblas *blas = openblas_find();
    return blas && blas->get_threads && blas->get_threads() > 1;
}
