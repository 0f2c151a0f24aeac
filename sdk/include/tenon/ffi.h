// SPDX-License-Identifier: MIT
// C functions as primitives, without writing a plugin: callbacks of the application,
// registered while the application runs, and packs made from text manifests (docs/ffi.md).
// Needs the plugin org.tenon.ffi.
//
//   static float clip3(float x, float lo, float hi) { return fminf(fmaxf(x, lo), hi); }
//   ...
//   tn_callback_add(rt, "app.clip3/1", "f32 f32 f32 -> f32", (void (*)(void))clip3, NULL);
//   tn_array *y = tn_op(s, "app.clip3", TN_IN(x, lo, hi), TN_NO_ATTRS);
//
// Threads. All functions may be called from any thread. A callback is called from threads
// of the backend, by several at once unless TN_CALLBACK_SERIAL is given. Within a callback,
// evaluating in the calling runtime, and changing its callbacks, fail with TN_ERR_ARGUMENT:
// the evaluation that runs the callback would wait for itself. Reading arrays that are
// evaluated already works.
#ifndef TENON_FFI_H
#define TENON_FFI_H

#include <tenon/tenon.h>

// A C function to register as a primitive. Filled by the caller, borrowed for the call.
//
// A signature is a list of C parameters, then "->" and the C result. Spaces or commas stand
// between parameters.
//
//   f32 i64 ...         a number, by value. When there are only numbers, the function is
//                       elementwise: called for each element of inputs that broadcast
//   in f64[m, n]        const double *: the elements of an input, row-major without gaps
//   out f64[m]          double *: the elements of an output
//   inout f64[n]        double *: an input that is overwritten with an output
//   in f32[*]           an input of any number of axes; all such have one shape
//   extent m            int64_t: an extent that an input's shape names
//   extent size         int64_t: the number of elements of [*]
//   user                void *: the pointer given with the callback; at any position
//   -> void             outputs are written through pointers
//   -> status           int32_t: anything but 0 makes the evaluation fail
//   -> f32              the only output
//
// Inputs are named x0, x1, ...; outputs out, or out0, out1, ...
typedef struct tn_callback {
    uint32_t struct_size;
    uint32_t flags;         // TN_CALLBACK_...
    const char *primitive;  // id: "app.clip3/1"; borrowed
    const char *signature;  // borrowed
    void (*function)(void); // a function of that signature, kept until the callback is
                            // removed or the runtime closes
    void *user;             // for parameter `user`; kept as long as `function`
} tn_callback;

// Flags of a callback.
enum {
    TN_CALLBACK_SERIAL = 1, // the function is not thread-safe: one call at a time
};

// The interface of the plugin org.tenon.ffi, by the id that tn_interface_find() takes.
#define TN_IFACE_FFI "org.tenon.ffi/1"
typedef struct tn_ffi {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Registers a callback as a primitive of the runtime. The id of a removed callback can
    // be registered again with the same signature and flags. TN_ERR_ARGUMENT for a wrong
    // signature, with the column; TN_ERR_REFUSED when the id is taken. Any thread.
    tn_status (*callback_add)(const tn_host *host, const tn_callback *callback);

    // Removes a callback: waits until no call of the function is running; evaluating the
    // primitive fails from then on. TN_ERR_NOT_FOUND when no callback has the id. Any
    // thread.
    tn_status (*callback_remove)(const tn_host *host, const char *primitive);

    // Reads the manifest in file `manifest`, and writes the pack's plugin to
    // DIRECTORY/ID/ID.so; tn_plugin_describe gives the text of its plugin.json. Gives the
    // id; `out_id` has room for 64 bytes. With a NULL directory, only checks the manifest,
    // its libraries and their symbols. Messages name file, line and field. Any thread.
    tn_status (*pack_make)(const tn_host *host, const char *manifest, const char *directory,
                           char *out_id);
} tn_ffi;

// Gives the interface of the plugin org.tenon.ffi in this runtime, which is loaded if need
// be, and the host table that the interface's functions take. Borrowed until the runtime
// closes.
static inline tn_status tn_ffi_find(tn_runtime *runtime, const tn_ffi **out_ffi,
                                    const tn_host **out_host)
{
    const void *table = NULL;
    tn_status status = tn_interface_find(runtime, TN_IFACE_FFI, &table, out_host);
    if (status == TN_OK)
        *out_ffi = (const tn_ffi *)table;
    return status;
}

// Registers `function`, of the C signature that `signature` describes, as primitive
// `primitive`: callback_add with the interface looked up. Keeps `function` and `user` until
// the callback is removed.
static inline tn_status tn_callback_add(tn_runtime *runtime, const char *primitive,
                                        const char *signature, void (*function)(void),
                                        void *user)
{
    const tn_ffi *ffi = NULL;
    const tn_host *host = NULL;
    tn_callback callback = {
        (uint32_t)sizeof(tn_callback), 0, primitive, signature, function, user};
    tn_status status = tn_ffi_find(runtime, &ffi, &host);
    return status == TN_OK ? ffi->callback_add(host, &callback) : status;
}

// Removes a callback: callback_remove with the interface looked up.
static inline tn_status tn_callback_remove(tn_runtime *runtime, const char *primitive)
{
    const tn_ffi *ffi = NULL;
    const tn_host *host = NULL;
    tn_status status = tn_ffi_find(runtime, &ffi, &host);
    return status == TN_OK ? ffi->callback_remove(host, primitive) : status;
}

#endif // TENON_FFI_H
