// SPDX-License-Identifier: MIT
// A 128-bit content hash, for keys of the caches in memory. Equal in every process; not
// cryptographic.
#ifndef VULKAN_DEVICE_HASH_H
#define VULKAN_DEVICE_HASH_H

#include <stdint.h>
#include <string.h>

struct vk_hash {
    uint64_t lo, hi;
};

static inline uint64_t vk_hash_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static inline struct vk_hash vk_hash_u64(struct vk_hash h, uint64_t value)
{
    h.lo = vk_hash_mix(h.lo ^ value) + UINT64_C(0x9e3779b97f4a7c15);
    h.hi = vk_hash_mix(h.hi + value) ^ h.lo;
    return h;
}

static inline struct vk_hash vk_hash_bytes(struct vk_hash h, const void *bytes,
                                           uint64_t size)
{
    const unsigned char *at = bytes;
    h = vk_hash_u64(h, size);
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = vk_hash_u64(h, word);
    }
    uint64_t tail = 0;
    memcpy(&tail, at, size);
    return vk_hash_u64(h, tail);
}

static inline struct vk_hash vk_hash_text(struct vk_hash h, const char *text)
{
    return vk_hash_bytes(h, text, strlen(text));
}

static inline int vk_hash_equal(struct vk_hash a, struct vk_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

#endif // VULKAN_DEVICE_HASH_H
