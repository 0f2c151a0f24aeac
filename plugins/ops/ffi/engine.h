// SPDX-License-Identifier: MIT
// The interface between packs and the engine, the plugin org.tenon.ffi. A pack's shared
// object has only the entry points that the core calls (stub.c) and a manifest behind its
// last byte. The engine reads the manifest, and runs the functions.
//
// A pack may be older or newer than the engine that runs it, so these structs grow as the
// SDK's do: at the end only.
//
// Threads. `open` and `close` are called by one thread for a pack; all else by any.
#ifndef FFI_ENGINE_H
#define FFI_ENGINE_H

#include <tenon/plugin.h>

// The entry points of one function: rules and the launch. The core passes no context
// pointer to rules, so each function has code addresses of its own.
struct rules {
    tn_status (*launch)(const tn_cpu_call *call);
    tn_status (*infer)(const tn_infer *infer, tn_type *types);
    uint64_t (*scratch_size)(const tn_kernel_query *query);
    tn_status (*vjp)(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients);
    tn_status (*vmap)(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes);
};

// The id in the note of stub.c. Making a pack overwrites the id with the pack's.
#define FFI_STUB_ID "org.tenon.ffi.pack"

struct ffi_pack; // an open pack (pack.h); opaque to stub.c

#define FFI_IFACE_ENGINE "org.tenon.ffi.engine/1"
struct engine {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Reads the manifest in the shared object `file`. slots[i] are the entry points that
    // pass number i to the functions below. Keeps `slots` until close. `host` is for
    // failures.
    tn_status (*open)(const tn_host *host, const char *file, const struct rules *slots,
                      uint64_t num_slots, struct ffi_pack **out_pack);
    void (*close)(struct ffi_pack *pack);

    // The table that the pack's query gives for TN_IFACE_OPS. Borrowed until close.
    const tn_ops *(*ops)(const struct ffi_pack *pack);

    // The check that the pack's query gives for TN_IFACE_OPS_CHECK: finds the symbols.
    tn_status (*check)(const struct ffi_pack *pack, const tn_host *host,
                       const char *primitive);

    // The entry points of function `number`.
    tn_status (*launch)(const struct ffi_pack *pack, uint64_t number,
                        const tn_cpu_call *call);
    tn_status (*infer)(const struct ffi_pack *pack, uint64_t number, const tn_infer *infer,
                       tn_type *types);
    uint64_t (*scratch_size)(const struct ffi_pack *pack, uint64_t number,
                             const tn_kernel_query *query);
    tn_status (*vjp)(const struct ffi_pack *pack, uint64_t number, const tn_build *build,
                     const tn_rule *rule, tn_array *const *cotangents,
                     const uint64_t *wanted, tn_array **gradients);
    tn_status (*vmap)(const struct ffi_pack *pack, uint64_t number, const tn_build *build,
                      const tn_rule *rule, const int32_t *axes, tn_array **outputs,
                      int32_t *out_axes);
};

#endif // FFI_ENGINE_H
