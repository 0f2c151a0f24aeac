// SPDX-License-Identifier: MIT
// Why a plugin is not loaded: a code, the subject of its remedy, and a sentence with the
// remedy.
#ifndef CORE_PLUGIN_FIND_REASON_H
#define CORE_PLUGIN_FIND_REASON_H

#include "../../base/fail.h"

enum reason_code {
    REASON_NONE,
    REASON_PATH,        // an entry of a search path that is not absolute
    REASON_READ,        // a file or directory cannot be read
    REASON_LINK,        // a symbolic link, or no regular file
    REASON_OWNER,       // owned by neither root nor this user
    REASON_WRITABLE,    // others may write it, by its mode
    REASON_ACL,         // others may write it, by its access control list
    REASON_MANIFEST,    // plugin.json is not valid
    REASON_HASH,        // size or hash of a file differs from the manifest
    REASON_ELF,         // no shared object of this machine, or without a valid note
    REASON_IDENTITY,    // manifest, note and symbol differ
    REASON_ABI,         // the ABI ranges do not overlap
    REASON_SANITIZER,   // built with another sanitizer than the core
    REASON_DLOPEN,      // the dynamic linker refused
    REASON_PROC,        // /proc, through which a checked copy is loaded, is absent
    REASON_CONTRACT,    // the loaded code breaks the contract of plugin.h
    REASON_INIT,        // init failed
    REASON_RECORD,      // a primitive, a kernel or a backend is not valid
    REASON_DISABLED,    // by TENON_PLUGINS_DISABLE
    REASON_SHADOWED,    // a higher version, or an equal one found before, is used
    REASON_UNSIGNED,    // no signature, and TENON_TRUST asks for one
    REASON_KEY,         // signed by a key that is not trusted
    REASON_SIGNATURE,   // malformed, or not of this manifest
    REASON_QUARANTINED, // crashed or hung before; see quarantine.c
    NUM_REASONS,
};

struct reason {
    enum reason_code code;
    char about[256]; // subject of the remedy: a path, an id, a pattern
    char text[1024]; // the sentence, with the remedy
};

// Fills *reason, records its text as the thread's failure, and returns `status`. The text
// is the formatted sentence and the remedy of the code.
tn_status reason_record(struct reason *reason, tn_status status, enum reason_code code,
                        const char *about, const char *format, ...) PRINTF_LIKE(5, 6);

#endif // CORE_PLUGIN_FIND_REASON_H
