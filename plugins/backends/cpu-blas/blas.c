// SPDX-License-Identifier: MIT
// Opens OpenBLAS.
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static struct blas library;
static bool found;

// The number of threads is the whole process's: whoever else uses the library finds it as
// it was, when the last of us has left.
static void (*set_threads)(int threads);
static int (*get_threads)(void);
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t users;
static int threads_before;

static void open_library(void)
{
    // Never closed: its threads live as long as the process.
    void *handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    *(void **)&library.sgemm = dlsym(handle, "cblas_sgemm");
    *(void **)&library.dgemm = dlsym(handle, "cblas_dgemm");
    *(void **)&set_threads = dlsym(handle, "openblas_set_num_threads");
    *(void **)&get_threads = dlsym(handle, "openblas_get_num_threads");
    found = library.sgemm && library.dgemm && set_threads && get_threads;
}

const struct blas *blas_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return found ? &library : NULL;
}

const struct blas *blas_enter(void)
{
    if (!blas_open())
        return NULL;
    pthread_mutex_lock(&users_lock);
    if (users++ == 0) {
        threads_before = get_threads();
        if (threads_before != 1)
            set_threads(1);
    }
    pthread_mutex_unlock(&users_lock);
    return &library;
}

void blas_leave(void)
{
    pthread_mutex_lock(&users_lock);
    if (--users == 0 && threads_before != 1)
        set_threads(threads_before);
    pthread_mutex_unlock(&users_lock);
}
