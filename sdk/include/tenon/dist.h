// SPDX-License-Identifier: MIT
// Groups of processes by name, for applications: an interface of the pack org.tenon.dist,
// whose primitives (dist.all_reduce/1 ...) take the name as their attribute `group`.
//
//   const tn_dist *dist;
//   const tn_host *host;
//   tn_group_facts facts;
//   if (tn_interface_find(runtime, TN_IFACE_DIST, (const void **)&dist, &host) == TN_OK &&
//       dist->find(host, NULL, &facts, sizeof(facts)) == TN_OK)
//       printf("rank %d of %d\n", facts.rank, facts.size);
//
// "world" has all processes that were started together (`tenon run`); other groups are
// parts of one that exists. A name means a group of this runtime.
//
// Threads. Any thread; calls that others wait for (split, shrink) are made by all members
// of the group, in one order with the collectives of that group.
#ifndef TENON_DIST_H
#define TENON_DIST_H

#include <tenon/collective.h>

// The id of the interface, for tn_interface_find().
#define TN_IFACE_DIST "tn.dist/1"

// The interface. Names are borrowed, of 1 .. 63 bytes; NULL and "" stand for "world".
typedef struct tn_dist {
    uint32_t struct_size; // sizeof(tn_dist) as the plugin was compiled
    uint32_t flags;       // 0

    // Writes what is known of a group to *out: `size` is sizeof(tn_group_facts) as the
    // caller was compiled. The first use of "world" joins it, which all processes do.
    // TN_ERR_NOT_FOUND: no group has this name, or nothing is installed to join with.
    tn_status (*find)(const tn_host *host, const char *name, tn_group_facts *out,
                      uint64_t size);

    // Makes group `made` of those members of `name` that give the same color, in the order
    // of `key`, then of their ranks. With a color below 0 this process is in none.
    // TN_ERR_ARGUMENT: the name is taken.
    tn_status (*split)(const tn_host *host, const char *name, int32_t color, int32_t key,
                       const char *made);

    // Collectives of the group end within this many milliseconds, or fail; 0: no deadline.
    tn_status (*set_deadline)(const tn_host *host, const char *name, uint64_t milliseconds);

    // Makes group `made` of the members of a broken group that are left, all of which call
    // it. TN_ERR_UNSUPPORTED: the library cannot.
    tn_status (*shrink)(const tn_host *host, const char *name, const char *made);

    // Breaks the group: its collectives fail with this reason from then on.
    tn_status (*abort)(const tn_host *host, const char *name, const char *reason);

    // Leaves all groups, the world last, which waits for its other members; closing the
    // runtime does so, too.
    void (*leave)(const tn_host *host);
} tn_dist;

#endif // TENON_DIST_H
