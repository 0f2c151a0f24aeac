// SPDX-License-Identifier: MIT
// org.tenon.nccl: collectives on the memory of NVIDIA's GPUs, which Vulkan shares with
// CUDA, by the NCCL library that is found when a group is opened.
#include <string.h>
#include <tenon/plugin.h>
#include "group.h"

static const tn_device_collective collective = {
    .struct_size = sizeof(collective),
    .name = "nccl",
    .ready = nccl_ready,
    .open = nccl_group_open,
    .close = nccl_group_close,
    .run = nccl_run,
};

static const char *const interfaces[] = {TN_IFACE_DEVICE_COLLECTIVE, NULL};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_DEVICE_COLLECTIVE) == 0 ? (const void *)&collective
           : strcmp(id, TN_IFACE_LIST) == 0            ? (const void *)interfaces
                                                       : NULL;
}

TN_PLUGIN("org.tenon.nccl", "0.1.0", "Tenon", .query = query);
