// SPDX-License-Identifier: MIT
#include "thread.h"

#include <stdatomic.h>

_Thread_local unsigned thread_assigned_number;

unsigned thread_assign_number(void)
{
    static atomic_uint count;
    thread_assigned_number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    return thread_assigned_number;
}
