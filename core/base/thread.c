// SPDX-License-Identifier: MIT
#include "thread.h"

#include <stdatomic.h>

unsigned thread_number(void)
{
    static atomic_uint count;
    static _Thread_local unsigned number; // 0: not assigned yet
    if (!number)
        number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    return number;
}
