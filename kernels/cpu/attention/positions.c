// SPDX-License-Identifier: MIT
// Which keys a query sees, and the addresses of its operands.
#include "attention.h"

#include <math.h>

int64_t attention_length(const struct attention *s, int64_t index)
{
    if (!s->lengths)
        return s->keys;
    const tn_layout *l = &s->lengths->layout;
    int64_t n = tn_get_i64(s->lengths, l->offset + (l->rank ? index * l->stride[0] : 0));
    return n > ATTENTION_FAR ? ATTENTION_FAR : n < -ATTENTION_FAR ? -ATTENTION_FAR : n;
}

// The slot, clamped, that `slots` gives for an index of q's first axis.
static int64_t attention_positions_slot_of(const struct attention *s, int64_t index)
{
    const tn_layout *l = &s->slots->layout;
    int64_t slot = tn_get_i64(s->slots, l->offset + index * l->stride[0]);
    return slot < 0 ? 0 : slot < s->num_slots ? slot : s->num_slots - 1;
}

struct attention_unit attention_unit(const struct attention *s, int64_t number)
{
    int64_t rest = number / s->groups, index = 0;
    struct attention_unit u = {.group = number % s->groups,
                               .mask_at = s->mask ? s->mask->layout.offset : 0};
    int64_t k = u.group * s->k_head, v = u.group * s->v_head;
    for (int32_t i = s->batch_rank - 1; i >= 0; i--) {
        index = rest % s->extent[i];
        rest /= s->extent[i];
        int64_t slot = i == 0 && s->slots ? attention_positions_slot_of(s, index) : index;
        k += slot * s->k_stride[i];
        v += slot * s->v_stride[i];
        u.mask_at += index * s->mask_stride[i];
    }
    u.k = s->k + k * s->kv_size;
    u.v = s->v + v * s->kv_size;
    u.length = attention_length(s, index);
    return u;
}

struct attention_row attention_see(const struct attention *s,
                                   const struct attention_unit *unit, int64_t row)
{
    int64_t length = unit->length;
    int64_t query = row % s->queries, at = query + length - s->queries;
    struct attention_row state = {.high = length < s->keys ? length : s->keys,
                                  .most = -INFINITY};
    if (!s->lengths) {
        at = query;
        state.high = s->keys;
    }
    if (s->is_causal && at + 1 < state.high)
        state.high = at + 1;
    if (at - s->window + 1 > 0)
        state.low = at - s->window + 1;
    state.high = state.high > 0 ? state.high : 0;
    state.low = state.low < state.high ? state.low : state.high;
    int64_t head = unit->group * s->per_group + row / s->queries;
    state.mask_at = unit->mask_at + head * s->mask_head + query * s->mask_query;
    state.sink = s->sinks ? tn_get_f64(s->sinks, s->sinks->layout.offset +
                                                     head * s->sinks->layout.stride[0])
                          : -INFINITY;
    return state;
}

const void *attention_read_rows(const struct attention *s, char *wide, const char *rows,
                                int64_t first, int64_t count, int64_t width, int64_t *row)
{
    const char *from = rows + first * *row * s->kv_size;
    cpu_map_fn *widen = s->kernels->cast[s->kv][s->dtype];
    if (!attention_is_widened(s))
        return from;
    int64_t at_once = *row == width ? count : 1; // rows
    for (int64_t i = 0; i < count; i += at_once) {
        const void *in = from + i * *row * s->kv_size;
        if (s->kv == TN_U8)
            s->quant->decode(s->format, in, width / TN_QUANT_BLOCK_q8_0,
                             (float *)(void *)(wide + i * width * s->element));
        else
            widen(wide + i * width * s->element, &in, at_once * width, 0);
    }
    *row = width;
    return wide;
}
