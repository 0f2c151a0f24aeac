// SPDX-License-Identifier: MIT
// Benchmarks: contestants that do the same work run in turns, and their medians are
// compared. Turns spread whatever disturbs the machine over all of them.
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <tenon/tenon.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_ROUNDS 64

// Work that is timed. `run` does it `times` times, and gives the seconds it took; negative
// when it failed, which it has told on stderr.
struct contestant {
    const char *name;
    double (*run)(struct contestant *self, uint64_t times);
    void *state;
    double seconds[MAX_ROUNDS]; // of one time
    double median;              // negative when it failed
};

struct bench {
    tn_runtime *runtime;
    const char *python; // NULL: no peers
    const char *folder; // of this program
    const char *tenon;  // the command
    int threads;
    int rounds;
    FILE *out;
};

double now_seconds(void);

// Runs them in turns, after one warm-up each, and sets the medians.
void contest(struct contestant *list, size_t count, int rounds, uint64_t times);

// Prints one line: a name, seconds in a fitting unit, and what it is compared with.
void report(const struct bench *bench, const struct contestant *contestant,
            const char *format, ...) __attribute__((format(printf, 3, 4)));
void title(const struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The library's last failure, on stderr. Gives -1, which is what a failed run gives.
double failed_run(const tn_scope *scope);

// --- peers.c: PyTorch and MLX in a Python process that stays ---------------------------

struct peers {
    FILE *to, *from; // NULL: none
    int process;
    bool has_torch, has_mlx;
};
void peers_start(struct peers *peers, const struct bench *bench);
void peers_stop(struct peers *peers);
// Seconds that `times` evaluations of `work` ("torch axpby") take; negative when it failed.
double peers_run(struct peers *peers, const char *work, uint64_t times);

// --- the benchmarks --------------------------------------------------------------------

void bench_matmul(struct bench *bench);
void bench_axpby(struct bench *bench);
void bench_replay(struct bench *bench);
void bench_first(struct bench *bench);
void bench_command(struct bench *bench);
void bench_lenet(struct bench *bench);

// Runs a program to its end with its output thrown away, or taken into *out_text (free it).
// False when it could not or its status was not 0.
bool run_program(char *const *argv, char **out_text);

#endif // TOOLS_BENCH_BENCH_H
