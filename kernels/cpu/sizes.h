// SPDX-License-Identifier: MIT
// OF_SIZES defines a function that is inlined into each caller, with the sizes that the
// caller gives as constants. Instrumented builds have one copy for all callers: many copies
// take minutes to compile, and read and write the same memory.
#ifndef KERNELS_CPU_SIZES_H
#define KERNELS_CPU_SIZES_H

#ifdef CPU_ONE_COPY
#define OF_SIZES static __attribute__((noinline))
#else
#define OF_SIZES static inline __attribute__((always_inline))
#endif

#endif
