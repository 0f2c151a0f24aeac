// SPDX-License-Identifier: MIT
// Plugins with one fault each in the file, the entry or the way they are started; without a
// FAULT_... they have none. The name of a fault is that of the check that must find it.
#include <tenon/launches.h>
#include <tenon/plugin.h>

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef ID
#define ID "com.acme.entry"
#endif
#ifndef VERSION
#define VERSION "1.0.0"
#endif

#ifdef FAULT_FILE_EXPORTS
__attribute__((visibility("default"))) int helper(void);
int helper(void)
{
    return 42;
}
#endif

#ifdef FAULT_FILE_TLS
static __thread int counter __attribute__((tls_model("initial-exec")));
#endif

#ifdef FAULT_FILE_TEXT_RELOCATIONS
__asm__(".text\n.globl there\n.hidden there\nthere: .quad there\n");
#endif

#ifdef FAULT_FILE_SEGMENTS
__asm__(".section .both,\"awx\",@progbits\n.quad 0\n.text\n");
#endif

#ifdef FAULT_FILE_CONSTRUCTORS
static volatile int constructed;
__attribute__((constructor)) static void construct(void)
{
    constructed = 1;
}
#endif

#ifdef FAULT_FILE_DESTRUCTORS
static volatile int destructed;
__attribute__((destructor)) static void destruct(void)
{
    destructed = 1;
}
#endif

#ifdef FAULT_FILE_SYMBOLS
int nobody_has_this(void);
#endif

#ifdef FAULT_FILE_LINKS
const char *tn_status_name(tn_status status);
#endif

#ifdef FAULT_FILE_UNLOADABLE
__asm__(".section .data\n.type one_in_all,@gnu_unique_object\n"
        ".size one_in_all,8\none_in_all: .quad 0\n.text\n");
#endif

// --- starting --------------------------------------------------------------------------

static void *memory;
static const tn_host *kept;

#if defined(FAULT_PROCESS_THREADS) || defined(FAULT_PROCESS_INIT_THREADS)
static pthread_t thread;
static volatile int is_ending;

static void *idle(void *context)
{
    (void)context;
    while (!is_ending)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return NULL;
}
#endif

#ifdef FAULT_PROCESS_EXIT
static void at_exit(int status, void *context)
{
    (void)status, (void)context;
}
#endif

#ifdef FAULT_HOST_AFTER
static const tn_host *seen; // looked at in its next life
#endif

#ifdef FAULT_RELOAD_MEMORY
void *volatile lost; // hidden, and so not optimised away
#endif

#ifdef FAULT_RELOAD_THREADS
static pthread_key_t key;
static void end_of_thread(void *value)
{
    (void)value;
}
#endif

// What an init might do to the process.
static void disturb(void)
{
#ifdef FAULT_FILE_TLS
    counter++;
#endif
#ifdef FAULT_FILE_SYMBOLS
    nobody_has_this();
#endif
#ifdef FAULT_FILE_LINKS
    tn_status_name(0);
#endif
#ifdef FAULT_PROCESS_LOCALE
    setlocale(LC_ALL, "");
#endif
#if defined(FAULT_PROCESS_ROUNDING) && defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
#ifdef FAULT_PROCESS_SIGNALS
    signal(SIGUSR1, SIG_IGN);
#endif
#ifdef FAULT_PROCESS_DIRECTORY
    if (chdir("/"))
        return;
#endif
#ifdef FAULT_PROCESS_ENVIRONMENT
    setenv("ACME_WAS_HERE", "1", 1);
#endif
#ifdef FAULT_PROCESS_UMASK
    umask(0);
#endif
#ifdef FAULT_PROCESS_LIMITS
    setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, 1 << 20});
#endif
#ifdef FAULT_PROCESS_FILES
    if (dup(0) < 0)
        return;
#endif
#ifdef FAULT_PROCESS_OUTPUT
    printf("Acme plugin started\n");
#endif
#ifdef FAULT_PROCESS_EXIT
    on_exit(at_exit, NULL);
#endif
#ifdef FAULT_PROCESS_SURVIVES
    abort();
#endif
#ifdef FAULT_RELOAD_MEMORY
    lost = malloc(5000);
#endif
#ifdef FAULT_RELOAD_THREADS
    pthread_key_create(&key, end_of_thread);
    pthread_setspecific(key, &key);
#endif
#if defined(FAULT_PROCESS_THREADS) || defined(FAULT_PROCESS_INIT_THREADS)
    pthread_create(&thread, NULL, idle, NULL);
#endif
}

static tn_status init(const tn_host *host)
{
    disturb();
    kept = host;
#ifdef FAULT_ENTRY_INIT
    return TN_ERR_DEVICE;
#endif
#ifdef FAULT_RELOAD_AGAIN
    static int times;
    if (times++)
        return host->fail(host, TN_ERR_INTERNAL, "started twice");
#endif
#ifdef FAULT_RELOAD_OTHER_THREAD
    if (getpid() != gettid())
        return host->fail(host, TN_ERR_INTERNAL, "not the main thread");
#endif
#ifdef FAULT_HOST_SIZE
    if (((const uint64_t *)(host + 1))[0] == 42)
        return TN_OK;
#endif
#ifdef FAULT_HOST_LARGER
    if (host->struct_size != sizeof(*host))
        return host->fail(host, TN_ERR_REFUSED, "a host of %u bytes", host->struct_size);
#endif
#ifdef FAULT_HOST_SERVICES
    const tn_host_cache *cache = host->query(host, TN_HOST_CACHE);
    if (!cache->get)
        return TN_OK;
#endif
#ifdef FAULT_HOST_CONFIG
    const char *threads = host->config(host, "TENON_THREADS");
    static const char *const names[] = {"none", "one"};
    if (threads && !names[strtol(threads, NULL, 10) > 1000 ? 1 << 28 : 0][0])
        return TN_OK;
#endif
#ifdef FAULT_HOST_SERVICES_STATUS
    if (!host->query(host, TN_HOST_CACHE))
        return TN_ERR_UNSUPPORTED; // and does not say why
#endif
#ifdef FAULT_HOST_AFTER
    if (seen && seen->abi_minor > 1000)
        return TN_ERR_INTERNAL;
    seen = host;
#endif
    void *made = host->alloc(host, 100, 0);
#ifdef FAULT_HOST_MEMORY
    memset(made, 0, 100);
#endif
#ifdef FAULT_HOST_RETRY
    static int has_failed;
    has_failed |= !made;
    if (has_failed) {
        host->free(host, made);
        return TN_ERR_MEMORY;
    }
#endif
    if (!made)
        return TN_ERR_MEMORY;
    void *more = host->alloc(host, 200, 64);
    if (!more) {
        host->free(host, made);
        return TN_ERR_MEMORY;
    }
    host->free(host, more);
#ifdef FAULT_HOST_TWO
    memory = made; // of the last runtime that was opened
#else
    host->free(host, made);
#endif
    return TN_OK;
}

static void deinit(const tn_host *host)
{
    (void)host;
#ifdef FAULT_PROCESS_INIT_THREADS
    is_ending = 1;
    pthread_join(thread, NULL);
    is_ending = 0;
#endif
#ifdef FAULT_HOST_FREES
    (void)kept->alloc(kept, 10, 0);
#endif
#ifdef FAULT_HOST_TWO
    kept->free(kept, memory);
#endif
    memory = NULL;
}

// --- what it offers --------------------------------------------------------------------

static const tn_input_info inputs[] = {{.name = "x", .doc = "what is doubled"}};
static const tn_primitive twice = {
    .struct_size = sizeof(twice),
#ifdef FAULT_ENTRY_ACCEPTED
    .id = "acme.entry_twice/one",
#else
    .id = "acme.entry_twice/1",
#endif
    .doc = "Twice x.",
    TN_INPUTS(inputs),
    .expr = "x + x",
#ifdef FAULT_ENTRY_TABLES_ELEMENTS
    .in_place = &(const tn_in_place){0, 0}, // without the size of its elements
    .num_in_place = 1,
#endif
};
static const tn_ops ops = {
#ifdef FAULT_ENTRY_TABLES
    .struct_size = sizeof(ops) + 8,
#else
    .struct_size = sizeof(ops),
#endif
    .primitives = (const tn_primitive *const[]){&twice},
    .num_primitives = 1,
};

__attribute__((unused)) static const void *query(const char *id)
{
#ifdef FAULT_ENTRY_UNKNOWN
    if (strncmp(id, "tn.ops", 6) == 0)
        return &ops;
#endif
#ifdef FAULT_ENTRY_CONSTANT
    static tn_ops copies[2];
    static unsigned turn;
    copies[0] = copies[1] = ops;
    if (strcmp(id, TN_IFACE_OPS) == 0)
        return &copies[turn++ % 2];
#endif
#ifdef FAULT_ENTRY_TABLES_LAUNCHES
    static const tn_launches launches = {.struct_size = sizeof(launches)};
    static const char *const own[] = {TN_IFACE_LAUNCHES, NULL};
    if (strcmp(id, TN_IFACE_LAUNCHES) == 0)
        return &launches;
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return own;
#endif
#ifdef FAULT_ENTRY_BRINGS
    static const char *const listed[] = {"com.acme.missing/1", NULL};
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return listed;
#endif
#if defined(FAULT_ENTRY_SELECTORS) || defined(FAULT_ENTRY_SELECTORS_MAGIC)
#ifdef FAULT_ENTRY_SELECTORS
    static const tn_selector items[] = {{"com.acme.missing/1", "extension", "acme"}};
#else
    static const tn_selector items[] = {{TN_IFACE_OPS, TN_SELECT_MAGIC, "not hexadecimal"}};
#endif
    static const tn_selectors selectors = {.struct_size = sizeof(selectors),
                                           .items = items,
                                           .num_items = 1,
                                           .item_size = sizeof(items[0])};
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selectors;
#endif
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

// --- identity --------------------------------------------------------------------------

#if defined(FAULT_ENTRY_MAGIC) || defined(FAULT_ENTRY_SIZE) ||                             \
    defined(FAULT_ENTRY_RESERVED) || defined(FAULT_ENTRY_IDENTITY) ||                      \
    defined(FAULT_FILE_NOTE) || defined(FAULT_ENTRY_QUERY) || defined(FAULT_ENTRY_VENDOR)
#define BY_HAND
#endif

#ifdef BY_HAND
#ifndef FAULT_FILE_NOTE
__attribute__((used, section(".note.tenon"),
               aligned(4))) static const struct tn_note_image note = {
    .name_size = 6,
    .content_size = sizeof(tn_note),
    .type = TN_NOTE_TYPE,
    .name = TN_NOTE_NAME,
    .content = {.magic = {(uint32_t)TN_PLUGIN_MAGIC, (uint32_t)(TN_PLUGIN_MAGIC >> 32)},
                .struct_size = sizeof(tn_note),
                .abi_major = TN_ABI_MAJOR,
                .abi_minor_max = TN_ABI_MINOR,
                .sanitizer = TN_SANITIZER_HERE,
                .id = ID,
                .version = VERSION,
                .vendor = "Acme"}};
#endif
const tn_plugin tn_plugin_v1 = {
#ifdef FAULT_ENTRY_MAGIC
    .magic = 42,
#else
    .magic = TN_PLUGIN_MAGIC,
#endif
#ifdef FAULT_ENTRY_SIZE
    .struct_size = sizeof(tn_plugin) - 8,
#else
    .struct_size = sizeof(tn_plugin),
#endif
#ifdef FAULT_ENTRY_RESERVED
    .flags = 1,
#endif
    .abi_minor_max = TN_ABI_MINOR,
    .sanitizer = TN_SANITIZER_HERE,
    .id = ID,
#ifdef FAULT_ENTRY_IDENTITY
    .version = "1.0.1",
#else
    .version = VERSION,
#endif
#ifndef FAULT_ENTRY_VENDOR
    .vendor = "Acme",
#endif
    .init = init,
    .deinit = deinit,
#ifndef FAULT_ENTRY_QUERY
    .query = query,
#endif
};
#else
TN_PLUGIN(ID, VERSION, "Acme", .init = init, .deinit = deinit, .query = query);
#endif
