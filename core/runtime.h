// SPDX-License-Identifier: MIT
// The runtime: what its parts are. Each part is owned by the folder that it is named after.
#ifndef CORE_RUNTIME_H
#define CORE_RUNTIME_H

#include <tenon/tenon.h>
#include "base/config.h"
#include "base/fail.h"
#include "base/life.h"

struct tn_runtime {
    struct life life;           // base/:      who still uses it, in which process
    struct config *config;      // base/
    struct plugin_set *plugins; // plugin/:    manifests, loaded code, reasons
    struct prim_set *prims;     // primitive/: registered primitives and kernels
    struct expr_set *exprs;     // expr/:      parsed expressions and compiled programs
    struct device_set *devices; // sched/:     opened devices in the order of TENON_BACKEND
    struct plan_cache *plans;   // sched/
    struct trace *trace;        // sched/:     TENON_TRACE; NULL when not traced
    struct record *record;      // sched/:     TENON_WHY; NULL when nothing is recorded
    struct shadow *shadow;      // sched/:     TENON_CHECK; NULL when nothing is checked
    tn_runtime *next;           // of those that fork() left behind
};

// Runtime creation calls these in the order of the members, destruction in reverse. A
// destroy function must do nothing when its create failed or was not reached (member NULL).
tn_status plugin_set_create(tn_runtime *runtime, const char *extra_path);
void plugin_set_destroy(tn_runtime *runtime);
tn_status prim_set_create(tn_runtime *runtime);
void prim_set_destroy(tn_runtime *runtime);
tn_status expr_set_create(tn_runtime *runtime);
void expr_set_destroy(tn_runtime *runtime);
// primitive/: the core's own primitive, whose meaning is an expression.
tn_status prim_register_own(tn_runtime *runtime);
tn_status device_set_create(tn_runtime *runtime);
void device_set_destroy(tn_runtime *runtime);
tn_status plan_cache_create(tn_runtime *runtime);
void plan_cache_destroy(tn_runtime *runtime);
tn_status trace_create(tn_runtime *runtime);
void trace_destroy(tn_runtime *runtime);
// A span of the host's work in the trace: what trace_begin gave, and members of a JSON
// object, of numbers and of texts that need no escapes. 0 when nothing is traced.
uint64_t trace_begin(const tn_runtime *runtime);
void trace_end(const tn_runtime *runtime, uint64_t begin, const char *name,
               const char *members, ...) PRINTF_LIKE(4, 5);
tn_status record_create(tn_runtime *runtime);
void record_destroy(tn_runtime *runtime);
tn_status shadow_create(tn_runtime *runtime);
void shadow_destroy(tn_runtime *runtime);

// sched/: warns of what TENON_KERNELS names in vain. Once plugins are known.
void overrides_check(tn_runtime *runtime);

#endif // CORE_RUNTIME_H
