// SPDX-License-Identifier: MIT
// The trust policy (TENON_TRUST), and signatures of manifests in minisign's format.
#ifndef CORE_PLUGIN_FIND_SIGNATURE_H
#define CORE_PLUGIN_FIND_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>
#include "../../base/config.h"
#include "reason.h"

#define SIGNATURE_FILE "plugin.json.minisig"

enum trust_level {
    TRUST_CHECKSUMMED, // files have the sizes and hashes in the manifest
    TRUST_SIGNED,      // and a trusted key signed the manifest
    TRUST_ANY,         // sizes and hashes are not checked: for development
};

struct trust_key {
    unsigned char number[8]; // minisign's key number; not unique, its maker chooses it
    unsigned char key[32];   // the public Ed25519 key
};

// The policy that TENON_TRUST sets. Zero is the default. Constant until trust_close().
struct trust {
    enum trust_level level;
    const struct config *config; // borrowed until trust_close()
    struct trust_key *keys;      // trusted keys; read only for TRUST_SIGNED
    uint32_t num_keys, capacity;
};

// Borrows `config` until trust_close. Reads the policy and, for TRUST_SIGNED, the trusted
// keys: *.pub in the user's and the system's directories `tenon/trust`. An unknown word is
// an error: a typo must not weaken the policy.
tn_status trust_open(const struct config *config, struct trust *out);
void trust_close(struct trust *trust);

// With TRUST_SIGNED, refuses the plugin unless a trusted key signed the manifest's text.
// `directory` is the plugin's open directory; `path` is for messages.
tn_status trust_check_signature(const struct trust *trust, int directory, const char *path,
                                const char *text, size_t size, struct reason *reason);

#endif // CORE_PLUGIN_FIND_SIGNATURE_H
