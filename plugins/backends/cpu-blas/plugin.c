// SPDX-License-Identifier: MIT
// org.tenon.cpu-blas: the CPU as a device. Expression programs run in vector loops, matrix
// products in OpenBLAS, and other primitives in the plugin's own cpu.c/1 kernels.
#include <string.h>
#include <tenon/ops/quant.h>
#include <tenon/plugin.h>
#include "device/device.h"
#include "open.h"
#include "ops/kernels.h"
#include "run/run.h"

static const char *const families[] = {TN_FAMILY_CPU, TN_FAMILY_EXPR, NULL};

// Fusion saves memory traffic. Beyond this many instructions hardly any is left to save,
// and a program's registers no longer fit the first-level cache.
static uint32_t cpu_fusion_limit(tn_device *device)
{
    (void)device;
    return 64;
}

// The kernels of pack "quant" read all these packings, also of several matrices.
static const tn_packing packings[] = {
#define PACKING(name, plain, ...) TN_QUANT_R16(plain, TN_PACKING_STACKED),
    TN_QUANT_PACKED_FORMATS(PACKING)
#undef PACKING
};

static const tn_backend backend = {
    .struct_size = sizeof(backend),
    .flags = TN_BACKEND_DEFAULT,
    .name = "cpu-blas",
    .families = families,
    .device_count = cpu_device_count,
    .device_info = cpu_device_info,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .step_check = cpu_step_check,
    .fusion_limit = cpu_fusion_limit,
    .buffer_create = cpu_buffer_create,
    .buffer_destroy = cpu_buffer_destroy,
    .buffer_write = cpu_buffer_write,
    .buffer_read = cpu_buffer_read,
    .buffer_map = cpu_buffer_map,
    .segment_compile = cpu_segment_compile,
    .executable_destroy = cpu_executable_destroy,
    .submit = cpu_submit,
    .wait = cpu_wait,
    .memory_info = cpu_memory_info,
    .buffer_import = cpu_buffer_import,
    .device_details = cpu_device_details,
    .signal = cpu_signal,
    .packings = packings,
    .num_packings = sizeof(packings) / sizeof(packings[0]),
    .packing_size = sizeof(packings[0]),
};

static const tn_kernel *const kernels[] = {
#define POINTER(identifier, ...) &identifier##_kernel,
    CPU_KERNELS(POINTER)
#undef POINTER
};

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .kernels = kernels,
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
};

static const void *cpu_query(const char *id)
{
    if (strcmp(id, TN_IFACE_BACKEND) == 0)
        return &backend;
    if (strcmp(id, TN_IFACE_OPS) == 0)
        return &ops;
    return NULL;
}

TN_PLUGIN("org.tenon.cpu-blas", "0.1.0", "Tenon", .query = cpu_query);
