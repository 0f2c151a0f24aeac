// SPDX-License-Identifier: MIT
// Hosts that are not today's: larger, poorer, two at once, and out of memory.
#include <time.h>
#include <unistd.h>
#include "checks.h"
#include "subject.h"

enum { MAX_ALLOCATIONS = 200 };

struct stage {
    struct subject s;
    struct fake_host host;
};

// Loads it for a check. False: there is nothing to check with, and the check has ended.
static bool set_up(struct kit *k, struct stage *stage, uint32_t tail)
{
    const char *why = "out of memory";
    if (fake_host_init(&stage->host, tail) && subject_load(&stage->s, k->file, &why))
        return true;
    check_skip(k, "%s", why);
    fake_host_finish(&stage->host);
    check_end(k);
    return false;
}

static void tear_down(struct kit *k, struct stage *stage)
{
    subject_unload(&stage->s, &stage->host);
    if (stage->host.misuses)
        check_fail(k, "%s", stage->host.misuse);
    fake_host_finish(&stage->host);
    check_end(k);
}

static void ask(const struct stage *stage)
{
    if (stage->s.entry->query) {
        stage->s.entry->query(TN_IFACE_OPS);
        stage->s.entry->query(TN_IFACE_BACKEND);
        stage->s.entry->query("com.nobody.nothing/1");
    }
}

static void start(struct kit *k, struct stage *stage, const char *with)
{
    if (subject_start(&stage->s, &stage->host) == TN_OK)
        ask(stage);
    else
        check_fail(k, "init fails with %s: %s", with, stage->host.text);
}

static void check_exact(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.size", NULL) || !set_up(k, &stage, 0))
        return;
    start(k, &stage, "a host of exactly the size that it knows");
    tear_down(k, &stage);
}

static void check_larger(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.larger", NULL) || !set_up(k, &stage, 128))
        return;
    start(k, &stage, "a newer, larger host");
    tear_down(k, &stage);
}

static void check_poor(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.services", NULL) || !set_up(k, &stage, 0))
        return;
    stage.host.no_services = true;
    start(k, &stage, "a host that has no services");
    tear_down(k, &stage);
}

static void check_config(struct kit *k)
{
    static const char *const values[] = {"", "-1", "99999999999999999999", "\xc3\xa9,;:/",
                                         "nan"};
    struct stage stage;
    if (!check_begin(k, "host.config", NULL) || !set_up(k, &stage, 0))
        return;
    for (size_t i = 0; i < COUNT(values); i++) {
        check_case(k);
        fake_host_reset(&stage.host);
        stage.host.config = values[i];
        // A wrong value may fail, with a message; it is the user's.
        if (subject_start(&stage.s, &stage.host) != TN_OK && !stage.host.failures)
            check_fail(k, "with variables that are \"%s\" init fails and does not say why",
                       values[i]);
        ask(&stage);
        subject_stop(&stage.s, &stage.host);
    }
    tear_down(k, &stage);
}

// --- memory ----------------------------------------------------------------------------

// init with the n-th allocation failing. False: there is no n-th.
static bool fail_once(struct kit *k, struct stage *stage, uint64_t n)
{
    fake_host_reset(&stage->host);
    stage->host.fail_at = n;
    tn_status status = subject_start(&stage->s, &stage->host);
    bool was_met = stage->host.allocations >= n;
    check_case(k);
    if (was_met && status != TN_OK && status != TN_ERR_MEMORY)
        check_fail(k, "allocation %llu fails, and init returns %d, expected %d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    if (status != TN_OK && stage->host.live)
        check_fail(k, "allocation %llu fails, and init leaves %llu blocks behind",
                   (unsigned long long)n, (unsigned long long)stage->host.live);
    subject_stop(&stage->s, &stage->host);
    return was_met;
}

static void check_memory(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.memory", NULL) || !set_up(k, &stage, 0))
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && fail_once(k, &stage, n); n++)
        continue;
    tear_down(k, &stage);
}

static void check_retry(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.retry", NULL) || !set_up(k, &stage, 0))
        return;
    stage.host.fail_at = 1;
    tn_status status = subject_start(&stage.s, &stage.host);
    subject_stop(&stage.s, &stage.host);
    fake_host_reset(&stage.host);
    if (status == TN_OK)
        check_skip(k, "init allocates nothing: it cannot be made to fail");
    else
        start(k, &stage, "enough memory, after it failed for want of it");
    tear_down(k, &stage);
}

static void check_frees(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.frees", NULL) || !set_up(k, &stage, 0))
        return;
    start(k, &stage, "an ordinary host");
    subject_stop(&stage.s, &stage.host);
    if (stage.host.live)
        check_fail(k, "after deinit %llu blocks (%llu bytes) of the host's are left",
                   (unsigned long long)stage.host.live,
                   (unsigned long long)stage.host.live_bytes);
    tear_down(k, &stage);
}

// --- two, and none ---------------------------------------------------------------------

// Two runtimes in one process: the first is closed first.
static void check_two(struct kit *k)
{
    struct stage stage;
    struct fake_host second;
    if (!check_begin(k, "host.two", NULL) || !set_up(k, &stage, 0))
        return;
    start(k, &stage, "an ordinary host");
    if (!check_failed(k) && fake_host_init(&second, 0)) {
        const tn_plugin *entry = stage.s.entry;
        if (entry->init && entry->init(second.table) != TN_OK)
            check_fail(k, "init for a second runtime fails: %s", second.text);
        subject_stop(&stage.s, &stage.host);
        if (stage.host.live)
            check_fail(k, "with two runtimes, the first's deinit leaves %llu blocks of its",
                       (unsigned long long)stage.host.live);
        fake_host_finish(&stage.host); // its table is gone from here on
        ask(&stage);
        if (entry->deinit && !check_failed(k))
            entry->deinit(second.table);
        if (second.misuses)
            check_fail(k, "%s", second.misuse);
        if (second.live)
            check_fail(k, "the second runtime's deinit leaves %llu blocks",
                       (unsigned long long)second.live);
        fake_host_finish(&second);
    }
    tear_down(k, &stage);
}

static void check_after(struct kit *k)
{
    struct stage stage;
    if (!check_begin(k, "host.after", NULL) || !set_up(k, &stage, 0))
        return;
    start(k, &stage, "an ordinary host");
    subject_stop(&stage.s, &stage.host);
    if (stage.host.misuses)
        check_fail(k, "%s", stage.host.misuse);
    fake_host_finish(&stage.host);
    // A thread that was not joined, or a table kept: either comes to light now.
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    ask(&stage);
    tear_down(k, &stage);
}

void group_host(struct kit *k)
{
    check_exact(k);
    check_larger(k);
    check_poor(k);
    check_config(k);
    check_memory(k);
    check_retry(k);
    check_frees(k);
    check_two(k);
    check_after(k);
}
