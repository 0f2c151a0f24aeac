// SPDX-License-Identifier: MIT
// Finds LAPACK's functions, for each dtype once.
#include "lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "openblas/openblas.h"

const tn_complex128 lapack_one_f64 = {1, 0};
const tn_complex64 lapack_one_f32 = {1, 0};

// The functions' names, and where a struct lapack has them.
static const struct lapack_symbol {
    const char *real, *complex;
    size_t offset;
} symbols[] = {
#define LAPACK_SYMBOL(name, of_real, of_complex, arguments)                                \
    {of_real, of_complex, offsetof(struct lapack, name)},
    LAPACK_SYMBOLS(LAPACK_SYMBOL)
#undef LAPACK_SYMBOL
};

// The letters that names of functions begin with, by dtype.
static const char letters[] = "sdcz";
enum { NUM_DTYPES = sizeof(letters) - 1 };

static size_t lapack_number_of(tn_dtype dtype)
{
    return (tn_dtype_real(dtype) == TN_F64) + 2 * (size_t)tn_is_complex(dtype);
}

static struct lapack tables[NUM_DTYPES];
static bool found;
static char failure[200]; // why `found` is false

static bool lapack_read_symbols(void *handle, size_t number, struct lapack *out)
{
    char name[16];
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        const struct lapack_symbol *s = &symbols[i];
        snprintf(name, sizeof(name), "%c%s_", letters[number],
                 number >= 2 ? s->complex : s->real);
        void *address = dlsym(handle, name);
        if (!address) {
            snprintf(failure, sizeof(failure), "it has no function '%s'", name);
            return false;
        }
        memcpy((char *)out + s->offset, &address, sizeof(address));
    }
    return true;
}

// Never closed: OpenBLAS' threads live as long as the process.
static void lapack_open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3"};
    for (size_t i = 0; i < 2 && !found; i++) {
        void *handle = openblas_dlopen(names[i]);
        const char *why = handle ? NULL : dlerror();
        if (!handle) {
            if (!failure[0])
                snprintf(failure, sizeof(failure), "%s", why ? why : "unknown");
            continue;
        }
        found = true;
        for (size_t d = 0; d < NUM_DTYPES && found; d++)
            found = lapack_read_symbols(handle, d, &tables[d]);
    }
}

const struct lapack *lapack_find(tn_dtype dtype, const char **out_why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, lapack_open_library);
    if (out_why)
        *out_why = failure;
    return found ? &tables[lapack_number_of(dtype)] : NULL;
}

// Reserves OpenBLAS buffers for the threads of all processors at the first call, until the
// process ends.
static tn_status reserve_buffers(const tn_host *host)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool done;
    char message[OPENBLAS_MESSAGE];
    tn_status status = TN_OK;
    pthread_mutex_lock(&lock);
    if (!done)
        status = openblas_reserve((uint32_t)sysconf(_SC_NPROCESSORS_ONLN), message);
    done = done || status == TN_OK;
    pthread_mutex_unlock(&lock);
    return status == TN_OK ? TN_OK : host->fail(host, status, "%s", message);
}

tn_status lapack_enter(const tn_cpu_call *call, tn_dtype dtype,
                       const struct lapack **out_lapack)
{
    const char *why = NULL;
    *out_lapack = lapack_find(dtype, &why);
    if (!*out_lapack)
        return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                                "LAPACK cannot be opened (%s): install OpenBLAS (Debian: "
                                "apt install libopenblas0-pthread)",
                                why);
    tn_status status = reserve_buffers(call->host);
    if (status == TN_OK)
        openblas_enter();
    return status;
}

void lapack_leave(void)
{
    openblas_leave();
}

// --- threads ---------------------------------------------------------------------------

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static int num_limits;  // nested lapack_limit_threads() calls
static int num_threads; // of OpenBLAS, before the first of these calls

static int lapack_count_threads(void)
{
    const struct openblas *blas = openblas_find();
    return blas && blas->get_threads ? blas->get_threads() : 1;
}

bool lapack_is_threaded(void)
{
    return lapack_count_threads() > 1;
}

static void set_threads(int count)
{
    const struct openblas *blas = openblas_find();
    void (*set)(int);
    *(void **)&set = blas ? dlsym(blas->handle, "openblas_set_num_threads") : NULL;
    if (set)
        set(count);
}

void lapack_limit_threads(void)
{
    pthread_mutex_lock(&limit_lock);
    if (num_limits++ == 0) {
        num_threads = lapack_count_threads();
        if (num_threads > 1)
            set_threads(1);
    }
    pthread_mutex_unlock(&limit_lock);
}

void lapack_free_threads(void)
{
    pthread_mutex_lock(&limit_lock);
    if (--num_limits == 0 && num_threads > 1)
        set_threads(num_threads);
    pthread_mutex_unlock(&limit_lock);
}

int32_t lapack_accepts(const tn_kernel_query *query)
{
    return lapack_find(query->inputs[0].dtype, NULL) != NULL;
}
