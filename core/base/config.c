// SPDX-License-Identifier: MIT
// Configuration: one table of all TENON_* variables. Values are read and checked once, at
// creation, and constant after.
#include "config.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "log.h"
#include "memory.h"
#include "number.h"

enum variable_kind {
    ANY_TEXT, // checked by the part of the core that uses the variable
    SWITCH,   // 0 or 1
    COUNT,    // an integer from 1 to `most`
    SHARE,    // a number from 0 to 1
    WORD,     // one of `words`
    FOLDER,   // an absolute path; whether it exists is not checked
};

static const char *const fallback_words[] = {"error", "warn", "allow", NULL};
static const char *const matrices_words[] = {"none", "khr", "nv2", NULL};
static const char *const cpu_words[] = {"baseline", "avx2", "avx512", "amx", NULL};
static const char *const switch_words[] = {"0", "1", NULL};

static const struct config_variable {
    const char *name;
    const char *doc;
    enum variable_kind kind;
    const char *const *words; // SWITCH and WORD: ended by NULL
    long most;                // COUNT
} variables[] = {
    {"TENON_BACKEND", "backends to run on, the preferred first: vulkan-jit:0,cpu-blas",
     ANY_TEXT, NULL},
    {"TENON_PLUGIN_PATH", "directories of plugins, by colon, searched before the others",
     ANY_TEXT, NULL},
    {"TENON_PLUGINS_ONLY", "1: only plugins in TENON_PLUGIN_PATH count", SWITCH,
     switch_words},
    {"TENON_PLUGINS_DISABLE", "plugins to leave out, by comma, with globs: com.acme.*",
     ANY_TEXT, NULL},
    {"TENON_TRUST", "what a plugin has to prove: any, checksummed or signed", ANY_TEXT,
     NULL},
    {"TENON_KERNELS", "kernels to prefer or refuse: nn.softmax@vulkan=!com.acme.*",
     ANY_TEXT, NULL},
    {"TENON_FALLBACK", "what a node does that falls back: error, warn or allow", WORD,
     fallback_words},
    {"TENON_THREADS", "threads of a CPU backend, from 1 to 256", COUNT, NULL, 256},
    {"TENON_CPU", "kernels of the CPU at most: baseline, avx2, avx512 or amx", WORD,
     cpu_words},
    {"TENON_CPU_STREAM", "bytes of a step from which a CPU backend writes past the caches",
     COUNT, NULL, LONG_MAX / 2}, // more than any machine has; sums do not overflow
    {"TENON_GRAPH_LIMIT", "bytes that planning a graph from a file may take", COUNT, NULL,
     LONG_MAX / 2},
    {"TENON_LM_MEMORY", "bytes of each device that a language model may have", COUNT, NULL,
     LONG_MAX / 2},
    {"TENON_LOG", "log levels by topic: info, or warn,sched=debug", ANY_TEXT, NULL},
    {"TENON_TRACE", "file to write a Perfetto trace to", ANY_TEXT, NULL},
    {"TENON_WHY", "file of the last runs' reasons: see tenon why last", ANY_TEXT, NULL},
    {"TENON_CHECK", "share of launches to check by definition: 0.01", SHARE, NULL},
    {"TENON_VULKAN_VALIDATION", "1: validation layers of Vulkan, to the log", SWITCH,
     switch_words},
    {"TENON_VULKAN_AS_GPU", "1: software Vulkan is treated as a GPU", SWITCH, switch_words},
    {"TENON_VULKAN_MATRICES", "cooperative matrices: none, khr or nv2", WORD,
     matrices_words},
    {"TENON_CACHE_DIR", "folder of compiled code", FOLDER, NULL},
    {"TENON_MPI", "the MPI library of collectives: libmpi.so.40, or a path", ANY_TEXT,
     NULL},
    {"TENON_MPI_MESSAGES", "1: collectives share no memory", SWITCH, switch_words},
    {"TENON_NCCL", "NCCL of collectives between GPUs, a path; off: none", ANY_TEXT, NULL},
    {"TENON_NCCL_LEAST", "bytes from which GPUs use NCCL", COUNT, NULL, INT32_MAX},
    {"TENON_RUN", "set by tenon run: which rank this process is", ANY_TEXT, NULL},
    {"TENON_DLCLOSE", "1: unload plugins when the last runtime closes", SWITCH,
     switch_words},
#ifdef TN_FAULT_INJECTION
    {"TENON_FAIL_ALLOC", "for tests: the allocation, counted from 1, that fails", COUNT,
     NULL, INT32_MAX},
#endif
};
#define NUM_VARIABLES (sizeof(variables) / sizeof(variables[0]))

struct config {
    char *values[NUM_VARIABLES]; // by position in `variables`; NULL: unset or invalid
    char *data_home, *cache_home;
    struct log_rules log;
    bool elevated; // AT_SECURE: the environment counts as empty
};

// --- nearest name ----------------------------------------------------------------------

#define MAX_NAME 96

static int config_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : (unsigned char)c;
}

// Levenshtein distance, ignoring letter case. SIZE_MAX: longer than MAX_NAME.
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1], size_a = strlen(a), size_b = strlen(b);
    if (size_a > MAX_NAME || size_b > MAX_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= size_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= size_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= size_b; j++) {
            size_t best = diagonal + (config_lower(a[i - 1]) != config_lower(b[j - 1]));
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[size_b];
}

// The shortest of `names` that contains `name` (of three letters at least). Names that
// begin with `name` win over others.
static const char *config_containing(const char *name, const char *const *names)
{
    const char *best = NULL;
    bool best_begins = false;
    size_t size = strlen(name);
    for (; size >= 3 && names && *names; names++) {
        bool begins = strncasecmp(*names, name, size) == 0;
        if (!strcasestr(*names, name) || (best_begins && !begins))
            continue;
        if (!best || (begins && !best_begins) || strlen(*names) < strlen(best))
            best = *names;
        best_begins |= begins;
    }
    return best;
}

const char *config_nearest(const char *name, const char *const *names)
{
    const char *const *all = names;
    size_t best = 2 + strlen(name) / 4; // a larger distance is no plausible typing error
    const char *nearest = NULL;
    for (; names && *names; names++) {
        size_t distance = edit_distance(name, *names);
        if (distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest ? nearest : config_containing(name, all);
}

static const char *nearest_variable(const char *name)
{
    const char *names[NUM_VARIABLES + 1];
    for (size_t i = 0; i < NUM_VARIABLES; i++)
        names[i] = variables[i].name;
    names[NUM_VARIABLES] = NULL;
    return config_nearest(name, names);
}

// --- reading ---------------------------------------------------------------------------

static size_t variable_index(const char *name, size_t size)
{
    for (size_t i = 0; i < NUM_VARIABLES; i++)
        if (strlen(variables[i].name) == size && memcmp(variables[i].name, name, size) == 0)
            return i;
    return NUM_VARIABLES;
}

static tn_status config_set_value(struct config *config, size_t index, const char *value)
{
    char *copy = NULL;
    if (*value) { // an empty value counts as unset
        copy = mem_strdup(value);
        if (!copy)
            return TN_ERR_MEMORY;
    }
    mem_free(config->values[index]);
    config->values[index] = copy;
    return TN_OK;
}

static tn_status read_environment(struct config *config)
{
    for (size_t i = 0; i < NUM_VARIABLES; i++) {
        const char *value = getenv(variables[i].name);
        tn_status status = value ? config_set_value(config, i, value) : TN_OK;
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static tn_status read_given(struct config *config, const char *const *given)
{
    for (; given && *given; given++) {
        const char *equals = strchr(*given, '=');
        if (!equals)
            return fail(TN_ERR_ARGUMENT, "variable '%s': expected NAME=value", *given);
        size_t size = (size_t)(equals - *given);
        size_t index = variable_index(*given, size);
        if (index == NUM_VARIABLES) {
            char name[MAX_NAME + 1] = "";
            memcpy(name, *given, size < MAX_NAME ? size : MAX_NAME);
            const char *nearest = nearest_variable(name);
            return fail(TN_ERR_ARGUMENT, "variable '%s' is not known%s%s%s", name,
                        nearest ? "; did you mean " : "", nearest ? nearest : "",
                        nearest ? "?" : "");
        }
        tn_status status = config_set_value(config, index, equals + 1);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

// --- checking --------------------------------------------------------------------------

static void warn_unknown_names(const struct config *config)
{
    for (char **entry = environ; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        if (strncmp(*entry, "TENON_", 6) != 0 || !equals ||
            strncmp(*entry, "TENON_TEST_", 11) == 0)
            continue;
        size_t size = (size_t)(equals - *entry);
        if (variable_index(*entry, size) < NUM_VARIABLES || size > MAX_NAME)
            continue;
        char name[MAX_NAME + 1] = "";
        memcpy(name, *entry, size);
        const char *nearest = nearest_variable(name);
        log_write(config, TN_LOG_WARN, "config", "%s is not a variable of Tenon%s%s%s",
                  name, nearest ? "; did you mean " : "", nearest ? nearest : "",
                  nearest ? "?" : "");
    }
}

static bool is_count(const char *value, long most)
{
    char *end;
    long number = strtol(value, &end, 10);
    return *value >= '0' && *value <= '9' && !*end && number >= 1 && number <= most;
}

static bool is_share(const char *value)
{
    char *end;
    double share = text_to_double(value, &end);
    return end != value && !*end && share >= 0 && share <= 1;
}

static bool config_is_word(const char *value, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(*words, value) == 0)
            return true;
    return false;
}

static bool config_is_valid(const struct config_variable *variable, const char *value)
{
    switch (variable->kind) {
    case COUNT:
        return is_count(value, variable->most);
    case SHARE:
        return is_share(value);
    case FOLDER:
        return value[0] == '/';
    case SWITCH:
    case WORD:
        return config_is_word(value, variable->words);
    case ANY_TEXT:
        break;
    }
    return true;
}

static void describe_expected(const struct config_variable *variable, char *text,
                              size_t size)
{
    static const char *const kinds[] = {[SHARE] = "a number from 0 to 1",
                                        [FOLDER] = "an absolute path",
                                        [SWITCH] = "0 or 1"};
    if (variable->kind == COUNT)
        snprintf(text, size, "an integer from 1 to %ld", variable->most);
    else
        snprintf(text, size, "%s",
                 variable->kind == WORD ? variable->doc : kinds[variable->kind]);
}

// Warns about each invalid value and unsets the variable, so that its default applies.
static void check_values(struct config *config)
{
    for (size_t i = 0; i < NUM_VARIABLES; i++) {
        const struct config_variable *variable = &variables[i];
        char *value = config->values[i], expected[128];
        if (!value || config_is_valid(variable, value))
            continue;
        const char *nearest =
            variable->kind == WORD ? config_nearest(value, variable->words) : NULL;
        describe_expected(variable, expected, sizeof(expected));
        log_write(config, TN_LOG_WARN, "config", "%s=%s is ignored: expected %s%s%s%s",
                  variable->name, value, expected, nearest ? "; did you mean " : "",
                  nearest ? nearest : "", nearest ? "?" : "");
        mem_free(value);
        config->values[i] = NULL;
    }
}

// --- homes -----------------------------------------------------------------------------

// The value of `xdg` if absolute, else $HOME/`below_home`; NULL without either.
static tn_status find_home(const char *xdg, const char *below_home, char **out_path)
{
    const char *value = getenv(xdg), *home = getenv("HOME");
    *out_path = NULL;
    if (value && value[0] == '/')
        *out_path = mem_strdup(value);
    else if (home && home[0] == '/')
        *out_path = mem_printf("%s/%s", home, below_home);
    else
        return TN_OK;
    return *out_path ? TN_OK : TN_ERR_MEMORY;
}

static tn_status find_homes(struct config *config)
{
    tn_status status = find_home("XDG_DATA_HOME", ".local/share", &config->data_home);
    if (status == TN_OK)
        status = find_home("XDG_CACHE_HOME", ".cache", &config->cache_home);
    return status;
}

// --- life ------------------------------------------------------------------------------

// Reads the environment first, so that `given` overrides it. Warnings come last, because
// TENON_LOG decides whether these are shown.
static tn_status config_fill(struct config *config, const char *const *given)
{
    tn_status status = TN_OK;
    if (!config->elevated)
        status = read_environment(config);
    if (status == TN_OK && !config->elevated)
        status = find_homes(config);
    if (status == TN_OK)
        status = read_given(config, given);
    if (status != TN_OK)
        return status;
    config->log = log_rules_parse(config_get(config, "TENON_LOG"));
    if (!config->elevated)
        warn_unknown_names(config);
    log_rules_check(config, config_get(config, "TENON_LOG"));
    check_values(config);
    return TN_OK;
}

tn_status config_create_as(bool elevated, const char *const *given,
                           struct config **out_config)
{
    struct config *config = mem_zalloc(sizeof(*config));
    if (!config)
        return TN_ERR_MEMORY;
    config->elevated = elevated;
    tn_status status = config_fill(config, given);
    if (status != TN_OK) {
        config_destroy(config);
        return status;
    }
#ifdef TN_FAULT_INJECTION
    const char *nth = config_get(config, "TENON_FAIL_ALLOC");
    if (nth)
        mem_fail_nth(atol(nth));
#endif
    *out_config = config;
    return TN_OK;
}

tn_status config_create(const char *const *given, struct config **out_config)
{
    return config_create_as(getauxval(AT_SECURE) != 0, given, out_config);
}

void config_destroy(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < NUM_VARIABLES; i++)
        mem_free(config->values[i]);
    mem_free(config->data_home);
    mem_free(config->cache_home);
    mem_free(config);
}

const char *config_get(const struct config *config, const char *name)
{
    size_t index = variable_index(name, strlen(name));
    return index < NUM_VARIABLES ? config->values[index] : NULL;
}

bool config_switch(const struct config *config, const char *name)
{
    const char *value = config_get(config, name);
    return value && strcmp(value, "1") == 0;
}

const char *config_variable(uint32_t index, const char **out_doc)
{
    if (index >= NUM_VARIABLES)
        return NULL;
    *out_doc = variables[index].doc;
    return variables[index].name;
}

bool config_is_elevated(const struct config *config)
{
    return config->elevated;
}

const char *config_data_home(const struct config *config)
{
    return config->data_home;
}

const char *config_cache_home(const struct config *config)
{
    return config->cache_home;
}

const struct log_rules *config_log_rules(const struct config *config)
{
    return &config->log;
}
