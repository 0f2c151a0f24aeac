// SPDX-License-Identifier: MIT
// Finding Vulkan's functions.
#include "api.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

// Drivers keep threads and descriptors that fork() does not duplicate; some crash in a
// child that opens them again.
static bool came_by_fork(char reason[VK_REASON])
{
    static _Atomic pid_t first;
    pid_t unset = 0, mine = getpid();
    if (atomic_compare_exchange_strong(&first, &unset, mine) || unset == mine)
        return false;
    snprintf(reason, VK_REASON,
             "Vulkan was opened in process %ld before fork(), and its drivers do not "
             "survive that: exec a program of its own, or fork before using Vulkan",
             (long)unset);
    return true;
}

bool vk_loader_open(struct vk_loader *loader, char reason[VK_REASON])
{
    *loader = (struct vk_loader){0};
    if (came_by_fork(reason))
        return false;
    *loader =
        (struct vk_loader){.library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!loader->library) {
        const char *why = dlerror();
        snprintf(reason, VK_REASON,
                 "Vulkan's loader cannot be opened (%.300s): install libvulkan1",
                 why ? why : "libvulkan.so.1");
        return false;
    }
    loader->GetInstanceProcAddr = (PFN_vkGetInstanceProcAddr)(uintptr_t)dlsym(
        loader->library, "vkGetInstanceProcAddr");
    if (loader->GetInstanceProcAddr) {
#define LOAD(name)                                                                         \
    loader->name = (PFN_vk##name)loader->GetInstanceProcAddr(NULL, "vk" #name);
        VK_GLOBAL_FUNCTIONS(LOAD)
#undef LOAD
    }
    if (loader->CreateInstance && loader->EnumerateInstanceVersion)
        return true;
    vk_loader_close(loader);
    snprintf(reason, VK_REASON,
             "libvulkan.so.1 knows no Vulkan 1.1: install a newer libvulkan1");
    return false;
}

void vk_loader_close(struct vk_loader *loader)
{
    if (loader->library)
        dlclose(loader->library);
    *loader = (struct vk_loader){0};
}

void vk_instance_api_load(const struct vk_loader *loader, VkInstance instance,
                          struct vk_instance_api *out)
{
#define LOAD(name)                                                                         \
    out->name = (PFN_vk##name)loader->GetInstanceProcAddr(instance, "vk" #name);
    VK_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
}

void vk_device_api_load(const struct vk_instance_api *instance, VkDevice device,
                        struct vk_device_api *out)
{
#define LOAD(name)                                                                         \
    out->name = (PFN_vk##name)instance->GetDeviceProcAddr(device, "vk" #name);
    VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
}

const char *vk_result_name(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
#define NAME(result) {result, #result}
        NAME(VK_SUCCESS),
        NAME(VK_NOT_READY),
        NAME(VK_TIMEOUT),
        NAME(VK_INCOMPLETE),
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY),
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY),
        NAME(VK_ERROR_INITIALIZATION_FAILED),
        NAME(VK_ERROR_DEVICE_LOST),
        NAME(VK_ERROR_MEMORY_MAP_FAILED),
        NAME(VK_ERROR_LAYER_NOT_PRESENT),
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT),
        NAME(VK_ERROR_FEATURE_NOT_PRESENT),
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER),
        NAME(VK_ERROR_TOO_MANY_OBJECTS),
        NAME(VK_ERROR_FRAGMENTED_POOL),
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY),
        NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE),
        NAME(VK_ERROR_UNKNOWN),
#undef NAME
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].result == result)
            return names[i].name;
    return "an unknown Vulkan error";
}
