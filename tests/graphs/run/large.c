// SPDX-License-Identifier: MIT
// Width: graphs with 100,000 outputs, inputs, live blocks or segments take about ten times
// as long as those with a tenth of that. What is quadratic takes a hundred times as long.
#include "device/device.h"
#include <malloc.h>
#include <time.h>
#include "../../sanitized.h"
#include "../support/common.h"

#define FACTOR 10
// Ten times the work may take this many times as long: caches are left behind, and other
// work runs beside the test.
#define MOST 25

// Sanitizers, whose own work grows with what threads share and with what is allocated, look
// for faults alone.
enum { SMALLER = IS_SANITIZED ? 10 : 1, IS_TIMED = !IS_SANITIZED };

struct shape {
    const char *name;
    void (*build)(tn_scope *s, int n, tn_array **room);
    int few;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tn_array *element(tn_scope *s, float value)
{
    return tn_from_data(s, TN_F32, TN_SHAPE(1), &value);
}

// n outputs of one input, on n storages.
static void outputs(tn_scope *s, int n, tn_array **room)
{
    tn_array *x = element(s, 1);
    for (int i = 0; i < n; i++)
        room[i] = bin(s, "multiply", x, tn_float(s, i));
    must(s, tn_eval_n(s, room, (uint64_t)n));
}

// n leaves, each in an output of its own.
static void leaves(tn_scope *s, int n, tn_array **room)
{
    for (int i = 0; i < n; i++)
        room[i] = un(s, "sum", element(s, (float)i));
    must(s, tn_eval_n(s, room, (uint64_t)n));
}

static void inputs_of_one(tn_scope *s, int n, tn_array **room)
{
    for (int i = 0; i < n; i++)
        room[i] = element(s, (float)i);
    tn_array *all = tn_op(s, "concatenate", (const tn_array *const *)room, (uint64_t)n,
                          tn_attrs("axis", 0));
    float last;
    must(s, tn_eval(s, all));
    must(s, tn_read(s, bin(s, "take", all, tn_i64(s, n - 1)), &last, sizeof(last)));
    cr_assert(last == (float)(n - 1));
}

static tn_array *joined(tn_scope *s, tn_array *const *parts, int n)
{
    return tn_op(s, "concatenate", (const tn_array *const *)parts, (uint64_t)n,
                 tn_attrs("axis", 0));
}

// n blocks of different sizes live at once in the plan's own memory. Then every other one
// dies, the last first, which leaves n / 2 free ranges between those in use; and as many
// values look for room there.
static void live_blocks(tn_scope *s, int n, tn_array **room)
{
    tn_array *x = element(s, 1), *odd;
    for (int i = 0; i < n; i++) {
        tn_array *wide =
            tn_op(s, "broadcast_to", TN_IN(x), tn_attrs("shape", TN_INTS(16 + i % 61 * 4)));
        room[i] = un(s, "softmax", bin(s, "multiply", wide, tn_float(s, i)));
    }
    tn_array *all = joined(s, room, n);
    tn_array **rest = calloc((size_t)n, sizeof(*rest));
    for (int i = 0; i < n / 2; i++)
        rest[i] = room[n - 1 - 2 * i];
    odd = joined(s, rest, n / 2);
    for (int i = 0; i < n / 2; i++)
        rest[i] = un(s, "softmax", bin(s, "add", room[2 * i], tn_float(s, i)));
    tn_array *even = joined(s, rest, n / 2);
    free(rest);
    must(s, tn_eval(s, all, odd, even));
}

// n definitions, each with a name of its own that the next one uses.
static void definitions(tn_scope *s, int n, tn_array **room)
{
    (void)room;
    tn_array *x = element(s, 1);
    char *text = malloc((size_t)n * 24 + 64), *at = text + sprintf(text, "x -> d0 = x; ");
    for (int i = 1; i < n; i++)
        at += sprintf(at, "d%d = d%d;", i, i - 1);
    sprintf(at, "d%d + %d", n - 1, n);
    cr_assert(tn_item(s, tn_expr(s, text, TN_IN(x), TN_NO_ATTRS)) == n + 1);
    free(text);
}

static tn_runtime *open_two_devices(void)
{
    struct device **devices;
    uint32_t count;
    tn_runtime *rt = open_with((const char *const[]){"TENON_BACKEND=cpu-blas,null",
                                                     "TENON_KERNELS=base.sum@cpu-blas=!*",
                                                     "TENON_FALLBACK=allow", NULL});
    must(NULL, devices_open(rt, &devices, &count));
    cr_assert(eq(uint, count, 2));
    devices[0]->runs_reference = false; // so that sums go to the second
    return rt;
}

// n values that go to another device and come back, started and then waited for.
static void segments(tn_scope *s, int n, tn_array **room)
{
    (void)room;
    float last;
    tn_array *x = element(s, 1);
    for (int i = 0; i < n; i++)
        x = un(s, i % 2 ? "negative" : "sum", x);
    must(s, tn_eval_async(s, x));
    must(s, tn_read(s, x, &last, sizeof(last))); // any number: null computes nothing
}

static void free_memory(tn_runtime *rt)
{
    struct device **devices;
    uint32_t count;
    must(NULL, devices_open(rt, &devices, &count));
    for (uint32_t i = 0; i < count; i++)
        device_trim(devices[i]);
    malloc_trim(0);
}

// Without spare storages and free memory of the C library, so that both sizes create all
// their buffers and touch new pages.
static double time_of(tn_runtime *rt, const struct shape *shape, int n)
{
    tn_array **room = calloc((size_t)n, sizeof(*room));
    tn_scope *s = tn_scope_open(rt);
    free_memory(rt);
    double begin = now();
    shape->build(s, n, room);
    double end = now();
    tn_scope_close(s);
    free(room);
    return end - begin;
}

static void grows_with_the_size(tn_runtime *rt, const struct shape *shape)
{
    time_of(rt, shape, 100); // plugins are loaded, threads run
    int n = shape->few / SMALLER;
    double few = time_of(rt, shape, n), many = time_of(rt, shape, n * FACTOR);
    if (IS_TIMED && many > MOST * few)
        cr_fatal("%s: %d take %.3f s, %d take %.3f s: over %d times as long", shape->name,
                 n, few, n * FACTOR, many, MOST);
}

TestSuite(large, .init = setup, .fini = teardown);

Test(large, time_grows_with_the_size)
{
    static const struct shape shapes[] = {
        {"outputs", outputs, 10000},        {"leaves", leaves, 10000},
        {"inputs", inputs_of_one, 10000},   {"live blocks", live_blocks, 10000},
        {"definitions", definitions, 4000},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        grows_with_the_size(runtime, &shapes[i]);
}

Test(large, time_grows_with_the_segments)
{
    const struct shape shape = {"segments", segments, 4000};
    tn_runtime *rt = open_two_devices();
    grows_with_the_size(rt, &shape);
    tn_runtime_close(rt);
}
