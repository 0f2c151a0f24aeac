// SPDX-License-Identifier: MIT
// How a function of which there is a copy for each of some constants is defined. One copy
// for all where the code is instrumented: the copies take minutes to compile, and read and
// write the same.
#ifndef KERNELS_CPU_SIZES_H
#define KERNELS_CPU_SIZES_H

#ifdef CPU_ONE_COPY
#define OF_SIZES static __attribute__((noinline))
#else
#define OF_SIZES static inline __attribute__((always_inline))
#endif

#endif
