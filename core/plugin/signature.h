// SPDX-License-Identifier: MIT
// How much a plugin has to prove (TENON_TRUST), and signatures in minisign's format.
#ifndef CORE_PLUGIN_SIGNATURE_H
#define CORE_PLUGIN_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>
#include "../base/config.h"
#include "reason.h"

#define SIGNATURE_FILE "plugin.json.minisig"

enum trust_level {
    TRUST_CHECKSUMMED, // each file is the one that the manifest describes
    TRUST_SIGNED,      // and the manifest is signed by a key that is trusted
    TRUST_ANY,         // files may have changed since: for development
};

struct trust_key {
    unsigned char number[8]; // tells keys apart; anybody may choose it
    unsigned char key[32];   // of ed25519
};

// What TENON_TRUST asks for. Zero is the default.
struct trust {
    enum trust_level level;
    const struct config *config; // borrowed while this is open
    struct trust_key *keys;      // trusted ones; read when signatures are asked for
    uint32_t num_keys, capacity;
};

// Borrows `config` until trust_close. Reads the policy and, when it needs them, the keys:
// *.pub in the user's and the system's folders `tenon/trust`. An unknown word is an error:
// a policy is never weakened by a typo.
tn_status trust_open(const struct config *config, struct trust *out);
void trust_close(struct trust *trust);

// With TRUST_SIGNED: the manifest's text is signed by a trusted key. `directory` is the
// open folder of the plugin, `path` is for messages.
tn_status trust_check_signature(const struct trust *trust, int directory, const char *path,
                                const char *text, size_t size, struct reason *reason);

#endif // CORE_PLUGIN_SIGNATURE_H
