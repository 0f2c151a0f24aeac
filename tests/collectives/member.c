// SPDX-License-Identifier: MIT
// One member of a group, for collectives.py: `member MODE`. Prints what it finds, a line
// each, and ends with status 1 where a value is wrong and 3 where a collective failed.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <tenon/ops/reference.h>
#include <tenon/primitive.h>
#include <tenon/share.h>
#include <tenon/stats.h>
#include "member.h"

tn_runtime *runtime;
const tn_dist *dist;
const tn_host *host;
int rank, size;

// A collective failed: says why, and ends without leaving the group.
static void end_failed(const char *why)
{
    printf("rank %d failed: %s\n", rank, why);
    fflush(stdout);
    _exit(3);
}

void check(int holds, const char *what)
{
    if (holds)
        return;
    printf("rank %d: wrong: %s\n", rank, what);
    fflush(stdout);
    _exit(1);
}

void check_dist(tn_status status)
{
    if (status != TN_OK)
        end_failed(tn_last_error());
}

tn_array *numbers(tn_scope *s, tn_dtype dtype, int count, const double *values)
{
    double list[64];
    for (int i = 0; i < count; i++)
        list[i] = values[i];
    tn_array *x = tn_from_data(s, TN_F64, TN_SHAPE(count), list);
    return tn_op(s, "base.astype", TN_IN(x), tn_attrs("dtype", tn_dtype_name(dtype)));
}

// The elements of x as doubles.
void read_numbers(tn_scope *s, tn_array *x, int count, double *out)
{
    tn_array *wide = tn_op(s, "base.astype", TN_IN(x), tn_attrs("dtype", "f64"));
    if (tn_read(s, wide, out, (uint64_t)count * sizeof(*out)))
        end_failed(tn_scope_error(s));
}

void expect(tn_scope *s, tn_array *x, int count, const double *expected, const char *what)
{
    double got[64];
    read_numbers(s, x, count, got);
    for (int i = 0; i < count; i++)
        check(got[i] == expected[i], what);
}

// --- values ------------------------------------------------------------------------------

// Small: a product of four fits i8.
static double element(int of, int i)
{
    return 1 + (of + i) % 3;
}

static double reduced(const char *reduction, int i)
{
    double result = strcmp(reduction, "product") == 0 ? 1 : 0;
    for (int r = 0; r < size; r++) {
        double value = element(r, i);
        if (strcmp(reduction, "product") == 0)
            result *= value;
        else if (strcmp(reduction, "minimum") == 0)
            result = r == 0 || value < result ? value : result;
        else if (strcmp(reduction, "maximum") == 0)
            result = r == 0 || value > result ? value : result;
        else
            result += value;
    }
    return strcmp(reduction, "mean") == 0 ? result / size : result;
}

static void check_reductions(tn_scope *s)
{
    static const char *const reductions[] = {"sum", "product", "minimum", "maximum",
                                             "mean"};
    static const tn_dtype dtypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64,  TN_U8,  TN_U16,
                                      TN_U32, TN_U64, TN_F16, TN_BF16, TN_F32, TN_F64};
    double mine[4], expected[4];
    char what[64];
    for (int i = 0; i < 4; i++)
        mine[i] = element(rank, i);
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
        for (size_t k = 0; k < 5; k++) {
            if (k == 4 && tn_dtype_kind(dtypes[d]) != TN_KIND_FLOAT)
                continue;
            tn_array *x = numbers(s, dtypes[d], 4, mine);
            tn_array *y =
                tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("reduction", reductions[k]));
            for (int i = 0; i < 4; i++)
                expected[i] = reduced(reductions[k], i);
            if (k == 4) // a quotient is rounded to the dtype
                for (int i = 0; i < 4; i++)
                    expected[i] =
                        dtypes[d] == TN_F16
                            ? (double)tn_f32_of_f16(tn_f16_of_f32((float)expected[i]))
                        : dtypes[d] == TN_BF16
                            ? (double)tn_f32_of_bf16(tn_bf16_of_f32((float)expected[i]))
                        : dtypes[d] == TN_F32 ? (double)(float)expected[i]
                                              : expected[i];
            snprintf(what, sizeof(what), "%s of %s", reductions[k],
                     tn_dtype_name(dtypes[d]));
            expect(s, y, 4, expected, what);
        }
}

static void check_moves(tn_scope *s)
{
    double mine[64], expected[64];
    for (int i = 0; i < 2 * size; i++)
        mine[i] = 100 * rank + i;
    tn_array *x = numbers(s, TN_F32, 2 * size, mine);
    for (int i = 0; i < 2; i++) {
        expected[i] = 0;
        for (int r = 0; r < size; r++)
            expected[i] += 100 * r + 2 * rank + i;
    }
    expect(s, tn_op(s, "dist.reduce_scatter", TN_IN(x), tn_attrs("size", size)), 2,
           expected, "reduce_scatter");
    for (int i = 0; i < 2 * size; i++)
        expected[i] = 100 * (i / 2) + 2 * rank + i % 2;
    expect(s, tn_op(s, "dist.all_to_all", TN_IN(x), tn_attrs("size", size)), 2 * size,
           expected, "all_to_all");
    for (int i = 0; i < 2 * size; i++)
        expected[i] = 100 * (size - 1) + i;
    expect(s, tn_op(s, "dist.broadcast", TN_IN(x), tn_attrs("root", size - 1)), 2 * size,
           expected, "broadcast");
    tn_array *one = numbers(s, TN_I16, 1, (double[]){rank});
    for (int i = 0; i < size; i++)
        expected[i] = i;
    expect(s, tn_op(s, "dist.all_gather", TN_IN(one), tn_attrs("size", size)), size,
           expected, "all_gather");
    tn_array *none = tn_from_data(s, TN_F32, TN_SHAPE(0), NULL);
    expect(s, tn_op(s, "dist.all_reduce", TN_IN(none), TN_NO_ATTRS), 0, NULL, "of nothing");
}

// Round a ring: even ranks send first.
static void check_messages(tn_scope *s)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    if (size == 1)
        return;
    double value = last;
    tn_array *x = numbers(s, TN_F32, 1, (double[]){rank});
    const tn_attr_list from = tn_attrs("shape", TN_INTS(1), "dtype", "f32", "source", last);
    tn_array *sent = NULL, *got = NULL;
    if (rank % 2 == 0)
        sent = tn_op(s, "dist.send", TN_IN(x), tn_attrs("root", next));
    got = tn_op(s, "dist.receive", NULL, 0, from);
    if (rank % 2)
        sent = tn_op(s, "dist.send", TN_IN(x), tn_attrs("root", next));
    if (tn_eval(s, got, sent))
        end_failed(tn_scope_error(s));
    expect(s, got, 1, &value, "receive");
}

static uint64_t submissions(void)
{
    tn_stats stats = {.struct_size = sizeof(stats)};
    tn_runtime_stats(runtime, &stats);
    return stats.submissions;
}

// Counts around those that travel with the agreement, in a message and in shared memory.
static void check_sizes(tn_scope *s)
{
    static const int counts[] = {1, 2, 1009, 1010, 1011, 16383, 16384, 16385};
    static float values[4 * 16385];
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        int count = counts[k];
        for (int i = 0; i < count; i++)
            values[i] = (float)(rank + i % 11);
        tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(count), values);
        tn_array *sum = tn_op(s, "dist.all_reduce", TN_IN(x), TN_NO_ATTRS);
        tn_array *root = tn_op(s, "dist.broadcast", TN_IN(x), tn_attrs("root", size - 1));
        tn_array *all = tn_op(s, "dist.all_gather", TN_IN(x), tn_attrs("size", size));
        const uint64_t bytes = (uint64_t)count * sizeof(float);
        check_dist(tn_read(s, sum, values, bytes));
        for (int i = 0; i < count; i++)
            check(values[i] == (float)(size * (size - 1) / 2 + size * (i % 11)),
                  "all_reduce of many");
        check_dist(tn_read(s, root, values, bytes));
        for (int i = 0; i < count; i++)
            check(values[i] == (float)(size - 1 + i % 11), "broadcast of many");
        check_dist(tn_read(s, all, values, bytes * (uint64_t)size));
        for (int i = 0; i < count * size; i++)
            check(values[i] == (float)(i / count + i % count % 11), "all_gather of many");
    }
}

// Two arrays that are reduced while a third one is computed: what starts that has its turn
// as soon as they are there, so the work of a device is cut in three.
static void check_started(tn_scope *s)
{
    enum { COUNT = 3000 };
    static float values[2 * COUNT];
    const int64_t none = 0;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(rank + i % 7);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), values);
    tn_array *after = tn_from_data(s, TN_I64, TN_SCALAR, &none);
    tn_array *a = tn_expr(s, "x -> 2 * x", TN_IN(x), TN_NO_ATTRS);
    tn_array *b = tn_expr(s, "x -> x + 1", TN_IN(x), TN_NO_ATTRS);
    tn_array *ticket = tn_op(s, "dist.all_reduce_start", TN_IN(after, a, b), TN_NO_ATTRS);
    tn_array *beside = tn_op(s, "base.cumsum", TN_IN(x), TN_NO_ATTRS);
    tn_array *all = tn_op(s, "dist.all_reduce_finish", TN_IN(ticket),
                          tn_attrs("count", 2 * COUNT, "dtype", "f32"));
    tn_array *part = tn_op(s, "base.slice", TN_IN(all), tn_attrs("stop", TN_INTS(COUNT)));
    tn_array *last = tn_op(s, "base.add", TN_IN(part, beside), TN_NO_ATTRS);
    uint64_t before = submissions();
    if (tn_eval(s, all, last))
        end_failed(tn_scope_error(s));
    check(submissions() - before == 3, "parts of the work beside an all-reduce");
    if (tn_read(s, all, values, sizeof(values)))
        end_failed(tn_scope_error(s));
    float ranks = (float)(size * (size - 1) / 2), members = (float)size;
    for (int i = 0; i < COUNT; i++)
        check(values[i] == 2 * (ranks + members * (float)(i % 7)) &&
                  values[COUNT + i] == ranks + members * (float)(i % 7 + 1),
              "an all-reduce in two operations");
}

// The loss of all members is the sum of theirs.
static void check_derivatives(tn_scope *s)
{
    double weight = rank + 1, expected = 0;
    tn_array *x = numbers(s, TN_F64, 1, &weight), *w = numbers(s, TN_F64, 1, &weight), *g;
    tn_array *sum = tn_op(s, "dist.all_reduce", TN_IN(x), TN_NO_ATTRS);
    tn_array *loss = tn_op(s, "base.multiply", TN_IN(sum, w), TN_NO_ATTRS);
    for (int r = 0; r < size; r++)
        expected += r + 1;
    if (tn_vjp(s, &loss, NULL, 1, &x, 1, &g))
        end_failed(tn_scope_error(s));
    expect(s, g, 1, &expected, "derivative of all_reduce");
    tn_array *root = tn_op(s, "dist.broadcast", TN_IN(x), TN_NO_ATTRS);
    loss = tn_op(s, "base.multiply", TN_IN(root, w), TN_NO_ATTRS);
    if (tn_vjp(s, &loss, NULL, 1, &x, 1, &g))
        end_failed(tn_scope_error(s));
    expected = rank == 0 ? expected : 0;
    expect(s, g, 1, &expected, "derivative of broadcast");
}

static void check_split(tn_scope *s)
{
    tn_group_facts facts;
    double expected = 0;
    check_dist(dist->split(host, NULL, rank % 2, -rank, "half"));
    check_dist(dist->find(host, "half", &facts, sizeof(facts)));
    check(facts.size == (size + 1 - rank % 2) / 2, "size of a half");
    check(facts.rank == facts.size - 1 - rank / 2, "rank by key");
    for (int r = rank % 2; r < size; r += 2)
        expected += r;
    tn_array *x = numbers(s, TN_F32, 1, (double[]){rank});
    expect(s, tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("group", "half")), 1,
           &expected, "all_reduce of a half");
    check(dist->split(host, NULL, 0, 0, "half") == TN_ERR_ARGUMENT, "a name twice");
    check(strstr(tn_last_error(), "there is a group 'half' already") != NULL,
          "its message");
    check_dist(dist->split(host, NULL, rank == 0 ? -1 : 0, 0, "others"));
    check((dist->find(host, "others", &facts, sizeof(facts)) == TN_OK) == (rank > 0),
          "a color below 0");
}

static void mode_values(tn_scope *s)
{
    check_reductions(s);
    check_moves(s);
    check_sizes(s);
    check_messages(s);
    check_started(s);
    check_derivatives(s);
    check_split(s);
    printf("rank %d of %d: right\n", rank, size);
}

// --- failures ----------------------------------------------------------------------------

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void reduce_once(tn_scope *s, int count)
{
    double mine[64] = {0}, got[64];
    tn_array *x = numbers(s, TN_F32, count, mine);
    read_numbers(s, tn_op(s, "dist.all_reduce", TN_IN(x), TN_NO_ATTRS), count, got);
}

// Once, in a scope of its own.
static void reduce_group(const char *group)
{
    tn_scope *s = tn_scope_open(runtime);
    double got, mine = rank;
    tn_array *x = numbers(s, TN_F32, 1, &mine);
    read_numbers(
        s,
        tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("group", group ? group : "world")),
        1, &got);
    tn_scope_close(s);
}

// Reduces for ever.
static void mode_loop(tn_scope *s)
{
    reduce_once(s, 4);
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
    tn_scope_close(s);
    for (;;) {
        tn_scope *turn = tn_scope_open(runtime);
        reduce_once(turn, 4);
        tn_scope_close(turn);
        usleep(10000);
    }
}

static void split_halves(void)
{
    reduce_group(NULL);
    check_dist(dist->split(host, NULL, rank % 2, 0, "half"));
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
}

// Halves, that of even and that of odd ranks, reduce for ever.
static void mode_halves(tn_scope *s)
{
    (void)s;
    for (split_halves();; usleep(10000))
        reduce_group("half");
}

// In each half the first one does not come, and the others wait for it.
static void mode_pending(tn_scope *s)
{
    (void)s;
    split_halves();
    if (rank < 2)
        usleep(2500000);
    reduce_group(rank < 2 ? NULL : "half");
}

// Rank 1 fails when all members have come to a split, which begins with a thread.
static int splits_with; // a signal
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*begin)(void *),
                                                          void *user)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (splits_with)
        raise(splits_with);
    return real(thread, attributes, begin, user);
}

// Rank 1 fails when a split has made its groups, and their members look for shared memory.
static int introduces_with; // a signal
__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    if (introduces_with && strstr(path, "boot_id"))
        raise(introduces_with);
    return real(path, mode);
}

static void mode_introduces(tn_scope *s)
{
    (void)s;
    reduce_group(NULL);
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
    introduces_with = rank == 1 ? atoi(getenv("TEST_SIGNAL")) : 0;
    check_dist(dist->split(host, NULL, rank % 2, 0, "half"));
    reduce_group("half");
}

static void mode_splits(tn_scope *s)
{
    (void)s;
    reduce_group(NULL);
    printf("ready %d %d\n", rank, (int)getpid());
    fflush(stdout);
    splits_with = rank == 1 ? atoi(getenv("TEST_SIGNAL")) : 0;
    check_dist(dist->split(host, NULL, rank % 2, 0, "half"));
    reduce_group("half");
}

// Rank 1 fails when all members have come to the end, which MPI waits for in a thread.
static void mode_ends(tn_scope *s)
{
    reduce_once(s, 1);
    splits_with = rank == 1 ? atoi(getenv("TEST_SIGNAL")) : 0;
}

// The last rank computes, the others wait.
static void mode_slow(tn_scope *s)
{
    const char *text = getenv("TEST_SECONDS");
    double end = now() + (text ? atof(text) : 4);
    reduce_once(s, 4);
    while (rank == size - 1 && now() < end)
        ;
    reduce_once(s, 4);
    printf("rank %d waited\n", rank);
}

static void mode_shapes(tn_scope *s)
{
    reduce_once(s, rank == 1 ? 5 : 4);
}

static void mode_order(tn_scope *s)
{
    double got[64];
    tn_array *x = numbers(s, TN_F32, 1, (double[]){rank});
    if (rank == 1)
        read_numbers(s, tn_op(s, "dist.all_gather", TN_IN(x), tn_attrs("size", size)), size,
                     got);
    reduce_once(s, 1);
}

// Rank 1 ends its program, in one way or another.
static void mode_leaves(tn_scope *s)
{
    reduce_once(s, 4);
    if (rank != 1)
        reduce_once(s, 4);
}

static void mode_exits(tn_scope *s)
{
    reduce_once(s, 4);
    if (rank == 1)
        _exit(0);
    reduce_once(s, 4);
}

static void mode_deadline(tn_scope *s)
{
    check_dist(dist->set_deadline(host, NULL, 300));
    reduce_once(s, 4);
    if (rank == 1)
        sleep(2);
    reduce_once(s, 4);
}

static void mode_receives(tn_scope *s)
{
    double got[64];
    tn_array *x = numbers(s, TN_F32, 3, (double[]){1, 2, 3});
    const tn_attr_list from = tn_attrs("shape", TN_INTS(4), "dtype", "f32", "source", 0);
    if (rank == 0)
        read_numbers(s, tn_op(s, "dist.send", TN_IN(x), tn_attrs("root", 1)), 3, got);
    if (rank == 1)
        read_numbers(s, tn_op(s, "dist.receive", NULL, 0, from), 4, got);
    sleep(1);
}

// Rank 0 ends the group, and goes on by itself.
static void mode_aborts(tn_scope *s)
{
    reduce_once(s, 1);
    if (rank == 0) {
        check_dist(dist->abort(host, NULL, "enough"));
        sleep(2);
    }
    reduce_once(s, 1);
}

// Survivors go on without rank 1, where the library can.
static void mode_shrinks(tn_scope *s)
{
    tn_group_facts facts;
    double value = 1, got;
    reduce_once(s, 4);
    if (rank == 1)
        _exit(9);
    tn_array *x = numbers(s, TN_F32, 1, &value);
    tn_array *y = tn_op(s, "dist.all_reduce", TN_IN(x), TN_NO_ATTRS);
    check(tn_eval(s, y) != TN_OK, "a sum without rank 1");
    printf("rank %d failed: %s\n", rank, tn_scope_error(s));
    tn_scope_clear_error(s);
    check_dist(dist->shrink(host, NULL, "left"));
    check_dist(dist->find(host, "left", &facts, sizeof(facts)));
    check(facts.size == size - 1, "size of what is left");
    y = tn_op(s, "dist.all_reduce", TN_IN(x), tn_attrs("group", "left"));
    read_numbers(s, y, 1, &got);
    check(got == size - 1, "a sum of what is left");
    printf("rank %d goes on among %d\n", rank, facts.size);
    fflush(stdout);
}

// Prints the UUID of the device, as CUDA's driver has to know it.
static int print_uuid(void)
{
    tn_shared_memory memory = {.struct_size = sizeof(memory)};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = numbers(s, TN_F32, 1, (double[]){1});
    tn_status status = tn_array_export_fd(s, x, &memory);
    for (int i = 0; i < 16 && status == TN_OK; i++)
        printf("%02x", memory.device[i]);
    if (status == TN_OK)
        close(memory.fd);
    tn_scope_close(s);
    tn_runtime_close(runtime);
    return status == TN_OK ? 0 : 77;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(tn_scope *s);
    } modes[] = {{"values", mode_values},     {"loop", mode_loop},
                 {"slow", mode_slow},         {"shapes", mode_shapes},
                 {"order", mode_order},       {"leaves", mode_leaves},
                 {"exits", mode_exits},       {"deadline", mode_deadline},
                 {"receives", mode_receives}, {"shrinks", mode_shrinks},
                 {"halves", mode_halves},     {"pending", mode_pending},
                 {"splits", mode_splits},     {"late", mode_late},
                 {"awaits", mode_awaits},     {"aborts", mode_aborts},
                 {"ends", mode_ends},         {"introduces", mode_introduces}};
    tn_group_facts facts;
    if (argc > 1 && strcmp(argv[1], "uuid") == 0 &&
        tn_runtime_open(NULL, &runtime) == TN_OK)
        return print_uuid();
    if (tn_runtime_open(NULL, &runtime) ||
        tn_interface_find(runtime, TN_IFACE_DIST, (const void **)&dist, &host) ||
        dist->find(host, NULL, &facts, sizeof(facts))) {
        printf("failed: %s\n", tn_last_error());
        return 3;
    }
    rank = facts.rank;
    size = facts.size;
    tn_scope *s = tn_scope_open(runtime);
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            modes[i].run(s);
    tn_scope_close(s);
    tn_runtime_close(runtime);
    return 0;
}
