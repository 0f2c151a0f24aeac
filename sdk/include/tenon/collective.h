// SPDX-License-Identifier: MIT
// Collectives: plugins that move elements between the processes of a group.
//
//   static const tn_collective collective = {.struct_size = sizeof(collective), ...};
//
// A process joins the group of all that were started together, its world, and is a member
// with a rank, 0 .. size - 1. A collective is a call that each member makes, in the same
// order:
//
//   tn_group *world;
//   tn_collective_work *work;
//   const tn_collective_call sum = {.struct_size = sizeof(sum),
//                                   .kind = TN_COLLECTIVE_ALL_REDUCE, .dtype = TN_F32,
//                                   .count = 1024, .input = mine, .output = total};
//   if (c->open(host, &world) == TN_OK && c->start(host, world, &sum, &work) == TN_OK)
//       status = c->wait(host, work);
//
// `host` is the table of the plugin, as whoever finds the interface gets it. Memory is the
// host's.
//
// Failures. A member that ended, or was stopped, is a failure of each call that needs it,
// and so are members that disagree on what to do: nothing waits for ever. The message names
// the member. From then on the group is broken: its calls fail with that message. A member
// that computes, however long, is waited for, unless the group has a deadline.
//
// Memory of devices: <tenon/collective_device.h>.
//
// Growth. A call is a record: later versions append members for further kinds. A member
// that an older caller does not know counts as zero.
//
// Threads. A group: one thread at a time; groups of one process from different threads at
// once. A work belongs to its group.
#ifndef TENON_COLLECTIVE_H
#define TENON_COLLECTIVE_H

#include <tenon/host.h>
#include <tenon/status.h>
#include <tenon/types.h>

// The id by which query() is asked for a tn_collective.
#define TN_IFACE_COLLECTIVE "tn.collective/1"

// A group that this process is a member of; opaque: completed by the plugin.
typedef struct tn_group tn_group;

// A call that was started; opaque likewise.
typedef struct tn_collective_work tn_collective_work;

// Kinds of calls on `count` contiguous elements of `dtype`; n is the group's size. All
// members of a group make the call, but SEND and RECEIVE are made by two of them. `input`
// and `output` do not overlap, unless the kind says so.
enum {
    // output = the inputs of all members, element by element, by `reduction`. Every member
    // gets the same bits. input == output: in place.
    TN_COLLECTIVE_ALL_REDUCE = 1,
    // output (n * count) = the inputs (count) of ranks 0 .. n - 1 behind each other.
    TN_COLLECTIVE_ALL_GATHER = 2,
    // output (count) = block `rank` of the reduced inputs (n * count).
    TN_COLLECTIVE_REDUCE_SCATTER = 3,
    // output = the input of rank `peer`; other members' `input` is not read. In place.
    TN_COLLECTIVE_BROADCAST = 4,
    // Block i of output (n * count) = block `rank` of the input of rank i.
    TN_COLLECTIVE_ALL_TO_ALL = 5,
    // Sends `input` to rank `peer`, which receives with the same `tag`. Messages between
    // two members with one tag keep their order.
    TN_COLLECTIVE_SEND = 6,
    // output = what rank `peer` sends: `count` elements, or the call fails with both sizes.
    TN_COLLECTIVE_RECEIVE = 7,
    // Ends when all members have begun it. No elements.
    TN_COLLECTIVE_BARRIER = 8,
};

// How elements are reduced. bool takes MINIMUM (and) and MAXIMUM (or); complex dtypes have
// no order; MEAN is of floats and complex numbers. f16 and bf16 are added in f32, and each
// sum of two is rounded. Order of the additions, and NaN in MINIMUM and MAXIMUM: the
// library's.
enum {
    TN_COLLECTIVE_SUM = 0,
    TN_COLLECTIVE_PRODUCT = 1,
    TN_COLLECTIVE_MINIMUM = 2,
    TN_COLLECTIVE_MAXIMUM = 3,
    TN_COLLECTIVE_MEAN = 4, // the sum divided by the group's size
};

// Flags of a tn_collective_call.
enum {
    // Elements move while the caller computes: a thread of the plugin drives the call, and
    // `start` does not wait for the call before. Without the flag they move in `start`,
    // `test` and `wait`.
    TN_COLLECTIVE_IN_BACKGROUND = 1,
    // A call by which members agree on how to make other calls: it has no number of its
    // own, and messages are counted without it.
    TN_COLLECTIVE_ASIDE = 2,
};

// One call. Written by the caller, borrowed by `start`.
typedef struct tn_collective_call {
    uint32_t struct_size; // sizeof(tn_collective_call) as the caller was compiled
    uint32_t flags;       // TN_COLLECTIVE_IN_BACKGROUND, TN_COLLECTIVE_ASIDE
    int32_t kind;         // TN_COLLECTIVE_ALL_REDUCE, ...
    tn_dtype dtype;
    int32_t reduction; // TN_COLLECTIVE_SUM, ...; 0 where nothing is reduced
    int32_t peer;      // a rank: of BROADCAST, SEND and RECEIVE; else 0
    int32_t tag;       // 0 .. 32767: of SEND and RECEIVE; else 0
    uint32_t reserved; // 0
    uint64_t count;    // elements, as each kind says
    const void *input; // memory of the host, aligned to an element; NULL if nothing is read
    void *output;      // likewise; NULL if nothing is written
} tn_collective_call;

// Flags of a tn_group_facts.
enum {
    TN_GROUP_SHRINKS = 1, // `shrink` makes a group of the members that are left
};

// Facts about a group. Owned by it, constant until it is closed.
typedef struct tn_group_facts {
    uint32_t struct_size; // sizeof(tn_group_facts) as the plugin was compiled
    uint32_t flags;       // TN_GROUP_...
    const char *library;  // for people: "Open MPI 4.1.4"
    int32_t rank;         // of this process, 0 .. size - 1
    int32_t size;         // members, at least 1
} tn_group_facts;

// The interface of collectives. Functions that all members of a group call, they call in
// the same order.
typedef struct tn_collective {
    uint32_t struct_size; // sizeof(tn_collective) as the plugin was compiled
    uint32_t flags;       // 0
    const char *name;     // "mpi"

    // Joins the world: the processes that were started together, or this one alone. All of
    // them call it, once a runtime; more calls give another reference. Compares the
    // members' versions: TN_ERR_REFUSED names those that differ. TN_ERR_NOT_FOUND: a
    // library is not installed; the message names its package. [any-thread]
    tn_status (*open)(const tn_host *host, tn_group **out_group);

    // Gives a group back; NULL is fine. With its last group the process leaves the world,
    // and waits for the other members unless one has failed. The group's works are finished
    // before. [any-thread]
    void (*close)(const tn_host *host, tn_group *group);

    // The group's facts. Cannot fail. [any-thread]
    const tn_group_facts *(*facts)(const tn_group *group);

    // Calls of the group end within this many milliseconds from their start, or fail with
    // the names of the missing members; 0, which is the default: no deadline.
    void (*set_deadline)(tn_group *group, uint64_t milliseconds);

    // Makes a group of the members that give the same `color`, in the order of `key`, then
    // of their ranks. All members call it. A color below 0: in no group, *out_group is
    // NULL.
    tn_status (*split)(const tn_host *host, tn_group *group, int32_t color, int32_t key,
                       tn_group **out_group);

    // Starts a call, and returns at once where it can: calls of a group start in their
    // order. `input` and `output` are the work's until `wait` has returned TN_OK or `test`
    // gave 1; after a failure they are the library's until the process ends, and the caller
    // frees neither. A message that is wrong by itself (a rank, a dtype) is TN_ERR_ARGUMENT
    // and breaks nothing.
    tn_status (*start)(const tn_host *host, tn_group *group, const tn_collective_call *call,
                       tn_collective_work **out_work);

    // Gives 1 in *out_done when the work has ended, else 0. `wait` has to follow.
    tn_status (*test)(const tn_host *host, tn_collective_work *work, int32_t *out_done);

    // Waits until the work has ended, and takes it, on failure too.
    tn_status (*wait)(const tn_host *host, tn_collective_work *work);

    // Breaks the group with this reason (borrowed), for this member at once, and for the
    // other members when this process ends. Calls fail from then on.
    void (*abort)(const tn_host *host, tn_group *group, const char *reason);

    // Optional: makes a group of the members that are left of a broken group. All of these
    // call it. TN_ERR_UNSUPPORTED: this library cannot (TN_GROUP_SHRINKS).
    tn_status (*shrink)(const tn_host *host, tn_group *group, tn_group **out_group);

    // Optional: checks whether a call that another library makes, such as one of GPUs, can
    // still end: fails as a call of the group does when a member failed, the group is
    // broken, or its deadline has passed since `began_ns`, nanoseconds of CLOCK_MONOTONIC.
    // Does not wait. `call` is told in the message; its memory is not used.
    tn_status (*check)(const tn_host *host, tn_group *group, const tn_collective_call *call,
                       int64_t began_ns);
} tn_collective;

#endif // TENON_COLLECTIVE_H
