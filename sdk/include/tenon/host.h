// SPDX-License-Identifier: MIT
// The host table: functions that the host gives each plugin, for memory, errors, log and
// configuration, and further services by id.
//
//   static const tn_host *host; // kept from init to deinit
//
//   double *table = host->alloc(host, n * sizeof(*table), 0);
//   if (!table)
//       return TN_ERR_MEMORY; // alloc has recorded the failure
//   if (n > most)
//       return host->fail(host, TN_ERR_ARGUMENT, "n is %lld, expected at most %lld", ...);
//   // NULL: this host has no cache.
//   const tn_host_cache *cache = host->query(host, TN_HOST_CACHE);
//
// A plugin that serves several runtimes has a table for each, and uses the one that it was
// called with. Texts that it passes are borrowed for the call.
//
// Threads. Every slot may be called from any thread, but never from a signal handler. The
// host holds no lock while it calls a plugin; a plugin holds none while it calls the host.
#ifndef TENON_HOST_H
#define TENON_HOST_H

#include <tenon/status.h>
#include <tenon/types.h>

// Log levels, by consequence and by frequency. ERROR: the call fails. WARN: the call
// succeeds, slower or less exact than asked. INFO: at most one line for each process or
// device. DEBUG: for each graph. TRACE: for each operation.
enum {
    TN_LOG_ERROR = 1,
    TN_LOG_WARN = 2,
    TN_LOG_INFO = 3,
    TN_LOG_DEBUG = 4,
    TN_LOG_TRACE = 5,
};

// Opaque: the host's own data behind a table. Plugins pass the table, and never read this.
typedef struct tn_host_self tn_host_self;

// The host table of one plugin in one runtime. Filled and owned by the host; constant from
// init() until deinit() returns. Every slot takes the table as its first argument.
typedef struct tn_host tn_host;
struct tn_host {
    uint32_t struct_size; // sizeof(tn_host) as the host was compiled
    uint32_t flags;       // 0
    tn_host_self *self;   // the host's own
    uint32_t abi_minor; // the effective minor version: min(host's newest, plugin's newest)
    uint32_t reserved;  // 0

    // Gives `size` bytes aligned to `alignment` (a power of two; 0: 16), not cleared. NULL
    // when out of memory, and then a failure is recorded. Size 0 gives a valid pointer.
    void *(*alloc)(const tn_host *host, uint64_t size, uint64_t alignment);

    // Frees memory that alloc or a service of this host gave. NULL is fine.
    void (*free)(const tn_host *host, void *memory);

    // Records the reason of a failure for the calling thread, and returns `status`, so that
    // a function ends with `return host->fail(host, TN_ERR_ARGUMENT, "axis %d ...", axis)`.
    // printf's format. Called once, where the fault is found. The host adds the operator's
    // or plugin's name in front.
    tn_status (*fail)(const tn_host *host, tn_status status, const char *format, ...);

    // Writes a line to the log when TENON_LOG asks for this level of `topic`. printf's
    // format, without a newline.
    void (*log)(const tn_host *host, int32_t level, const char *topic, const char *format,
                ...);

    // The value of a configuration variable ("TENON_THREADS"), read once when the runtime
    // opened; NULL when unset or not permitted. Borrowed until deinit. Plugins never call
    // getenv(): this slot leaves out variables that a process with elevated privileges must
    // not take from its environment.
    const char *(*config)(const tn_host *host, const char *name);

    // A service by id and revision ("tn.host.cache/1"), or NULL when this host has none.
    // Constant until deinit.
    const void *(*query)(const tn_host *host, const char *id);
};

// Description of a cache entry, for people who look at it (`tenon cache list`). Texts are
// cut at 255 bytes, and none of them is needed to find the entry: all NULL is fine.
typedef struct tn_cache_about {
    uint32_t struct_size;
    uint32_t flags;     // 0
    const char *kind;   // what the data is: "SPIR-V", "pipelines"; borrowed
    const char *name;   // of what it was made: a kernel's name, or NULL; borrowed
    const char *device; // device and driver it is for, or NULL: for any; borrowed
} tn_cache_about;

// Service: compiled code kept on disk between runs, in TENON_CACHE_DIR or the user's cache
// directory. Reading checks an entry's checksum, and a damaged entry counts as absent.
// Failure to store is never an error of the caller. Any thread.
#define TN_HOST_CACHE "tn.host.cache/1"
typedef struct tn_host_cache {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Gives the entry of `key` (entries are found by the SHA-256 of its bytes): *out_data,
    // to be freed with host->free, and *out_size in bytes. TN_ERR_NOT_FOUND, with no
    // failure recorded, when the cache has no such entry.
    tn_status (*get)(const tn_host *host, const void *key, uint64_t key_size,
                     void **out_data, uint64_t *out_size);

    // Stores a copy of `data`, of at most 64 MiB, under `key`, replacing an older entry
    // atomically. `about` may be NULL.
    void (*put)(const tn_host *host, const void *key, uint64_t key_size, const void *data,
                uint64_t size, const tn_cache_about *about);
} tn_host_cache;

// Service: events for the trace of TENON_TRACE. Absent when no trace is being written.
#define TN_HOST_TRACE "tn.host.trace/1"
typedef struct tn_trace_event {
    uint32_t struct_size;
    uint32_t flags;     // 0
    const char *name;   // "base.matmul/1"; borrowed
    const char *detail; // the kernel's name, or NULL; borrowed
    const char *track;  // "cpu-blas:0": the row of the trace that shows the event; borrowed
    uint64_t begin_ns;  // nanoseconds of CLOCK_MONOTONIC
    uint64_t duration_ns;
} tn_trace_event;

// The table of service TN_HOST_TRACE. Any thread.
typedef struct tn_host_trace {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Adds an event. Borrows it.
    void (*event)(const tn_host *host, const tn_trace_event *event);
} tn_host_trace;

// Service: calls of the application's own code by a kernel, such as a callback. That code
// may not wait for the runtime: the runtime waits for the kernel, so both would wait for
// ever.
#define TN_HOST_CALLBACKS "tn.host.callbacks/1"
typedef struct tn_host_callbacks {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Calls body(context) on the calling thread. Until body returns, evaluating in the
    // host's runtime fails on this thread with TN_ERR_ARGUMENT instead of a deadlock. Calls
    // may nest. Any thread.
    void (*call)(const tn_host *host, void (*body)(void *context), void *context);

    // 1 when the calling thread is within a `call` for the host's runtime, else 0.
    int32_t (*is_inside)(const tn_host *host);
} tn_host_callbacks;

// Service: files in the plugin's folder that its plugin.json lists. dladdr() and $ORIGIN do
// not find the folder: the core loads a private copy of the plugin's code, which lies
// elsewhere.
#define TN_HOST_FILES "tn.host.files/1"
typedef struct tn_host_files {
    uint32_t struct_size;
    uint32_t flags; // 0

    // The plugin's folder, as an absolute path, for libraries that open files by name.
    // Files opened so are not checked against plugin.json. Borrowed until deinit. Any
    // thread.
    const char *(*directory)(const tn_host *host);

    // Reads the file `name`, as plugin.json lists it ("data/table.bin"). Gives *out_data,
    // to be freed with host->free: *out_size bytes, and a zero byte behind them.
    // TN_ERR_NOT_FOUND: plugin.json does not list the file. TN_ERR_REFUSED: the file's hash
    // is not the one in plugin.json. Any thread.
    tn_status (*read)(const tn_host *host, const char *name, void **out_data,
                      uint64_t *out_size);
} tn_host_files;

// Service: interfaces that other plugins offer beside the standard ones (TN_IFACE_LIST).
#define TN_HOST_INTERFACES "tn.host.interfaces/1"
typedef struct tn_host_interfaces {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Gives the interface `id` ("com.vendor.thing/1") and the host table that its functions
    // take. Finds the plugin that offers it by the manifests, and loads that plugin with
    // all checks; called from init, the other plugin's init runs within it. The other
    // plugin stays loaded until the calling plugin's deinit has returned, and both results
    // are borrowed until then. Not in deinit; behind init also an interface of the calling
    // plugin's own. Any thread.
    //
    // TN_ERR_NOT_FOUND: no installed plugin offers the interface; `maker`, or NULL, says in
    // the message what to install: "the plugin com.vendor.thing". TN_ERR_REFUSED: the other
    // plugin cannot be loaded, or it needs the calling plugin itself. Borrows the texts.
    tn_status (*find)(const tn_host *host, const char *id, const char *maker,
                      const void **out_interface, const tn_host **out_host);
} tn_host_interfaces;

#endif // TENON_HOST_H
