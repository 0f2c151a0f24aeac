// SPDX-License-Identifier: MIT
// Configuration: the environment, read once, through one accessor that honours AT_SECURE;
// and the log that it configures.
#ifndef CORE_BASE_CONFIG_H
#define CORE_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/status.h>
#include "fail.h"

struct config;

// Gives a configuration: `variables` ("NAME=value", ended by NULL; may be NULL) before the
// environment. Under elevated privileges the environment counts as empty.
tn_status config_create(const char *const *variables, struct config **out_config);
// The same, told whether privileges are elevated (for tests of that).
tn_status config_create_as(bool elevated, const char *const *variables,
                           struct config **out_config);
void config_destroy(struct config *config); // NULL is fine

// NULL when unset. Only names of the documented table are known. Borrowed.
const char *config_get(const struct config *config, const char *name);
bool config_switch(const struct config *config, const char *name); // set to "1"
bool config_is_elevated(const struct config *config);

// Variable number `index` of the table and what it is for; NULL past the end.
const char *config_variable(uint32_t index, const char **out_doc);

// Unknown TENON_... variables in the environment (TENON_TEST_... apart), and unknown names
// within known ones, get a warning with the nearest match. `nearest` gives the closest of
// `names` (ended by NULL), or NULL when none is close.
const char *config_nearest(const char *name, const char *const *names);

// $XDG_DATA_HOME or ~/.local/share, $XDG_CACHE_HOME or ~/.cache; NULL under elevated
// privileges or without a home. Borrowed.
const char *config_data_home(const struct config *config);
const char *config_cache_home(const struct config *config);

// The log: to stderr, when TENON_LOG ("info", "warn,sched=debug") asks for it. Default:
// warn.
bool log_wanted(const struct config *config, int level, const char *topic);
void log_write(const struct config *config, int level, const char *topic,
               const char *format, ...) PRINTF_LIKE(4, 5);
void log_write_v(const struct config *config, int level, const char *topic,
                 const char *format, va_list list);

#endif // CORE_BASE_CONFIG_H
