// SPDX-License-Identifier: MIT
// Where the installation is that this code belongs to.
#ifndef CORE_PLUGIN_PLACE_H
#define CORE_PLUGIN_PLACE_H

#include <stdbool.h>

enum place { PLACE_PLUGINS, PLACE_KEYS, NUM_PLACES };

// The folder of all users' plugins, or of keys: beside libtenon's file, so that an
// installation may be moved; else, and under elevated privileges, where it was configured
// to be. Borrowed for ever. Any thread.
const char *place_of(enum place place, bool is_elevated);

#endif // CORE_PLUGIN_PLACE_H
