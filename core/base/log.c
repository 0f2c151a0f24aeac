// SPDX-License-Identifier: MIT
// The log: lines on stderr, filtered by the levels and topics of TENON_LOG.
#include "log.h"

#include <stdio.h>
#include <string.h>
#include "text.h"

static const char *const level_names[] = {"off",   "error", "warn", "info",
                                          "debug", "trace", NULL};
// Topics of the core and of the project's own backends. Other plugins may log under any
// topic.
static const char *const topics[] = {"cache",  "check",  "config", "cpu-blas",
                                     "device", "plugin", "sched",  "trace",
                                     "vulkan", "why",    NULL};
#define DEFAULT_LEVEL TN_LOG_WARN
#define MAX_LINE 2048

static int parse_level(const char *text, size_t size)
{
    for (int level = 0; level_names[level]; level++)
        if (strlen(level_names[level]) == size &&
            memcmp(level_names[level], text, size) == 0)
            return level;
    return -1;
}

// Adds one item of the list, "debug" or "sched=debug", to `rules`. False when the item is
// malformed or the table is full.
static bool parse_item(struct log_rules *rules, const char *item, size_t size)
{
    const char *equals = memchr(item, '=', size);
    if (!equals) {
        int level = parse_level(item, size);
        if (level >= 0)
            rules->level = level;
        return level >= 0;
    }
    size_t topic_size = (size_t)(equals - item);
    int level = parse_level(equals + 1, size - topic_size - 1);
    struct log_rule *rule = &rules->rules[rules->count];
    if (level < 0 || topic_size == 0 || rules->count == LOG_MAX_RULES ||
        topic_size >= sizeof(rule->topic))
        return false;
    memcpy(rule->topic, item, topic_size);
    rule->topic[topic_size] = 0;
    rule->level = level;
    rules->count++;
    return true;
}

struct log_rules log_rules_parse(const char *text)
{
    struct log_rules rules = {.level = DEFAULT_LEVEL};
    while (text && *text) {
        size_t size = strcspn(text, ",");
        parse_item(&rules, text, size);
        text += size + (text[size] == ',');
    }
    return rules;
}

// An unknown topic may be a plugin's own, so only a near miss of a known topic is reported.
static void check_topic(const struct config *config, const char *topic)
{
    const char *nearest = config_nearest(topic, topics);
    if (nearest && strcmp(nearest, topic) != 0)
        log_write(config, TN_LOG_WARN, "config",
                  "TENON_LOG: no topic is named '%s'; did you mean %s?", topic, nearest);
}

void log_rules_check(const struct config *config, const char *text)
{
    while (text && *text) {
        struct log_rules rules = {0};
        size_t size = strcspn(text, ",");
        if (size && !parse_item(&rules, text, size)) {
            char item[32] = "";
            const char *equals = memchr(text, '=', size);
            const char *level = equals ? equals + 1 : text;
            size_t level_size = size - (size_t)(level - text);
            memcpy(item, level, level_size < 31 ? level_size : 31);
            const char *nearest = config_nearest(item, level_names);
            log_write(
                config, TN_LOG_WARN, "config",
                "TENON_LOG: '%.*s' is ignored: expected off, error, warn, info, debug or "
                "trace, alone or after topic=%s%s%s",
                (int)size, text, nearest ? "; did you mean " : "", nearest ? nearest : "",
                nearest ? "?" : "");
        }
        if (rules.count)
            check_topic(config, rules.rules[0].topic);
        text += size + (text[size] == ',');
    }
}

bool log_wanted(const struct config *config, int level, const char *topic)
{
    if (!config)
        return level <= DEFAULT_LEVEL;
    const struct log_rules *rules = config_log_rules(config);
    for (int i = rules->count - 1; i >= 0; i--)
        if (topic && strcmp(rules->rules[i].topic, topic) == 0)
            return level <= rules->rules[i].level;
    return level <= rules->level;
}

void log_write_v(const struct config *config, int level, const char *topic,
                 const char *format, va_list list)
{
    if (level < TN_LOG_ERROR || level > TN_LOG_TRACE || !log_wanted(config, level, topic))
        return;
    char line[MAX_LINE];
    vsnprintf(line, sizeof(line), format, list);
    text_make_printable(line, sizeof(line), TN_TEXT_INDENT);
    char name[64];
    tn_text_printable(topic ? topic : "-", TN_TEXT_ONE_LINE, name, sizeof(name));
    // One call, so that lines of several threads do not mix.
    fprintf(stderr, "tenon: %s: %s: %s\n", level_names[level], name, line);
}

void log_write(const struct config *config, int level, const char *topic,
               const char *format, ...)
{
    va_list list;
    va_start(list, format);
    log_write_v(config, level, topic, format, list);
    va_end(list);
}
