// SPDX-License-Identifier: MIT
// Numbers of threads, for rows of a trace and to spread threads over places.
#ifndef CORE_BASE_THREAD_H
#define CORE_BASE_THREAD_H

// The calling thread's number, from 1, in the order of the threads' first calls.
unsigned thread_number(void);

#endif // CORE_BASE_THREAD_H
