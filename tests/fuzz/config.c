// SPDX-License-Identifier: MIT
// Texts of variables: a line each, whose first byte chooses the variable. Those that name
// files to write are left out.
#include "fuzz.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "plan/override.h"

static const char *const names[] = {
    "TENON_BACKEND",  "TENON_PLUGINS_DISABLE", "TENON_TRUST", "TENON_KERNELS",
    "TENON_FALLBACK", "TENON_THREADS",         "TENON_LOG",   "TENON_CHECK"};
enum { NUM_NAMES = sizeof(names) / sizeof(names[0]), MAX_LINES = 8 };

static void use(tn_runtime *runtime)
{
    char reason[160];
    overridden(runtime, "null", "base.add/1", "org.tenon.null", "add", reason);
    uint64_t count = 0;
    if (tn_devices(runtime, NULL, &count) != TN_OK)
        FUZZ_CHECK(tn_last_error()[0], "a failure has a text");
    FUZZ_CHECK(tn_plugin_count(runtime) < 1000, "plugins");
}

// The log says nothing, but its text is read.
static void read_log_rules(const char *text)
{
    static const char *const quiet[] = {"TENON_LOG=off", NULL};
    struct config *config = NULL;
    struct log_rules rules = log_rules_parse(text);
    FUZZ_CHECK(rules.count <= LOG_MAX_RULES, "%d rules", rules.count);
    FUZZ_CHECK(config_create(quiet, &config) == TN_OK, "%s", fail_text());
    log_rules_check(config, text);
    config_destroy(config);
}

static void open_with(char *const *lines, int count)
{
    const char *variables[MAX_LINES + 3];
    char *owned[MAX_LINES];
    tn_runtime *runtime = NULL;
    for (int i = 0; i < count; i++) {
        const char *name = names[(unsigned char)lines[i][0] % NUM_NAMES];
        const char *value = lines[i][0] ? lines[i] + 1 : "";
        if (strcmp(name, "TENON_LOG") == 0)
            read_log_rules(value);
        FUZZ_CHECK(asprintf(&owned[i], "%s=%s", name, value) > 0, "out of memory");
        variables[i] = owned[i];
    }
    variables[count] = "TENON_LOG=off";
    variables[count + 1] = "TENON_PLUGINS_ONLY=1";
    variables[count + 2] = NULL;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .plugin_path = fuzz_folder(),
                                        .variables = variables};
    if (tn_runtime_open(&options, &runtime) == TN_OK)
        use(runtime);
    else
        FUZZ_CHECK(tn_last_error()[0] && !runtime, "a failure has a text");
    tn_runtime_close(runtime);
    for (int i = 0; i < count; i++)
        free(owned[i]);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    unsetenv("TENON_PLUGIN_PATH"); // no plugin: a device is not opened for each input
    char *text = fuzz_text(data, size), *rest = text, *lines[MAX_LINES];
    int count = 0;
    while (rest && count < MAX_LINES)
        lines[count++] = strsep(&rest, "\n");
    open_with(lines, count);
    free(text);
}
