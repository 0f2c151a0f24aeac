// SPDX-License-Identifier: MIT
// Unpacks deflate streams: zlib.
#include <assert.h>
#include <zlib.h>
#include "packed.h"

bool unpack_stream(const unsigned char *packed, size_t packed_size, void *out, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)packed,
                       .avail_in = (uInt)packed_size,
                       .next_out = out,
                       .avail_out = (uInt)size};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) // negative: without a header
        return false;
    int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    // The stream is part of the plugin, whose hash was checked: only memory can be missing.
    assert(status == Z_STREAM_END || status == Z_MEM_ERROR);
    return status == Z_STREAM_END && stream.avail_out == 0;
}
