// SPDX-License-Identifier: MIT
// The groups of checks of this folder.
#ifndef CONFORMANCE_PLUGIN_GROUPS_H
#define CONFORMANCE_PLUGIN_GROUPS_H

#include "../kit/kit.h"

void group_file(struct kit *k);    // the file, without loading it
void group_entry(struct kit *k);   // the symbol, and the tables from query
void group_process(struct kit *k); // process state that loading must not change
void group_reload(struct kit *k);  // repeated loading, also on other threads
void group_host(struct kit *k);    // hosts that are older, larger, poorer, out of memory

#endif // CONFORMANCE_PLUGIN_GROUPS_H
