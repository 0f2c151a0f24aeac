// SPDX-License-Identifier: MIT
// Shared by the tests that make modules of SPIR-V.
#ifndef TESTS_KERNELS_SPIRV_VALID_H
#define TESTS_KERNELS_SPIRV_VALID_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "device/device.h"

// By spirv-val, where it is installed.
static inline void expect_valid(const struct vk_code *code)
{
    const char *validator = getenv("TENON_TEST_SPIRV_VAL");
    char path[] = "/tmp/vulkan-spirv-XXXXXX", command[512];
    if (!validator)
        return;
    int file = mkstemp(path);
    cr_assert(file >= 0 && write(file, code->words, code->size) == (ssize_t)code->size);
    close(file);
    snprintf(command, sizeof(command), "%s --target-env vulkan1.3 %s", validator, path);
    int status = system(command);
    unlink(path);
    cr_assert(status == 0, "%s", command);
}

#endif // TESTS_KERNELS_SPIRV_VALID_H
