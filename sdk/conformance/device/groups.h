// SPDX-License-Identifier: MIT
// The groups of checks of this folder.
#ifndef CONFORMANCE_DEVICE_GROUPS_H
#define CONFORMANCE_DEVICE_GROUPS_H

#include "../kit/kit.h"

void group_device(struct kit *k);    // packs on each device, through a runtime
void group_primitive(struct kit *k); // every installed primitive on the backend's devices
void group_suite(struct kit *k);     // the operator suite over base and nn

#endif // CONFORMANCE_DEVICE_GROUPS_H
