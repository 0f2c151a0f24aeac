// SPDX-License-Identifier: MIT
// Loads OpenBLAS on behalf of every plugin that may be the first to need it. A process
// loads the library once; OpenBLAS then reads its environment variables and starts its
// threads.
//
//   variables   OPENBLAS_CORETYPE where OpenBLAS would choose the wrong kernels
//               (processor.h), unless the user set it; OPENBLAS_NUM_THREADS=1, unless the
//               user set it and so many threads can be started. Both are set only while
//               the library is loaded, so child processes do not inherit them.
//   threads     The number is fixed when the library is loaded: OpenBLAS 0.3.21 has one
//               for the whole process. Tenon spreads loops over its own threads instead.
//   memory      OpenBLAS allocates 128 MiB of address space for each thread inside a call
//               and keeps it; when the allocation fails it retries for ever.
//               openblas_reserve makes OpenBLAS allocate beforehand, while the address
//               space is known to be free.
//
// Linked statically into each plugin that uses OpenBLAS, so each plugin has a copy of this
// module's state. Copies need no coordination: repeating the set-up changes nothing.
//
// Threads. Any function from any thread. fork() waits for calls between openblas_enter and
// openblas_leave, so that OpenBLAS' locks are free in the child.
#ifndef OPENBLAS_OPENBLAS_H
#define OPENBLAS_OPENBLAS_H

#include <stdbool.h>
#include <tenon/host.h>

// The OpenBLAS library of this process. Constant once found.
struct openblas {
    void *handle;             // for dlsym()
    char version[24];         // "0.3.21"; "": unknown
    char core[24];            // the kernels in use: "SkylakeX"; "": unknown
    bool chooses_at_start;    // DYNAMIC_ARCH: kernels are chosen at load, not at build
    bool was_open;            // loaded before Tenon, by the application or a library
    int (*get_threads)(void); // NULL: unknown
};

// dlopen(name, RTLD_NOW | RTLD_LOCAL) with the variables above set. `name` may be OpenBLAS,
// a library that depends on OpenBLAS, or any other. On failure NULL, and dlerror() has the
// reason.
void *openblas_dlopen(const char *name);

// The OpenBLAS of this process; NULL until an openblas_dlopen() has found the library.
const struct openblas *openblas_find(void);

// Writes "OpenBLAS 0.3.21, SkylakeX kernels, 1 thread".
void openblas_describe(const struct openblas *blas, char *text, uint64_t size);

// A performance problem, and its remedy.
struct openblas_advice {
    char warning[192], remedy[160];
};

// Whether OpenBLAS runs kernels for older instruction sets than the processor has. If so,
// fills *out.
bool openblas_is_slow(const struct openblas *blas, struct openblas_advice *out);

// Logs the advice of openblas_is_slow as a warning, once a process and plugin.
void openblas_warn(const tn_host *host);

// Reserves OpenBLAS buffers for `callers` more threads that call concurrently. On
// TN_ERR_MEMORY `message` says what is missing, and nothing is reserved. openblas_release
// undoes a reservation.
#define OPENBLAS_MESSAGE 256
tn_status openblas_reserve(uint32_t callers, char message[OPENBLAS_MESSAGE]);
void openblas_release(uint32_t callers);

// Bracket each call of OpenBLAS. Code between them must not fork.
void openblas_enter(void);
void openblas_leave(void);

#endif // OPENBLAS_OPENBLAS_H
