// SPDX-License-Identifier: MIT
// Imported buffers of the small backend of backend.c.
#ifndef BACKEND_IMPORT_H
#define BACKEND_IMPORT_H

#include "backend_run.h"

static void import_destroy(const tn_host *host, tn_buffer *buffer)
{
#ifdef FAULT_IMPORT_BYTES
    host->free(host, buffer->bytes);
#endif
#ifdef FAULT_IMPORT_BYTES_WRITES
    memset(buffer->bytes, 0, buffer->size);
#endif
    host->free(host, buffer);
}

static tn_status import_buffer(const tn_host *host, const tn_buffer_import *import,
                               tn_buffer **out_buffer)
{
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    unsigned char *bytes = import->memory;
    if (!buffer)
        return TN_ERR_MEMORY;
#ifdef FAULT_IMPORT_BYTES
    bytes = host->alloc(host, import->size, 64); // a copy
    if (!bytes)
        return TN_ERR_MEMORY;
    memcpy(bytes, import->memory, import->size);
#endif
#ifdef FAULT_IMPORT_BYTES_BEHIND
    buffer->size = bytes[import->size];
#endif
#ifdef FAULT_IMPORT_MEMORY
    void *second = host->alloc(host, 16, 0);
    if (!second)
        return TN_ERR_MEMORY; // and the buffer is lost
    host->free(host, second);
#endif
    *buffer = (tn_buffer){.size = import->size, .bytes = bytes, .is_imported = true};
    *out_buffer = buffer;
    return TN_OK;
}

#endif // BACKEND_IMPORT_H
