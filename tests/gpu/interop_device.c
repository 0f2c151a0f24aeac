// SPDX-License-Identifier: MIT
// The device of interop.c: memory, timelines and submissions.
#include "interop.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct interop_device interop_vulkan;
const struct nccl_library *interop_library;
unsigned interop_rounds = 400;

void interop_expect(bool holds, const char *what, int code)
{
    if (holds)
        return;
    printf("%s failed: %d\n", what, code);
    exit(1);
}
void interop_check_vk(VkResult result, const char *what)
{
    interop_expect(result == VK_SUCCESS, what, result);
}

void interop_check_cuda(int code, const char *what)
{
    if (code != CUDA_OK)
        printf("%s\n", cuda_error(interop_library, code));
    interop_expect(code == CUDA_OK, what, code);
}

double interop_now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double interop_median(double *times, unsigned count)
{
    qsort(times, count, sizeof(*times), compare_doubles);
    return times[count / 2];
}

// --- the device -------------------------------------------------------------------------

static bool has_name(const VkExtensionProperties *all, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(all[i].extensionName, name) == 0)
            return true;
    return false;
}

static uint32_t read_extensions(const char **out)
{
    static const char *const wanted[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                                         VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME,
                                         VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME};
    VkExtensionProperties *all;
    uint32_t count = 0, used = 0;
    VK(vkEnumerateDeviceExtensionProperties(interop_vulkan.physical, NULL, &count, NULL));
    all = calloc(count, sizeof(*all));
    interop_expect(all != NULL, "calloc", 0);
    VK(vkEnumerateDeviceExtensionProperties(interop_vulkan.physical, NULL, &count, all));
    for (int i = 0; i < 3; i++)
        if (has_name(all, count, wanted[i]))
            out[used++] = wanted[i];
    interop_vulkan.imports_host = has_name(all, count, wanted[2]);
    free(all);
    return used;
}

// The family with compute and the most queues, and another one with compute.
static void choose_families(void)
{
    struct interop_device *it = &interop_vulkan;
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;
    vkGetPhysicalDeviceQueueFamilyProperties(it->physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) &&
            families[i].queueCount > it->num_queues) {
            it->families[0] = i;
            it->num_queues = families[i].queueCount;
        }
    it->num_queues = it->num_queues > 2 ? 2 : it->num_queues;
    it->num_families = 1;
    for (uint32_t i = 0; i < count && it->num_families == 1; i++)
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && i != it->families[0])
            it->families[it->num_families++] = i;
}

static void queues_open(void)
{
    struct interop_device *it = &interop_vulkan;
    for (uint32_t i = 0; i < it->num_queues; i++)
        vkGetDeviceQueue(it->device, it->families[0], i, &it->queues[i]);
    if (it->num_families == 2)
        vkGetDeviceQueue(it->device, it->families[1], 0, &it->queues[2]);
    for (uint32_t i = 0; i < it->num_families; i++)
        VK(vkCreateCommandPool(
            it->device,
            &(VkCommandPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .queueFamilyIndex = it->families[i]},
            NULL, &it->pools[i]));
}

bool interop_open(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_2};
    VkInstance instance;
    const char *extensions[3];
    uint32_t count = 1;
    VkPhysicalDeviceIDProperties id = {.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    if (vkCreateInstance(
            &(VkInstanceCreateInfo){.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                    .pApplicationInfo = &application},
            NULL, &instance) != VK_SUCCESS)
        return false;
    VkResult found = vkEnumeratePhysicalDevices(instance, &count, &interop_vulkan.physical);
    if ((found != VK_SUCCESS && found != VK_INCOMPLETE) || count == 0)
        return false;
    vkGetPhysicalDeviceProperties2(interop_vulkan.physical, &all);
    memcpy(interop_vulkan.uuid, id.deviceUUID, sizeof(interop_vulkan.uuid));
    memcpy(interop_vulkan.name, all.properties.deviceName, sizeof(interop_vulkan.name));
    vkGetPhysicalDeviceMemoryProperties(interop_vulkan.physical, &interop_vulkan.memory);
    choose_families();
    uint32_t num_extensions = read_extensions(extensions);
    const VkPhysicalDeviceVulkan12Features features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .timelineSemaphore = VK_TRUE};
    const float priorities[] = {1, 1};
    const VkDeviceQueueCreateInfo queues[] = {
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = interop_vulkan.families[0],
         .queueCount = interop_vulkan.num_queues,
         .pQueuePriorities = priorities},
        {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
         .queueFamilyIndex = interop_vulkan.families[1],
         .queueCount = 1,
         .pQueuePriorities = priorities}};
    VK(vkCreateDevice(
        interop_vulkan.physical,
        &(VkDeviceCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                              .pNext = &features,
                              .queueCreateInfoCount = interop_vulkan.num_families,
                              .pQueueCreateInfos = queues,
                              .enabledExtensionCount = num_extensions,
                              .ppEnabledExtensionNames = extensions},
        NULL, &interop_vulkan.device));
    queues_open();
    interop_vulkan.get_memory_fd = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(
        interop_vulkan.device, "vkGetMemoryFdKHR");
    interop_vulkan.get_semaphore_fd = (PFN_vkGetSemaphoreFdKHR)vkGetDeviceProcAddr(
        interop_vulkan.device, "vkGetSemaphoreFdKHR");
    return true;
}

// --- memory and timelines ---------------------------------------------------------------

static uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < interop_vulkan.memory.memoryTypeCount; i++)
        if ((allowed >> i & 1) &&
            (interop_vulkan.memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    interop_expect(false, "a memory type", (int)wanted);
    return 0;
}

// Memory of the device: exportable, or seen by the host; `host`: memory of the host
// instead, which is imported.
struct interop_buffer interop_buffer_make(uint64_t size, void *host, bool is_shared)
{
    const VkExternalMemoryHandleTypeFlags kind =
        host ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
             : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kind};
    const VkExportMemoryAllocateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = kind};
    const VkImportMemoryHostPointerInfoEXT imported = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = (VkExternalMemoryHandleTypeFlagBits)kind,
        .pHostPointer = host};
    struct interop_buffer b = {0};
    VkMemoryRequirements needs;
    VK(vkCreateBuffer(interop_vulkan.device,
                      &(VkBufferCreateInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                            .pNext = host || is_shared ? &external : NULL,
                                            .size = size,
                                            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                     VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                     VK_BUFFER_USAGE_TRANSFER_DST_BIT},
                      NULL, &b.handle));
    vkGetBufferMemoryRequirements(interop_vulkan.device, b.handle, &needs);
    const VkMemoryPropertyFlags seen =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = memory_type(needs.memoryTypeBits,
                                (is_shared ? 0 : seen) |
                                    (host ? 0 : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
    b.size = host ? size : needs.size;
    VK(vkAllocateMemory(
        interop_vulkan.device,
        &(VkMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                .pNext = host        ? (const void *)&imported
                                         : is_shared ? (const void *)&exported
                                                     : NULL,
                                .allocationSize = b.size,
                                .memoryTypeIndex = type},
        NULL, &b.memory));
    VK(vkBindBufferMemory(interop_vulkan.device, b.handle, b.memory, 0));
    if (!is_shared)
        VK(vkMapMemory(interop_vulkan.device, b.memory, 0, VK_WHOLE_SIZE, 0,
                       (void **)&b.map));
    return b;
}

// Gives the buffer's memory to CUDA; the microseconds that it takes.
double interop_buffer_share(struct interop_buffer *b)
{
    cuda_memory *memory;
    int fd = -1;
    double began = interop_now_us();
    VK(interop_vulkan.get_memory_fd(
        interop_vulkan.device,
        &(VkMemoryGetFdInfoKHR){.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                .memory = b->memory,
                                .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT},
        &fd));
    CU(interop_library->cuda.ImportMemory(
        &memory,
        &(cuda_memory_handle){.type = CUDA_OPAQUE_FD, .handle.fd = fd, .size = b->size}));
    CU(interop_library->cuda.MapMemory(&b->address, memory,
                                       &(cuda_memory_range){.size = b->size}));
    return interop_now_us() - began;
}

VkSemaphore interop_timeline_make(bool is_shared, cuda_semaphore **out)
{
    const VkExportSemaphoreCreateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkSemaphoreTypeCreateInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .pNext = is_shared ? &exported : NULL,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphore made;
    int fd = -1;
    VK(vkCreateSemaphore(
        interop_vulkan.device,
        &(VkSemaphoreCreateInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                 .pNext = &timeline},
        NULL, &made));
    if (!is_shared)
        return made;
    VK(interop_vulkan.get_semaphore_fd(
        interop_vulkan.device,
        &(VkSemaphoreGetFdInfoKHR){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                   .semaphore = made,
                                   .handleType =
                                       VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT},
        &fd));
    CU(interop_library->cuda.ImportSemaphore(
        out, &(cuda_semaphore_handle){.type = CUDA_TIMELINE_FD, .handle.fd = fd}));
    return made;
}

void interop_timeline_wait(VkSemaphore semaphore, uint64_t value)
{
    double began = interop_now_us();
    for (uint64_t reached = 0; reached < value;) {
        VK(vkGetSemaphoreCounterValue(interop_vulkan.device, semaphore, &reached));
        interop_expect(interop_now_us() - began < 5e6, "waiting for a point", (int)value);
    }
}

VkCommandBuffer interop_commands_begin(uint32_t queue)
{
    VkCommandBuffer commands;
    VK(vkAllocateCommandBuffers(interop_vulkan.device,
                                &(VkCommandBufferAllocateInfo){
                                    .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                    .commandPool = interop_vulkan.pools[queue / 2],
                                    .commandBufferCount = 1},
                                &commands));
    VK(vkBeginCommandBuffer(
        commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO}));
    return commands;
}

void interop_record_barrier(VkCommandBuffer commands)
{
    const VkMemoryBarrier all = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    // ALL_COMMANDS has no stage of the host, which writes before and reads afterwards.
    const VkPipelineStageFlags everything =
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
    vkCmdPipelineBarrier(commands, everything, everything, 0, 1, &all, 0, NULL, 0, NULL);
}

VkCommandBuffer interop_record_copy(const struct interop_buffer *from, uint64_t from_offset,
                                    const struct interop_buffer *to, uint64_t to_offset)
{
    VkCommandBuffer commands = interop_commands_begin(0);
    interop_record_barrier(commands);
    vkCmdCopyBuffer(commands, from->handle, to->handle, 1,
                    &(VkBufferCopy){from_offset, to_offset, BYTES});
    interop_record_barrier(commands);
    VK(vkEndCommandBuffer(commands));
    return commands;
}

// Submits behind `after` of `waits` (0: at once), and signals `value` of `signals`.
void interop_submit(uint32_t queue, VkCommandBuffer commands, VkSemaphore waits,
                    uint64_t after, VkSemaphore signals, uint64_t value)
{
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = after > 0,
        .pWaitSemaphoreValues = &after,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    VK(vkQueueSubmit(interop_vulkan.queues[queue], 1,
                     &(VkSubmitInfo){.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                     .pNext = &values,
                                     .waitSemaphoreCount = after > 0,
                                     .pWaitSemaphores = &waits,
                                     .pWaitDstStageMask =
                                         (const VkPipelineStageFlags[]){
                                             VK_PIPELINE_STAGE_ALL_COMMANDS_BIT},
                                     .commandBufferCount = 1,
                                     .pCommandBuffers = &commands,
                                     .signalSemaphoreCount = 1,
                                     .pSignalSemaphores = &signals},
                     VK_NULL_HANDLE));
}

void interop_run_copy(const struct interop_buffer *from, uint64_t from_offset,
                      const struct interop_buffer *to, uint64_t to_offset)
{
    VkSemaphore timeline = interop_timeline_make(false, NULL);
    VkCommandBuffer commands = interop_record_copy(from, from_offset, to, to_offset);
    interop_submit(0, commands, VK_NULL_HANDLE, 0, timeline, 1);
    interop_timeline_wait(timeline, 1);
    vkDestroySemaphore(interop_vulkan.device, timeline, NULL);
    vkFreeCommandBuffers(interop_vulkan.device, interop_vulkan.pools[0], 1, &commands);
}
