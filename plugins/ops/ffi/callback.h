// SPDX-License-Identifier: MIT
// Callbacks of applications: see <tenon/ffi.h>.
#ifndef FFI_CALLBACK_H
#define FFI_CALLBACK_H

#include <tenon/ffi.h>
#include <tenon/plugin.h>

// The plugin's init and deinit: begin and end the list of one runtime's callbacks.
tn_status callbacks_open(const tn_host *host);
void callbacks_close(const tn_host *host);

tn_status callback_add(const tn_host *host, const tn_callback *callback);
tn_status callback_remove(const tn_host *host, const char *primitive);

// The host's service for calling application code; NULL when the host has none.
const tn_host_callbacks *callbacks_of(const tn_host *host);

#endif // FFI_CALLBACK_H
