// SPDX-License-Identifier: MIT
// Benchmarks: contestants that do the same work run in rounds, one after the other, and
// their medians are compared. Rounds spread disturbances of the machine over all
// contestants.
#ifndef TOOLS_BENCH_BENCH_H
#define TOOLS_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <tenon/tenon.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_ROUNDS 64

// Timed work. `run` does the work `times` times and returns the seconds that this took;
// negative after a failure, which it reports on stderr.
struct contestant {
    const char *name;
    double (*run)(struct contestant *self, uint64_t times);
    void *state;
    double seconds[MAX_ROUNDS]; // for doing the work once, by round
    double median;              // negative after a failure
    uint64_t times;             // argument of `run` in a round; 0: contest()'s `times`
};

struct bench {
    tn_runtime *runtime;
    const char *python;    // NULL: without peers
    const char *folder;    // of this program
    const char *tenon;     // path of the command
    const char *beside[2]; // devices that "ops" compares; NULL: the default one alone
    bool quick;            // few or small cases: a test that the benchmarks work
    const char *only;      // of cpu and gpu: a part or a pattern of "group/name"; NULL: all
    enum { STYLE_TEXT, STYLE_JSON, STYLE_MARKDOWN } style; // of what cpu and gpu print
    double seconds, began; // of cpu and gpu: no case begins later; 0: each does
    bool failed;           // a result was wrong or missing
    int threads;           // 0: not given
    bool pinned;           // the process is pinned to `threads` processors
    int rounds;
    FILE *out;
};

double now_seconds(void);

// Runs a warm-up and `rounds` rounds, and sets the medians.
void contest(struct contestant *list, size_t count, int rounds, uint64_t times);

// How often `c` runs in a round of about `seconds`, found by doubling; the runs warm it up.
uint64_t bench_times(struct contestant *c, double seconds);

// The least time of the rounds, in seconds for doing the work once.
double bench_least(const struct contestant *c, int rounds);

// Kept values, the same on each machine: from 0 up to but without 1, or with `below` whole
// numbers under it. NULL after a failure.
tn_array *bench_values(tn_scope *scope, const tn_type *type, int below);

// Prints one line: name, median in a fitting unit, and the comparison in `format`.
void report(const struct bench *bench, const struct contestant *contestant,
            const char *format, ...) __attribute__((format(printf, 3, 4)));
// The same with the least time, in the unit of the median.
void report_least(const struct bench *bench, const struct contestant *contestant);
void title(const struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Prints the scope's failure, or the library's last one, on stderr. Returns -1, as a failed
// run does.
double failed_run(const tn_scope *scope);

// --- peers.c: PyTorch and MLX in a Python process --------------------------------------

struct peers {
    FILE *to, *from; // NULL: no process
    int process;
    bool has_torch, has_mlx;
    char names[256]; // names of both peers, or "no peers"
};
void peers_start(struct peers *peers, const struct bench *bench, const char *device);
void peers_stop(struct peers *peers);
// Sends a request, and `size` bytes of `data` behind its line. Takes `request`. Gives the
// answer, a new reference; NULL: none came.
json_t *peers_ask(struct peers *peers, json_t *request, const void *data, uint64_t size);
// Seconds that `times` evaluations of `work` ("torch axpby") take; negative when it failed.
double peers_run(struct peers *peers, const char *work, uint64_t times);

// --- the benchmarks --------------------------------------------------------------------

void bench_matmul(struct bench *bench);
void bench_axpby(struct bench *bench);
void bench_replay(struct bench *bench);
void bench_first(struct bench *bench);
void bench_held(struct bench *bench);
void bench_command(struct bench *bench);
void bench_ops(struct bench *bench);
void bench_lenet(struct bench *bench);
void bench_cpu(struct bench *bench);
void bench_gpu(struct bench *bench);
// The name of the device; for a processor also its peak. free() it; NULL: no memory.
char *bench_machine(const struct bench *bench);
void bench_file(struct bench *bench, const char *path); // a file of graphs

// Runs a program to its end. Discards its output, or gives it in *out_text (free it). False
// when the program cannot run or its status is not 0.
bool run_program(char *const *argv, char **out_text);

#endif // TOOLS_BENCH_BENCH_H
