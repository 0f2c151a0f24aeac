// SPDX-License-Identifier: MIT
// Loads OpenBLAS, and reserves its buffers for the threads of each device.
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include "openblas/openblas.h"

static struct blas library;
static bool found;
static char failure[160]; // why `found` is false

static void blas_open_library(void)
{
    // Never closed: OpenBLAS' threads live as long as the process.
    void *handle = openblas_dlopen("libopenblas.so.0");
    const char *why = handle ? "it lacks functions of CBLAS" : dlerror();
    snprintf(failure, sizeof(failure), "%s", why ? why : "unknown");
    if (!handle)
        return;
    *(void **)&library.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&library.dgemm = dlsym(handle, "cblas_dgemm");
    *(void **)&library.cgemm = dlsym(handle, "cblas_cgemm");
    *(void **)&library.zgemm = dlsym(handle, "cblas_zgemm");
    found = library.sgemm && library.dgemm && library.cgemm && library.zgemm;
}

const struct blas *blas_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, blas_open_library);
    return found ? &library : NULL;
}

// Reserves buffers for `first` callers if *num_reserved is 0, else for `more`, and adds
// them to *num_reserved.
static tn_status blas_reserve(const tn_host *host, uint32_t first, uint32_t more,
                              uint32_t *num_reserved)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char message[OPENBLAS_MESSAGE];
    tn_status status = TN_OK;
    openblas_warn(host);
    pthread_mutex_lock(&lock);
    uint32_t callers = *num_reserved == 0 ? first : more;
    if (callers > 0)
        status = openblas_reserve(callers, message);
    if (status == TN_OK)
        *num_reserved += callers;
    pthread_mutex_unlock(&lock);
    return status == TN_OK ? TN_OK : host->fail(host, status, "%s", message);
}

// Reserves for devices of other plugins, which run these cpu.c/1 kernels too, on at most
// one thread for each processor. These buffers stay reserved until the process ends.
static tn_status reserve_for_others(const tn_host *host)
{
    static uint32_t num_reserved;
    return blas_reserve(host, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), 0, &num_reserved);
}

// Reserves at the first launch of a queue: a buffer for the one thread that runs the
// queue's launches; and with the device's first queue, for the pool's threads.
static tn_status blas_prepare(const tn_host *kernel_host)
{
    if (!cpu_is_own_host(kernel_host))
        return reserve_for_others(kernel_host);
    struct cpu_queue *queue = cpu_queue_of(kernel_host);
    if (queue->calls_blas)
        return TN_OK;
    tn_device *device = queue->device;
    tn_status status =
        blas_reserve(kernel_host, device->num_threads, 1, &device->blas_callers);
    queue->calls_blas = status == TN_OK;
    return status;
}

tn_status blas_enter(const tn_cpu_call *call, const struct blas **out_blas)
{
    const struct blas *blas = blas_open();
    if (!blas)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "libopenblas.so.0 is not installed");
    tn_status status = blas_prepare(call->host);
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
        snprintf(
            out->warning, sizeof(out->warning),
            "without OpenBLAS products of f64, complex numbers and attention run as plain "
            "loops, many times slower: %.130s",
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
