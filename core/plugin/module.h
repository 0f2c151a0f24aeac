// SPDX-License-Identifier: MIT
// Shared objects in this process: loaded once, whatever the number of runtimes.
//
// Threads. Any. No lock is held while the dynamic linker, and with it constructors of
// plugins, runs: who wants a module that another thread is opening waits.
#ifndef CORE_PLUGIN_MODULE_H
#define CORE_PLUGIN_MODULE_H

#include <stdbool.h>
#include <tenon/plugin.h>
#include "copy.h"
#include "reason.h"

struct module;

// Gives the module with this content. Borrows `objects`. `path` is for messages.
tn_status module_acquire(const struct objects *objects, const char *path,
                         struct module **out_module, struct reason *reason);

// The name by which the dynamic linker, and so debuggers, know it. Borrowed.
const char *module_name(const struct module *module);

// A library in the plugin's folder that is not used, because the process has another one of
// its name; NULL when there is none.
const char *module_displaced(const struct module *module);

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
