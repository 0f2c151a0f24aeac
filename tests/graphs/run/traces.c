// SPDX-License-Identifier: MIT
// Functions that are called with ever new shapes: traces are bounded and dropped, the one
// that was used longest ago first; memory stays flat, results are right.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>
#include <tenon/plugin.h>
#include "../support/common.h"

static void open_quiet(void)
{
    runtime = open_with((const char *const[]){"TENON_LOG=off", NULL});
}

TestSuite(traces, .init = open_quiet, .fini = teardown);

// The sum of x * 2 + weight over rows that have the weight's extent.
static tn_status weigh(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                       uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = un(s, "sum", bin(s, "add", bin(s, "multiply", in[0], tn_int(s, 2)), in[1]));
    if (user)
        ++*(_Atomic int *)user;
    return tn_scope_status(s);
}

static tn_function *function_of(tn_runtime *rt, uint64_t max_traces, _Atomic int *calls)
{
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .max_traces = max_traces};
    tn_function *f = NULL;
    must(NULL, tn_function_create(rt, weigh, calls, &options, &f));
    return f;
}

static bool call_is_right(tn_runtime *rt, tn_function *f, int64_t rows, int64_t columns)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *in[] = {ramp(s, rows, columns, 1, 0), ramp(s, 1, columns, 3, 0)}, *out = NULL;
    bool right = tn_function_call(f, s, in, 2, &out, 1) == TN_OK &&
                 tn_item(s, out) == (double)(5 * rows * columns);
    tn_scope_close(s);
    return right;
}

// The next shape with as many elements, so that buffers are of one size: exponents of 2
// that have the same sum. False after the last one.
static bool next_shape(tn_shape *shape)
{
    int32_t last = shape->rank - 1, i = last - 1;
    while (i >= 0 && shape->extent[i] == 1)
        i--;
    if (i < 0)
        return false;
    int64_t rest =
        shape->extent[last]; // the i-th gives one to its neighbour, which gets all
    shape->extent[last] = 1;
    shape->extent[i] /= 2;
    shape->extent[i + 1] = 2 * rest;
    return true;
}

Test(traces, ten_thousand_shapes_take_flat_memory)
{
    enum {
        ELEMENTS = 512,
        SHAPES = TN_SANITIZER_HERE ? 1500 : 10000,
        SETTLED = SHAPES / 5
    };
    float data[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = (float)i;
    tn_function *f = function_of(runtime, 0, NULL);
    tn_shape shape = {.rank = 8, .extent = {ELEMENTS, 1, 1, 1, 1, 1, 1, 1}};
    size_t before = 0;
    for (int i = 0; i < SHAPES; i++) {
        if (i == SETTLED)
            before = mallinfo2().uordblks;
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[] = {tn_from_data(s, TN_F32, &shape, data), ramp(s, 1, 1, 3, 0)}, *out;
        must(s, tn_function_call(f, s, in, 2, &out, 1));
        cr_assert(tn_item(s, out) == ELEMENTS * (ELEMENTS - 1) + 3 * ELEMENTS, "shape %d",
                  i);
        tn_scope_close(s);
        cr_assert(next_shape(&shape), "shape %d was the last one", i);
    }
    size_t after = mallinfo2().uordblks;
    tn_stats stats = stats_of(runtime);
    cr_assert(eq(u64, stats.traces_made, SHAPES));
    cr_assert(eq(u64, stats.traces_dropped, SHAPES - 256));
    cr_assert(ge(u64, stats.traces_held, 256));
    cr_assert(le(u64, stats.traces_held, 256 + 1)); // and this thread's latest
    cr_assert(TN_SANITIZER_HERE || after < before + (1u << 18), "%zu bytes, %zu before",
              after, before);
    tn_function_destroy(f);
    cr_assert(eq(u64, stats_of(runtime).traces_held, 0));
}

Test(traces, the_one_used_longest_ago_goes)
{
    _Atomic int calls = 0;
    tn_function *f = function_of(runtime, 3, &calls);
    const struct {
        int rows, calls;
    } steps[] = {{1, 1}, {2, 2}, {3, 3}, {1, 3}, {4, 4}, {1, 4}, {3, 4},
                 {2, 5}, {1, 5}, {3, 5}, {4, 6}, {2, 7}, {2, 7}};
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        cr_assert(call_is_right(runtime, f, steps[i].rows, 4));
        cr_assert(eq(int, calls, steps[i].calls), "step %d", (int)i);
    }
    tn_stats stats = stats_of(runtime);
    cr_assert(eq(u64, stats.traces_made, 7));
    cr_assert(eq(u64, stats.traces_dropped, 4));
    tn_function_destroy(f);
    f = function_of(runtime, 1, &calls);
    for (int i = 0; i < 6; i++)
        cr_assert(call_is_right(runtime, f, 1 + i % 2, 4));
    cr_assert(eq(int, calls, 7 + 6));
    tn_function_destroy(f);
    f = function_of(runtime, UINT64_MAX, &calls);
    for (int i = 0; i < 6; i++)
        cr_assert(call_is_right(runtime, f, 1 + i % 2, 4));
    cr_assert(eq(int, calls, 7 + 6 + 2));
    tn_function_destroy(f);
    cr_assert(eq(u64, stats_of(runtime).traces_held, 0));
}

struct caller {
    tn_runtime *runtime;
    tn_function *function;
    int number;
    bool wrong;
};

static void *call_often(void *argument)
{
    struct caller *c = argument;
    for (int i = 0; i < 60; i++)
        c->wrong |= !call_is_right(c->runtime, c->function, 1 + (i * (c->number + 1)) % 7,
                                   1 + i % 3);
    return NULL;
}

// Room for two traces, and four threads that use many: what is dropped may be running.
Test(traces, threads_drop_each_others)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct caller callers[THREADS];
    _Atomic int calls = 0;
    tn_function *f = function_of(runtime, 2, &calls);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){runtime, f, i, false};
        cr_assert(eq(int, pthread_create(&threads[i], NULL, call_often, &callers[i]), 0));
    }
    bool wrong = false;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong |= callers[i].wrong;
    }
    cr_assert(not(wrong));
    tn_stats stats = stats_of(runtime);
    cr_assert(eq(u64, stats.traces_made, (uint64_t)calls));
    cr_assert(gt(u64, stats.traces_dropped, 50));
    cr_assert(le(u64, stats.traces_held, 2 + THREADS));
    tn_function_destroy(f);
    cr_assert(eq(u64, stats_of(runtime).traces_held, 0));
}

// Gives the number of warnings for so many shapes, and the first one.
static int warnings(int shapes, const char *variable, char *out_first, size_t size)
{
    tn_runtime *rt = open_with((const char *const[]){variable, NULL});
    FILE *file = tmpfile();
    int saved = dup(2), count = 0;
    char line[600];
    dup2(fileno(file), 2);
    tn_function *f = function_of(rt, 2, NULL);
    bool right = true;
    for (int i = 0; i < shapes; i++)
        right &= call_is_right(rt, f, 1 + i, 2);
    tn_function_destroy(f);
    fflush(stderr);
    dup2(saved, 2);
    rewind(file);
    out_first[0] = '\0';
    while (fgets(line, sizeof(line), file))
        if (strstr(line, "sched: function:") && ++count == 1)
            snprintf(out_first, size, "%s", line);
    fclose(file);
    close(saved);
    tn_runtime_close(rt);
    cr_assert(right);
    return count;
}

Test(traces, dropping_is_told_now_and_then)
{
    char first[600];
    cr_assert(eq(int, warnings(2, "TENON_LOG=warn", first, sizeof(first)), 0));
    cr_assert(eq(int, warnings(3, "TENON_LOG=warn", first, sizeof(first)), 1));
    check_says(first, "1 traces dropped, of more than 2 or over");
    check_says(first, "now f32[3, 2], f32[1, 2]");
    check_says(first, "max_traces");
    cr_assert(eq(int, warnings(2 + 33, "TENON_LOG=warn", first, sizeof(first)), 6));
    cr_assert(eq(int, warnings(3, "TENON_LOG=info", first, sizeof(first)), 4));
    check_says(first, "traced for f32[1, 2], f32[1, 2]");
}
