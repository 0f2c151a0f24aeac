// SPDX-License-Identifier: MIT
// Negotiation: may this core and that plugin talk, and in which minor version?
#ifndef CORE_PLUGIN_ABI_H
#define CORE_PLUGIN_ABI_H

#include <tenon/plugin.h>
#include "manifest.h"
#include "reason.h"

// What this core offers: the oldest minor a plugin may have stopped at, and the newest.
extern const struct abi_range abi_host;

// The effective minor: min(host's newest, plugin's newest). Refused with both ranges when
// it is below either's oldest, or when the majors differ.
tn_status abi_negotiate(struct abi_range host, struct abi_range plugin, const char *id,
                        uint32_t *out_minor, struct reason *reason);

// Both sides are instrumented alike.
tn_status abi_check_sanitizer(uint32_t sanitizer, const char *id, struct reason *reason);

// A struct of `size` bytes by its own account, made by a plugin: at least `least` bytes,
// and zero from `known` on. `what` is for messages.
tn_status abi_check_struct(const void *start, uint64_t size, uint64_t least, uint64_t known,
                           const char *what, const char *id, struct reason *reason);

// The symbol tn_plugin_v1, of `symbol_size` bytes by the ELF symbol table, against the
// note.
tn_status abi_check_entry(const tn_plugin *entry, uint64_t symbol_size, const tn_note *note,
                          struct reason *reason);

// The backend's table has what every backend must have.
tn_status abi_check_backend(const tn_backend *backend, const char *id,
                            struct reason *reason);
tn_status abi_check_ops(const tn_ops *ops, const char *id, struct reason *reason);

#endif // CORE_PLUGIN_ABI_H
