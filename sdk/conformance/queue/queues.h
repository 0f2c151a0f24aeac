// SPDX-License-Identifier: MIT
// The checks queue.apart, queue.waits, queue.host and queue.at-once.
#ifndef CONFORMANCE_QUEUE_QUEUES_H
#define CONFORMANCE_QUEUE_QUEUES_H

#include "../kit/fixture.h"

void check_queue_apart(struct fixture *f);
void check_queue_waits(struct fixture *f);
void check_queue_host(struct fixture *f);
void check_queue_at_once(struct fixture *f);

#endif // CONFORMANCE_QUEUE_QUEUES_H
