// SPDX-License-Identifier: MIT
// Backends: plugins that own devices and run kernels of the families they consume.
//
// The core decides what runs where, in which order and in which memory; a backend turns a
// finished segment into something it can submit, and submits it. The null backend
// (plugins/backends/null) is complete, small, and made to be copied.
//
// Words. A device has one queue, in order. A *point* is a number on the device's timeline:
// submissions get growing points; a point is reached when all work up to it is done.
//
// A lost device. One that can do no more work is lost, as Vulkan's VK_ERROR_DEVICE_LOST
// means it: its driver reset it, or it is no longer there. It stays lost, and what it held
// is gone. From the call on that finds it out, buffer_create, buffer_write, buffer_read,
// segment_compile, submit and wait fail with TN_ERR_DEVICE and a message that says what
// helps, and leave their outputs alone; wait for every point, also one reached before.
// buffer_map gives NULL; memory that was mapped before can be touched until its buffer is
// destroyed, but what it holds is undefined. step_check, fusion_limit and memory_info
// answer as before.
//
// A wait always returns. One that began before the loss gives TN_OK, if its work was done,
// or TN_ERR_DEVICE; whichever it is, no work up to that point runs any more. So
// buffer_destroy, executable_destroy and device_close are called as before, when the points
// of the last uses were waited for, and give back all. Other open devices go on.
// device_open may open one of the same index, which works or fails with TN_ERR_DEVICE, as
// the hardware does.
//
// Threads. [any] may be called by several threads at once. [device] calls for one device
// are never concurrent, lost or not. The core has checked every argument.
#ifndef TENON_BACKEND_H
#define TENON_BACKEND_H

#include <tenon/expr.h>
#include <tenon/host.h>
#include <tenon/kernel.h>
#include <tenon/primitive.h>
#include <tenon/status.h>
#include <tenon/types.h>

// The id by which query() is asked for a tn_backend.
#define TN_IFACE_BACKEND "tn.backend/1"

// Completed by each backend for itself.
typedef struct tn_device tn_device;
typedef struct tn_buffer tn_buffer;
typedef struct tn_executable tn_executable;

enum {
    TN_DEVICE_SOFTWARE = 1,         // emulates other hardware; never chosen automatically
    TN_DEVICE_HOST_MEMORY = 2,      // buffers are ordinary memory: map costs nothing
    TN_DEVICE_COMPUTES_NOTHING = 4, // null: never chosen automatically
};

// Filled by device_info; constant as long as the process runs.
typedef struct tn_device_info {
    uint32_t struct_size;
    uint32_t flags;
    char name[128];            // "NVIDIA H200"
    char driver[128];          // name and version
    char features[256];        // by comma: "f16,f64,i64,subgroup"
    uint64_t memory_size;      // bytes; 0: unknown
    uint64_t max_buffer_size;  // bytes; 0: no limit but memory
    uint64_t buffer_alignment; // of a value's first byte; a power of two, at least 1
    uint32_t dtypes;           // set that its kernels can compute with; 0: all
    uint32_t reserved;         // 0
} tn_device_info;

// --- segments --------------------------------------------------------------------------

// A slot stands for a buffer that is bound at submission.
enum {
    TN_SLOT_READ = 1,    // steps read it
    TN_SLOT_WRITE = 2,   // steps write it
    TN_SLOT_SCRATCH = 4, // holds nothing before and after a submission
};

// A place that steps read and write: an input, an output, or memory between steps.
typedef struct tn_slot {
    uint32_t flags;
    // 1 + the number of another slot that may be bound to the same bytes (an output that
    // takes over an input's memory): what writes one waits for what reads the other. 0:
    // none.
    uint32_t alias;
    uint64_t size; // bytes used, from the binding's offset on
} tn_slot;

// An operand of a step: element i lies at byte `offset + (layout's element index) * size of
// an element` of what is bound to `slot`.
typedef struct tn_value {
    uint32_t slot;
    uint32_t flags;   // 0
    uint64_t offset;  // bytes, a multiple of the device's buffer_alignment
    tn_layout layout; // dtype NONE: an optional input that was not given
} tn_value;

// One kernel launch. Exactly one of `program`, `kernel` and (cpu.c/1 consumers only, when
// no kernel fits) the primitive's `reference` is what runs.
//
// With `program`: all layouts have the same rank and extents (broadcast by stride 0), and
// neighbouring axes that can be walked as one have been merged.
typedef struct tn_step {
    uint32_t struct_size;
    uint32_t flags;                 // 0
    const tn_primitive *primitive;  // NULL for a fused program
    const void *attrs;              // NULL for a program
    const tn_kernel *kernel;        // or NULL
    const tn_expr_program *program; // or NULL
    const uint64_t *params;         // of the program
    const tn_value *inputs;
    const tn_value *outputs;
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t scratch_slot;   // valid when scratch_size > 0
    uint32_t reserved;       // 0
    uint64_t scratch_offset; // bytes
    uint64_t scratch_size;   // bytes
    const char *label;       // for people and traces
    const char *plugin;      // id of the one that the kernel is from; NULL: no kernel
} tn_step;

// Steps run as if one after the other, in order; one that neither reads nor overwrites what
// another wrote may run at the same time as it. Everything pointed to is constant and
// outlives the executable.
typedef struct tn_segment {
    uint32_t struct_size;
    uint32_t flags; // 0
    const tn_step *steps;
    const tn_slot *slots;
    uint32_t num_steps;
    uint32_t num_slots;
    uint32_t step_size; // sizeof(tn_step) as the core was compiled
    uint32_t slot_size; // sizeof(tn_slot)
} tn_segment;

// --- submission ------------------------------------------------------------------------

// What a slot stands for in one submission. Borrowed until submit returns.
typedef struct tn_binding {
    tn_buffer *buffer;
    uint64_t offset; // bytes, a multiple of the device's buffer_alignment
} tn_binding;

enum {
    // The caller will not wait soon: return before the work is done if you can.
    TN_SUBMIT_ASYNC = 1,
};

// One run of an executable.
typedef struct tn_submission {
    uint32_t struct_size;
    uint32_t flags;
    tn_executable *executable;
    // One a slot. Borrowed until submit returns; the buffers live until the point is
    // reached.
    const tn_binding *bindings;
    uint64_t num_bindings;
} tn_submission;

// Bytes of one device, as its backend counts them.
typedef struct tn_memory_info {
    uint32_t struct_size;
    uint32_t flags;    // 0
    uint64_t used;     // bytes in buffers that exist now
    uint64_t peak;     // bytes, the most since the device was opened
    uint64_t reserved; // bytes taken from the system, used or not
} tn_memory_info;

// --- the interface ---------------------------------------------------------------------

enum {
    // May be used when TENON_BACKEND is unset: it computes on any machine, and finding its
    // devices touches no driver.
    TN_BACKEND_DEFAULT = 1,
};

// What a device computes with beside its driver. Each text may be "".
typedef struct tn_device_details {
    uint32_t struct_size;
    uint32_t flags;      // 0
    char libraries[128]; // "OpenBLAS 0.3.21, SkylakeX kernels, 1 thread"
    char warning[256];   // what makes the device slower than it could be: one sentence
    char remedy[192];    // what to do about it
} tn_device_details;

// The interface of a backend: NULL is allowed only in slots that are called optional.
typedef struct tn_backend {
    uint32_t struct_size;
    uint32_t flags;   // TN_BACKEND_...
    const char *name; // as in TENON_BACKEND: "cpu-blas"

    // Families it consumes, the preferred first, ended by NULL. "expr/1" says that it runs
    // tn_expr_program.
    const char *const *families;

    // The number of devices there are. May take long and touch drivers: the core calls it
    // only when devices are listed or this backend is selected. When there are none, it may
    // fail with TN_ERR_NOT_FOUND and a message that says why and what helps ("the driver is
    // not installed: install ..."). [any]
    tn_status (*device_count)(const tn_host *host, uint32_t *out_count);

    // Describes device `index` without opening it. Fills at most out->struct_size bytes.
    // [any]
    tn_status (*device_info)(const tn_host *host, uint32_t index, tn_device_info *out);

    // Gives a device. It keeps `host`. [any]
    tn_status (*device_open)(const tn_host *host, uint32_t index, tn_device **out_device);

    // Takes it back, when nothing made from it exists and all points are reached. NULL is
    // fine. [any]
    void (*device_close)(tn_device *device);

    // Optional: is this step one that segment_compile can take? 0 when not, and then
    // *out_reason is a static sentence ("needs 64-bit integers in shaders"). Asked for the
    // kernel or program that would run, with slots and offsets not yet known. NULL: all
    // steps of the families it consumes. [any]
    int32_t (*step_check)(tn_device *device, const tn_step *step, const char **out_reason);

    // Optional: may programs be fused? Asked once a device: the most instructions a program
    // should have; NULL or 0: never fuse, each primitive's program stays alone. [any]
    uint32_t (*fusion_limit)(tn_device *device);

    // Gives a buffer of `size` bytes (at least 1), not cleared, aligned for any value.
    // [any]
    tn_status (*buffer_create)(tn_device *device, uint64_t size, tn_buffer **out_buffer);

    // Takes it back, when no submission uses it. NULL is fine. [any]
    void (*buffer_destroy)(tn_device *device, tn_buffer *buffer);

    // Copies between host memory and a buffer; done when they return. No submission that
    // uses these bytes is running. [any]
    tn_status (*buffer_write)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size);
    tn_status (*buffer_read)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size);

    // Optional: the buffer's bytes as the host sees them, for as long as it exists. NULL
    // when this buffer cannot be seen. [any]
    void *(*buffer_map)(tn_device *device, tn_buffer *buffer);

    // Gives an executable. Borrows nothing after the return but what tn_segment says.
    // [device]
    tn_status (*segment_compile)(tn_device *device, const tn_segment *segment,
                                 tn_executable **out_executable);

    // Takes it back, when its last point is reached. NULL is fine. [device]
    void (*executable_destroy)(tn_device *device, tn_executable *executable);

    // Starts the work after all that was submitted before. [device]
    tn_status (*submit)(tn_device *device, const tn_submission *submission,
                        uint64_t *out_point);

    // Blocks until `point` is reached. Fails when the work that reaches it failed, each
    // time it is asked, or when the device is lost. [any]
    tn_status (*wait)(tn_device *device, uint64_t point);

    // Optional: bytes in use. [any]
    tn_status (*memory_info)(tn_device *device, tn_memory_info *out);

    // Optional: what device_info leaves out because asking takes time, such as opening the
    // libraries that device `index` computes with. Called when devices are listed for a
    // person. Fills at most out->struct_size bytes. [any]
    tn_status (*device_details)(const tn_host *host, uint32_t index,
                                tn_device_details *out);
} tn_backend;

// --- losing a device on purpose --------------------------------------------------------

// Optional, beside tn_backend: loses a device on purpose, so that backends, hosts and
// applications can be tested. Not for backends whose devices cannot be lost.
#define TN_IFACE_DEVICE_LOSS "tn.device-loss/1"
typedef struct tn_device_loss {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Makes `device`, and no other, lost, as if its driver had just said so. Calls that
    // begin after it returns find it lost; those that run end soon, with either result.
    // TN_OK for one that is lost already. `device` is open, and made by the same plugin.
    // [any]
    tn_status (*lose)(tn_device *device);
} tn_device_loss;

#endif // TENON_BACKEND_H
