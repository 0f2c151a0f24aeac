// SPDX-License-Identifier: MIT
// The checks queue.apart, queue.waits, queue.host and queue.at-once.
#ifndef CONFORMANCE_QUEUE_QUEUES_H
#define CONFORMANCE_QUEUE_QUEUES_H

#include "../kit/fixture.h"

void check_apart(struct fixture *f);
void check_waits(struct fixture *f);
void check_host(struct fixture *f);
void check_at_once(struct fixture *f);

#endif // CONFORMANCE_QUEUE_QUEUES_H
