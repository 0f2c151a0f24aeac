// SPDX-License-Identifier: MIT
// The runtime: the state of the folders of core/. A folder's header declares the functions
// that create and destroy its part. Creation goes from the lower layers to the higher ones,
// destruction in reverse. The pointers are constant while the runtime is open; each part
// has locks of its own.
#ifndef CORE_BASE_RUNTIME_H
#define CORE_BASE_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/tenon.h>
#include "config.h"
#include "fail.h"
#include "life.h"
#include "trace.h"

struct device;
struct intern_set;

struct tn_runtime {
    struct life life;            // base/:      opening process, objects in use
    struct config *config;       // base/
    struct trace *trace;         // base/:      TENON_TRACE; NULL when not traced
    struct intern_set *interned; // attr/:     texts and lists of attributes
    struct expr_set *exprs;      // expr/:      parsed expressions and compiled programs
    struct prim_set *prims;      // primitive/: registered primitives and kernels
    struct plugin_set *plugins;  // plugin/:    manifests, loaded code, reasons of refusals
    // plugin/: entries of the disk cache, for tn_stats
    _Atomic uint64_t cache_found, cache_missed, cache_unstored;
    struct device_set *devices; // device/:    opened devices in the order of TENON_BACKEND
    const void *graph_service;  // transform/: what TN_HOST_GRAPH is for plugins
    pthread_mutex_t counted_lock;    // graph/:   guards references of counted arrays
    pthread_cond_t counted_returned; // graph/:   an evaluation gave nodes back
    _Atomic uint64_t num_effects;    // graph/:   nodes with effects that were built
    struct plan_cache *plans;        // plan/:      plans by signature
    // run/: traces of functions, for tn_stats
    _Atomic uint64_t traces_made, traces_dropped, traces_held;
    struct effects *effects;  // run/:       the order of effects
    const void *graph_format; // file/:     what TN_HOST_GRAPH_FORMAT is
    // Wraps each opened device in a backend that checks its results. Set by check/ for
    // TENON_CHECK; else NULL.
    tn_status (*wrap_device)(struct device *device);
    struct checker *checker; // check/: TENON_CHECK; NULL when nothing is checked
    // Gives a watcher for a plan that is made without one. Set by watch/ for TENON_WHY;
    // else NULL. See plan/watcher.h.
    struct plan_watcher *(*watch_plan)(tn_runtime *runtime);
    struct why_log *why_log; // watch/:   TENON_WHY; NULL when nothing is logged
    tn_runtime *next; // in the list of inherited runtimes that a child of fork() closed
};

#endif // CORE_BASE_RUNTIME_H
