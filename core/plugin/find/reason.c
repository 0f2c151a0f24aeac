// SPDX-License-Identifier: MIT
// The texts of reasons, each with its remedy.
#include "reason.h"

#include <stdio.h>
#include <string.h>
#include "../../base/text.h"

// The remedy of each code. One %s stands for reason.about.
static const char *const remedies[NUM_REASONS] = {
    [REASON_NONE] = "",
    [REASON_PATH] = "write it as an absolute path",
    [REASON_READ] = "look at %s and at its permissions",
    [REASON_LINK] = "copy the plugin's files there instead of linking them",
    [REASON_OWNER] = "install the plugin as this user or as root",
    [REASON_WRITABLE] = "chmod go-w '%s'",
    [REASON_ACL] = "setfacl -b '%s'",
    [REASON_MANIFEST] = "reinstall the plugin, or generate its plugin.json again",
    [REASON_HASH] = "reinstall the plugin",
    [REASON_ELF] = "rebuild the plugin for this machine with TN_PLUGIN()",
    [REASON_IDENTITY] = "reinstall the plugin, or generate its plugin.json again",
    [REASON_ABI] = "rebuild the plugin with this version's SDK, or update Tenon",
    [REASON_SANITIZER] = "build both with the same sanitizer",
    [REASON_DLOPEN] = "install the libraries that it needs (ldd '%s' lists them)",
    [REASON_PROC] = "mount it (mount -t proc proc /proc)",
    [REASON_CONTRACT] = "report this to the plugin's vendor",
    [REASON_INIT] = "mend what it says, or disable the plugin with TENON_PLUGINS_DISABLE",
    [REASON_RECORD] = "report this to the plugin's vendor",
    [REASON_DISABLED] = "take '%s' out of TENON_PLUGINS_DISABLE",
    [REASON_SHADOWED] = "remove the one that is not wanted",
    [REASON_UNSIGNED] =
        "get it from who signs it, or sign it: tenon plugin sign '%s' KEYFILE",
    [REASON_KEY] = "if you trust its owner, tenon trust add KEY",
    [REASON_SIGNATURE] = "reinstall the plugin",
    [REASON_QUARANTINED] = "reinstall it, or try it again: tenon plugin retry %s",
};

// Appends the remedy, with reason.about in place of its %s.
static void append_remedy(struct reason *reason)
{
    const char *remedy = remedies[reason->code];
    const char *hole = strstr(remedy, "%s");
    size_t used = strlen(reason->text);
    int before = (int)(hole ? (size_t)(hole - remedy) : strlen(remedy));
    snprintf(reason->text + used, sizeof(reason->text) - used, ": %.*s%s%s", before, remedy,
             hole ? reason->about : "", hole ? hole + 2 : "");
}

tn_status reason_record(struct reason *reason, tn_status status, enum reason_code code,
                        const char *about, const char *format, ...)
{
    struct reason made = {.code = code};
    snprintf(made.about, sizeof(made.about), "%s", about ? about : "");
    va_list list;
    va_start(list, format);
    // Leaves 384 bytes for the remedy.
    vsnprintf(made.text, sizeof(made.text) - 384, format, list);
    va_end(list);
    append_remedy(&made);
    text_make_printable(made.text, sizeof(made.text),
                        TN_TEXT_INDENT); // the text quotes manifests, which are untrusted
    *reason = made;
    return fail(status, "%s", made.text);
}
