// SPDX-License-Identifier: MIT
// C functions as primitives, without a plugin of one's own: callbacks of the application,
// registered while it runs, and packs made from text manifests (docs/ffi.md). Needs the
// plugin org.tenon.ffi.
//
//   static float clip3(float x, float lo, float hi) { return fminf(fmaxf(x, lo), hi); }
//   ...
//   tn_callback_add(rt, "app.clip3/1", "f32 f32 f32 -> f32", (void (*)(void))clip3, NULL);
//   tn_array *y = tn_op(s, "app.clip3", TN_IN(x, lo, hi), TN_NO_ATTRS);
//
// Threads. All functions may be called from any thread. A callback is called from threads
// of the backend, by several at once unless TN_CALLBACK_SERIAL is given. In it, evaluating
// in the runtime that calls it, and changing callbacks there, fail with TN_ERR_ARGUMENT:
// the evaluation that it is part of would wait for itself. Reading what is evaluated is
// fine.
#ifndef TENON_FFI_H
#define TENON_FFI_H

#include <tenon/tenon.h>

// A signature is a list of C parameters, then "->" and what is returned. Spaces or commas
// stand between parameters.
//
//   f32 i64 ...         a number, by value. When there are only numbers, the function is
//                       elementwise: called for each element of inputs that broadcast
//   in f64[m, n]        const double *: the elements of an input, row-major without gaps
//   out f64[m]          double *: the elements of an output
//   inout f64[n]        double *: an input that is overwritten with an output
//   in f32[*]           an input of any number of axes; all such have one shape
//   extent m            int64_t: an extent that an input's shape names
//   extent size         int64_t: the number of elements of [*]
//   user                void *: the pointer given with the callback; at any place
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
    void (*function)(void); // a function of that signature, kept until it is removed or the
                            // runtime closes
    void *user;             // kept as long
} tn_callback;

enum {
    TN_CALLBACK_SERIAL = 1, // not thread-safe: one call at a time
};

// The interface of the plugin org.tenon.ffi, by the id that tn_interface_find() takes.
#define TN_IFACE_FFI "org.tenon.ffi/1"
typedef struct tn_ffi {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Registers a callback as a primitive of the runtime. A removed one comes back when its
    // signature and flags are as before. TN_ERR_ARGUMENT for a wrong signature, with the
    // column; TN_ERR_REFUSED when the id is taken.
    tn_status (*callback_add)(const tn_host *host, const tn_callback *callback);

    // Takes the function back: waits until nobody is in it; evaluating the primitive fails
    // from then on. TN_ERR_NOT_FOUND when there is none.
    tn_status (*callback_remove)(const tn_host *host, const char *primitive);

    // Reads the manifest in file `manifest`, and writes the pack's plugin to
    // DIRECTORY/ID/ID.so (without plugin.json: tn_plugin_describe). Gives the id; `out_id`
    // has room for 64 bytes. A NULL directory only checks, and looks whether the libraries
    // and symbols are there. Errors have file, line and field.
    tn_status (*pack_make)(const tn_host *host, const char *manifest, const char *directory,
                           char *out_id);
} tn_ffi;

// The interface in this runtime; loads the plugin. Its functions take *out_host.
static inline tn_status tn_ffi_find(tn_runtime *runtime, const tn_ffi **out_ffi,
                                    const tn_host **out_host)
{
    const void *table = NULL;
    tn_status status = tn_interface_find(runtime, TN_IFACE_FFI, &table, out_host);
    if (status == TN_OK)
        *out_ffi = (const tn_ffi *)table;
    return status;
}

// Registers `function` as the primitive `primitive`, as callback_add does: its signature
// stands at the top of this header. Keeps `user` until it is removed.
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

// Takes it back, as callback_remove does.
static inline tn_status tn_callback_remove(tn_runtime *runtime, const char *primitive)
{
    const tn_ffi *ffi = NULL;
    const tn_host *host = NULL;
    tn_status status = tn_ffi_find(runtime, &ffi, &host);
    return status == TN_OK ? ffi->callback_remove(host, primitive) : status;
}

#endif // TENON_FFI_H
