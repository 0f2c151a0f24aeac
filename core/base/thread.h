// SPDX-License-Identifier: MIT
// Numbers of threads, for rows of a trace and to spread threads over entries; and the
// distance of memory that different threads write, since threads that write one cache line
// wait for each other. Intel's processors fetch lines in pairs.
#ifndef CORE_BASE_THREAD_H
#define CORE_BASE_THREAD_H

#define LINES_APART 128 // bytes

// The calling thread's number, 0 before its first call of thread_number(). Not of the TLS
// model initial-exec: one such variable puts all thread-local data of the library, with
// the 2 KB of a message, into what the C library reserves for libraries that are opened
// later, where there is no room: dlopen(), so Python, could not load libtenon.
extern _Thread_local unsigned thread_assigned_number;
unsigned thread_assign_number(void);

// The calling thread's number, from 1, in the order of the threads' first calls.
static inline unsigned thread_number(void)
{
    return thread_assigned_number ? thread_assigned_number : thread_assign_number();
}

#endif // CORE_BASE_THREAD_H
