// SPDX-License-Identifier: MIT
// An all-reduce of f32 beside the MPI library's own blocking call: `tenon run -n N reduce`.
//
//   reduce [--rounds N] [--seconds S] [COUNT ...]    elements a member
//
// Rank 0 prints a line for each count: microseconds a call of MPI_Allreduce, of the
// plugin's start and wait, and of dist.all_reduce in a traced function, in turns, medians.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tenon/dist.h>
#include <tenon/tenon.h>

enum { MOST_ROUNDS = 99, CONTESTANTS = 3 };

typedef int mpi_allreduce(const void *in, void *out, int count, uintptr_t type,
                          uintptr_t operation, uintptr_t comm);

static struct bench_reduction {
    tn_runtime *runtime;
    const tn_collective *table;
    const tn_host *host;
    tn_group *world;
    tn_function *function;
    mpi_allreduce *peer;
    uintptr_t type, operation, comm; // MPI's handles of f32, sum, all processes
    uint64_t count;
    float *in, *out;
    tn_array *x;
} reduction;

static void reduce_must(tn_status status, const char *what)
{
    if (status == TN_OK)
        return;
    fprintf(stderr, "reduce: %s: %s\n", what, tn_last_error());
    exit(1);
}

static double reduce_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- contestants -------------------------------------------------------------------------

// The library that the plugin has opened, and the handles of its binary interface.
static void peer_find(struct bench_reduction *r)
{
    const char *name = getenv("TENON_MPI");
    void *object = dlopen(name ? name : "libmpi.so.40", RTLD_NOW);
    if (!object || !(r->peer = (mpi_allreduce *)dlsym(object, "MPI_Allreduce"))) {
        fprintf(stderr, "reduce: no MPI_Allreduce: %s\n", dlerror());
        exit(1);
    }
    r->comm = (uintptr_t)dlsym(object, "ompi_mpi_comm_world");
    bool is_standard = name && strstr(name, "mpi_abi");
    if (r->comm) {
        r->type = (uintptr_t)dlsym(object, "ompi_mpi_float");
        r->operation = (uintptr_t)dlsym(object, "ompi_mpi_op_sum");
    } else {
        r->comm = is_standard ? 0x101 : 0x44000000;
        r->type = is_standard ? 0x210 : 0x4c00040a;
        r->operation = is_standard ? 0x21 : 0x58000003;
    }
}

static void reduce_by_peer(struct bench_reduction *r)
{
    if (r->peer(r->in, r->out, (int)r->count, r->type, r->operation, r->comm)) {
        fprintf(stderr, "reduce: MPI_Allreduce failed\n");
        exit(1);
    }
}

static void reduce_by_plugin(struct bench_reduction *r)
{
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_ALL_REDUCE,
                                     .dtype = TN_F32,
                                     .count = r->count,
                                     .input = r->in,
                                     .output = r->out};
    tn_collective_work *work;
    reduce_must(r->table->start(r->host, r->world, &call, &work), "start");
    reduce_must(r->table->wait(r->host, work), "wait");
}

static tn_status reduce_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = tn_op(scope, "dist.all_reduce", TN_IN(inputs[0]), TN_NO_ATTRS);
    return outputs[0] ? TN_OK : TN_ERR_ARGUMENT;
}

static void reduce_by_function(struct bench_reduction *r)
{
    tn_array *y;
    tn_scope *s = tn_scope_open(r->runtime);
    reduce_must(tn_function_call(r->function, s, &r->x, 1, &y, 1), "tn_function_call");
    reduce_must(tn_eval(s, y), "tn_eval");
    tn_scope_close(s);
}

static void (*const contestants[CONTESTANTS])(struct bench_reduction *r) = {
    reduce_by_peer, reduce_by_plugin, reduce_by_function};

// --- measuring ---------------------------------------------------------------------------

static double seconds_of(struct bench_reduction *r, int contestant, int calls)
{
    double began = reduce_clock();
    for (int i = 0; i < calls; i++)
        contestants[contestant](r);
    return (reduce_clock() - began) / calls;
}

// Calls in `seconds`, the same number on all ranks.
static int count_calls(struct bench_reduction *r, double seconds)
{
    double once = seconds_of(r, 0, 3);
    float mine = (float)(seconds / (once > 1e-7 ? once : 1e-7)), most = 0;
    const tn_collective_call call = {.struct_size = sizeof(call),
                                     .kind = TN_COLLECTIVE_ALL_REDUCE,
                                     .reduction = TN_COLLECTIVE_MINIMUM,
                                     .dtype = TN_F32,
                                     .count = 1,
                                     .input = &mine,
                                     .output = &most};
    tn_collective_work *work;
    reduce_must(r->table->start(r->host, r->world, &call, &work), "start");
    reduce_must(r->table->wait(r->host, work), "wait");
    return most < 1 ? 1 : most > 20000 ? 20000 : (int)most;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void reduce_measure(struct bench_reduction *r, uint64_t count, int rounds,
                           double seconds)
{
    static double took[CONTESTANTS][MOST_ROUNDS];
    const tn_group_facts *facts = r->table->facts(r->world);
    r->count = count;
    r->in = malloc(count * sizeof(float));
    r->out = malloc(count * sizeof(float));
    if (!r->in || !r->out) {
        fprintf(stderr, "reduce: no memory for %llu elements\n", (unsigned long long)count);
        exit(1);
    }
    for (uint64_t i = 0; i < count; i++)
        r->in[i] = (float)(facts->rank + 1);
    tn_scope *scope = tn_scope_open(r->runtime);
    r->x = tn_keep(scope, tn_from_data(scope, TN_F32, TN_SHAPE((int64_t)count), r->in));
    tn_scope_close(scope);
    for (int k = 0; k < CONTESTANTS; k++)
        seconds_of(r, k, 2);
    int calls = count_calls(r, seconds);
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < CONTESTANTS; k++)
            took[k][i] = seconds_of(r, k, calls);
    float expected = (float)(facts->size * (facts->size + 1) / 2);
    reduce_by_plugin(r);
    if (r->out[0] != expected || r->out[count - 1] != expected) {
        fprintf(stderr, "reduce: got %g, expected %g\n", (double)r->out[0],
                (double)expected);
        exit(1);
    }
    for (int k = 0; k < CONTESTANTS; k++)
        qsort(took[k], (size_t)rounds, sizeof(double), compare_seconds);
    if (facts->rank == 0)
        printf("%10llu f32, %d ranks: %s %9.2f us, plugin %9.2f (%.2f), function %9.2f\n",
               (unsigned long long)count, facts->size, facts->library,
               1e6 * took[0][rounds / 2], 1e6 * took[1][rounds / 2],
               took[1][rounds / 2] / took[0][rounds / 2], 1e6 * took[2][rounds / 2]);
    fflush(stdout);
    tn_release(r->x);
    free(r->out);
    free(r->in);
}

// Takes an option and its value out of argv, so that counts are left. Returns the value.
static double take_option(int *argc, char **argv, const char *name, double missing)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        double value = atof(argv[i + 1]);
        memmove(argv + i, argv + i + 2, (size_t)(*argc - i - 1) * sizeof(*argv));
        *argc -= 2;
        return value;
    }
    return missing;
}

int main(int argc, char **argv)
{
    static const uint64_t usual[] = {1, 16, 100, 1000, 4096, 16384};
    struct bench_reduction *r = &reduction;
    double rounds = take_option(&argc, argv, "--rounds", 11);
    double seconds = take_option(&argc, argv, "--seconds", 0.02);
    int most = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : (int)rounds;
    reduce_must(tn_runtime_open(NULL, &r->runtime), "tn_runtime_open");
    reduce_must(tn_interface_find(r->runtime, TN_IFACE_COLLECTIVE, (const void **)&r->table,
                                  &r->host),
                "the plugin of collectives");
    reduce_must(r->table->open(r->host, &r->world), "joining");
    reduce_must(tn_function_create(r->runtime, reduce_body, NULL, NULL, &r->function),
                "tn_function_create");
    peer_find(r);
    if (argc > 1)
        for (int i = 1; i < argc; i++)
            reduce_measure(r, strtoull(argv[i], NULL, 10), most, seconds);
    else
        for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
            reduce_measure(r, usual[i], most, seconds);
    tn_function_destroy(r->function);
    r->table->close(r->host, r->world);
    tn_runtime_close(r->runtime);
    return 0;
}
