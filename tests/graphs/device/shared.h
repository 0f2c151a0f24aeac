// SPDX-License-Identifier: MIT
// What the tests of shared memory begin with: the loader of tests/fixtures/vulkan_loader.c,
// of which TENON_TEST_LOADER says where it is, and a runtime on TENON_TEST_BACKEND.
#ifndef TESTS_GRAPHS_SHARED_H
#define TESTS_GRAPHS_SHARED_H

#include <dlfcn.h>
#include "../support/common.h"
#include "../../fixtures/vulkan_loader.h"

static struct vulkan_faults *faults;
static const char *backend;

static inline void arm(const char *call, uint64_t nth, VkResult result)
{
    atomic_store(&faults->num_calls, 0);
    atomic_store(&faults->num_failed, 0);
    faults->call = call;
    faults->result = result;
    faults->nth = nth;
}

static inline void load(void)
{
    void *loader = dlopen(getenv("TENON_TEST_LOADER"), RTLD_NOW | RTLD_GLOBAL);
    faults = loader ? dlsym(loader, "vulkan_faults") : NULL;
    if (!faults)
        cr_fatal("%s", dlerror());
    *faults = (struct vulkan_faults){0};
    backend = check_getenv("TENON_TEST_BACKEND");
    need_device(backend);
    runtime = open_on(backend);
}

#endif // TESTS_GRAPHS_SHARED_H
