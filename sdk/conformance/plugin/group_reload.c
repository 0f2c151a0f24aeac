// SPDX-License-Identifier: MIT
// Repeated loading, starting, stopping and unloading, on any thread: the code is unmapped,
// and memory does not grow.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>
#include "groups.h"
#include "../kit/subject.h"

enum { WARM_UP = 10, CYCLES = 100, MAX_GROWTH = 256 }; // MAX_GROWTH: bytes a cycle

// Loads, starts, stops and unloads the plugin. Returns NULL, or what failed.
static const char *live_once(struct kit *k)
{
    static __thread char text[600];
    struct subject s;
    struct fake_host host;
    const char *why = NULL;
    if (!fake_host_init(&host, 0))
        return "out of memory";
    if (!subject_load(&s, k->file, &why)) {
        fake_host_finish(&host);
        return why;
    }
    if (subject_start(&s, &host) != TN_OK)
        why = format_text(text, sizeof(text), "init fails: %s", host.text);
    else if (s.entry->query)
        s.entry->query(TN_IFACE_OPS);
    subject_unload(&s, &host);
    if (!why && host.misuses)
        why = format_text(text, sizeof(text), "%s", host.misuse);
    fake_host_finish(&host);
    return why;
}

static bool is_mapped(const char *file)
{
    char line[4400];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof(line), maps)) {
        line[strcspn(line, "\n")] = 0;
        size_t size = strlen(line), tail = strlen(file);
        found = size > tail && strcmp(line + size - tail, file) == 0;
    }
    if (maps)
        fclose(maps);
    return found;
}

static void check_reload_unloads(struct kit *k)
{
    if (!check_begin(k, "reload.unloads", NULL))
        return;
    const char *why = live_once(k);
    if (why)
        check_fail(k, "%s", why);
    else if (is_mapped(k->file))
        check_fail(k, "after dlclose its code is still in the process");
    check_end(k);
}

static uint64_t mapped_pages(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages;
}

// Bytes that malloc has given and free has not got back.
static uint64_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Lives CYCLES times. Gives the growth of the heap and of mapped memory, in bytes.
static const char *reload_group_grow(struct kit *k, int64_t *out_heap, int64_t *out_mapped)
{
    const char *why = NULL;
    uint64_t heap = heap_bytes(), pages = mapped_pages();
    for (int i = 0; i < CYCLES && !why; i++) {
        check_case(k);
        why = live_once(k);
    }
    *out_heap = (int64_t)(heap_bytes() - heap);
    *out_mapped = (int64_t)(mapped_pages() - pages) * sysconf(_SC_PAGESIZE);
    return why;
}

static void check_reload_memory(struct kit *k)
{
    const char *why = NULL;
    int64_t grown = 0, mapped = 0;
    if (!check_begin(k, "reload.memory", NULL))
        return;
    for (int i = 0; i < WARM_UP && !why; i++)
        why = live_once(k);
    // A leak grows each time; what a library allocates once, late, does not grow again.
    for (int round = 0; round < 2 && !why; round++) {
        why = reload_group_grow(k, &grown, &mapped);
        if (grown <= MAX_GROWTH * CYCLES && mapped <= 4096 * (int64_t)CYCLES)
            break;
    }
    if (why)
        check_fail(k, "cycle %llu: %s", (unsigned long long)k->cases, why);
    else if (TN_SANITIZER_HERE != TN_SANITIZER_NONE)
        check_skip(k, "sanitizers keep memory themselves");
    else if (grown > MAX_GROWTH * CYCLES)
        check_fail(k, "the heap grows by %lld bytes each time it is loaded and unloaded",
                   (long long)grown / CYCLES);
    else if (mapped > 4096 * (int64_t)CYCLES)
        check_fail(k, "mapped memory grows by %lld bytes each time",
                   (long long)mapped / CYCLES);
    check_end(k);
}

// The standard interfaces that the plugin has, as a bit mask.
static unsigned reload_group_brings(const struct subject *s)
{
    static const char *const ids[] = {TN_IFACE_OPS, TN_IFACE_BACKEND, TN_IFACE_LIST};
    unsigned bits = 0;
    for (size_t i = 0; s->entry->query && i < COUNT(ids); i++)
        bits |= (unsigned)(s->entry->query(ids[i]) != NULL) << i;
    return bits;
}

// Repeats init and deinit without unloading the plugin.
static void check_reload_again(struct kit *k)
{
    struct subject s;
    unsigned first = 0;
    struct fake_host host;
    const char *why = NULL;
    if (!check_begin(k, "reload.again", NULL))
        return;
    if (!fake_host_init(&host, 0) || !subject_load(&s, k->file, &why)) {
        check_skip(k, "%s", why ? why : "out of memory");
        check_end(k);
        return;
    }
    for (int i = 0; i < 3 && !check_failed(k); i++) {
        check_case(k);
        if (subject_start(&s, &host) != TN_OK)
            check_fail(k, "init number %d after deinit fails: %s", i + 1, host.text);
        unsigned now = check_failed(k) ? first : reload_group_brings(&s);
        if (i && now != first)
            check_fail(k, "it brings other interfaces when it is started again");
        first = now;
        subject_stop(&s, &host);
    }
    subject_unload(&s, &host);
    fake_host_finish(&host);
    check_end(k);
}

// --- threads ---------------------------------------------------------------------------

struct job {
    struct kit *kit;
    const char *why; // NULL or `text`, a copy: the original is thread-local
    char text[600];
};

static void *live_on_thread(void *context)
{
    struct job *job = context;
    const char *why = live_once(job->kit);
    if (why)
        job->why = format_text(job->text, sizeof(job->text), "%s", why);
    return NULL;
}

static void run_on_thread(struct kit *k, struct job *job)
{
    pthread_t thread;
    *job = (struct job){.kit = k};
    if (pthread_create(&thread, NULL, live_on_thread, job) == 0)
        pthread_join(thread, NULL);
}

static void check_reload_threads(struct kit *k)
{
    struct job job;
    if (!check_begin(k, "reload.threads", NULL))
        return;
    for (int i = 0; i < 4 && !check_failed(k); i++) {
        check_case(k);
        run_on_thread(k, &job);
        if (job.why)
            check_fail(k, "on a thread of its own: %s", job.why);
    }
    check_end(k);
}

struct thread_call {
    struct subject *s;
    struct fake_host *host;
    void (*run)(struct thread_call *call);
    tn_status status;
};

static void *run_call(void *context)
{
    struct thread_call *call = context;
    call->run(call);
    return NULL;
}

static void do_start(struct thread_call *call)
{
    call->status = subject_start(call->s, call->host);
}

static void do_stop(struct thread_call *call)
{
    subject_stop(call->s, call->host);
}

static void on_thread(struct thread_call *call)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_call, call) == 0)
        pthread_join(thread, NULL);
}

// Calls init and deinit on two other threads; loads and unloads on this one.
static void check_reload_other_thread(struct kit *k)
{
    struct subject s;
    struct fake_host host;
    const char *why = NULL;
    if (!check_begin(k, "reload.other-thread", NULL))
        return;
    if (!fake_host_init(&host, 0) || !subject_load(&s, k->file, &why)) {
        check_skip(k, "%s", why ? why : "out of memory");
        check_end(k);
        return;
    }
    struct thread_call begin = {&s, &host, do_start, TN_OK},
                       end = {&s, &host, do_stop, TN_OK};
    on_thread(&begin);
    if (begin.status != TN_OK)
        check_fail(k, "init fails on another thread than the one that loaded it: %s",
                   host.text);
    on_thread(&end);
    if (host.misuses)
        check_fail(k, "%s", host.misuse);
    if (host.live)
        check_fail(k, "%llu blocks are left when deinit runs on another thread than init",
                   (unsigned long long)host.live);
    subject_unload(&s, &host);
    fake_host_finish(&host);
    check_end(k);
}

void group_reload(struct kit *k)
{
    check_reload_unloads(k);
    check_reload_memory(k);
    check_reload_again(k);
    check_reload_threads(k);
    check_reload_other_thread(k);
}
