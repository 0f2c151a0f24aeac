// SPDX-License-Identifier: MIT
// For applications: what a runtime has done since it was opened, and the memory that it
// holds.
//
// Threads. Any. Counters are read one after the other while work goes on, so that sums over
// several of them are exact only while nothing runs.
#ifndef TENON_STATS_H
#define TENON_STATS_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// Counters of a runtime since it was opened, and the memory that it holds.
typedef struct tn_stats {
    uint32_t struct_size;  // set by the caller; 0: that of ABI 1.0
    uint32_t flags;        // 0
    uint64_t plans_made;   // misses of the plan cache
    uint64_t plan_hits;    // hits of the plan cache
    uint64_t submissions;  // submitted to devices
    uint64_t steps;        // kernel launches submitted
    uint64_t transfers;    // copies between devices
    uint64_t buffer_bytes; // bytes in buffers of arrays and plans now
    uint64_t buffer_peak;  // bytes, the most so far, or up to 128 KiB more a thread
    uint64_t checked;      // launches that TENON_CHECK compared with their definitions
    uint64_t differing;    // of those launches, the ones that differed and were logged
    // Bytes of released buffers that the devices keep for reuse: at most 512 MiB of host
    // memory, or one part in eight of a device's own.
    uint64_t spare_bytes;
    uint64_t plan_bytes; // host memory of cached plans: at most 64 MiB, for 256 plans
    // Bytes of arrays that submitted steps wrote, without working memory of kernels: of an
    // output that is updated in place (tn_in_place.update) the size of the update.
    uint64_t bytes_written;
    uint64_t traces_made;                 // calls of the bodies of functions, to trace them
    uint64_t traces_dropped, traces_held; // dropped as a function had too many; held now
    uint64_t cache_found, cache_missed, cache_unstored; // entries of the disk cache
} tn_stats;

// Fills at most out->struct_size bytes of *out. Any thread.
TN_API void tn_runtime_stats(const tn_runtime *runtime, tn_stats *out);

// Flags of tn_runtime_trim.
enum {
    TN_TRIM_SPARE = 1, // destroys released buffers that devices keep for reuse
    TN_TRIM_PEAK = 2,  // buffer_peak is the most from now on: 0 until buffers are made
    TN_TRIM_WAIT = 4,  // first waits for all work that was submitted, on every device
};

// Waits for the work that uses what goes. Any thread.
TN_API void tn_runtime_trim(tn_runtime *runtime, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif // TENON_STATS_H
