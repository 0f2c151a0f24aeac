// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4) by nettle, which uses processors' instructions for it: hashing the
// files of plugins takes much of the time of a start. Data that comes in pieces is hashed
// with nettle's own functions.
#ifndef CORE_BASE_SHA256_H
#define CORE_BASE_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>

static inline void sha256_of(const void *data, size_t size, unsigned char out[32])
{
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, size, data);
    sha256_digest(&context, 32, out);
}

#endif // CORE_BASE_SHA256_H
