// SPDX-License-Identifier: MIT
// What the host gives a plugin: memory, errors, log, configuration and, by name, services.
//
// Threads. Every slot may be called from any thread, but never from a signal handler. The
// host holds no lock while it calls a plugin; a plugin holds none while it calls the host.
#ifndef TENON_HOST_H
#define TENON_HOST_H

#include <tenon/status.h>
#include <tenon/types.h>

// Log levels. ERROR: the call fails. WARN: it succeeds, slower or less exact than asked.
// INFO: once a process or device. DEBUG: once a graph. TRACE: once an operation.
enum {
    TN_LOG_ERROR = 1,
    TN_LOG_WARN = 2,
    TN_LOG_INFO = 3,
    TN_LOG_DEBUG = 4,
    TN_LOG_TRACE = 5,
};

typedef struct tn_host_self tn_host_self;

// One table per plugin and runtime, constant from init() until deinit() returns.
typedef struct tn_host tn_host;
struct tn_host {
    uint32_t struct_size;
    uint32_t flags;     // 0
    tn_host_self *self; // the host's own
    uint32_t abi_minor; // the effective minor: min(host's newest, plugin's newest)
    uint32_t reserved;  // 0

    // Gives `size` bytes aligned to `alignment` (a power of two; 0: 16), not cleared. NULL
    // when out of memory, and then a failure is recorded. Size 0 gives a valid pointer.
    void *(*alloc)(const tn_host *host, uint64_t size, uint64_t alignment);

    // Takes back what alloc gave. NULL is fine.
    void (*free)(const tn_host *host, void *memory);

    // Records why a call fails, for the calling thread, and returns `status`: so that a
    // function ends with `return host->fail(host, TN_ERR_ARGUMENT, "axis %d ...", axis)`.
    // printf's format. The host adds the operator's or plugin's name in front.
    tn_status (*fail)(const tn_host *host, tn_status status, const char *format, ...);

    // Writes a line to the log when TENON_LOG asks for this level of `topic`.
    void (*log)(const tn_host *host, int32_t level, const char *topic, const char *format,
                ...);

    // The value of a configuration variable ("TENON_THREADS"), read once when the runtime
    // opened; NULL when unset or not permitted. Borrowed until deinit. Plugins never call
    // getenv: this accessor honours elevated privileges.
    const char *(*config)(const tn_host *host, const char *name);

    // A service by id and revision ("tn.host.cache/1"), or NULL when this host has none.
    // Constant until deinit.
    const void *(*query)(const tn_host *host, const char *id);
};

// Service: compiled code kept on disk between runs, in TENON_CACHE_DIR or the user's cache
// directory. Entries are checked against their checksum on reading; a damaged one is
// reported as absent. Failure to store is never an error of the caller.
#define TN_HOST_CACHE "tn.host.cache/1"
typedef struct tn_host_cache {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Finds the entry whose key is the SHA-256 of `key`'s bytes. Gives *out_data (free it
    // with host->free) and *out_size. Returns TN_ERR_NOT_FOUND, recording no failure, when
    // there is none.
    tn_status (*get)(const tn_host *host, const void *key, uint64_t key_size,
                     void **out_data, uint64_t *out_size);

    // Stores a copy of `data` under `key`, replacing an older entry atomically.
    void (*put)(const tn_host *host, const void *key, uint64_t key_size, const void *data,
                uint64_t size);
} tn_host_cache;

// Service: events for the trace of TENON_TRACE. Absent when no trace is being written.
#define TN_HOST_TRACE "tn.host.trace/1"
typedef struct tn_trace_event {
    uint32_t struct_size;
    uint32_t flags;     // 0
    const char *name;   // "base.matmul/1"; borrowed
    const char *detail; // the kernel's name, or NULL; borrowed
    const char *track;  // "cpu-blas:0": one row in the picture; borrowed
    uint64_t begin_ns;  // CLOCK_MONOTONIC
    uint64_t duration_ns;
} tn_trace_event;

// What query(TN_HOST_TRACE) gives. Any thread.
typedef struct tn_host_trace {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Adds an event. Borrows it.
    void (*event)(const tn_host *host, const tn_trace_event *event);
} tn_host_trace;

// Service: code of the application that a kernel calls, such as a callback. It may not wait
// for the runtime, which waits for it.
#define TN_HOST_CALLBACKS "tn.host.callbacks/1"
typedef struct tn_host_callbacks {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Calls body(context) on the calling thread. Until it returns, evaluating in the host's
    // runtime fails on this thread with TN_ERR_ARGUMENT, instead of never coming back. May
    // nest. Any thread.
    void (*call)(const tn_host *host, void (*body)(void *context), void *context);

    // Whether the calling thread is in a `call` for the host's runtime: 1 or 0.
    int32_t (*is_inside)(const tn_host *host);
} tn_host_callbacks;

// Service: the files that lie in the plugin's folder and are listed in its plugin.json.
// What the dynamic linker tells of the plugin's own place (dladdr, $ORIGIN) is a private
// copy of its code, which has no folder.
#define TN_HOST_FILES "tn.host.files/1"
typedef struct tn_host_files {
    uint32_t struct_size;
    uint32_t flags; // 0

    // The plugin's folder, as an absolute path: for what has to be opened by name. Nothing
    // in it is checked then. Borrowed until deinit. Any thread.
    const char *(*directory)(const tn_host *host);

    // Reads the file `name`, as plugin.json lists it ("data/table.bin"). Gives *out_data
    // (free it with host->free; *out_size bytes, and a zero behind them). TN_ERR_NOT_FOUND:
    // it is not listed. TN_ERR_REFUSED: it is not the file that plugin.json describes. Any
    // thread.
    tn_status (*read)(const tn_host *host, const char *name, void **out_data,
                      uint64_t *out_size);
} tn_host_files;

#endif // TENON_HOST_H
