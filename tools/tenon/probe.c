// SPDX-License-Identifier: MIT
// Deep probing: drivers run code that nobody here wrote, so they are met first in children.
#include "probe.h"
#include "child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_backend(const tn_plugin_info *info)
{
    return info->state == TN_PLUGIN_FOUND && info->backends[0];
}

// "TENON_PLUGINS_DISABLE=...": what it was, and every plugin with a backend but `id`, whose
// drivers would hide which one it was. Free it; NULL when out of memory.
static char *disable_others(const tn_runtime *runtime, const char *id)
{
    const char *given = tn_config(runtime, "TENON_PLUGINS_DISABLE");
    char *text = NULL;
    if (asprintf(&text, "TENON_PLUGINS_DISABLE=%s", given ? given : "") < 0)
        return NULL;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n && text; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        char *longer = NULL;
        if (tn_plugin_get(runtime, i, &info) || !has_backend(&info) ||
            strcmp(info.id, id) == 0)
            continue;
        if (asprintf(&longer, "%s,%s", text, info.id) < 0)
            longer = NULL;
        free(text);
        text = longer;
    }
    return text;
}

// Whether the child came as far as the plugin's own code, by its log.
static bool was_begun(const char *log, const char *id)
{
    char text[96];
    snprintf(text, sizeof(text), "plugin: loading %.63s ", id);
    return strstr(log, text) != NULL;
}

static int probe(tn_runtime *runtime, const char *id, int seconds, probe_tell *tell,
                 void *context)
{
    static const char *const args[] = {"devices", "--json", NULL};
    char *disable = disable_others(runtime, id), fault[CHILD_FAULT];
    const char *const variables[] = {disable,
                                     "TENON_BACKEND=", "TENON_LOG=off,plugin=debug", NULL};
    struct child child;
    int failed = disable ? child_run(args, variables, seconds, &child) : oops_memory();
    if (!failed) {
        if (child_fault(&child, fault)) // a failure is the backend's own to tell
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
        if (tn_plugin_get(runtime, i, &info) == TN_OK && has_backend(&info))
            failed = probe(runtime, info.id, seconds, tell, context);
    }
    return failed;
}

// The backend is not loaded by the runtimes that this process opens from now on: what it
// does is not known. Changes the environment: no other thread runs.
static int leave_out(const char *id)
{
    const char *given = getenv("TENON_PLUGINS_DISABLE");
    char *text;
    if (asprintf(&text, "%s%s%s", given ? given : "", given && given[0] ? "," : "", id) < 0)
        return oops_memory();
    int failed = setenv("TENON_PLUGINS_DISABLE", text, 1) ? oops_memory() : 0;
    free(text);
    return failed;
}

static int quarantine(void *context, const char *id, const char *fault, bool is_own)
{
    char reason[CHILD_FAULT + 48], text[CHILD_FAULT + 256];
    snprintf(reason, sizeof(reason), "it %s while it listed its devices", fault);
    snprintf(text, sizeof(text), "%s: %s%s", id, reason,
             is_own ? ""
                    : ": no fault of its own, so it stays in use, but is not listed now");
    complain(text);
    if (!is_own)
        return leave_out(id);
    return tn_plugin_quarantine(context, id, reason) ? oops_library() : 0;
}

int probe_backends(int seconds)
{
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = probe_each(runtime, seconds, quarantine, runtime);
    tn_runtime_close(runtime);
    return failed;
}
