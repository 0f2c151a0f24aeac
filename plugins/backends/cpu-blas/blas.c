// SPDX-License-Identifier: MIT
// Opens OpenBLAS, and has memory kept for it: once for each device.
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include "openblas.h"

static struct blas library;
static bool found;
static char failure[160]; // why it was not found

static void open_library(void)
{
    // Never closed: its threads live as long as the process.
    void *handle = openblas_dlopen("libopenblas.so.0");
    const char *why = handle ? "it has no cblas_sgemm" : dlerror();
    snprintf(failure, sizeof(failure), "%s", why ? why : "unknown");
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

static tn_status reserve(const tn_host *host, uint32_t callers, uint32_t *num_reserved)
{
    char message[OPENBLAS_MESSAGE];
    openblas_warn(host);
    tn_status status = openblas_reserve(callers, message);
    if (status != TN_OK)
        return host->fail(host, status, "%s", message);
    *num_reserved = callers;
    return TN_OK;
}

// Kernels of cpu.c/1 run on other plugins' devices too, which have as many threads as there
// are processors, or fewer. Their part is kept as long as the process runs.
static tn_status reserve_for_others(const tn_host *host)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t num_reserved;
    tn_status status = TN_OK;
    pthread_mutex_lock(&lock);
    if (num_reserved == 0)
        status = reserve(host, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), &num_reserved);
    pthread_mutex_unlock(&lock);
    return status;
}

// A device's launches run one after the other.
static tn_status prepare(const tn_host *kernel_host)
{
    if (!cpu_is_own_host(kernel_host))
        return reserve_for_others(kernel_host);
    tn_device *device = cpu_device_of(kernel_host);
    if (device->blas_callers > 0)
        return TN_OK;
    return reserve(kernel_host, device->num_threads, &device->blas_callers);
}

tn_status blas_enter(const tn_cpu_call *call, const struct blas **out_blas)
{
    const struct blas *blas = blas_open();
    if (!blas)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "libopenblas.so.0 is not installed");
    tn_status status = prepare(call->host);
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

void blas_details(tn_device_details *out)
{
    struct openblas_advice advice;
    const struct openblas *blas = blas_open() ? openblas_find() : NULL;
    if (!found) {
        snprintf(out->warning, sizeof(out->warning),
                 "without OpenBLAS products of matrices run as plain loops, many times "
                 "slower: %.150s",
                 failure);
        snprintf(out->remedy, sizeof(out->remedy), "apt install libopenblas0-pthread");
    } else if (blas) {
        openblas_describe(blas, out->libraries, sizeof(out->libraries));
        if (openblas_is_slow(blas, &advice)) {
            snprintf(out->warning, sizeof(out->warning), "%s", advice.warning);
            snprintf(out->remedy, sizeof(out->remedy), "%s", advice.remedy);
        }
    }
}
