// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "dist", which move arrays between the
// processes of a group: for plugins that bring kernels or rules for these primitives. Each
// struct is frozen with the revision of its primitives.
//
//   // In a rule for "dist.all_reduce/1".
//   const tn_dist_reduce_attrs *attrs = rule->attrs;
//   bool is_sum = attrs->reduction == TN_COLLECTIVE_SUM;
//
// `group` names a group of this process (<tenon/dist.h>); NULL: "world". Where types depend
// on the number of members, `size` states it, and running in a group of another size is an
// error: a graph says for how many processes it is.
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_DIST_ATTRS_H
#define TENON_OPS_DIST_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// dist.all_reduce/1 (x): as x, the elements of all members reduced.
// dist.all_reduce_start/1 (after, x...): starts it for several arrays: a ticket, one i64.
// dist.reduce_scatter/1 (x): block `rank` of the `size` blocks of axis 0 of the reduced x.
typedef struct tn_dist_reduce_attrs {
    int64_t reduction; // TN_COLLECTIVE_SUM, ... of <tenon/collective.h>
    const char *group;
    int64_t size; // reduce_scatter: of the group; required there
} tn_dist_reduce_attrs;

// dist.all_reduce_finish/1 (ticket): the elements of all arrays of the ticket, in order.
typedef struct tn_dist_finish_attrs {
    int64_t count; // elements; required
    int64_t dtype; // a tn_dtype; required
} tn_dist_finish_attrs;

// dist.all_gather/1 (x): the arrays of all members, joined along axis 0; of scalars a list.
// dist.all_to_all/1 (x): block i of axis 0 is what member i has in its block `rank`.
// dist.barrier/1 (x): x, when all members have come here; `size` is not read.
// dist.rank/1 (): this member's rank, one i32; `size` is not read.
typedef struct tn_dist_group_attrs {
    const char *group;
    int64_t size; // of the group; required in all_gather and all_to_all
} tn_dist_group_attrs;

// dist.broadcast/1 (x): x of member `root`.
// dist.send/1 (x): x, which member `root` gets.
typedef struct tn_dist_peer_attrs {
    int64_t root; // a rank
    int64_t tag;  // send: 0 .. 32767, tells messages between two members apart
    const char *group;
} tn_dist_peer_attrs;

// dist.receive/1 (): what member `source` sends.
typedef struct tn_dist_receive_attrs {
    tn_ints shape; // required
    int64_t dtype; // a tn_dtype; required
    int64_t source;
    int64_t tag; // as of send
    const char *group;
} tn_dist_receive_attrs;

#endif // TENON_OPS_DIST_ATTRS_H
