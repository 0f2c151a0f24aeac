// SPDX-License-Identifier: MIT
// tenon-bench, the program that `tenon bench` executes.
#include "bench.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name, *what;
    void (*run)(struct bench *bench);
    const char *backend; // of a table of cases, which runs only when named; NULL: no table
} benchmarks[] = {
    {"matmul", "products of matrices beside cblas_sgemm", bench_matmul},
    {"axpby", "alpha * x + beta * y beside PyTorch and MLX", bench_axpby},
    {"replay", "a traced function of tiny nodes", bench_replay},
    {"first", "the first evaluation of a new graph", bench_first},
    {"held", "operators of a language whose objects are arrays", bench_held},
    {"command", "the command from start to end", bench_command},
    {"ops", "single operators, small and large", bench_ops},
    {"lenet", "training beside PyTorch", bench_lenet},
    {"cpu", "what people run, on the processor, beside PyTorch", bench_cpu, "cpu-blas"},
    {"gpu", "the same on the device of TENON_BACKEND (vulkan)", bench_gpu, "vulkan"},
};

static void bench_print_help(void)
{
    printf("Usage: tenon bench [NAME|@FILE ...] [--rounds N] [--threads N] [--python "
           "PYTHON]\n"
           "                   [--beside DEVICE,DEVICE] [--only CASES] [--seconds N]\n"
           "                   [--json|--markdown] [--quick]\n\n"
           "Measure Tenon beside its peers: contestants take turns, medians are compared.\n"
           "@FILE: the graphs of a file that 'tenon eval --save' wrote.\n"
           "PYTHON (or TENON_BENCH_PYTHON) is a Python that has torch or mlx; without it,\n"
           "Tenon is measured alone. Without a NAME: all of them. --beside: ops on two "
           "devices,\n"
           "in turns (vulkan-jit,vulkan); --quick: a few of them. cpu and gpu run on N "
           "pinned\n"
           "processors (all), beside python3 without --python; --only: a part or a pattern "
           "of\n"
           "\"group/name\"; --seconds: no case begins later; --quick: small "
           "ones.\n\nBenchmarks:\n");
    for (size_t i = 0; i < COUNT(benchmarks); i++)
        printf("  %-10s %s\n", benchmarks[i].name, benchmarks[i].what);
}

static int bench_misuse(const char *what, const char *got)
{
    fprintf(stderr, "tenon: bench: %s '%s'; 'tenon bench --help' explains\n", what, got);
    return 2;
}

static int allowed_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

// Pins to the last `count` processors that may be used: the first one has the interrupts.
static void bench_pin(int count)
{
    cpu_set_t allowed, chosen;
    CPU_ZERO(&chosen);
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    for (int i = CPU_SETSIZE - 1; i >= 0 && count > 0; i--)
        if (CPU_ISSET(i, &allowed)) {
            CPU_SET(i, &chosen);
            count--;
        }
    sched_setaffinity(0, sizeof(chosen), &chosen);
}

// A table of cases, unless `backend` is NULL.
static void prepare_cases(struct bench *bench, const char *backend)
{
    if (!backend)
        return;
    bool is_cpu = strcmp(backend, "cpu-blas") == 0;
    setenv("TENON_BACKEND", backend, is_cpu);
    bench->pinned = is_cpu;
    bench->python = bench->python ? bench->python : "python3";
}

// Reads "--name value" or a benchmark's name; moves *at onto the value. Returns 0, or 2 for
// wrong usage.
static int bench_read_argument(struct bench *bench, bool *chosen, int argc, char **argv,
                               int *at)
{
    const char *argument = argv[*at];
    bool rounds = strcmp(argument, "--rounds") == 0;
    if (rounds || strcmp(argument, "--threads") == 0) {
        int most = rounds ? MAX_ROUNDS : 256;
        int value = *at + 1 < argc ? atoi(argv[++*at]) : 0;
        if (!rounds && value == 0 && strcmp(argv[*at], "all") == 0)
            value = allowed_processors();
        if (value < 1 || value > most)
            return bench_misuse("wrong number behind", argument);
        *(rounds ? &bench->rounds : &bench->threads) = value;
        return 0;
    }
    if (argument[0] == '@')
        return 0; // a file of graphs, for run_all()
    if (strcmp(argument, "--python") == 0 && *at + 1 < argc) {
        bench->python = argv[++*at];
        return 0;
    }
    if (strcmp(argument, "--only") == 0 && *at + 1 < argc) {
        bench->only = argv[++*at];
        return 0;
    }
    if (strcmp(argument, "--seconds") == 0 && *at + 1 < argc) {
        bench->seconds = atof(argv[++*at]);
        return 0;
    }
    if (strcmp(argument, "--json") == 0 || strcmp(argument, "--markdown") == 0) {
        bench->style = argument[2] == 'j' ? STYLE_JSON : STYLE_MARKDOWN;
        return 0;
    }
    if (strcmp(argument, "--") == 0)
        return 0;
    if (strcmp(argument, "--quick") == 0) {
        bench->quick = true;
        return 0;
    }
    if (strcmp(argument, "--beside") == 0) {
        char *devices = *at + 1 < argc ? argv[++*at] : NULL;
        char *comma = devices ? strchr(devices, ',') : NULL;
        if (!comma || comma == devices || !comma[1])
            return bench_misuse("expected DEVICE,DEVICE behind", argument);
        setenv("TENON_BACKEND", devices, 1);
        *comma = '\0';
        bench->beside[0] = devices;
        bench->beside[1] = comma + 1;
        return 0;
    }
    for (size_t i = 0; i < COUNT(benchmarks); i++) {
        if (strcmp(argument, benchmarks[i].name) == 0) {
            chosen[i] = chosen[COUNT(benchmarks)] = true;
            prepare_cases(bench, benchmarks[i].backend);
            return 0;
        }
    }
    return bench_misuse(argument[0] == '-' ? "unknown option" : "no benchmark", argument);
}

// Whether an argument is a file of graphs, and not the value of the option before.
static bool is_file(char **argv, int i)
{
    return argv[i][0] == '@' && strcmp(argv[i - 1], "--python") != 0;
}

static bool chosen_table(const bool *chosen)
{
    bool found = false;
    for (size_t i = 0; i < COUNT(benchmarks); i++)
        found |= chosen[i] && benchmarks[i].backend;
    return found;
}

static int bench_run_all(struct bench *bench, const bool *chosen, int argc, char **argv)
{
    char threads[16];
    if (!bench->rounds)
        bench->rounds = chosen_table(chosen) ? 9 : 15;
    if (!bench->threads)
        bench->threads = bench->pinned ? allowed_processors() : 2;
    if (bench->pinned)
        bench_pin(bench->threads);
    snprintf(threads, sizeof(threads), "%d", bench->threads);
    setenv("TENON_THREADS", threads, 1);
    if (!bench->pinned) // tables of cases use all threads, as applications do
        setenv("OPENBLAS_NUM_THREADS", threads, 1);
    if (tn_runtime_open(NULL, &bench->runtime)) {
        fprintf(stderr, "tenon: %s\n", tn_last_error());
        return 1;
    }
    if (bench->style == STYLE_TEXT)
        printf("%d threads, medians of %d rounds in turns\n", bench->threads,
               bench->rounds);
    bool has_files = false;
    for (int i = 1; i < argc; i++)
        if (is_file(argv, i)) {
            bench_file(bench, argv[i] + 1);
            has_files = true;
        }
    for (size_t i = 0; i < COUNT(benchmarks); i++)
        if (chosen[i] || !(has_files || chosen[COUNT(benchmarks)] || benchmarks[i].backend))
            benchmarks[i].run(bench);
    tn_runtime_close(bench->runtime);
    return bench->failed;
}

// Fails where the printed text has not arrived.
static int bench_end_output(int failed)
{
    if ((!fflush(stdout) && !ferror(stdout)) || failed)
        return failed;
    fprintf(stderr, "tenon: cannot write the output\n");
    return 1;
}

int main(int argc, char **argv)
{
    char folder[PATH_MAX];
    bool chosen[COUNT(benchmarks) + 1] = {false}; // last element: any benchmark is chosen
    const char *tenon = getenv("TENON_BENCH_COMMAND"),
               *python = getenv("TENON_BENCH_PYTHON");
    // Static: it holds its texts until the program ends.
    static struct bench bench;
    bench = (struct bench){.out = stdout, .folder = folder};
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    folder[length > 0 ? length : 0] = '\0';
    if (strrchr(folder, '/'))
        *strrchr(folder, '/') = '\0';
    // The runtime warns of unknown TENON_ variables: copy these, then unset them.
    bench.tenon = strdup(tenon ? tenon : "tenon");
    bench.python = python ? strdup(python) : NULL;
    unsetenv("TENON_BENCH_COMMAND");
    unsetenv("TENON_BENCH_PYTHON");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            bench_print_help();
            return bench_end_output(0);
        }
        int failed = bench_read_argument(&bench, chosen, argc, argv, &i);
        if (failed)
            return failed;
    }
    return bench_end_output(bench_run_all(&bench, chosen, argc, argv));
}
