// SPDX-License-Identifier: MIT
// What the parts of interop.c share: one device of Vulkan, its buffers and timelines, and
// the library of CUDA and NCCL. What fails ends the program.
#ifndef TESTS_GPU_INTEROP_H
#define TESTS_GPU_INTEROP_H

#include <stdio.h>
#include <vulkan/vulkan.h>
#include "library.h"

enum { BYTES = 16384, WORDS = BYTES / 4, CHAIN = 8, MOST_ROUNDS = 4096 };

struct interop_device {
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queues[3];      // two of a family, where it has two, and one of another one
    VkCommandPool pools[2]; // of either family
    VkPhysicalDeviceMemoryProperties memory;
    unsigned char uuid[VK_UUID_SIZE];
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    uint32_t families[2], num_families, num_queues;
    bool imports_host;
    PFN_vkGetMemoryFdKHR get_memory_fd;
    PFN_vkGetSemaphoreFdKHR get_semaphore_fd;
};
extern struct interop_device interop_vulkan;
extern const struct nccl_library *interop_library; // NULL: without CUDA
extern unsigned interop_rounds;

struct interop_buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    uint64_t size; // of the memory
    unsigned char *map;
    cuda_address address; // as CUDA sees it
};

#define VK(call) interop_check_vk(call, #call)
#define CU(call) interop_check_cuda(call, #call)

void interop_expect(bool holds, const char *what, int code);
void interop_check_vk(VkResult result, const char *what);
void interop_check_cuda(int code, const char *what);
double interop_now_us(void);
double interop_median(double *times, unsigned count);
bool interop_open(void);
struct interop_buffer interop_buffer_make(uint64_t size, void *host, bool is_shared);
double interop_buffer_share(struct interop_buffer *b);
VkSemaphore interop_timeline_make(bool is_shared, cuda_semaphore **out);
void interop_timeline_wait(VkSemaphore semaphore, uint64_t value);
VkCommandBuffer interop_commands_begin(uint32_t queue); // of interop_device.queues
void interop_record_barrier(VkCommandBuffer commands);
VkCommandBuffer interop_record_copy(const struct interop_buffer *from, uint64_t from_offset,
                                    const struct interop_buffer *to, uint64_t to_offset);
void interop_submit(uint32_t queue, VkCommandBuffer commands, VkSemaphore waits,
                    uint64_t after, VkSemaphore signals, uint64_t value);
void interop_run_copy(const struct interop_buffer *from, uint64_t from_offset,
                      const struct interop_buffer *to, uint64_t to_offset);
void interop_exchange(void);

#endif // TESTS_GPU_INTEROP_H
