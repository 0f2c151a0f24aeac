// SPDX-License-Identifier: MIT
// The check queue.lost: a device that is lost on purpose.
#ifndef CONFORMANCE_QUEUE_LOST_H
#define CONFORMANCE_QUEUE_LOST_H

#include "../kit/fixture.h"

// Loses devices on purpose. Skips when the plugin offers no tn_device_loss.
void check_queue_lost(struct fixture *f);

#endif // CONFORMANCE_QUEUE_LOST_H
