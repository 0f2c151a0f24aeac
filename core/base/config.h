// SPDX-License-Identifier: MIT
// Configuration: TENON_* variables, read once from the environment (which is ignored under
// AT_SECURE); and the log, which TENON_LOG configures.
//
// Threads. Any: a configuration is constant after its creation.
#ifndef CORE_BASE_CONFIG_H
#define CORE_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/status.h>
#include "fail.h"

struct config;

// Gives a configuration. `variables` ("NAME=value", ended by NULL; may be NULL) override
// the environment, which counts as empty under elevated privileges. Unknown TENON_...
// variables (except TENON_TEST_...) and invalid values are logged as warnings and ignored;
// an unknown name in `variables` is an error.
tn_status config_create(const char *const *variables, struct config **out_config);
// For tests: config_create with `elevated` in place of AT_SECURE.
tn_status config_create_as(bool elevated, const char *const *variables,
                           struct config **out_config);
void config_destroy(struct config *config); // NULL is fine

// The value of a variable; NULL when unset, invalid or unknown. Borrowed.
const char *config_get(const struct config *config, const char *name);
bool config_switch(const struct config *config, const char *name); // set to "1"
bool config_is_elevated(const struct config *config);

// Name and description of variable number `index`; NULL past the end.
const char *config_variable(uint32_t index, const char **out_doc);

// The closest of `names` (ended by NULL) to `name`, for "did you mean"; NULL when none is
// close.
const char *config_nearest(const char *name, const char *const *names);

// $XDG_DATA_HOME or ~/.local/share, $XDG_CACHE_HOME or ~/.cache; NULL under elevated
// privileges or without a home. Borrowed.
const char *config_data_home(const struct config *config);
const char *config_cache_home(const struct config *config);

// The log, on stderr. TENON_LOG ("info", "warn,sched=debug") sets the level of all topics
// or of single ones; the default is warn. `config` may be NULL: the default.
bool log_wanted(const struct config *config, int level, const char *topic);
void log_write(const struct config *config, int level, const char *topic,
               const char *format, ...) PRINTF_LIKE(4, 5);
void log_write_v(const struct config *config, int level, const char *topic,
                 const char *format, va_list list);

#endif // CORE_BASE_CONFIG_H
