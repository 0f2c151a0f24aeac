// SPDX-License-Identifier: MIT
// The groups of checks of this folder.
#ifndef CONFORMANCE_BACKEND_GROUPS_H
#define CONFORMANCE_BACKEND_GROUPS_H

#include "../kit/kit.h"

void group_backend(struct kit *k); // the table and its devices
void group_buffer(struct kit *k);  // memory of a device
void group_import(struct kit *k);  // memory of the host, used in place
void group_share(struct kit *k);   // memory that others use, too

#endif // CONFORMANCE_BACKEND_GROUPS_H
