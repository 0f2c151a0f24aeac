// SPDX-License-Identifier: MIT
// The loop: steps in groups, each in a scope of its own, whose losses are read at its end,
// so that the host runs ahead of the device.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

enum { GROUP = 32, MOST_BATCH = 16 };

// Losses so far, for the picture and for reports.
struct fit_losses {
    double *values;
    uint64_t count, room, reported;
};

static tn_status losses_add(struct fit_losses *l, double value)
{
    if (l->count == l->room) {
        uint64_t room = l->room ? 2 * l->room : 256;
        double *values = realloc(l->values, (size_t)room * sizeof(*values));
        if (!values)
            return train_fail_memory();
        l->values = values;
        l->room = room;
    }
    l->values[l->count++] = value;
    return TN_OK;
}

static double losses_mean(struct fit_losses *l)
{
    double sum = 0;
    uint64_t first = l->reported;
    for (uint64_t i = first; i < l->count; i++)
        sum += l->values[i];
    l->reported = l->count;
    return l->count > first ? sum / (double)(l->count - first) : NAN;
}

static tn_status read_losses(tn_scope *s, tn_array *const *arrays, uint64_t count,
                             uint64_t first_step, const char *saved, struct fit_losses *l)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        double loss = tn_item(s, arrays[i]);
        if (tn_scope_status(s))
            return train_fail_scope(s);
        if (!isfinite(loss))
            return train_fail(
                TN_ERR_ARGUMENT,
                "step %" PRIu64 ": the loss is %s%s%s; a lower learning rate or "
                "clipping may help",
                first_step + i, isnan(loss) ? "NaN" : "infinite",
                saved ? ", the checkpoint before stays: " : "", saved ? saved : "");
        status = losses_add(l, loss);
    }
    return status;
}

// Up to `most` steps.
static tn_status fit_group(tn_trainer *trainer, tn_params *params, tn_loader *loader,
                           uint64_t most, const char *saved, struct fit_losses *l)
{
    tn_array *batch[MOST_BATCH], *arrays[GROUP] = {NULL};
    uint64_t first = params->step, count = 0;
    tn_scope *s = tn_scope_open(params->runtime);
    tn_status status = train_fail_scope(s);
    while (status == TN_OK && count < most && count < GROUP) {
        if (tn_loader_next(loader, s, batch) == TN_OK &&
            tn_trainer_step(trainer, s, batch, tn_loader_arrays(loader), &arrays[count]) ==
                TN_OK)
            count++;
        status = train_fail_scope(s);
    }
    tn_status losses = read_losses(s, arrays, count, first + 1, saved, l);
    tn_scope_close(s);
    return status ? status : losses;
}

// A line about the last steps, the checkpoint and the picture. *out_ends: the report says
// so.
static tn_status report_steps(tn_params *params, const tn_fit_options *o,
                              struct fit_losses *l, bool *out_ends)
{
    double mean = losses_mean(l);
    tn_status status = o->save ? tn_params_save(params, o->save) : TN_OK;
    if (status == TN_OK && o->plot)
        status = tn_plot_svg(o->plot, "loss", l->values, l->count);
    if (status != TN_OK)
        return status;
    if (o->report)
        *out_ends = o->report(params->step, mean, o->user) != 0;
    else
        fprintf(stderr, "step %" PRIu64 " of %" PRIu64 ": loss %.4f\n", params->step,
                o->steps, mean);
    return TN_OK;
}

tn_status tn_fit(tn_trainer *trainer, tn_loader *loader, const tn_fit_options *options)
{
    struct fit_losses losses = {0};
    if (!trainer || !loader || !options)
        return train_fail(TN_ERR_ARGUMENT, "tn_fit: an argument is NULL");
    tn_params *params = trainer_params(trainer);
    uint64_t every = options->every ? options->every : 100;
    bool ends = false;
    tn_status status = TN_OK;
    tn_loader_seek(loader, params->step);
    while (status == TN_OK && !ends && params->step < options->steps) {
        uint64_t left = options->steps - params->step, until = every - params->step % every;
        status = fit_group(trainer, params, loader, until < left ? until : left,
                           options->save, &losses);
        if (status == TN_OK &&
            (params->step % every == 0 || params->step == options->steps))
            status = report_steps(params, options, &losses, &ends);
    }
    free(losses.values);
    return status;
}
