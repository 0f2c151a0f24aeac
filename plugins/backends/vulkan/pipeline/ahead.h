// SPDX-License-Identifier: MIT
// Makes the pipelines of a segment's later steps on threads, while the caller makes that of
// the step it is at: compilers and drivers take from one to a hundred milliseconds for
// each.
//
// The caller plans all steps in order. Where a pipeline is missing, helpers plan steps that
// the caller has not come to. What they plan is thrown away: all that stays are pipelines.
// What fails there fails again, and is reported, when the caller comes to it. A segment
// whose pipelines are all there starts no thread.
#ifndef VULKAN_PIPELINE_AHEAD_H
#define VULKAN_PIPELINE_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <tenon/plugin.h>

#define VK_AHEAD_THREADS 15 // beside the caller

struct vk_ahead;
struct vk_ahead_thread {
    struct vk_ahead *ahead;
    uint32_t number;
    pthread_t handle;
};

struct vk_ahead {
    const tn_host *host;
    uint32_t num_steps;
    uint32_t num_others; // threads that are busy besides, the caller not counted
    // Plans a step into a plan that is thrown away; `thread`: at most VK_AHEAD_THREADS, and
    // no other has the number.
    void (*plan)(void *context, uint32_t thread, uint32_t step);
    void *context;
    // State of ahead.c: 0 at first.
    uint32_t reached; // the step that the caller is at
    bool begun; // the fields below are there; of interest to the caller's thread alone
    pthread_mutex_t lock; // guards the fields below
    bool stop;
    uint32_t next; // the first step that no thread has begun
    uint32_t num_threads, max_threads;
    struct vk_ahead_thread threads[VK_AHEAD_THREADS];
};

// The caller comes to a step.
void vk_ahead_reach(struct vk_ahead *ahead, uint32_t step);

// A pipeline is about to be made: one more thread looks for the next one, if there are
// steps left and threads allowed, TENON_THREADS or one a core in all. `is_helper`: one that
// a helper found to be missing. NULL: planning ahead is off.
void vk_ahead_more(struct vk_ahead *ahead, bool is_helper);

// The caller has to wait for a pipeline: plans one more step ahead meanwhile. False when
// nothing is left.
bool vk_ahead_help(struct vk_ahead *ahead);

// Waits for the helpers, which begin no further step.
void vk_ahead_finish(struct vk_ahead *ahead);

#endif // VULKAN_PIPELINE_AHEAD_H
