// SPDX-License-Identifier: MIT
// The only device: opening it ties its memory, its threads, its queues and OpenBLAS
// together.
#ifndef CPU_BLAS_OPEN_H
#define CPU_BLAS_OPEN_H

#include <tenon/backend.h>

tn_status cpu_device_count(const tn_host *host, uint32_t *out_count);
tn_status cpu_device_info(const tn_host *host, uint32_t index, tn_device_info *out);
tn_status cpu_device_details(const tn_host *host, uint32_t index, tn_device_details *out);
tn_status cpu_device_open(const tn_host *host, uint32_t index, tn_device **out_device);
void cpu_device_close(tn_device *device);

#endif // CPU_BLAS_OPEN_H
