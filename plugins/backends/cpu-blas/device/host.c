// SPDX-License-Identifier: MIT
// The host tables that kernels receive.
#include "device.h"

#include <stdarg.h>
#include <stdio.h>

struct cpu_queue *cpu_queue_of(const tn_host *kernel_host)
{
    return ((const struct cpu_host *)(const void *)kernel_host)->queue;
}

// fail() of the host table that kernels receive. Also keeps the message for cpu_wait.
static tn_status kernel_fail(const tn_host *kernel_host, tn_status status,
                             const char *format, ...)
{
    struct cpu_queue *queue = cpu_queue_of(kernel_host);
    char *message = queue->kernel_host.message;
    va_list list;
    va_start(list, format);
    vsnprintf(message, CPU_MESSAGE_SIZE, format, list);
    va_end(list);
    return queue->device->host->fail(queue->device->host, status, "%s", message);
}

bool cpu_is_own_host(const tn_host *kernel_host)
{
    return kernel_host->fail == kernel_fail;
}

void cpu_host_init(struct cpu_queue *queue)
{
    queue->kernel_host = (struct cpu_host){.table = *queue->device->host, .queue = queue};
    queue->kernel_host.table.fail = kernel_fail;
}
