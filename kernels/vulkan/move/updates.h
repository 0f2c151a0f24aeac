// SPDX-License-Identifier: MIT
// Push constants of updates.comp for each of its copies.
#ifndef KERNELS_VULKAN_MOVE_UPDATES_H
#define KERNELS_VULKAN_MOVE_UPDATES_H

#include <stdint.h>

#define UPDATES_AXES 4
#define UPDATES_GROUP 256

// As the structure `region` in updates.comp.
struct updates_region {
    uint32_t n, first_group;
    uint32_t from_offset, to_offset;
    uint32_t extent[UPDATES_AXES - 1];
    uint32_t from_stride[UPDATES_AXES], to_stride[UPDATES_AXES];
    uint32_t number, length, most, stride;
};

#endif // KERNELS_VULKAN_MOVE_UPDATES_H
