// SPDX-License-Identifier: MIT
// Loads OpenBLAS, reserves its buffers, keeps its locks consistent across fork(), and
// describes the library to the user.
#include "openblas.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "environment.h"
#include "processor.h"
#include "version.h"

#define LIBRARY "libopenblas.so.0"

// Guards `found`, `num_reserved` and `num_taken`.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct openblas found;
static _Atomic bool is_found; // `found` is complete: read without the lock
static uint32_t num_reserved; // threads that may call concurrently
static uint32_t num_taken;    // buffers that OpenBLAS has allocated for them

// Held for reading inside calls of OpenBLAS, and for writing by fork() and while reserving
// buffers. Writers have priority: threads that compute without pause would otherwise starve
// fork().
static pthread_rwlock_t calls = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

// --- fork ------------------------------------------------------------------------------

static void openblas_before_fork(void)
{
    pthread_mutex_lock(&lock);
    pthread_rwlock_wrlock(&calls);
}

static void openblas_after_fork(void)
{
    pthread_rwlock_unlock(&calls);
    pthread_mutex_unlock(&lock);
}

// The child re-initialises `calls`: the lock identifies its owner by thread id, which
// differs in the child.
static void openblas_enter_child(void)
{
    calls = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    pthread_mutex_unlock(&lock);
}

static void openblas_watch_forks(void)
{
    // Fails only when out of memory: then fork() is unprotected.
    pthread_atfork(openblas_before_fork, openblas_after_fork, openblas_enter_child);
}

// --- memory ----------------------------------------------------------------------------

// Address space that OpenBLAS takes for each calling thread and each of its own threads.
#define BUFFER_BYTES (UINT64_C(128) << 20)
#define SPARE_BYTES (UINT64_C(8) << 20) // margin for concurrent allocations

// Whether `bytes` of address space are available now.
static bool openblas_fits(uint64_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    munmap(memory, bytes);
    return true;
}

// Makes OpenBLAS allocate buffers up to `wanted`; returns the number of its buffers. `held`
// has room for `wanted` pointers. `calls` is held for writing.
static uint32_t take_buffers(uint32_t wanted, void **held)
{
    void *(*take)(int);
    void (*give_back)(void *);
    uint32_t count = 0;
    *(void **)&take = dlsym(found.handle, "blas_memory_alloc");
    *(void **)&give_back = dlsym(found.handle, "blas_memory_free");
    if (!take || !give_back) // not exported by this build: only check that there is room
        return openblas_fits(wanted * BUFFER_BYTES + SPARE_BYTES) ? wanted : 0;
    // No thread is inside a call, so the first num_taken allocations reuse existing
    // buffers.
    for (; count < wanted; count++) {
        if (count >= num_taken && !openblas_fits(BUFFER_BYTES + SPARE_BYTES))
            break;
        held[count] = take(1);
    }
    for (int64_t i = (int64_t)count - 1; i >= 0; i--)
        give_back(held[i]);
    return count;
}

// The lock is held.
static void take_more(uint32_t wanted)
{
    void **held = calloc(wanted, sizeof(*held));
    pthread_rwlock_wrlock(&calls);
    num_taken = held ? take_buffers(wanted, held) : num_taken;
    pthread_rwlock_unlock(&calls);
    free(held);
}

// The lock is held.
static tn_status common_openblas_reserve(uint32_t callers, char message[OPENBLAS_MESSAGE])
{
    uint32_t wanted = num_reserved + callers;
    if (found.handle && wanted > num_taken)
        take_more(wanted);
    if (!found.handle || wanted <= num_taken) {
        num_reserved = wanted;
        return TN_OK;
    }
    uint32_t left = num_taken > num_reserved ? num_taken - num_reserved : 0;
    char fewer[40] = "";
    if (left > 0)
        snprintf(fewer, sizeof(fewer), ", or set TENON_THREADS=%u", left);
    snprintf(message, OPENBLAS_MESSAGE,
             "OpenBLAS needs 128 MiB of addresses for each thread that calls it, and there "
             "is room for %u of %u: raise the limit (ulimit -v)%s",
             left, callers, fewer);
    return TN_ERR_MEMORY;
}

tn_status openblas_reserve(uint32_t callers, char message[OPENBLAS_MESSAGE])
{
    pthread_mutex_lock(&lock);
    tn_status status = common_openblas_reserve(callers, message);
    pthread_mutex_unlock(&lock);
    return status;
}

void openblas_release(uint32_t callers)
{
    pthread_mutex_lock(&lock);
    num_reserved -= callers;
    pthread_mutex_unlock(&lock);
}

void openblas_enter(void)
{
    pthread_rwlock_rdlock(&calls);
}

void openblas_leave(void)
{
    pthread_rwlock_unlock(&calls);
}

// --- opening ---------------------------------------------------------------------------

static void openblas_read_facts(struct openblas *blas)
{
    char *(*get_config)(void), *(*get_core)(void);
    *(void **)&get_config = dlsym(blas->handle, "openblas_get_config");
    *(void **)&get_core = dlsym(blas->handle, "openblas_get_corename");
    *(void **)&blas->get_threads = dlsym(blas->handle, "openblas_get_num_threads");
    const char *config = get_config ? get_config() : "";
    if (sscanf(config, "OpenBLAS %23s", blas->version) != 1)
        blas->version[0] = '\0';
    blas->chooses_at_start = strstr(config, "DYNAMIC_ARCH") != NULL;
    snprintf(blas->core, sizeof(blas->core), "%s", get_core ? get_core() : "");
}

static void *open_if_loaded(void)
{
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

static void *wait_for_all(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

// Whether the process can start `count` more threads.
static bool can_start(uint32_t count)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = calloc(count, sizeof(*threads));
    uint32_t started = 0;
    pthread_mutex_lock(&mutex);
    while (threads && started < count &&
           pthread_create(&threads[started], NULL, wait_for_all, &mutex) == 0)
        started++;
    pthread_mutex_unlock(&mutex);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return started == count;
}

// When loaded, OpenBLAS starts the threads that OPENBLAS_NUM_THREADS asks for, and each
// allocates a buffer. If a buffer cannot be allocated OpenBLAS retries for ever; if a
// thread cannot be started it ends the process. False in both cases: then OpenBLAS is
// loaded with one thread.
static bool may_have_threads(void)
{
    const char *value = environment_get("OPENBLAS_NUM_THREADS");
    long processors = sysconf(_SC_NPROCESSORS_ONLN), wanted = value ? atol(value) : 1;
    if (wanted < 1 || wanted > processors)
        wanted = processors;
    return wanted == 1 ||
           (can_start((uint32_t)wanted - 1) &&
            openblas_fits((uint64_t)(wanted + 1) * BUFFER_BYTES + SPARE_BYTES));
}

static void *open_with_variables(const char *name)
{
    // A library that is already loaded, with its dependencies, reads no variables any more.
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle)
        return handle;
    struct processor processor = processor_read();
    // A library of another name may depend on OpenBLAS, which is then found by its soname.
    uint32_t version = blas_version_find(strchr(name, '/') ? name : LIBRARY);
    const struct variable variables[] = {
        {"OPENBLAS_CORETYPE", blas_core_override(&processor, version), false},
        {"OPENBLAS_NUM_THREADS", "1", !may_have_threads()},
    };
    const struct environment environment = environment_add(variables, 2);
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    environment_restore(&environment);
    return handle;
}

// The OpenBLAS in folder `tenon` beside libtenon, which wheels for Python carry; else
// `name`.
static const char *carried_or(const char *name, char path[PATH_MAX])
{
    struct link_map *map = NULL;
    void *tenon = strcmp(name, LIBRARY) == 0
                      ? dlopen("libtenon.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)
                      : NULL;
    if (!tenon)
        return name;
    const char *slash =
        dlinfo(tenon, RTLD_DI_LINKMAP, &map) == 0 ? strrchr(map->l_name, '/') : NULL;
    int size = slash && map->l_name[0] == '/'
                   ? snprintf(path, PATH_MAX, "%.*s/tenon/" LIBRARY,
                              (int)(slash - map->l_name), map->l_name)
                   : PATH_MAX;
    dlclose(tenon);
    return size < PATH_MAX && access(path, R_OK) == 0 ? path : name;
}

void *openblas_dlopen(const char *wanted)
{
    char path[PATH_MAX];
    const char *name = carried_or(wanted, path);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, openblas_watch_forks);
    pthread_mutex_lock(&lock);
    void *before = found.handle ? NULL : open_if_loaded();
    void *handle = open_with_variables(name);
    // Not after a failure: a further dlopen() would overwrite dlerror().
    if (!found.handle && handle)
        found.handle = before ? before : open_if_loaded();
    if (found.handle && !atomic_load_explicit(&is_found, memory_order_relaxed)) {
        openblas_read_facts(&found);
        found.was_open = before != NULL;
        atomic_store_explicit(&is_found, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

const struct openblas *openblas_find(void)
{
    return atomic_load_explicit(&is_found, memory_order_acquire) ? &found : NULL;
}

// --- describing ------------------------------------------------------------------------

void openblas_describe(const struct openblas *blas, char *text, uint64_t size)
{
    int threads = blas->get_threads ? blas->get_threads() : 1;
    snprintf(text, size, "OpenBLAS%s%s, %s kernels, %d thread%s",
             blas->version[0] ? " " : "", blas->version,
             blas->core[0] ? blas->core : "unknown", threads, threads == 1 ? "" : "s");
}

static void say_remedy(const struct openblas *blas, enum blas_level level, char *text,
                       size_t size)
{
    if (!blas->chooses_at_start)
        snprintf(text, size,
                 "install one that chooses its kernels when it starts (Debian: apt install "
                 "libopenblas0-pthread)");
    else if (environment_get("OPENBLAS_CORETYPE"))
        snprintf(text, size, "unset OPENBLAS_CORETYPE");
    else if (blas->was_open)
        snprintf(text, size,
                 "start the program with OPENBLAS_CORETYPE=%s: it, or another library, "
                 "opened OpenBLAS before Tenon",
                 blas_core_name(level));
    else
        snprintf(text, size, "install a newer OpenBLAS");
}

bool openblas_is_slow(const struct openblas *blas, struct openblas_advice *out)
{
    struct processor processor = processor_read();
    enum blas_level level = processor_level(&processor), core = blas_core_level(blas->core);
    if (core == BLAS_LEVEL_UNKNOWN || core >= level)
        return false;
    say_remedy(blas, level, out->remedy, sizeof(out->remedy));
    snprintf(out->warning, sizeof(out->warning),
             "OpenBLAS %s runs its %s kernels (%s) on a processor with %s: products of "
             "matrices take several times longer than they have to",
             blas->version, blas->core, blas_level_name(core), blas_level_name(level));
    return true;
}

void openblas_warn(const tn_host *host)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    struct openblas_advice advice;
    const struct openblas *blas = openblas_find();
    if (blas && !atomic_flag_test_and_set(&done) && openblas_is_slow(blas, &advice))
        host->log(host, TN_LOG_WARN, "cpu-blas", "%s: %s", advice.warning, advice.remedy);
}
