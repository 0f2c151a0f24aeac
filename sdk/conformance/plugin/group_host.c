// SPDX-License-Identifier: MIT
// Hosts other than today's: newer, without services, out of memory, and two at once.
#include <time.h>
#include <unistd.h>
#include "groups.h"
#include "../kit/subject.h"

enum { MAX_ALLOCATIONS = 200 };

// The plugin, and the host that it gets.
struct hosted {
    struct subject s;
    struct fake_host host;
};

// Loads the plugin for a check. False: it cannot be loaded, and the check has ended as
// skipped.
static bool hosted_set_up(struct kit *k, struct hosted *hosted, uint32_t tail)
{
    const char *why = "out of memory";
    if (fake_host_init(&hosted->host, tail) && subject_load(&hosted->s, k->file, &why))
        return true;
    check_skip(k, "%s", why);
    fake_host_finish(&hosted->host);
    check_end(k);
    return false;
}

static void tear_down(struct kit *k, struct hosted *hosted)
{
    subject_unload(&hosted->s, &hosted->host);
    if (hosted->host.misuses)
        check_fail(k, "%s", hosted->host.misuse);
    fake_host_finish(&hosted->host);
    check_end(k);
}

static void hosted_ask(const struct hosted *hosted)
{
    if (hosted->s.entry->query) {
        hosted->s.entry->query(TN_IFACE_OPS);
        hosted->s.entry->query(TN_IFACE_BACKEND);
        hosted->s.entry->query("com.nobody.nothing/1");
    }
}

static void hosted_start(struct kit *k, struct hosted *hosted, const char *with)
{
    if (subject_start(&hosted->s, &hosted->host) == TN_OK)
        hosted_ask(hosted);
    else
        check_fail(k, "init fails with %s: %s", with, hosted->host.text);
}

static void check_host_exact(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.size", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    hosted_start(k, &hosted, "a host of exactly the size that it knows");
    tear_down(k, &hosted);
}

static void check_host_larger(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.larger", NULL) || !hosted_set_up(k, &hosted, 128))
        return;
    hosted_start(k, &hosted, "a newer, larger host");
    tear_down(k, &hosted);
}

static void check_host_poor(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.services", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    hosted.host.no_services = true;
    tn_status status = subject_start(&hosted.s, &hosted.host);
    if (status == TN_OK)
        hosted_ask(&hosted);
    else if (status != TN_ERR_UNSUPPORTED || !hosted.host.failures)
        check_fail(k,
                   "with a host that has no services init returns %d, expected %d, or %d "
                   "and which one it cannot do without",
                   status, TN_OK, TN_ERR_UNSUPPORTED);
    tear_down(k, &hosted);
}

static void check_host_config(struct kit *k)
{
    static const char *const values[] = {"", "-1", "99999999999999999999", "\xc3\xa9,;:/",
                                         "nan"};
    struct hosted hosted;
    if (!check_begin(k, "host.config", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    for (size_t i = 0; i < COUNT(values); i++) {
        check_case(k);
        fake_host_reset(&hosted.host);
        hosted.host.config = values[i];
        // init may refuse an invalid value, which is the user's error, with a message.
        if (subject_start(&hosted.s, &hosted.host) != TN_OK && !hosted.host.failures)
            check_fail(k, "with variables that are \"%s\" init fails and does not say why",
                       values[i]);
        hosted_ask(&hosted);
        subject_stop(&hosted.s, &hosted.host);
    }
    tear_down(k, &hosted);
}

// --- memory ----------------------------------------------------------------------------

// Calls init while the n-th allocation fails. False: there was no n-th allocation.
static bool fail_once(struct kit *k, struct hosted *hosted, uint64_t n)
{
    fake_host_reset(&hosted->host);
    hosted->host.fail_at = n;
    tn_status status = subject_start(&hosted->s, &hosted->host);
    bool was_met = hosted->host.allocations >= n;
    check_case(k);
    if (was_met && status != TN_OK && status != TN_ERR_MEMORY)
        check_fail(k, "allocation %llu fails, and init returns %d, expected %d",
                   (unsigned long long)n, status, TN_ERR_MEMORY);
    if (status != TN_OK && hosted->host.live)
        check_fail(k, "allocation %llu fails, and init leaves %llu blocks behind",
                   (unsigned long long)n, (unsigned long long)hosted->host.live);
    subject_stop(&hosted->s, &hosted->host);
    return was_met;
}

static void check_host_memory(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.memory", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && fail_once(k, &hosted, n); n++)
        continue;
    tear_down(k, &hosted);
}

static void check_host_retry(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.retry", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    hosted.host.fail_at = 1;
    tn_status status = subject_start(&hosted.s, &hosted.host);
    subject_stop(&hosted.s, &hosted.host);
    fake_host_reset(&hosted.host);
    if (status == TN_OK)
        check_skip(k, "init allocates nothing: it cannot be made to fail");
    else
        hosted_start(k, &hosted, "enough memory, after it failed for want of it");
    tear_down(k, &hosted);
}

static void check_host_frees(struct kit *k)
{
    struct hosted hosted;
    if (!check_begin(k, "host.frees", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    hosted_start(k, &hosted, "an ordinary host");
    subject_stop(&hosted.s, &hosted.host);
    if (hosted.host.live)
        check_fail(k, "after deinit %llu blocks (%llu bytes) of the host's are left",
                   (unsigned long long)hosted.host.live,
                   (unsigned long long)hosted.host.live_bytes);
    tear_down(k, &hosted);
}

// --- two hosts, and none ---------------------------------------------------------------

// Two runtimes in one process, closed in the order in which they were opened.
static void check_host_two(struct kit *k)
{
    struct hosted hosted;
    struct fake_host second;
    if (!check_begin(k, "host.two", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    hosted_start(k, &hosted, "an ordinary host");
    if (!check_failed(k) && fake_host_init(&second, 0)) {
        const tn_plugin *entry = hosted.s.entry;
        if (entry->init && entry->init(second.table) != TN_OK)
            check_fail(k, "init for a second runtime fails: %s", second.text);
        subject_stop(&hosted.s, &hosted.host);
        if (hosted.host.live)
            check_fail(k, "with two runtimes, the first's deinit leaves %llu blocks of its",
                       (unsigned long long)hosted.host.live);
        fake_host_finish(&hosted.host); // unmaps the first host's table
        hosted_ask(&hosted);
        if (entry->deinit && !check_failed(k))
            entry->deinit(second.table);
        if (second.misuses)
            check_fail(k, "%s", second.misuse);
        if (second.live)
            check_fail(k, "the second runtime's deinit leaves %llu blocks",
                       (unsigned long long)second.live);
        fake_host_finish(&second);
    }
    tear_down(k, &hosted);
}

static void check_host_after(struct kit *k)
{
    struct hosted hosted;
    struct fake_host next = {0}; // at another address than the first host
    if (!check_begin(k, "host.after", NULL) || !hosted_set_up(k, &hosted, 0))
        return;
    bool has_next = fake_host_init(&next, 0);
    hosted_start(k, &hosted, "an ordinary host");
    subject_stop(&hosted.s, &hosted.host);
    if (hosted.host.misuses)
        check_fail(k, "%s", hosted.host.misuse);
    fake_host_finish(&hosted.host);
    // A thread that still runs, or a kept pointer to the host's table, crashes now.
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    hosted.host = next;
    if (has_next)
        hosted_start(k, &hosted, "the host of a second life");
    tear_down(k, &hosted);
}

void group_host(struct kit *k)
{
    check_host_exact(k);
    check_host_larger(k);
    check_host_poor(k);
    check_host_config(k);
    check_host_memory(k);
    check_host_retry(k);
    check_host_frees(k);
    check_host_two(k);
    check_host_after(k);
}
