// SPDX-License-Identifier: MIT
// ABI negotiation between this core and a plugin, and checks of the tables that a loaded
// plugin gives. Each failure fills *reason.
#ifndef CORE_PLUGIN_FIND_ABI_H
#define CORE_PLUGIN_FIND_ABI_H

#include <tenon/plugin.h>
#include "manifest.h"
#include "reason.h"

// The ABI range of this core. A plugin is too old when its newest minor is below minor_min.
extern const struct abi_range abi_host;

// Gives the effective minor: min(host's newest, plugin's newest). TN_ERR_REFUSED when the
// majors differ, or when the effective minor is below the oldest minor of either side.
tn_status abi_negotiate(struct abi_range host, struct abi_range plugin, const char *id,
                        uint32_t *out_minor, struct reason *reason);

// TN_ERR_REFUSED unless the plugin and this core are built with the same sanitizer.
tn_status abi_check_sanitizer(uint32_t sanitizer, const char *id, struct reason *reason);

// Checks the symbol tn_plugin_v1 against the ELF note. `symbol_size` is the symbol's size
// in the ELF symbol table: no byte beyond is read.
tn_status abi_check_entry(const tn_plugin *entry, uint64_t symbol_size, const tn_note *note,
                          struct reason *reason);

// Checks that a backend's table has a valid size, all required slots and a bounded list of
// kernel families.
tn_status abi_check_backend(const tn_backend *backend, const char *id,
                            struct reason *reason);
// Checks that an op pack's table has a valid size, and lists without a NULL entry or name.
tn_status abi_check_ops(const tn_ops *ops, const char *id, struct reason *reason);

#endif // CORE_PLUGIN_FIND_ABI_H
