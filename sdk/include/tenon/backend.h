// SPDX-License-Identifier: MIT
// Backends: plugins that own devices and run kernels of the families they consume.
//
// The core places work on devices, orders it and assigns memory; a backend compiles a
// finished segment into an executable, and submits the executable. The null backend
// (plugins/backends/null) is complete, small, and made to be copied.
//
// Words. A device has one or more *queues*, each in order: the submissions of one queue run
// as if one after the other; submissions of two queues run at the same time where the
// hardware can. Each queue has a timeline. A *timeline point* is a queue and a number:
// submissions to a queue get growing numbers, and a point is reached when all work of its
// queue up to that submission is done.
//
// Work of several devices. A point belongs to a device, a queue and a number; a submission
// names points of its own device. A device with TN_DEVICE_HOST_POINTS has one more
// timeline, the *host's*, TN_QUEUE_HOST: the host reaches its points when what happens
// elsewhere has happened (work of another device, a copy from there), and submissions wait
// for them as for points of a queue. So work of two devices is submitted at once, and no
// thread of the application waits in between.
//
// A lost device. A device that can do no more work is lost, as Vulkan's
// VK_ERROR_DEVICE_LOST means it: its driver reset it, or the device is no longer there. A
// lost device stays lost, and the contents of its buffers are gone. From the call on that
// finds the loss, buffer_create, buffer_write, buffer_read, buffer_copy, buffer_export_fd,
// buffer_import_fd, segment_compile, submit and wait fail with TN_ERR_DEVICE and a message
// that says what helps, and leave their outputs alone; wait does for every point, also for
// one reached before. buffer_map gives NULL; memory that was mapped before can be accessed
// until its buffer is destroyed, but its contents are undefined. step_check, fusion_limit
// and memory_info answer as before.
//
// A wait always returns. A wait that began before the loss gives TN_OK, if its work was
// done, or TN_ERR_DEVICE; with either result, no work up to that point runs any more. So
// buffer_destroy, executable_destroy and device_close are called as before, after waiting
// for the points of the last uses, and free everything. Other open devices continue.
// device_open may open a device of the same index, and succeeds or fails with
// TN_ERR_DEVICE, as the hardware does.
//
// Threads. All slots are [any]: several threads may call them at once, for one device and
// one executable too. The core holds no lock meanwhile, and has checked every argument.
#ifndef TENON_BACKEND_H
#define TENON_BACKEND_H

#include <tenon/expr.h>
#include <tenon/host.h>
#include <tenon/kernel.h>
#include <tenon/packing.h>
#include <tenon/export.h>
#include <tenon/primitive.h>
#include <tenon/status.h>
#include <tenon/types.h>

// The id by which query() is asked for a tn_backend.
#define TN_IFACE_BACKEND "tn.backend/1"

// Opaque to the core: each backend completes these structs for itself. The backend
// allocates and owns them between its create and destroy calls.
typedef struct tn_device tn_device;
typedef struct tn_buffer tn_buffer;
typedef struct tn_executable tn_executable;

// Flags of a device.
enum {
    TN_DEVICE_SOFTWARE = 1,         // emulates other hardware; never chosen automatically
    TN_DEVICE_HOST_MEMORY = 2,      // buffers are ordinary memory: map costs nothing
    TN_DEVICE_COMPUTES_NOTHING = 4, // null: never chosen automatically
    // Runs row programs (TN_EXPR_ROWS of <tenon/expr.h>) that step_check accepts. Without
    // the flag the core builds such expressions from elementwise programs and reductions.
    TN_DEVICE_ROWS = 8,
    // Submissions wait for points of TN_QUEUE_HOST: the backend has a `signal` slot.
    // Without the flag the host waits itself, before it submits.
    TN_DEVICE_HOST_POINTS = 16,
    // Runs steps with tn_step.fused that step_check accepts. Without the flag, or without
    // step_check, no step has any.
    TN_DEVICE_FUSES = 32,
    // Runs programs with instruction TAKE (<tenon/expr.h>) that step_check accepts: gathers
    // become part of the elementwise work that reads them, with TN_DEVICE_ROWS also of row
    // programs. Without the flag no program has any.
    TN_DEVICE_TAKES = 64,
    // Joins steps into one launch. Kernels whose first input is the same value (siblings)
    // become consecutive steps as soon as their other inputs exist, and their results lie
    // in separate memory. Consecutive kernels that read a common value have separate
    // scratch memory. A short program of one array is repeated in each of its readers, if
    // all are kernels that fuse it (TN_DEVICE_FUSES).
    TN_DEVICE_GROUPS = 128,
    // May postpone a step until a later step needs its result. Memory of values of up to
    // 128 KiB is not written again in the 16 steps behind the last step that reads it,
    // unless that step writes its result over the value.
    TN_DEVICE_DEFERS = 256,
    // Compiles programs: towards fusion_limit, an instruction of TN_EXPR_CLASS_FUNCTION
    // counts as 8, as its code is that long to compile; constants and shifts count as 0.
    TN_DEVICE_COMPILES = 512,
};

// Description of a device. Filled by device_info, up to the caller's struct_size; constant
// as long as the process runs. Texts end in a NUL.
typedef struct tn_device_info {
    uint32_t struct_size;      // set by the caller
    uint32_t flags;            // TN_DEVICE_...
    char name[128];            // "NVIDIA H200"
    char driver[128];          // name and version
    char features[256];        // by comma: "f16,f64,i64,subgroup"
    uint64_t memory_size;      // bytes; 0: unknown
    uint64_t max_buffer_size;  // bytes; 0: no limit but memory
    uint64_t buffer_alignment; // of an operand's first byte; a power of two, at least 1
    uint32_t dtypes;           // set of TN_DTYPE_BIT it computes; 0: TN_FIRST_DTYPES
    uint32_t num_queues;       // 0: one; more than TN_MAX_QUEUES are not used
    uint32_t num_workers;      // the most threads of a cpu.c/1 launch; 0: one
    uint32_t reserved;         // 0
    // Names the memory: devices with the same bytes here, of any plugin, runtime or
    // process, import what the others export (buffer_import_fd). Vulkan: the UUIDs of the
    // device and of the driver. All 0: the device shares no memory.
    uint8_t share_id[32];
} tn_device_info;

enum {
    // The most queues of one device that the core uses.
    TN_MAX_QUEUES = 16,
    // As tn_point.queue: the timeline that the host signals, see `signal` of tn_backend.
    TN_QUEUE_HOST = 16,
};

// Flags of tn_buffer_import.
enum {
    // The device may also write the memory: an input that was donated becomes an output.
    TN_IMPORT_WRITABLE = 1,
};

// Memory of the host that becomes a buffer. Filled by the core, borrowed for the call; the
// memory itself stays valid, at the same address, until buffer_destroy has returned.
typedef struct tn_buffer_import {
    uint32_t struct_size; // sizeof(tn_buffer_import) as the core was compiled
    uint32_t flags;       // TN_IMPORT_...
    void *memory;         // never NULL
    uint64_t size;        // bytes, at least 1: no byte behind them may be accessed
    // Bytes, a power of two: `memory` is a multiple of it. At least the size of the
    // elements that lie there; often less than the device's buffer_alignment.
    uint64_t alignment;
} tn_buffer_import;

// Memory of a device that others use, too, by a file descriptor. Borrowed for the call.
typedef struct tn_buffer_fd {
    uint32_t struct_size; // sizeof(tn_buffer_fd) as the core was compiled
    uint32_t flags;       // TN_IMPORT_... of an import; an export gives 0
    int32_t fd;
    uint32_t kind;   // the backend's own; Vulkan: 1 + memory type; 0: that of exports
    uint64_t size;   // bytes, of all the memory
    uint64_t offset; // bytes: where what was exported begins. Not read by an import
} tn_buffer_fd;

// --- segments --------------------------------------------------------------------------

// Uses of a slot by the steps of its segment.
enum {
    TN_SLOT_READ = 1,    // steps read the slot
    TN_SLOT_WRITE = 2,   // steps write the slot
    TN_SLOT_SCRATCH = 4, // contents are undefined before and after a submission
};

// A slot stands for a buffer that is bound at submission: an input, an output, or the arena
// of values between steps.
typedef struct tn_slot {
    uint32_t flags; // TN_SLOT_...
    // 1 + the number of another slot that is bound to the same bytes in every submission,
    // since an output takes over a donated input's memory: equal offsets in the two slots
    // are the same byte, and a step that writes one slot waits for the steps that use the
    // other. That slot's own alias is 0. 0: none; slots that do not name each other may be
    // bound to overlapping bytes only where no step writes these.
    uint32_t alias;
    uint64_t size; // bytes used, from the binding's offset on
} tn_slot;

// Flags of a value as one step uses it.
enum {
    // Nobody needs the contents after this step: of an input, no later step, transfer or
    // result of the evaluation reads them; of an output, nobody reads them at all. The step
    // may leave any bytes there.
    TN_VALUE_LAST = 1,
    // The operand passes through a program (tn_fused) and has no memory: slot, offset and
    // id are 0. Its layout is contiguous.
    TN_VALUE_FUSED = 2,
};

// An operand of a step: the element at index (i0, i1, ...) lies at byte
// `offset + (its number by the layout) * size of an element` of the memory that is bound to
// `slot`.
typedef struct tn_value {
    uint32_t slot;   // below the segment's num_slots
    uint32_t flags;  // TN_VALUE_...
    uint64_t offset; // bytes, a multiple of the device's buffer_alignment
    // The number of the contents, 1 .. num_values of the segment: what one step writes (or
    // what a slot holds before the first step) and the steps after it read has one id, in
    // whatever layouts, though other contents come to lie at the same bytes later. 0: an
    // optional input that was not given.
    uint64_t id;
    tn_layout layout; // dtype NONE: an optional input that was not given
    // For an input that is the same in every run (a number of the graph, data that a
    // function captured): the bytes from `offset` on in host memory, as long as the segment
    // lives. NULL: known in a run only. The slot holds the elements all the same.
    const void *constant;
} tn_value;

// An elementwise program between a kernel and one of its operands, which has
// TN_VALUE_FUSED. Never a row program.
//
// A prologue is for an input: the program's only output has TN_VALUE_FUSED, and is what the
// kernel loads. An epilogue is for an output: inputs of the program with TN_VALUE_FUSED, at
// least one, are what the kernel would store, already rounded to that operand's dtype; the
// program's outputs are stored instead. All layouts have the same elements in row-major
// order as the operand; as in a step with `program`, their rank and extents are the same
// and adjacent axes with joint strides are merged.
//
// An output of an epilogue may be the memory of one of its inputs, with the same strides:
// each element is read before it is written. It overlaps no input of the kernel.
typedef struct tn_fused {
    uint32_t operand; // of the step: inputs in order, then outputs
    uint32_t flags;   // 0
    const tn_expr_program *program;
    const uint64_t *params;
    const tn_value *inputs;  // num_inputs; tn_step.value_size bytes each
    const tn_value *outputs; // num_outputs
    uint32_t num_inputs;
    uint32_t num_outputs;
} tn_fused;

// One kernel launch. A step runs `program` or `kernel`, whichever is set; when neither is,
// the primitive's `reference`, which only consumers of cpu.c/1 get.
//
// With `program`: all layouts have the same rank and extents (broadcast by stride 0), and
// adjacent axes with joint strides are merged to one. Of a row program (TN_EXPR_ROWS)
// the last axis is the row's: it is not merged, and outputs may have extent 1 there.
typedef struct tn_step {
    uint32_t struct_size;           // sizeof(tn_step) as the core was compiled
    uint32_t flags;                 // 0
    const tn_primitive *primitive;  // NULL for a fused program
    const void *attrs;              // NULL for a program
    const tn_kernel *kernel;        // or NULL
    const tn_expr_program *program; // or NULL
    const uint64_t *params;         // of the program
    const tn_value *inputs;         // num_inputs operands; read by tn_step_input()
    const tn_value *outputs;        // num_outputs operands; read by tn_step_output()
    uint32_t num_inputs;
    uint32_t num_outputs;
    uint32_t scratch_slot;   // the slot of its working memory, when scratch_size > 0
    uint32_t value_size;     // sizeof(tn_value) as the core was compiled
    uint64_t scratch_offset; // bytes
    uint64_t scratch_size;   // bytes
    const char *label;       // for people and traces
    const char *plugin;      // id of the kernel's plugin; NULL: no kernel

    // Programs that operands of `kernel` pass through, at most one an operand; only for
    // devices with TN_DEVICE_FUSES. Read by tn_step_fused().
    const tn_fused *fused;
    uint32_t num_fused;
    uint32_t fused_size; // sizeof(tn_fused) as the core was compiled
} tn_step;

// Input or output `i` of a step, below num_inputs or num_outputs. Values are value_size
// bytes apart, which is more than sizeof(tn_value) in a newer core.
static inline const tn_value *tn_step_input(const tn_step *step, uint64_t i)
{
    const void *at = (const char *)step->inputs + i * step->value_size;
    return (const tn_value *)at;
}
static inline const tn_value *tn_step_output(const tn_step *step, uint64_t i)
{
    const void *at = (const char *)step->outputs + i * step->value_size;
    return (const tn_value *)at;
}

// Fused program `i` of a step, below num_fused.
static inline const tn_fused *tn_step_fused(const tn_step *step, uint64_t i)
{
    const void *at = (const char *)step->fused + i * step->fused_size;
    return (const tn_fused *)at;
}

// Input or output `i` of a fused program of `step`, below its num_inputs or num_outputs.
static inline const tn_value *tn_fused_input(const tn_step *step, const tn_fused *fused,
                                             uint64_t i)
{
    const void *at = (const char *)fused->inputs + i * step->value_size;
    return (const tn_value *)at;
}
static inline const tn_value *tn_fused_output(const tn_step *step, const tn_fused *fused,
                                              uint64_t i)
{
    const void *at = (const char *)fused->outputs + i * step->value_size;
    return (const tn_value *)at;
}

// The steps of one device that are submitted together. Steps run as if one after the other,
// in order; two steps may run at the same time when neither writes bytes that the other
// reads or writes, and their primitives do not name one domain of effects
// (tn_primitive.effects). The core owns the segment; all that it points to is constant and
// outlives the executable.
//
// A newer core has longer records: tn_segment_step() and tn_segment_slot() find them.
typedef struct tn_segment {
    uint32_t struct_size;
    uint32_t flags; // 0
    const tn_step *steps;
    const tn_slot *slots;
    uint32_t num_steps;
    uint32_t num_slots;
    uint32_t step_size;  // sizeof(tn_step) as the core was compiled
    uint32_t slot_size;  // sizeof(tn_slot) as the core was compiled
    uint64_t num_values; // the greatest id of its values
} tn_segment;

// Step or slot `i` of a segment, below num_steps or num_slots.
static inline const tn_step *tn_segment_step(const tn_segment *segment, uint64_t i)
{
    const void *at = (const char *)segment->steps + i * segment->step_size;
    return (const tn_step *)at;
}
static inline const tn_slot *tn_segment_slot(const tn_segment *segment, uint64_t i)
{
    const void *at = (const char *)segment->slots + i * segment->slot_size;
    return (const tn_slot *)at;
}

// --- submission ------------------------------------------------------------------------

// The memory of a slot in one submission. Borrowed until submit returns.
//
// A buffer of buffer_import begins at any multiple of the size of its elements, so an
// operand's first byte may lie below the device's buffer_alignment there.
typedef struct tn_binding {
    tn_buffer *buffer;
    uint64_t offset; // bytes, a multiple of the device's buffer_alignment
} tn_binding;

// Flags of a submission.
enum {
    // The caller will not wait soon: submit should return before the work is done.
    TN_SUBMIT_ASYNC = 1,
};

// A timeline point of one device.
typedef struct tn_point {
    uint64_t value;    // given by submit or signal; 0: reached from the beginning
    uint32_t queue;    // below the device's num_queues, or TN_QUEUE_HOST
    uint32_t reserved; // 0
} tn_point;

// One run of an executable. Several runs of one executable may be in flight at the same
// time, in one queue or in several: state that a run changes belongs to the run.
typedef struct tn_submission {
    uint32_t struct_size;
    uint32_t flags;            // TN_SUBMIT_...
    tn_executable *executable; // lives until the point is reached
    // One for each slot. Borrowed until submit returns; the buffers live until the point is
    // reached.
    const tn_binding *bindings;
    uint64_t num_bindings;
    // Points of other queues of this device that submit gave before, and, with
    // TN_DEVICE_HOST_POINTS, of TN_QUEUE_HOST, which may be signalled later: the work
    // begins after these points are reached, whether the work up to them failed or not, and
    // sees its writes. Borrowed until submit returns.
    const tn_point *waits;
    uint32_t num_waits;
    uint32_t queue;        // below the device's num_queues
    uint32_t binding_size; // sizeof(tn_binding) as the core was compiled
    uint32_t reserved;     // 0
} tn_submission;

// The binding of slot `i`, below num_bindings.
static inline const tn_binding *tn_submission_binding(const tn_submission *submission,
                                                      uint64_t i)
{
    const void *at = (const char *)submission->bindings + i * submission->binding_size;
    return (const tn_binding *)at;
}

// Bytes of one device, as its backend counts them.
typedef struct tn_memory_info {
    uint32_t struct_size;
    uint32_t flags;    // 0
    uint64_t used;     // bytes in buffers that exist now
    uint64_t peak;     // bytes, the most since the device was opened
    uint64_t reserved; // bytes taken from the system, used or not
    // Bytes that new buffers can have, beside what other programs use: what was taken from
    // the system and is in no buffer, and what the system has left. 0: unknown; a device
    // that is full says 1.
    uint64_t available;
} tn_memory_info;

// --- the interface ---------------------------------------------------------------------

// Flags of a backend.
enum {
    // May be used when TENON_BACKEND is unset: the backend computes on any machine, and
    // finding its devices touches no driver.
    TN_BACKEND_DEFAULT = 1,
};

// The libraries that a device computes with beside its driver, and advice. Filled by
// device_details. Each text may be "".
typedef struct tn_device_details {
    uint32_t struct_size; // set by the caller
    uint32_t flags;       // 0
    char libraries[128];  // "OpenBLAS 0.3.21, SkylakeX kernels, 1 thread"
    char warning[256]; // the reason why the device is slower than it could be: one sentence
    char remedy[192];  // the remedy for that reason
} tn_device_details;

// The interface of a backend: NULL is allowed only in slots that are called optional.
typedef struct tn_backend {
    uint32_t struct_size;
    uint32_t flags;   // TN_BACKEND_...
    const char *name; // as in TENON_BACKEND: "cpu-blas"

    // Families that the backend consumes, the preferred first, ended by NULL. "expr/1" says
    // that the backend runs tn_expr_program.
    const char *const *families;

    // The number of devices. May take long and touch drivers: the core calls device_count
    // only when devices are listed or this backend is selected. Without any device it may
    // fail with TN_ERR_NOT_FOUND and a message that says why and what helps ("the driver is
    // not installed: install ..."). [any]
    tn_status (*device_count)(const tn_host *host, uint32_t *out_count);

    // Describes device `index` without opening it. Fills at most out->struct_size bytes.
    // [any]
    tn_status (*device_info)(const tn_host *host, uint32_t index, tn_device_info *out);

    // Gives a device, which keeps `host` until it is closed. [any]
    tn_status (*device_open)(const tn_host *host, uint32_t index, tn_device **out_device);

    // Closes a device. All its buffers and executables are destroyed, and all points are
    // reached. NULL is fine. [any]
    void (*device_close)(tn_device *device);

    // Optional: whether segment_compile can take this step. 1, or 0, and then *out_reason
    // is a static sentence ("needs 64-bit integers in shaders"). Called for the kernel or
    // program that would run, before slots and offsets are assigned. NULL: the device takes
    // all steps of the families that the backend consumes. [any]
    int32_t (*step_check)(tn_device *device, const tn_step *step, const char **out_reason);

    // Optional: the most instructions that a fused program should have. Called once for
    // each device. NULL or 0: no fusion, each primitive's program stays a step of its own.
    // [any]
    uint32_t (*fusion_limit)(tn_device *device);

    // Gives a buffer of `size` bytes (at least 1), not cleared, aligned for every dtype.
    // [any]
    tn_status (*buffer_create)(tn_device *device, uint64_t size, tn_buffer **out_buffer);

    // Frees a buffer that no submission uses. NULL is fine. [any]
    void (*buffer_destroy)(tn_device *device, tn_buffer *buffer);

    // Copy between host memory and a buffer, `size` bytes at byte `offset`, done at return.
    // No submission that writes these bytes is running, and in buffer_write none that reads
    // them; one that waits for a point of TN_QUEUE_HOST has not begun. [any]
    tn_status (*buffer_write)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size);
    tn_status (*buffer_read)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size);

    // Optional: the buffer's bytes as the host sees them, for as long as it exists. NULL
    // when this buffer cannot be seen. [any]
    void *(*buffer_map)(tn_device *device, tn_buffer *buffer);

    // Compiles a segment and gives an executable, which may keep pointers into the segment:
    // see tn_segment. [any]
    tn_status (*segment_compile)(tn_device *device, const tn_segment *segment,
                                 tn_executable **out_executable);

    // Frees an executable when the points of all its runs are reached. NULL is fine. [any]
    void (*executable_destroy)(tn_device *device, tn_executable *executable);

    // Starts a submission, after all submissions to its queue whose calls returned before
    // this call began. Gives the value of its point, at least 1. May block while earlier
    // work runs (back-pressure), but never until later work is submitted. [any]
    tn_status (*submit)(tn_device *device, const tn_submission *submission,
                        uint64_t *out_point);

    // Blocks until point `value` of `queue` is reached. Fails when the work of that point
    // failed, on every call, or when the device is lost. [any]
    tn_status (*wait)(tn_device *device, uint32_t queue, uint64_t value);

    // Optional: bytes in use. [any]
    tn_status (*memory_info)(tn_device *device, tn_memory_info *out);

    // Optional: details that take time to find out, such as by opening the libraries that
    // device `index` computes with; device_info is quick. Called when devices are listed
    // for a person. Fills at most out->struct_size bytes. [any]
    tn_status (*device_details)(const tn_host *host, uint32_t index,
                                tn_device_details *out);

    // Optional: gives a buffer that is the memory of `import`, without a copy. Steps and
    // buffer_read read it as they read any buffer, and buffer_map gives import->memory.
    // Without TN_IMPORT_WRITABLE nothing writes it: no step, and buffer_write is not
    // called; it may be mapped read-only. buffer_destroy frees the buffer and leaves the
    // memory alone. memory_info does not count it.
    //
    // TN_ERR_UNSUPPORTED, with a reason: the device cannot use this memory in place, and
    // the core copies it to a buffer of buffer_create, as for a backend without this slot.
    // [any]
    tn_status (*buffer_import)(tn_device *device, const tn_buffer_import *import,
                               tn_buffer **out_buffer);

    // For devices with TN_DEVICE_HOST_POINTS, else not called: reaches point `value` of the
    // device's timeline TN_QUEUE_HOST, and all before it. Values grow from call to call;
    // calls are one after the other. Submissions that wait for the point begin then, and
    // see what buffer_write wrote before.
    //
    // On such a device `submit` takes points of TN_QUEUE_HOST that are not signalled yet,
    // and returns without waiting for them; buffer_write, buffer_read and work of other
    // queues do not wait for them either. On a lost device `signal` reaches the point, too,
    // so that no work waits for ever. `wait` is not asked for points of TN_QUEUE_HOST.
    // [any]
    tn_status (*signal)(tn_device *device, uint64_t value);

    // Optional, for devices with a share_id, which then have buffer_import_fd, too: gives
    // memory that holds bytes [offset, offset + size) of the buffer, at least one, for
    // other processes and libraries. A buffer of buffer_import_fd gives its own memory, so
    // that `out->offset` is `offset`. Of another buffer the bytes are copied on the device
    // to memory of their own, before the call returns; it exists as long as a file
    // descriptor or an import refers to it, and memory_info does not count it.
    //
    // The caller closes out->fd, which exec() closes. No submission that writes the bytes
    // is running. [any]
    tn_status (*buffer_export_fd)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                                  uint64_t size, tn_buffer_fd *out);

    // Optional, with buffer_export_fd: gives a buffer that is all of the memory of an
    // export by a device with the same share_id. The users of both devices put their reads
    // and writes of this memory in order. Borrows the file descriptor, and leaves it open,
    // on failure, too. Without TN_IMPORT_WRITABLE nothing writes the buffer, as said at
    // buffer_import. memory_info does not count it.
    //
    // TN_ERR_ARGUMENT, with what was got: a file descriptor that is not open, or not of
    // such memory; a size or kind that it does not have. [any]
    tn_status (*buffer_import_fd)(tn_device *device, const tn_buffer_fd *memory,
                                  tn_buffer **out_buffer);

    // Optional: copies `size` bytes, at least one, from one buffer of the device to
    // another, without the memory of the host between; the bytes do not overlap. The rest
    // is as for buffer_read of the one and buffer_write of the other. [any]
    tn_status (*buffer_copy)(tn_device *device, tn_buffer *from, uint64_t from_offset,
                             tn_buffer *to, uint64_t to_offset, uint64_t size);

    // Optional: `wait` for point `after`, and buffer_read of at least one byte. A device
    // that copies by work of its own can submit that at once, behind the point, and wait
    // only once. Only submissions up to `after` may still write these bytes. [any]
    tn_status (*buffer_read_after)(tn_device *device, tn_buffer *buffer, uint64_t offset,
                                   void *data, uint64_t size, tn_point after);

    // Optional: the packings of quantised weights that the backend's kernels read faster
    // than plain rows, on each of its devices, the preferred one of a format first:
    // packings of <tenon/ops/quant.h>, or the backend's own, which the plugin's query()
    // answers too (<tenon/packing.h>). NULL: none.
    const tn_packing *packings;
    uint32_t num_packings;
    uint32_t packing_size; // sizeof(tn_packing)

    // Optional, for devices with a share_id: tells where the buffer lies in memory that
    // other libraries use in place, such as CUDA, which takes Vulkan's file descriptors.
    // `wants`: TN_EXPORT_MEMORY_FD, or 0. A library that writes there waits for the points
    // of the buffer's last uses, and the device's work waits for the library in turn.
    // TN_ERR_UNSUPPORTED, with a reason: this memory has no file descriptor. [any]
    tn_status (*buffer_export)(tn_device *device, tn_buffer *buffer, uint32_t wants,
                               tn_buffer_export *out);

    // Optional, with buffer_export: makes sure that the device alone reaches the point (no
    // step up to it stays postponed), and, unless `out_fd` is NULL, gives a file descriptor
    // of the queue's timeline, by which other libraries wait for this and later points: for
    // Vulkan a timeline semaphore, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, whose
    // values are those of the points. The caller closes it. TN_ERR_UNSUPPORTED: the host
    // has to wait. [any]
    tn_status (*point_export_fd)(tn_device *device, tn_point point, int32_t *out_fd);
} tn_backend;

// --- losing a device on purpose --------------------------------------------------------

// Optional, beside tn_backend: loses a device on purpose, so that backends, hosts and
// applications can be tested. Not for backends whose devices cannot be lost.
#define TN_IFACE_DEVICE_LOSS "tn.device-loss/1"
typedef struct tn_device_loss {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Makes `device`, and no other, lost, as if its driver had just reported the loss.
    // Calls that begin after `lose` returns find the device lost; calls that are running
    // end soon, with either result. TN_OK for a device that is lost already. `device` is
    // open, and was opened by the same plugin. [any]
    tn_status (*lose)(tn_device *device);
} tn_device_loss;

#endif // TENON_BACKEND_H
