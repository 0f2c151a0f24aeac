// SPDX-License-Identifier: MIT
// OpenBLAS with the kernels that Tenon names, beside those of names given here and its own
// choice: blas [--quick] [NAME...]. A process each, asked in turns, so that what else runs
// on the machine slows all of them. One thread.
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "openblas/openblas.h"

#define LIBRARY "libopenblas.so.0"
#define MAX_WAYS 8
#define MAX_ROUNDS 31

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta,
                      float *c, int ldc);

struct shape {
    const char *name;
    int m, n, k, times;
};

static const struct shape shapes[] = {
    {"f32 1024x1024x1024", 1024, 1024, 1024, 1},
    {"64 of f32 128x128x128", 128, 128, 128, 64},
    {"f32 4096x1x4096", 4096, 1, 4096, 1},
};
#define NUM_SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define HUGE_PAGE (2 << 20)
#define MAX_ELEMENTS (4096 * 4096)

// One way to open the library.
struct way {
    char name[32], core[24];
    int to, from; // pipes of its process
    pid_t process;
    double milliseconds[MAX_ROUNDS];
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// --- the process that computes ---------------------------------------------------------

// On huge pages, as the backend's buffers: with small ones, where a process happens to get
// them changes its times by a fifth.
static float *matrix(void)
{
    size_t size = MAX_ELEMENTS * sizeof(float);
    float *elements = aligned_alloc(HUGE_PAGE, size);
    if (elements)
        madvise(elements, size, MADV_HUGEPAGE);
    return elements;
}

static void *open_as(const char *name)
{
    if (strcmp(name, "Tenon's choice") == 0)
        return openblas_dlopen(LIBRARY);
    if (strcmp(name, "its own choice") != 0)
        setenv("OPENBLAS_CORETYPE", name, 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static double time_once(sgemm_fn *sgemm, const struct shape *s, const float *a,
                        const float *b, float *c)
{
    double begin = now_ms();
    for (int i = 0; i < s->times; i++)
        sgemm(101, 111, 111, s->m, s->n, s->k, 1, a, s->k, b, s->n, 0, c, s->n);
    return now_ms() - begin;
}

static void serve(const char *name, int from, int to)
{
    char core[24] = "not installed";
    sgemm_fn *sgemm = NULL;
    char *(*get_core)(void) = NULL;
    void *handle = open_as(name);
    if (handle) {
        *(void **)&sgemm = dlsym(handle, "cblas_sgemm");
        *(void **)&get_core = dlsym(handle, "openblas_get_corename");
    }
    if (sgemm)
        snprintf(core, sizeof(core), "%s", get_core ? get_core() : "unknown");
    float *a = matrix(), *b = matrix(), *c = matrix();
    for (int i = 0; a && b && i < MAX_ELEMENTS; i++)
        a[i] = b[i] = (float)(i % 7);
    if (write(to, core, sizeof(core)) != (ssize_t)sizeof(core) || !sgemm || !a || !b || !c)
        _exit(1);
    for (unsigned char i; read(from, &i, 1) == 1 && i < NUM_SHAPES;) {
        double taken = time_once(sgemm, &shapes[i], a, b, c);
        if (write(to, &taken, sizeof(taken)) != (ssize_t)sizeof(taken))
            break;
    }
    _exit(0);
}

static int start(struct way *way, const char *name)
{
    int to[2], from[2];
    *way = (struct way){0};
    snprintf(way->name, sizeof(way->name), "%s", name);
    if (pipe(to) || pipe(from) || (way->process = fork()) < 0)
        return 1;
    if (way->process == 0)
        serve(name, to[0], from[1]);
    way->to = to[1];
    way->from = from[0];
    close(to[0]);
    close(from[1]);
    return read(way->from, way->core, sizeof(way->core)) != (ssize_t)sizeof(way->core);
}

// --- asking ----------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int ask(struct way *way, unsigned char shape, double *out)
{
    return write(way->to, &shape, 1) != 1 ||
           read(way->from, out, sizeof(*out)) != (ssize_t)sizeof(*out);
}

// Medians, and each one's ratio to the first.
static int measure(struct way *ways, int num_ways, unsigned char shape, int rounds)
{
    double warm;
    for (int i = 0; i < num_ways; i++)
        if (ask(&ways[i], shape, &warm))
            return 1;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < num_ways; i++)
            if (ask(&ways[i], shape, &ways[i].milliseconds[round]))
                return 1;
    for (int i = 0; i < num_ways; i++) {
        qsort(ways[i].milliseconds, (size_t)rounds, sizeof(double), compare);
        double median = ways[i].milliseconds[rounds / 2];
        printf("%-24s %-16s %-14s %8.2f ms %6.2f\n", shapes[shape].name, ways[i].name,
               ways[i].core, median, ways[0].milliseconds[rounds / 2] / median);
    }
    return 0;
}

// Keeps this process and those it starts, which compute in turns, on one processor: others
// may be slower, as a virtual machine's are when its host is busy.
static void stay_here(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one))
        perror("sched_setaffinity");
}

int main(int argc, char **argv)
{
    struct way ways[MAX_WAYS];
    int num_ways = 0, rounds = MAX_ROUNDS, failed = 0;
    signal(SIGPIPE, SIG_IGN);
    stay_here();
    unsetenv("OPENBLAS_CORETYPE");
    if (argc > 1 && strcmp(argv[1], "--quick") == 0) {
        rounds = 3;
        argc--;
        argv++;
    }
    failed = start(&ways[num_ways++], "Tenon's choice") ||
             start(&ways[num_ways++], "its own choice");
    for (int i = 1; i < argc && num_ways < MAX_WAYS && !failed; i++)
        failed = start(&ways[num_ways++], argv[i]);
    printf("%-24s %-16s %-14s %11s  %s\n", "one thread", "opened with", "kernels", "",
           "Tenon's time over it");
    for (unsigned char i = 0; i < NUM_SHAPES && !failed; i++)
        failed = measure(ways, num_ways, i, rounds);
    for (int i = 0; i < num_ways; i++) { // later ones hold the earlier ones' pipes open
        const unsigned char end = NUM_SHAPES;
        failed |= write(ways[i].to, &end, 1) != 1;
        if (ways[i].process > 0)
            waitpid(ways[i].process, NULL, 0);
    }
    return failed;
}
