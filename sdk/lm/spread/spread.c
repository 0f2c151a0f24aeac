// SPDX-License-Identifier: MIT
// Dividing a model among processes.
#include "spread.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dist.h>
#include "../engine/caches.h"
#include "../engine/devices.h"
#include "../engine/parts.h"

// --- layers of each rank ----------------------------------------------------------------

// Whether all ranks have the same devices, and so the same speed.
static bool are_alike(const struct lm_spread *spread)
{
    for (int32_t i = 1; i < spread->base.size; i++)
        if (strcmp(spread->ranks[i].devices, spread->ranks[0].devices) != 0)
            return false;
    return true;
}

// Ends the group after a failure of this rank alone: the other ranks would wait for it.
static tn_status break_off(struct lm_spread *spread, tn_status status)
{
    struct lm_failure failure = {TN_OK, ""};
    lm_failure_note(&failure, status);
    if (status != TN_OK)
        lm_mail_abort(&spread->mail, failure.text);
    return lm_failure_tell(&failure);
}

// Measures the speed of each rank, of all at once.
static tn_status spread_measure(struct lm_spread *spread)
{
    struct lm_introduction mine = spread->ranks[spread->base.rank];
    int64_t layer = spread->model->facts->layers * spread->base.rank / spread->base.size;
    tn_status status =
        break_off(spread, lm_spread_speed(spread->model, layer, &mine.speed));
    return status == TN_OK ? lm_spread_gather(spread, &mine) : status;
}

static tn_status spread_tell_shortage(const struct lm_spread *spread,
                                      const struct lm_shortage *shortage)
{
    const struct lm_introduction *rank = &spread->ranks[shortage->device];
    return lm_fail(TN_ERR_MEMORY,
                   "%s: does not fit: rank %" PRId64 ", on %s, has %.1f MB of memory for "
                   "layers, and %.1f MB are missing for layer %" PRId64 " of %" PRId64 "%s",
                   spread->model->source.metadata->name, shortage->device, rank->devices,
                   rank->is_closed ? 0 : 1e-6 * (double)rank->room_bytes,
                   1e-6 * (double)shortage->missing, shortage->placed,
                   spread->model->facts->layers,
                   shortage->device == spread->base.size - 1
                       ? " and those behind it: more processes have more memory"
                       : "");
}

static void write_stages(const struct lm_spread *spread, struct lm_stage *out)
{
    for (int32_t i = 0; i < spread->base.size; i++) {
        const struct lm_introduction *rank = &spread->ranks[i];
        out[i] = (struct lm_stage){.room = {.bytes = rank->room_bytes,
                                            .is_unbounded = rank->is_unbounded != 0,
                                            .is_closed = rank->is_closed != 0,
                                            .memory = 0},
                                   .speed = rank->speed > 0 ? rank->speed : 1};
    }
}

// Reads the layers of each rank from the options.
static tn_status spread_read_split(struct lm_spread *spread, const char *split)
{
    int32_t size = spread->base.size;
    const char *wrong =
        lm_read_split(split, spread->model->facts->layers, size, spread->ends);
    for (int32_t i = 0; i < size && !wrong; i++)
        if (spread->ends[i] == (i ? spread->ends[i - 1] : 0))
            wrong = "each process has one layer or more";
    return wrong ? lm_fail(TN_ERR_ARGUMENT,
                           "a split of '%s' for %" PRId64 " layers on %d processes: %s",
                           split, spread->model->facts->layers, size, wrong)
                 : TN_OK;
}

static tn_status divide_layers(struct lm_spread *spread)
{
    struct lm_sizes sizes;
    struct lm_shortage shortage;
    struct lm_stage *stages = lm_alloc((uint64_t)spread->base.size, sizeof(*stages));
    if (!stages)
        return TN_ERR_MEMORY;
    tn_status status =
        lm_sizes_make(spread->model, 0, spread->model->facts->layers, &sizes);
    write_stages(spread, stages);
    if (status == TN_OK && !lm_stages_divide(&sizes.needs, sizes.weights, stages,
                                             spread->base.size, spread->ends, &shortage))
        status = spread_tell_shortage(spread, &shortage);
    lm_sizes_finish(&sizes);
    free(stages);
    return status;
}

static tn_status spread_layers(struct lm_spread *spread, const char *split)
{
    tn_lm *model = spread->model;
    int32_t size = spread->base.size, rank = spread->base.rank;
    tn_status status = TN_OK;
    if (model->facts->layers < size)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%s: %" PRId64 " layers on %d processes, expected one or more on "
                       "each",
                       model->source.metadata->name, model->facts->layers, size);
    if (!split && !are_alike(spread))
        status = spread_measure(spread);
    if (status == TN_OK)
        status = split ? spread_read_split(spread, split) : divide_layers(spread);
    if (status != TN_OK)
        return status;
    int64_t first = rank ? spread->ends[rank - 1] : 0;
    return break_off(spread, tn_lm_ensure_shard(model, first, spread->ends[rank] - 1));
}

// --- parts of products ------------------------------------------------------------------

// Makes the group of the all-reduces, under a name of its own.
static tn_status join_products(tn_lm *model, int32_t rank)
{
    static atomic_uint made;
    const void *dist;
    const tn_host *host;
    tn_status status = tn_interface_find(model->runtime, TN_IFACE_DIST, &dist, &host);
    snprintf(model->partial.group, sizeof(model->partial.group), "tenon.lm.%u",
             atomic_fetch_add(&made, 1));
    if (status == TN_OK)
        status = ((const tn_dist *)dist)->split(host, NULL, 0, rank, model->partial.group);
    return lm_fail_core(status);
}

static tn_status spread_products(struct lm_spread *spread, const char *split)
{
    tn_lm *model = spread->model;
    if (split)
        return lm_fail(TN_ERR_ARGUMENT, "a split of '%s': products are divided evenly",
                       split);
    for (int32_t i = 0; i < spread->base.size; i++)
        spread->ends[i] = model->facts->layers;
    tn_status status = lm_slice(model, spread->base.rank, spread->base.size);
    if (status == TN_OK)
        status = join_products(model, spread->base.rank);
    if (status != TN_OK)
        return status;
    return break_off(spread, tn_lm_ensure_shard(model, 0, model->facts->layers - 1));
}

// --- opening and closing ---------------------------------------------------------------

// Rank 0 tells the other ranks that no step will follow.
static void spread_close(struct lm_remote *remote)
{
    struct lm_spread *spread = (struct lm_spread *)(void *)remote;
    const struct lm_order order = {.action = LM_LEAVE};
    spread->model->remote = NULL;
    if (spread->base.rank == 0 && !spread->is_over)
        lm_spread_order(spread, &order);
    lm_caches_drop_all(spread->model);
    lm_mail_finish(&spread->mail);
    pthread_mutex_destroy(&spread->lock);
    free(spread->ranks);
    free(spread->ends);
    free(spread);
}

static tn_status spread_make(tn_lm *model, const tn_lm_dist_options *options,
                             struct lm_spread **out)
{
    struct lm_spread *spread = lm_alloc(1, sizeof(*spread));
    if (!spread)
        return TN_ERR_MEMORY;
    tn_status status = lm_mail_init(&spread->mail, model->runtime);
    if (status != TN_OK) {
        free(spread);
        return status;
    }
    const tn_group_facts *facts = spread->mail.facts;
    spread->model = model;
    spread->kind = options->kind ? options->kind : TN_LM_PIPELINE;
    spread->is_over = true; // until all ranks have their part
    spread->base =
        (struct lm_remote){.rank = facts->rank,
                           .size = facts->size,
                           .stages = spread->kind == TN_LM_PIPELINE ? facts->size : 1,
                           .begin = lm_spread_begin,
                           .end = lm_spread_end,
                           .forget = lm_spread_forget,
                           .close = spread_close};
    pthread_mutex_init(&spread->lock, NULL);
    spread->ranks = lm_alloc((uint64_t)facts->size, sizeof(*spread->ranks));
    spread->ends = lm_alloc((uint64_t)facts->size, sizeof(*spread->ends));
    if (spread->ranks && spread->ends) {
        *out = spread;
        return TN_OK;
    }
    spread_close(&spread->base);
    return TN_ERR_MEMORY;
}

static tn_status check_options(const tn_lm *model, const tn_lm_dist_options *options)
{
    int sequences = atomic_load(&model->sequences);
    if (options->flags || options->reserved || options->kind < 0 ||
        options->kind > TN_LM_TENSOR)
        return lm_fail(TN_ERR_ARGUMENT,
                       "tn_lm_dist_options: kind %d, flags 0x%x: expected TN_LM_PIPELINE "
                       "or TN_LM_TENSOR, and 0",
                       options->kind, options->flags);
    if (sequences > 0)
        return lm_fail(TN_ERR_ARGUMENT, "a model that has %d sequence%s is not divided",
                       sequences, sequences == 1 ? "" : "s");
    return model->partial.has
               ? lm_fail(TN_ERR_UNSUPPORTED, "a model whose products are divided stays so: "
                                             "open it again")
               : TN_OK;
}

// Divides the model, and waits until all ranks have loaded their part.
static tn_status spread_divide(struct lm_spread *spread, const char *split)
{
    uint8_t mine = 1;
    uint8_t *all = lm_alloc((uint64_t)spread->base.size, 1);
    if (!all)
        return TN_ERR_MEMORY;
    tn_status status = lm_spread_compare(spread, split);
    if (status == TN_OK)
        status = spread->kind == TN_LM_PIPELINE ? spread_layers(spread, split)
                                                : spread_products(spread, split);
    if (status == TN_OK)
        status = lm_mail_gather(&spread->mail, &mine, 1, all);
    if (status == TN_OK)
        free(all);
    else
        lm_mail_abandon(all);
    return status;
}

tn_status tn_lm_rank_of(const tn_lm *model, int32_t rank, tn_lm_rank *out)
{
    const struct lm_spread *spread = (const struct lm_spread *)(void *)model->remote;
    tn_lm_rank one = {.struct_size = sizeof(one), .size = 1, .end = model->facts->layers};
    int32_t size = spread ? spread->base.size : 1;
    if (rank < 0 || rank >= size)
        return lm_fail(TN_ERR_ARGUMENT, "rank %d of %d processes", rank, size);
    if (spread) {
        bool is_pipeline = spread->kind == TN_LM_PIPELINE;
        one.rank = rank;
        one.size = size;
        one.first = is_pipeline && rank ? spread->ends[rank - 1] : 0;
        one.end = spread->ends[rank];
        memcpy(one.devices, spread->ranks[rank].devices, sizeof(one.devices));
    }
    lm_write_struct(out, out->struct_size, &one, sizeof(one));
    return TN_OK;
}

tn_status tn_lm_distribute(tn_lm *model, const tn_lm_dist_options *options,
                           tn_lm_rank *out_rank)
{
    tn_lm_dist_options mine;
    struct lm_spread *spread = NULL;
    tn_status status =
        lm_read_struct(&mine, sizeof(mine), options, options ? options->struct_size : 0,
                       "tn_lm_dist_options");
    if (status == TN_OK)
        status = check_options(model, &mine);
    if (status == TN_OK && model->remote)
        model->remote->close(model->remote);
    if (status == TN_OK)
        status = spread_make(model, &mine, &spread);
    if (status == TN_OK && spread->base.size > 1)
        status = spread_divide(spread, mine.split);
    if (status == TN_OK && spread->base.size > 1) {
        spread->is_over = false;
        model->remote = &spread->base;
    } else if (spread) {
        struct lm_failure failure = {TN_OK, ""};
        lm_failure_note(&failure, status);
        spread_close(&spread->base);
        lm_failure_tell(&failure);
    }
    return status == TN_OK && out_rank
               ? tn_lm_rank_of(model, model->remote ? model->remote->rank : 0, out_rank)
               : status;
}
