// SPDX-License-Identifier: MIT
// Parses and applies TENON_KERNELS; see override.h.
#include "override.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../plugin/load/plugins.h"

// One rule "primitive[@backend]=[!]glob"; rules are separated by ';'. The primitive is a
// glob over ids with or without revision. The glob after '=' is over "plugin" and
// "plugin/kernel": kernels that do not match are refused, with '!' those that do.
struct kernel_override {
    char primitive[96], backend[64], kernel[96];
    bool exclude;
};

static bool override_put(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);
    if (length >= size)
        return false;
    memcpy(field, text, length + 1);
    return true;
}

static bool parse_override(const char *text, size_t length, struct kernel_override *out)
{
    char copy[256];
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *out = (struct kernel_override){0};
    char *equals = strchr(copy, '=');
    if (!equals)
        return false;
    *equals = 0;
    const char *kernel = equals + 1;
    out->exclude = *kernel == '!';
    kernel += out->exclude;
    char *at = strchr(copy, '@');
    if (at)
        *at = 0;
    return copy[0] && *kernel &&
           override_put(out->primitive, sizeof(out->primitive), copy) &&
           override_put(out->backend, sizeof(out->backend), at ? at + 1 : "*") &&
           override_put(out->kernel, sizeof(out->kernel), kernel);
}

static bool glob_primitive(const char *glob, const char *id)
{
    char without_revision[96];
    snprintf(without_revision, sizeof(without_revision), "%.*s", (int)strcspn(id, "/"), id);
    return fnmatch(glob, id, 0) == 0 || fnmatch(glob, without_revision, 0) == 0;
}

const char *overridden(const tn_runtime *runtime, const char *backend,
                       const char *primitive, const char *plugin, const char *kernel,
                       char reason[160])
{
    const char *list = config_get(runtime->config, "TENON_KERNELS");
    char full[256];
    snprintf(full, sizeof(full), "%s/%s", plugin, kernel);
    while (list && *list) {
        size_t length = strcspn(list, ";");
        struct kernel_override rule;
        if (parse_override(list, length, &rule) &&
            glob_primitive(rule.primitive, primitive) &&
            fnmatch(rule.backend, backend, 0) == 0) {
            bool matches =
                fnmatch(rule.kernel, plugin, 0) == 0 || fnmatch(rule.kernel, full, 0) == 0;
            if (matches == rule.exclude) {
                snprintf(reason, 160, "TENON_KERNELS says \"%.*s\"",
                         (int)(length < 100 ? length : 100), list);
                return reason;
            }
        }
        list += length + (list[length] == ';');
    }
    return NULL;
}

// --- globs that match nothing ----------------------------------------------------------

static bool any_matches(const char *glob, const char *const *names,
                        bool (*matches)(const char *glob, const char *name))
{
    for (; *names; names++)
        if (matches(glob, *names))
            return true;
    return false;
}

static bool glob_name(const char *glob, const char *name)
{
    return fnmatch(glob, name, 0) == 0;
}

static void override_warn_no_match(const tn_runtime *runtime, const char *what,
                                   const char *glob, const char *const *names)
{
    const char *nearest = config_nearest(glob, names);
    log_write(runtime->config, TN_LOG_WARN, "config",
              "TENON_KERNELS: '%s' matches no %s%s%s%s", glob, what,
              nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

// Whether the glob matches the plugin or one of its kernels, listed as "primitive family
// name".
static bool glob_kernels(const char *glob, const tn_plugin_info *info)
{
    if (glob_name(glob, info->id))
        return true;
    for (const char *const *kernel = info->kernels; *kernel; kernel++) {
        char full[256];
        snprintf(full, sizeof(full), "%s/%s", info->id, strrchr(*kernel, ' ') + 1);
        if (glob_name(glob, full))
            return true;
    }
    return false;
}

static void override_check_kernel(tn_runtime *runtime, const char *glob)
{
    uint64_t count = tn_plugin_count(runtime);
    const char **ids = mem_zalloc((count + 1) * sizeof(*ids));
    bool matched = !ids;
    for (uint64_t i = 0; i < count && !matched; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        matched = tn_plugin_get(runtime, i, &info) == TN_OK && glob_kernels(glob, &info);
        ids[i] = info.id;
    }
    if (!matched)
        override_warn_no_match(runtime, "plugin and no kernel", glob, ids);
    mem_free(ids);
}

void overrides_check(tn_runtime *runtime)
{
    const char *list = config_get(runtime->config, "TENON_KERNELS");
    for (size_t length; list && *list; list += length + (list[length] == ';')) {
        struct kernel_override rule;
        length = strcspn(list, ";");
        if (!parse_override(list, length, &rule)) {
            log_write(
                runtime->config, TN_LOG_WARN, "config",
                "TENON_KERNELS: '%.*s' is ignored: expected PRIMITIVE@BACKEND=PLUGIN, "
                "or =!PLUGIN to refuse its kernels",
                (int)length, list);
            continue;
        }
        const char *const *primitives = plugin_primitive_names(runtime);
        const char *const *backends = plugin_backend_names(runtime);
        if (!any_matches(rule.primitive, primitives, glob_primitive))
            override_warn_no_match(runtime, "primitive", rule.primitive, primitives);
        if (!any_matches(rule.backend, backends, glob_name))
            override_warn_no_match(runtime, "backend", rule.backend, backends);
        override_check_kernel(runtime, rule.kernel);
    }
}
