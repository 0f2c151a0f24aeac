// SPDX-License-Identifier: MIT
// How TENON_LOG is understood: a level for all topics, and levels for some.
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <tenon/host.h>
#include "config.h"

#define LOG_MAX_RULES 16

struct log_rules {
    int level; // for topics without a rule; 0: nothing
    int count;
    struct log_rule {
        char topic[24];
        int level;
    } rules[LOG_MAX_RULES];
};

// Reads "info" or "warn,sched=debug"; NULL gives the default. What cannot be read is left
// out, and log_rules_check warns of it.
struct log_rules log_rules_parse(const char *text);
void log_rules_check(const struct config *config, const char *text);

const struct log_rules *config_log_rules(const struct config *config);

#endif // CORE_BASE_LOG_H
