// SPDX-License-Identifier: MIT
// Dividing the layers of a model among processes that work at once.
//
// Stages are filled in order, each up to a bound of time; the least bound with which all
// layers find room is found by bisection.
#include "stages.h"

#define HALVINGS 60

static double work_of(const struct lm_needs *needs, const uint64_t *work, int64_t i)
{
    return (double)work[i] +
           (i == needs->layers - 1 ? (double)(needs->output + needs->again) : 0);
}

// The shortage of a stage that would have to take layers begin .. end - 1.
static void spread_stages_tell_shortage(const struct lm_needs *needs,
                                        const struct lm_stage *stage, int64_t device,
                                        int64_t begin, int64_t next, int64_t end,
                                        struct lm_shortage *out)
{
    uint64_t bytes = 0, has = stage->room.is_closed ? 0 : stage->room.bytes;
    for (int64_t i = begin; i < end; i++)
        bytes += lm_bytes_of_layer(needs, begin, i);
    *out = (struct lm_shortage){
        .device = device, .placed = next, .missing = bytes > has ? bytes - has : 0};
}

// Fills the stages up to this time each. The first layer of a stage always fits the time.
static bool spread_stages_fill(const struct lm_needs *needs, const uint64_t *work,
                               const struct lm_stage *stages, int64_t num_stages,
                               double time, int64_t *out_ends,
                               struct lm_shortage *out_shortage)
{
    int64_t next = 0, begin = 0;
    for (int64_t k = 0; k < num_stages; k++) {
        const struct lm_stage *stage = &stages[k];
        uint64_t used = 0;
        double spent = 0;
        int64_t end = needs->layers - (num_stages - 1 - k); // later stages: one layer each
        for (begin = next; next < end; next++) {
            uint64_t bytes = lm_bytes_of_layer(needs, begin, next);
            spent += work_of(needs, work, next) / stage->speed;
            bool fits = !stage->room.is_closed &&
                        (stage->room.is_unbounded ||
                         (used <= stage->room.bytes && bytes <= stage->room.bytes - used));
            if (!fits || (next > begin && spent > time))
                break;
            used += bytes;
        }
        out_ends[k] = next;
        if (next == begin) {
            spread_stages_tell_shortage(needs, stage, k, begin, next, begin + 1,
                                        out_shortage);
            return false;
        }
    }
    if (next < needs->layers)
        spread_stages_tell_shortage(needs, &stages[num_stages - 1], num_stages - 1, begin,
                                    next, needs->layers, out_shortage);
    return next == needs->layers;
}

bool lm_stages_divide(const struct lm_needs *needs, const uint64_t *work,
                      const struct lm_stage *stages, int64_t num_stages, int64_t *out_ends,
                      struct lm_shortage *out_shortage)
{
    struct lm_shortage none;
    double low = 0, high = 0, slowest = stages[0].speed;
    for (int64_t k = 1; k < num_stages; k++)
        slowest = stages[k].speed < slowest ? stages[k].speed : slowest;
    for (int64_t i = 0; i < needs->layers; i++)
        high += work_of(needs, work, i) / slowest;
    high *= 2; // above any error of rounding
    if (!spread_stages_fill(needs, work, stages, num_stages, high, out_ends, out_shortage))
        return false;
    for (int i = 0; i < HALVINGS; i++) {
        double half = (low + high) / 2;
        if (spread_stages_fill(needs, work, stages, num_stages, half, out_ends, &none))
            high = half;
        else
            low = half;
    }
    return spread_stages_fill(needs, work, stages, num_stages, high, out_ends,
                              out_shortage);
}
