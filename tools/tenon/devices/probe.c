// SPDX-License-Identifier: MIT
// Probes backends in child processes, because drivers may crash or hang.
#include "probe.h"
#include "base/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool probe_has_backend(const tn_plugin_info *info)
{
    return info->state == TN_PLUGIN_FOUND && info->backends[0];
}

// Returns "TENON_PLUGINS_DISABLE=..." with its present value and every plugin that has a
// backend except `id`, so that a crash is the fault of `id`. Free it; NULL when out of
// memory.
static char *disable_others(const tn_runtime *runtime, const char *id)
{
    const char *given = tn_config(runtime, "TENON_PLUGINS_DISABLE");
    char *text = NULL;
    if (asprintf(&text, "TENON_PLUGINS_DISABLE=%s", given ? given : "") < 0)
        return NULL;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n && text; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        char *longer = NULL;
        if (tn_plugin_get(runtime, i, &info) || !probe_has_backend(&info) ||
            strcmp(info.id, id) == 0)
            continue;
        if (asprintf(&longer, "%s,%s", text, info.id) < 0)
            longer = NULL;
        free(text);
        text = longer;
    }
    return text;
}

// True when the child's log shows that the child began to load the plugin.
static bool was_begun(const char *log, const char *id)
{
    char text[96];
    snprintf(text, sizeof(text), "plugin: loading %.63s ", id);
    return strstr(log, text) != NULL;
}

static int devices_probe(tn_runtime *runtime, const char *id, int seconds, probe_tell *tell,
                         void *context)
{
    static const char *const args[] = {"devices", "--json", NULL};
    char *disable = disable_others(runtime, id), fault[CHILD_FAULT];
    const char *const variables[] = {disable,
                                     "TENON_BACKEND=", "TENON_LOG=off,plugin=debug", NULL};
    struct child child;
    int failed = disable ? child_run(args, variables, seconds, &child) : oops_memory();
    if (!failed) {
        // An exit status is no fault: the backend reports its own failures.
        if (child_fault(&child, fault))
            failed = tell(context, id, fault,
                          child_is_to_blame(&child) && was_begun(child.err, id));
        child_finish(&child);
    }
    free(disable);
    return failed;
}

int probe_each(tn_runtime *runtime, int seconds, probe_tell *tell, void *context)
{
    int failed = 0;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n && !failed; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) == TN_OK && probe_has_backend(&info))
            failed = devices_probe(runtime, info.id, seconds, tell, context);
    }
    return failed;
}

// Keeps runtimes that this process opens later from loading the backend, whose state is
// unknown. Changes the environment: no other thread may run.
static int probe_leave_out(const char *id)
{
    const char *given = getenv("TENON_PLUGINS_DISABLE");
    char *text;
    if (asprintf(&text, "%s%s%s", given ? given : "", given && given[0] ? "," : "", id) < 0)
        return oops_memory();
    int failed = setenv("TENON_PLUGINS_DISABLE", text, 1) ? oops_memory() : 0;
    free(text);
    return failed;
}

static int probe_quarantine(void *context, const char *id, const char *fault, bool is_own)
{
    char reason[CHILD_FAULT + 48], text[CHILD_FAULT + 256];
    snprintf(reason, sizeof(reason), "it %s while it listed its devices", fault);
    snprintf(text, sizeof(text), "%s: %s%s", id, reason,
             is_own ? ""
                    : ": no fault of its own, so it stays in use, but is not listed now");
    complain(text);
    if (!is_own)
        return probe_leave_out(id);
    return tn_plugin_quarantine(context, id, reason) ? oops_library() : 0;
}

int probe_backends(int seconds)
{
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = probe_each(runtime, seconds, probe_quarantine, runtime);
    tn_runtime_close(runtime);
    return failed;
}
