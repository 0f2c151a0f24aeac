// SPDX-License-Identifier: MIT
// Modules of SPIR-V, unpacked one by one.
#include "packed.h"

tn_status own_unpack(const tn_host *host, uint32_t module, void *out_code)
{
    uint32_t begin = spirv_streams[module], size = spirv_streams[module + 1] - begin;
    if (unpack_stream(spirv_packed + begin, size, out_code,
                      (size_t)own_modules[module].code_size))
        return TN_OK;
    return host->fail(host, TN_ERR_MEMORY, "out of memory");
}
