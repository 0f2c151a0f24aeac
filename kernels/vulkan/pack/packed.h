// SPDX-License-Identifier: MIT
// Packed code, as embed.py writes it: the tables behind embedded.h. Constant.
#ifndef KERNELS_VULKAN_PACK_PACKED_H
#define KERNELS_VULKAN_PACK_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include "embedded.h"

// Texts: one stream of all files' pieces. A piece is the text of a file between two
// #includes, so that a file which several kernels include is there once.
struct glsl_texts {
    uint32_t packed_size, size; // bytes of the stream, and of what it unpacks to
    // Begin of whole texts; each ends with a NUL.
    uint32_t expression, complex, products, joint, reduce_op, reduce_loop;
};
struct glsl_piece {
    uint32_t begin, size; // bytes of the unpacked texts
};
extern const unsigned char glsl_packed[];
extern const struct glsl_texts glsl_texts;
extern const struct glsl_piece glsl_pieces[];
// The first piece of each module. Further ones follow up to its code_size.
extern const uint16_t glsl_first_piece[];

// SPIR-V: a stream for each module, from spirv_streams[i] up to spirv_streams[i + 1].
extern const unsigned char spirv_packed[];
extern const uint32_t spirv_streams[];

// Unpacks a raw deflate stream to exactly `size` bytes. False: there is no memory.
bool unpack_stream(const unsigned char *packed, size_t packed_size, void *out, size_t size);

#endif // KERNELS_VULKAN_PACK_PACKED_H
