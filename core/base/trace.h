// SPDX-License-Identifier: MIT
// The trace of TENON_TRACE: spans of host and device work as Chrome's trace-event JSON,
// which Perfetto opens. Like the log, every layer of the core writes to it.
//
// Threads. Any; creation and destruction by one thread, with no other call running.
#ifndef CORE_BASE_TRACE_H
#define CORE_BASE_TRACE_H

#include <stdint.h>
#include "config.h"

struct trace;

// *out_trace is NULL when TENON_TRACE is unset.
tn_status trace_create(const struct config *config, struct trace **out_trace);
void trace_destroy(struct trace *trace, const struct config *config); // NULL is fine

// A span of host work, from trace_begin, whose result is `begin`, to trace_end. `members`
// is a format of members of a JSON object; texts in it must need no escapes. Both functions
// do nothing when `trace` is NULL.
uint64_t trace_begin(const struct trace *trace);
void trace_end(struct trace *trace, uint64_t begin, const char *name, const char *members,
               ...) PRINTF_LIKE(4, 5);

// A span of device work in the row `track`: its name and the kernel that ran (NULL: none).
// `begin_ns` is a time of CLOCK_MONOTONIC.
void trace_kernel(struct trace *trace, const char *track, uint64_t begin_ns,
                  uint64_t duration_ns, const char *name, const char *kernel);

#endif // CORE_BASE_TRACE_H
