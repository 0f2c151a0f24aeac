// SPDX-License-Identifier: MIT
// Opening OpenBLAS, for each plugin that may be the first to: a process loads it once, and
// it reads its environment and starts its threads then.
//
//   variables   OPENBLAS_CORETYPE where its own choice would be wrong (processor.h), and
//               OPENBLAS_NUM_THREADS=1, each unless the user set it. They are there while
//               the library is opened and gone after: children do not inherit them.
//   threads     Set once, by that variable, and never changed: OpenBLAS 0.3.21 knows one
//               number for the whole process. Tenon's loops are spread over its own
//               threads.
//   memory      OpenBLAS takes 128 MiB of addresses for each thread that is in a call and
//               keeps the memory; when it gets none, it tries for ever. openblas_reserve
//               lets it take the memory beforehand, when it is known to be free.
//
// Linked into each plugin that uses it: the state below is one plugin's. That is enough, as
// setting up twice changes nothing.
//
// Threads. Any function from any thread. fork() waits for calls between openblas_enter and
// openblas_leave, so that OpenBLAS' locks are free in the child.
#ifndef OPENBLAS_OPENBLAS_H
#define OPENBLAS_OPENBLAS_H

#include <stdbool.h>
#include <tenon/host.h>

// What is known of the library that the process has. Constant once found.
struct openblas {
    void *handle;          // dlsym's
    char version[24];      // "0.3.21"; "" when it does not tell
    char core[24];         // whose kernels it runs: "SkylakeX"; "" when it does not tell
    bool chooses_at_start; // DYNAMIC_ARCH: else built for one processor
    bool was_open;         // somebody else opened it: the application, another library
    int (*get_threads)(void);
};

// dlopen(name, RTLD_NOW | RTLD_LOCAL) with the variables set, for a library that is
// OpenBLAS, is linked with it, or neither. dlerror() says why not.
void *openblas_dlopen(const char *name);

// OpenBLAS, if the process has it: after openblas_dlopen.
const struct openblas *openblas_find(void);

// "OpenBLAS 0.3.21, SkylakeX kernels, 1 thread".
void openblas_describe(const struct openblas *blas, char *text, uint64_t size);

// What is wrong, and what to do.
struct openblas_advice {
    char warning[192], remedy[160];
};

// Whether it runs kernels older than the processor; then with advice.
bool openblas_is_slow(const struct openblas *blas, struct openblas_advice *out);

// Logs what openblas_is_slow finds, once.
void openblas_warn(const tn_host *host);

// Lets `callers` more threads call OpenBLAS at a time. TN_ERR_MEMORY: then the message says
// what is missing and nothing is reserved. openblas_release takes back as many.
#define OPENBLAS_MESSAGE 256
tn_status openblas_reserve(uint32_t callers, char message[OPENBLAS_MESSAGE]);
void openblas_release(uint32_t callers);

// Around calls of OpenBLAS that do not fork.
void openblas_enter(void);
void openblas_leave(void);

#endif // OPENBLAS_OPENBLAS_H
