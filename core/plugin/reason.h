// SPDX-License-Identifier: MIT
// Why a plugin is not loaded: a code, what it is about, and a sentence with the remedy.
#ifndef CORE_PLUGIN_REASON_H
#define CORE_PLUGIN_REASON_H

#include "../base/fail.h"

enum reason_code {
    REASON_NONE,
    REASON_PATH,        // an entry of a search path that is not absolute
    REASON_READ,        // the system does not let us read it
    REASON_LINK,        // a symbolic link, or no regular file
    REASON_OWNER,       // neither root's nor the user's
    REASON_WRITABLE,    // by others
    REASON_ACL,         // by somebody in its access control list
    REASON_MANIFEST,    // plugin.json is not what it must be
    REASON_HASH,        // a file is not the one that the manifest describes
    REASON_ELF,         // no shared object of this machine, or without a sound note
    REASON_IDENTITY,    // manifest, note and symbol do not say the same
    REASON_ABI,         // ranges do not meet
    REASON_SANITIZER,   // instrumented otherwise than the core
    REASON_DLOPEN,      // the dynamic linker refused
    REASON_CONTRACT,    // the loaded code breaks the contract of plugin.h
    REASON_INIT,        // init failed
    REASON_RECORD,      // a primitive, a kernel or a backend is not accepted
    REASON_DISABLED,    // by TENON_PLUGINS_DISABLE
    REASON_SHADOWED,    // another directory has a higher version
    REASON_UNSIGNED,    // TENON_TRUST asks for a signature
    REASON_KEY,         // signed by a key that is not trusted
    REASON_SIGNATURE,   // none, or of something else
    REASON_QUARANTINED, // it crashed or hung while somebody watched
    NUM_REASONS,
};

struct reason {
    enum reason_code code;
    char about[256]; // a path, a pattern, another directory
    char text[1024]; // the sentence
};

// Fills *reason, records it as the thread's failure, and returns `status`. The text is what
// the format gives, and the remedy of the code.
tn_status reason_record(struct reason *reason, tn_status status, enum reason_code code,
                        const char *about, const char *format, ...) PRINTF_LIKE(5, 6);

#endif // CORE_PLUGIN_REASON_H
