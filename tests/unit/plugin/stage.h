// SPDX-License-Identifier: MIT
// Directories of plugins, made for one test and removed after it.
#ifndef TESTS_UNIT_PLUGIN_STAGE_H
#define TESTS_UNIT_PLUGIN_STAGE_H

#include "check.h"
#include <tenon/tenon.h>
#include "base/config.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plugin/find/plugin.h"
#include "plugin/host/host.h"
#include "plugin/load/load.h"
#include "plugin/plugin_set.h"

// The directory of the running test. stage_setup makes it and cleans the environment of
// TENON_ variables; stage_teardown removes it.
extern char stage_root[64];
void stage_setup(void);
void stage_teardown(void);

// root/<where>, made with what is above it. Static memory, for 64 calls.
char *stage_path(const char *format, ...) PRINTF_LIKE(1, 2);

void stage_write(const char *path, const void *bytes, size_t size);
char *stage_read(const char *path, size_t *out_size); // free it
void stage_directory(const char *path);               // with what is above it, mode 0755

// Writes <directory>/plugin.json: what tn_plugin_describe says of `file`, in a runtime that
// sees the plugins beside that directory.
void stage_description(const char *directory, const char *file);

// Copies a fixture to <directory>/<id>/plugin.so with the manifest that tn_plugin_describe
// gives. The same without asking the plugin: the manifest says id, version and ABI 1.0.
void stage_fixture(const char *directory, const char *id, const char *fixture);
void stage_by_hand(const char *directory, const char *id, const char *version,
                   const char *fixture);

// A runtime that sees these directories only; more variables may be given, ended by NULL.
tn_runtime *stage_runtime(const char *path, ...);

// The plugin with this id and state; fails the test when there is none.
tn_plugin_info stage_find(tn_runtime *runtime, const char *id, uint32_t state);

// What is written to stderr between the two.
void stage_listen(void);
const char *stage_heard(void);

#endif // TESTS_UNIT_PLUGIN_STAGE_H
