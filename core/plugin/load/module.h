// SPDX-License-Identifier: MIT
// Modules: the shared objects of plugins, loaded once per process, whatever the number of
// runtimes. Reference-counted.
//
// Threads. Any. No lock is held while the dynamic linker runs constructors of plugins; a
// thread that wants a module which another thread is opening waits.
#ifndef CORE_PLUGIN_LOAD_MODULE_H
#define CORE_PLUGIN_LOAD_MODULE_H

#include <stdbool.h>
#include <tenon/plugin.h>
#include "copy.h"
#include "../find/reason.h"

struct module;

// Gives a reference to the module with this content, and loads the module if needed.
// Borrows `objects`. `path` is for messages.
tn_status module_acquire(const struct objects *objects, const char *path,
                         struct module **out_module, struct reason *reason);

// Gives the content that a loaded module was made of, with a descriptor of its own, when
// the file open as `fd` is still in the version that was hashed then. Saves hashing the
// same file for every runtime. False: hash the file.
bool module_content(int fd, struct content *out);

// The module's name in the dynamic linker, and so in debuggers. Borrowed.
const char *module_name(const struct module *module);

// The name of a library in the plugin's directory that is not used, because the process has
// another library of the same name; NULL when there is none.
const char *module_displaced(const struct module *module);

// Releases a reference. With `unload`, releasing the last reference closes the module;
// without, the code stays in memory. NULL is fine.
void module_release(struct module *module, bool unload);

// Brackets init and deinit: one thread at a time runs them, whatever the number of
// runtimes. Waits for another thread; false when the calling thread is inside already.
bool module_enter(struct module *module);
void module_leave(struct module *module);

// The symbol tn_plugin_v1, and its size in the ELF symbol table; NULL when it is not
// exported.
const tn_plugin *module_entry(const struct module *module, uint64_t *out_size);

#endif // CORE_PLUGIN_LOAD_MODULE_H
