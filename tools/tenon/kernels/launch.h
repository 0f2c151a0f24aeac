// SPDX-License-Identifier: MIT
// The launches of a plan, each with hashes of its kernel.
#ifndef TOOLS_TENON_KERNELS_LAUNCH_H
#define TOOLS_TENON_KERNELS_LAUNCH_H

#include <jansson.h>
#include "lang/session.h"

// Plans the session's results. Gives an array, owned, with an object for each launch:
//   {"device", "step", "name", "groups": [x, y, z], "push_bytes", "constant_bytes",
//    "spec": {id: value}, "code_bytes", "code", "kernel", "exact", "baked"}
// With `measures` the results are computed, and each launch that has run is measured:
//   "cost": {"folded_us", "baked_us", "baked_bytes", "differing", "not_baked": reason}
// "code", "kernel", "exact" and "baked" are hashes in hexadecimal digits. Launches with
// equal
//   baked   are equal in all, and their operands lie at equal offsets of their memory;
//   exact   have equal constants and extents;
//   kernel  are one kernel of the device;
//   code    are one module before specialisation.
// whole_us: microseconds of all launches in one run, as they are and with baked code; 0
// without `measures`.
int launches_plan(struct session *session, bool measures, json_t **out, double whole_us[2]);

#endif // TOOLS_TENON_KERNELS_LAUNCH_H
