// SPDX-License-Identifier: MIT
// For applications: arrays in memory of a device that other processes, runtimes and
// libraries use, too, named by a file descriptor. (Memory of the host: tn_array_import_host
// and DLPack's functions of <tenon/tenon.h>.)
//
//   tn_shared_memory memory = {.struct_size = sizeof(memory)};
//   tn_array_export_fd(s, y, &memory); // one process sends memory.fd by SCM_RIGHTS, and
//   x = tn_array_import_fd(s, TN_F32, TN_SHAPE(2, 3), &memory); // the other imports it
//
// Devices. Both devices are the same: the vulkan and vulkan-jit plugins of one GPU and one
// version of its driver, in any process. An import compares `device`, and names what it
// got and what it expected. Vulkan's file descriptors are those of
// VK_KHR_external_memory_fd (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT), which CUDA and
// other users of Vulkan take as well, so memory may also come from there.
//
// Whose memory. An export of an array whose memory came by tn_array_import_fd gives that
// memory; of any other array it copies the elements, on the device, to memory of their own,
// since arrays are immutable and lie close together. Memory lives until the last file
// descriptor is closed and the last import is gone, in whatever process.
//
// Who may write. Nobody, while an array of it is in use anywhere. To hand results over
// again and again, without a copy: export once, import with TN_MEMORY_WRITABLE, and donate
// that array to a function (tn_function_options.donated), whose output then lies in the
// shared memory; the others read their imports meanwhile only when the application has put
// the two in order. Work is over when tn_eval of the output returns, and an import sees all
// that was written before it.
//
// Threads. As for the building functions of <tenon/tenon.h>: one thread at a time for a
// scope.
#ifndef TENON_SHARE_H
#define TENON_SHARE_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// Memory of a device that others use, too. An export fills it but for `strides`, `release`
// and `context`, which are 0; what it filled in can be sent to another process as it is,
// the number `fd` apart.
typedef struct tn_shared_memory {
    uint32_t struct_size; // sizeof(tn_shared_memory); 0: that of ABI 1.0
    uint32_t flags;       // of an import: TN_MEMORY_WRITABLE, as for tn_host_memory
    int32_t fd;
    uint32_t kind; // Vulkan: 1 + the number of the memory type; 0: that of exports
    uint64_t size; // bytes of all the memory, exactly as it was made
    // Bytes: where element (0, 0, ...) lies, a multiple of the size of an element.
    uint64_t offset;
    uint8_t device[32];     // which device's memory: its UUID, then its driver's
    const int64_t *strides; // in elements, one an axis; NULL: row-major without gaps
    void (*release)(void *context); // called once, when the import is not needed any more
    void *context;                  // for release
} tn_shared_memory;

// Evaluates if needed, and gives memory with the array's elements, row-major without gaps
// from `offset` on: its own, or a copy, as said above. A view with gaps is always copied.
// The elements are there when this returns.
//
// The caller closes out->fd, which exec() closes; out->struct_size says how much of the
// record is filled. On failure the record stays as it was, and no file descriptor is left.
//
// TN_ERR_UNSUPPORTED: the array's device shares no memory. TN_ERR_ARGUMENT: the array has
// no elements. TN_ERR_MEMORY: there are no file descriptors, or no memory, for it.
TN_API tn_status tn_array_export_fd(tn_scope *scope, tn_array *array,
                                    tn_shared_memory *out);

// Gives an array whose elements are in that memory, without a copy, on the device of the
// scope (tn_scope_device, else the first of TENON_BACKEND). Borrows the file descriptor,
// which can be closed when this returns.
//
// `release` is called as that of tn_array_import_host: exactly once, by any thread, when no
// array refers to the memory and no work uses it, and on failure before the call returns,
// which then gives NULL.
//
// TN_ERR_UNSUPPORTED: the device shares no memory. TN_ERR_ARGUMENT: memory of another
// device, a file descriptor that is not open or not of such memory, a size or kind that it
// does not have, an offset that is no multiple of an element's size, elements outside of
// the memory, an array without elements. Copies `memory` and what `strides` points to.
TN_API tn_array *tn_array_import_fd(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                                    const tn_shared_memory *memory);

#ifdef __cplusplus
}
#endif

#endif // TENON_SHARE_H
