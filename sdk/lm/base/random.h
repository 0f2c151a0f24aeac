// SPDX-License-Identifier: MIT
// Random numbers for sampling and for training.
#ifndef LM_RANDOM_H
#define LM_RANDOM_H

#include <stdint.h>

// The next random number of a generator, from 0 to below 1.
double lm_next_share(uint64_t *state);

#endif // LM_RANDOM_H
