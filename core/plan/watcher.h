// SPDX-License-Identifier: MIT
// Observers of planning (tn_explain, TENON_WHY), called by the stages.
//
// Threads. Called on the thread that plans.
#ifndef CORE_PLAN_WATCHER_H
#define CORE_PLAN_WATCHER_H

#include "plan.h"

struct choice;
struct plan_watcher;

struct plan_watcher_ops {
    // Bracket the placing of one node: candidates rejected in between are the node's. The
    // pairs nest: copies of a node's inputs and the nodes of its decomposition come within.
    void (*begin)(struct plan_watcher *watcher);
    void (*end)(struct plan_watcher *watcher);

    // `candidate`, the name of a kernel, "expression" or the like, cannot run on `device`.
    void (*rejected)(struct plan_watcher *watcher, const struct device *device,
                     const char *candidate, const char *reason);

    // The node runs on device `device` with implementation `choice`. `instead_of` is the
    // preferred device, which cannot run it, or NONE. `choice` is NULL when no device runs
    // the node.
    void (*placed)(struct plan_watcher *watcher, const struct plan_work *work,
                   const struct node *node, uint32_t device, uint32_t instead_of,
                   const struct choice *choice);

    // The plan is complete.
    void (*planned)(struct plan_watcher *watcher, const struct plan_work *work,
                    const struct plan *plan);

    // Planning ended. `plan` is NULL when it failed; the thread's message says why and must
    // stay. Frees the watcher. Called only for watchers that tn_runtime.watch_plan made.
    void (*finish)(struct plan_watcher *watcher, const struct plan *plan);
};

// The first member of each implementation.
struct plan_watcher {
    const struct plan_watcher_ops *ops;
};

static inline void watch_begin(const struct plan_work *work)
{
    if (work->watcher)
        work->watcher->ops->begin(work->watcher);
}

static inline void watch_end(const struct plan_work *work)
{
    if (work->watcher)
        work->watcher->ops->end(work->watcher);
}

static inline void watch_placed(const struct plan_work *work, const struct node *node,
                                uint32_t device, uint32_t instead_of,
                                const struct choice *choice)
{
    if (work->watcher)
        work->watcher->ops->placed(work->watcher, work, node, device, instead_of, choice);
}

#endif // CORE_PLAN_WATCHER_H
