// SPDX-License-Identifier: MIT
// Directories of the installation that this libtenon belongs to.
#ifndef CORE_PLUGIN_FIND_INSTALLATION_H
#define CORE_PLUGIN_FIND_INSTALLATION_H

#include <stdbool.h>

enum installed_kind { INSTALLED_PLUGINS, INSTALLED_KEYS, NUM_INSTALLED };

// The system-wide directory of plugins or of trusted keys: beside libtenon's own file, so
// that an installation may be moved; or the configured path, when there are no plugins
// beside libtenon, and under elevated privileges. Borrowed for ever. Any thread.
const char *installed_directory(enum installed_kind kind, bool is_elevated);

// The path by which libtenon was loaded, when it is relative, so that plugins beside it do
// not count, and the configured ones are another installation's. Else NULL.
const char *installed_relative(void);

#endif // CORE_PLUGIN_FIND_INSTALLATION_H
