// SPDX-License-Identifier: MIT
// Plans of many equal launches get kernels of one shape once they have run often: every run
// has the same results, whether recordings are busy or idle, and where no such kernel can
// be made; plans of an earlier process begin at once. TENON_TEST_BACKEND says which
// backend, whose driver acts as a GPU.
#include "../support/common.h"

#include <stdlib.h>
#include <tenon/launches.h>
#include <unistd.h>

enum { ROWS = 16, COLUMNS = 16, STEPS = 8, RUNS = 40 };

// Products: launches of one kernel and one shape, each with a scale of its own.
static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    tn_array *x = in[0], *w = ramp(s, COLUMNS, COLUMNS, -0.1f, 0.001f);
    (void)num_in, (void)num_out, (void)user;
    for (int i = 0; i < STEPS; i++)
        x = bin(s, "multiply", bin(s, "matmul", x, w), tn_float(s, 1 + i / 16.0));
    out[0] = x;
    return tn_scope_status(s);
}

// What is written to standard error meanwhile.
static char said[1 << 16];
static int saved, caught;

static void catch_log(void)
{
    char path[] = "/tmp/tenon-special-XXXXXX";
    caught = mkstemp(path);
    cr_assert(caught >= 0);
    unlink(path);
    fflush(stderr);
    saved = dup(2);
    dup2(caught, 2);
}

static bool has_said(const char *what, int times)
{
    fflush(stderr);
    ssize_t size = pread(caught, said, sizeof(said) - 1, 0);
    said[size > 0 ? size : 0] = 0;
    const char *at = said;
    while (times > 0 && (at = strstr(at, what))) {
        at += strlen(what);
        times--;
    }
    return times == 0;
}

static void read_log(void)
{
    (void)has_said("", 0);
    dup2(saved, 2);
    close(saved);
    close(caught);
}

static tn_runtime *open_with_cache(const char *acts, const char *cache)
{
    char variable[64];
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", getenv("TENON_TEST_BACKEND"));
    need_device(getenv("TENON_TEST_BACKEND"));
    return open_with(
        (const char *const[]){variable, acts, "TENON_LOG=vulkan=debug", cache, NULL});
}

static tn_runtime *open_acting(const char *acts)
{
    return open_with_cache(acts, NULL);
}

// A cache of its own. `variable` and `folder` are of 96 and 64 bytes.
static void make_cache(char *variable, char *folder)
{
    strcpy(folder, "/tmp/tenon-special-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(variable, 96, "TENON_CACHE_DIR=%s", folder);
}

static void remove_folder(const char *folder)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    cr_assert(system(command) == 0);
}

// Calls the function often, with `in_flight` results that are not read yet, and compares
// all results with the first. Behind run `waits_at` it waits for what is written of kernels
// of their shapes.
static void run_often(tn_runtime *rt, int runs, int in_flight, int waits_at)
{
    float first[ROWS * COLUMNS], got[ROWS * COLUMNS];
    tn_function *function;
    must(NULL, tn_function_create(rt, body, NULL, NULL, &function));
    for (int run = 0; run < runs; run++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = ramp(s, ROWS, COLUMNS, -1, 0.01f), *y[4];
        for (int i = 0; i < in_flight; i++) {
            must(s, tn_function_call(function, s, &x, 1, &y[i], 1));
            must(s, tn_eval_async(s, y[i]));
        }
        for (int i = 0; i < in_flight; i++) {
            must(s, tn_read(s, y[i], got, sizeof(got)));
            if (run == 0 && i == 0)
                memcpy(first, got, sizeof(got));
            if (memcmp(first, got, sizeof(got)) != 0)
                cr_fatal("run %d gives other results", run);
        }
        tn_scope_close(s);
        for (int k = 0; run == waits_at && k < 500 && !has_said("made the", 2); k++)
            usleep(10000);
    }
    tn_function_destroy(function);
}

Test(special, runs_give_the_same_before_and_behind)
{
    for (int in_flight = 1; in_flight <= 3; in_flight += 2) {
        tn_runtime *rt = open_acting("TENON_VULKAN_AS_GPU=1");
        catch_log();
        run_often(rt, RUNS, in_flight, 20);
        read_log();
        tn_runtime_close(rt);
        if (!strstr(said, "8 of 8 launches run 1 kernels of their shapes"))
            cr_fatal("%d in flight: %s", in_flight, said);
    }
}

Test(special, few_runs_make_none_but_of_what_an_earlier_runtime_made)
{
    char cache[96], folder[64];
    make_cache(cache, folder);
    for (int round = 0; round < 3; round++) {
        tn_runtime *rt = open_with_cache("TENON_VULKAN_AS_GPU=1", cache);
        catch_log();
        run_often(rt, round == 1 ? RUNS : 4, 1, round == 0 ? -1 : round == 1 ? 20 : 1);
        read_log();
        tn_runtime_close(rt);
        if ((strstr(said, "of their shapes") != NULL) != (round > 0))
            cr_fatal("round %d: %s", round, said);
    }
    remove_folder(folder);
}

// A runtime that is closed while the thread may be at work.
Test(special, what_is_begun_ends_with_the_plan)
{
    for (int runs = 17; runs < 20; runs++) {
        tn_runtime *rt = open_acting("TENON_VULKAN_AS_GPU=1");
        catch_log();
        run_often(rt, runs, 1, -1);
        read_log();
        tn_runtime_close(rt);
    }
}
