// SPDX-License-Identifier: MIT
// For applications that divide work among devices: those that TENON_BACKEND selects, in
// order, and the memory that each has left.
//
//   tn_selected_device devices[8] = {{.struct_size = sizeof(devices[0])}};
//   uint64_t count = 8;
//   if (tn_selected_devices(rt, devices, &count) == TN_OK && count > 1)
//       tn_scope_device(s, devices[1].device);
//
// tn_devices of <tenon/tenon.h> lists all devices that are installed, for people; it loads
// every backend. This list is of the devices that the runtime has opened to compute on.
//
// Memory. `available` is a snapshot: other programs, and other threads of this one, take
// and give back memory meanwhile. Memory that the runtime holds for reuse counts as
// available. Devices may share one memory: those of equal share_id that is not all 0, and
// those with TN_DEVICE_HOST_MEMORY.
//
// Errors are those of <tenon/tenon.h>: a status, with the sentence in tn_last_error().
//
// Threads. Any thread; the records are the caller's.
#ifndef TENON_SELECTED_H
#define TENON_SELECTED_H

#include <tenon/packing.h>
#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// One device of a runtime. Texts end in a NUL.
typedef struct tn_selected_device {
    uint32_t struct_size; // sizeof(tn_selected_device)
    uint32_t flags;       // of tn_device_info: TN_DEVICE_HOST_MEMORY, ...
    char device[96];      // as tn_scope_device takes it: "vulkan:0"
    char name[128];       // for people, as in tn_device_info
    uint64_t memory_size; // bytes; 0: unknown
    uint64_t available;   // bytes that can still be taken; 0: unknown
    uint8_t share_id[32]; // as in tn_device_info
    uint32_t is_lost;     // 1: the device was lost, for as long as the runtime is open
    uint32_t reserved;    // 0
} tn_selected_device;

// The devices that TENON_BACKEND selects, the preferred one first: at least one. They are
// opened by the first call in a runtime of this function or of one that computes. Writes at
// most *count records, and sets *count to the number of devices; `out` may be NULL.
// out[0].struct_size is the size of the caller's records; 0: that of ABI 1.0.
//
// TN_ERR_ARGUMENT and TN_ERR_NOT_FOUND: TENON_BACKEND names what is not there.
TN_API tn_status tn_selected_devices(tn_runtime *runtime, tn_selected_device *out,
                                     uint64_t *count);

// The packing in which kernels of a device read quantised weights of a plain format
// fastest: *out_packing is the record of the device's backend, valid as long as the runtime
// is open, or NULL: plain rows. So a program that loads a model asks by device and format,
// applies quant.pack with `to` the packing's id where there is one, and gives that id to
// the operators that multiply:
//
//   const tn_packing *packing;
//   if (tn_selected_packing(rt, "vulkan:0", "q4_0", &packing) == TN_OK && packing)
//       w = tn_op(s, "quant.pack", TN_IN(w), tn_attrs("format", "q4_0", "to",
//       packing->id));
//
// `device` is a name as tn_scope_device takes it, of a selected device; TN_ERR_NOT_FOUND
// for others. Borrows the texts. Members behind `unpack` are read through TN_HAS.
TN_API tn_status tn_selected_packing(tn_runtime *runtime, const char *device,
                                     const char *format, const tn_packing **out_packing);

#ifdef __cplusplus
}
#endif

#endif // TENON_SELECTED_H
