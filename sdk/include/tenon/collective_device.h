// SPDX-License-Identifier: MIT
// Collectives on memory of devices: plugins that move elements between the GPUs of a group
// that tn_collective made, without the host's memory between.
//
//   static const tn_device_collective nccl = {.struct_size = sizeof(nccl), ...};
//
// The group still decides which members there are, which of them failed, and what all of
// them agree on; the plugin asks it (`base`), and moves the elements by a library of the
// GPUs' maker. Each call begins with an agreement: where one member's operands cannot be
// used in place, or the library has no such call, all members learn it, and the group does
// the call on the host's memory. So members with different devices work together.
//
// Threads. A group: one thread at a time, as of tn_collective.
#ifndef TENON_COLLECTIVE_DEVICE_H
#define TENON_COLLECTIVE_DEVICE_H

#include <tenon/collective.h>
#include <tenon/run_memory.h>

// The id by which query() is asked for a tn_device_collective.
#define TN_IFACE_DEVICE_COLLECTIVE "tn.collective.device/1"

// A plugin's part of one group; opaque: completed by the plugin.
typedef struct tn_device_group tn_device_group;

// The interface. `host` is the table of the plugin, as whoever finds the interface gets it.
typedef struct tn_device_collective {
    uint32_t struct_size; // sizeof(tn_device_collective) as the plugin was compiled
    uint32_t flags;       // 0
    const char *name;     // "nccl"

    // Whether the libraries are installed. TN_ERR_UNSUPPORTED: no, and nobody asked for
    // them; TN_ERR_NOT_FOUND: no, and the user asked (TENON_NCCL). Both write the reason,
    // with the package that helps, to `why` of `size` bytes. Opens no device. [any-thread]
    tn_status (*ready)(const tn_host *host, char *why, uint64_t size);

    // Opens this plugin's part of `group`, whose members all were ready. `base`, its host
    // table and the group live until it is closed. Touches no device, and sends nothing.
    tn_status (*open)(const tn_host *host, const tn_collective *base,
                      const tn_host *base_host, tn_group *group,
                      tn_device_group **out_group);

    // Closes the plugin's part, before the group is closed; NULL is fine.
    void (*close)(const tn_host *host, tn_device_group *group);

    // Does a call of all members, on the first input and the first output of `run`
    // (`operand_export` of tn_run_memory); memory of `call` is NULL. Gives 1 in *out_done
    // when the output has its elements; 0, on all members alike, when the group has to do
    // the call, and the output is as it was. A failure breaks the group, as one of its own
    // calls does.
    tn_status (*run)(const tn_host *host, tn_device_group *group,
                     const tn_collective_call *call, const tn_run *run, int32_t *out_done);
} tn_device_collective;

#endif // TENON_COLLECTIVE_DEVICE_H
