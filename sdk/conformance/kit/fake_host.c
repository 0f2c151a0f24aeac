// SPDX-License-Identifier: MIT
// The host that checks pass to plugins. Every block of memory has a header and ends with a
// canary.
#include "fake_host.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <tenon/tenon.h>
#include <unistd.h>

#define LIVE UINT64_C(0x6c69766562797465)
#define DEAD UINT64_C(0x6465616462797465)
#define CANARY UINT64_C(0x5afe5afe5afe5afe)
#define MAX_BYTES (UINT64_C(1) << 33) // bytes in one allocation; larger ones are refused

// Stands before each block that alloc returns. `state` is LIVE or DEAD.
struct fake_block {
    uint64_t state;
    struct fake_host *owner;
    uint64_t size;
    void *start;             // the pointer from malloc
    struct fake_block *next; // next freed block in fake_host.dead
    uint64_t reserved;
};

// Guards text, status and misuse of all fake hosts.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Guards fake_host.providers.
static pthread_mutex_t providers_lock = PTHREAD_MUTEX_INITIALIZER;

static struct fake_host *self_of(const tn_host *host)
{
    return (struct fake_host *)(void *)host->self;
}

static void fake_host_misused(struct fake_host *host, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void fake_host_misused(struct fake_host *host, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    pthread_mutex_lock(&lock);
    if (host->misuses++ == 0)
        vsnprintf(host->misuse, sizeof(host->misuse), format, list);
    pthread_mutex_unlock(&lock);
    va_end(list);
}

// --- memory ----------------------------------------------------------------------------

static void *fake_alloc(const tn_host *table, uint64_t size, uint64_t alignment)
{
    struct fake_host *host = self_of(table);
    alignment = alignment ? alignment : 16;
    if (alignment & (alignment - 1) || alignment > UINT64_C(1) << 21) {
        fake_host_misused(host, "alloc: alignment %llu", (unsigned long long)alignment);
        return NULL;
    }
    uint64_t number = ++host->allocations, largest = host->largest;
    while (size > largest && !atomic_compare_exchange_weak(&host->largest, &largest, size))
        ;
    uint64_t whole = size + sizeof(struct fake_block) + alignment + sizeof(uint64_t) + 16;
    char *start = number == host->fail_at || size > MAX_BYTES ? NULL : malloc(whole);
    if (!start) {
        host->refusals++;
        return NULL;
    }
    uintptr_t at = (uintptr_t)start + sizeof(struct fake_block);
    at = (at + alignment - 1) & ~(uintptr_t)(alignment - 1);
    struct fake_block *block = (struct fake_block *)at - 1;
    *block = (struct fake_block){LIVE, host, size, start, NULL, 0};
    memset((void *)at, 0xa5, size);
    memcpy((char *)at + size, &(uint64_t){CANARY}, sizeof(uint64_t));
    host->live++;
    host->live_bytes += size;
    return (void *)at;
}

static void fake_free(const tn_host *table, void *memory)
{
    struct fake_host *host = self_of(table);
    if (!memory)
        return;
    struct fake_block *block = (struct fake_block *)memory - 1;
    if ((uintptr_t)memory % 16 || (block->state != LIVE && block->state != DEAD)) {
        fake_host_misused(host, "free of memory that alloc did not give");
        return;
    }
    if (block->state == DEAD) {
        fake_host_misused(host, "free of the same %llu bytes twice",
                          (unsigned long long)block->size);
        return;
    }
    if (block->owner != host)
        fake_host_misused(host, "free of what another runtime's host gave");
    uint64_t canary;
    memcpy(&canary, (char *)memory + block->size, sizeof(canary));
    if (canary != CANARY)
        fake_host_misused(host, "something was written behind a block of %llu bytes",
                          (unsigned long long)block->size);
    block->owner->live--;
    block->owner->live_bytes -= block->size;
    block->state = DEAD;
    memset(memory, 0xdd, block->size);
    // Large blocks, and blocks of another host, are not kept: a second free of them goes
    // unseen.
    if (block->size > 65536 || block->owner != host) {
        free(block->start);
        return;
    }
    void *first = host->dead;
    do
        block->next = first;
    while (!atomic_compare_exchange_weak(&host->dead, &first, block));
}

// --- messages --------------------------------------------------------------------------

static tn_status fake_fail(const tn_host *table, tn_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);
static tn_status fake_fail(const tn_host *table, tn_status status, const char *format, ...)
{
    struct fake_host *host = self_of(table);
    char text[sizeof(host->text)];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (status >= 0 || status < TN_ERR_INTERNAL)
        fake_host_misused(host, "fail: %d is no error's status", status);
    if (!text[0])
        fake_host_misused(host, "fail: an empty message");
    pthread_mutex_lock(&lock);
    host->failures++;
    host->status = status;
    memcpy(host->text, text, sizeof(text));
    pthread_mutex_unlock(&lock);
    return status;
}

static void fake_log(const tn_host *table, int32_t level, const char *topic,
                     const char *format, ...) PRINTF_LIKE(4, 5);
static void fake_log(const tn_host *table, int32_t level, const char *topic,
                     const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (level < TN_LOG_ERROR || level > TN_LOG_TRACE || !topic)
        fake_host_misused(self_of(table), "log: level %d, topic %s", level,
                          topic ? topic : "NULL");
}

static const char *fake_config(const tn_host *table, const char *name)
{
    if (!name)
        fake_host_misused(self_of(table), "config: name NULL");
    return self_of(table)->config;
}

// --- services --------------------------------------------------------------------------

static tn_status cache_get(const tn_host *table, const void *key, uint64_t key_size,
                           void **out_data, uint64_t *out_size)
{
    (void)table, (void)key, (void)key_size, (void)out_data, (void)out_size;
    return TN_ERR_NOT_FOUND;
}

static void cache_put(const tn_host *table, const void *key, uint64_t key_size,
                      const void *data, uint64_t size, const tn_cache_about *about)
{
    (void)key, (void)key_size, (void)data, (void)size;
    if (about && about->struct_size < TN_END_OF(about, device))
        fake_host_misused(self_of(table), "cache: put with an about of %u bytes",
                          about->struct_size);
}

static void trace_event(const tn_host *table, const tn_trace_event *event)
{
    if (!event->name || !event->track)
        fake_host_misused(self_of(table), "trace: an event without name or track");
}

static tn_status primitives_add(const tn_host *table, const tn_primitive *record,
                                const tn_kernel *const *kernels, uint64_t num_kernels)
{
    if (!record || !record->id || (num_kernels && !kernels))
        fake_host_misused(self_of(table),
                          "primitives: a record that lacks its id or kernels");
    return TN_OK;
}

// Finds interfaces first in the plugin itself, once it is started, then in the installed
// plugins, through a runtime of this host's own. TENON_DLCLOSE=1 unloads these with the
// host, so that they leave nothing in the process that a check of the plugin would find.
static tn_status interfaces_find(const tn_host *table, const char *id, const char *maker,
                                 const void **out_interface, const tn_host **out_host)
{
    struct fake_host *host = self_of(table);
    const tn_runtime_options options = {.variables =
                                            (const char *const[]){"TENON_DLCLOSE=1", NULL}};
    if (!id || !out_interface || !out_host) {
        fake_host_misused(host, "interfaces: the id or the pointer for a result is NULL");
        return fake_fail(table, TN_ERR_ARGUMENT, "interfaces: NULL");
    }
    if (host->own && host->own->query(id)) {
        *out_interface = host->own->query(id);
        *out_host = table;
        return TN_OK;
    }
    pthread_mutex_lock(&providers_lock);
    tn_status status =
        host->providers ? TN_OK : tn_runtime_open(&options, &host->providers);
    pthread_mutex_unlock(&providers_lock);
    if (status == TN_OK)
        status = tn_interface_find(host->providers, id, out_interface, out_host);
    if (status == TN_ERR_NOT_FOUND && maker)
        return fake_fail(table, status,
                         "no plugin in TENON_PLUGIN_PATH or among those "
                         "installed offers '%s': install %s",
                         id, maker);
    return status == TN_OK ? TN_OK : fake_fail(table, status, "%s", tn_last_error());
}

static const void *fake_query(const tn_host *table, const char *id)
{
    static const tn_host_interfaces interfaces = {.struct_size = sizeof(interfaces),
                                                  .find = interfaces_find};
    static const tn_host_primitives primitives = {.struct_size = sizeof(primitives),
                                                  .add = primitives_add};
    static const tn_host_cache cache = {
        .struct_size = sizeof(cache), .get = cache_get, .put = cache_put};
    static const tn_host_trace trace = {.struct_size = sizeof(trace), .event = trace_event};
    if (self_of(table)->no_services)
        return NULL;
    if (strcmp(id, TN_HOST_CACHE) == 0)
        return &cache;
    if (strcmp(id, TN_HOST_PRIMITIVES) == 0)
        return &primitives;
    if (strcmp(id, TN_HOST_INTERFACES) == 0)
        return &interfaces;
    return strcmp(id, TN_HOST_TRACE) == 0 ? &trace : NULL;
}

// --- set-up ----------------------------------------------------------------------------

bool fake_host_init(struct fake_host *host, uint32_t tail)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *host = (struct fake_host){.fail_at = 0};
    char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
        return false;
    tn_host *table = (tn_host *)(void *)(pages + page - tail - sizeof(*table));
    memset(table + 1, 0xff, tail);
    *table = (tn_host){
        .struct_size = (uint32_t)sizeof(*table) + tail,
        .self = (tn_host_self *)(void *)host,
        .abi_minor = TN_ABI_MINOR,
        .alloc = fake_alloc,
        .free = fake_free,
        .fail = fake_fail,
        .log = fake_log,
        .config = fake_config,
        .query = fake_query,
    };
    mprotect(pages, page, PROT_READ);
    host->table = table;
    host->pages = pages;
    return true;
}

void fake_host_reset(struct fake_host *host)
{
    const tn_host *table = host->table;
    void *pages = host->pages, *dead = host->dead;
    tn_runtime *providers = host->providers;
    const tn_plugin *own = host->own;
    *host = (struct fake_host){
        .table = table, .pages = pages, .dead = dead, .providers = providers, .own = own};
}

void fake_host_finish(struct fake_host *host)
{
    if (host->pages)
        munmap(host->pages, 2 * (size_t)sysconf(_SC_PAGESIZE));
    host->table = NULL;
    host->pages = NULL;
    tn_runtime_close(host->providers);
    host->providers = NULL;
    for (struct fake_block *b = host->dead, *next; b; b = next) {
        next = b->next;
        free(b->start);
    }
    host->dead = NULL;
}

void fake_host_expect_freed(struct kit *k, const struct fake_host *host, const char *what)
{
    if (host->live > 0)
        check_fail(k, "%s leaves %llu blocks of %llu bytes", what,
                   (unsigned long long)host->live, (unsigned long long)host->live_bytes);
    if (host->misuses > 0)
        check_fail(k, "%s: %s", what, host->misuse);
}
