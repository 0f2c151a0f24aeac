// SPDX-License-Identifier: MIT
// Opens Vulkan's loader and finds its functions. Refuses in a child of fork().
#include "api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A mapping of this name and a process id marks that the process has opened Vulkan, by this
// plugin or another. fork() passes the mapping on to children; exec() drops it.
#define MARK "tenon-vulkan-"

// The process id in the mark; 0: there is no mark.
static long marked_process(void)
{
    char line[512];
    long process = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && process == 0 && fgets(line, sizeof(line), maps)) {
        const char *mark = strstr(line, "/memfd:" MARK);
        if (mark)
            process = strtol(mark + strlen("/memfd:" MARK), NULL, 10);
    }
    if (maps)
        fclose(maps);
    return process;
}

static void mark_process(void)
{
    char name[64];
    snprintf(name, sizeof(name), MARK "%ld", (long)getpid());
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return;
    // Never unmapped: drivers leave threads and state behind until the process ends, too.
    (void)!mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
}

// Whether this process was forked from one that opened Vulkan; if not, marks it. Drivers
// keep threads and state that do not survive fork(), and some crash in such a child.
static bool came_by_fork(char reason[VK_REASON])
{
    long first = marked_process();
    if (first == 0)
        mark_process();
    if (first == 0 || first == (long)getpid())
        return false;
    snprintf(reason, VK_REASON,
             "Vulkan was opened in process %ld before fork(), and its drivers do not "
             "survive that: exec a program of its own, or fork before using Vulkan",
             first);
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
