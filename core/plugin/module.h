// SPDX-License-Identifier: MIT
// Shared objects in this process: loaded once, whatever the number of runtimes.
//
// Threads. Any. No lock is held while the dynamic linker, and with it constructors of
// plugins, runs: who wants a module that another thread is opening waits.
#ifndef CORE_PLUGIN_MODULE_H
#define CORE_PLUGIN_MODULE_H

#include <stdbool.h>
#include <tenon/plugin.h>
#include "reason.h"

struct module;

// Gives the module of the file open as `fd`, whose content has this SHA-256. Borrows fd.
tn_status module_acquire(int fd, const unsigned char sha256[32], const char *path,
                         struct module **out_module, struct reason *reason);

// Takes it back. `unload`: its code leaves the process with the last reference; else it
// stays for good. NULL is fine.
void module_release(struct module *module, bool unload);

// Around init and deinit, which one thread calls at a time, whatever the number of
// runtimes. Others wait; a thread that is in one of them already gets false.
bool module_enter(struct module *module);
void module_leave(struct module *module);

// The symbol tn_plugin_v1 and its size by the symbol table; NULL: not exported.
const tn_plugin *module_entry(const struct module *module, uint64_t *out_size);

#endif // CORE_PLUGIN_MODULE_H
