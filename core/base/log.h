// SPDX-License-Identifier: MIT
// TENON_LOG, parsed: a level for all topics, and rules for single topics. Of two rules for
// one topic the later wins.
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <tenon/host.h>
#include "config.h"

#define LOG_MAX_RULES 16

struct log_rules {
    int level; // TN_LOG_..., for topics without a rule; 0: off
    int count;
    struct log_rule {
        char topic[24];
        int level;
    } rules[LOG_MAX_RULES];
};

// Parses "info" or "warn,sched=debug"; NULL gives the default. Malformed items are skipped;
// log_rules_check warns about these, once the log itself is configured.
struct log_rules log_rules_parse(const char *text);
void log_rules_check(const struct config *config, const char *text);

const struct log_rules *config_log_rules(const struct config *config);

#endif // CORE_BASE_LOG_H
