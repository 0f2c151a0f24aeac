// SPDX-License-Identifier: MIT
// The training loop: steps run in groups, each group in a scope of its own. Losses are read
// at a group's end, so that the host runs ahead of the device.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"
#include "progress.h"

enum { GROUP = 32 };

// Losses of the steps so far, for the picture and for reports.
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

// Mean loss since the last report.
static double losses_mean(const struct fit_losses *l)
{
    double sum = 0;
    uint64_t first = l->reported;
    for (uint64_t i = first; i < l->count; i++)
        sum += l->values[i];
    return l->count > first ? sum / (double)(l->count - first) : NAN;
}

// State of the training loop.
struct fit {
    tn_trainer *trainer;
    tn_params *params;
    tn_loader *loader;
    const tn_fit_options *options;
    const struct train_group *group;
    struct fit_losses losses;
    struct progress progress;
    uint64_t first, saved; // steps done before the loop; steps in the last checkpoint
    bool is_lost;          // a step of a group failed
};

static tn_status read_losses(struct fit *f, tn_scope *s, tn_array *const *arrays,
                             uint64_t count, uint64_t first_step)
{
    const tn_fit_options *o = f->options;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK; i++) {
        double loss = tn_item(s, arrays[i]);
        if (tn_scope_status(s))
            return train_fail_scope(s);
        if (!isfinite(loss)) {
            progress_clear(&f->progress);
            return train_fail(
                TN_ERR_ARGUMENT,
                "step %" PRIu64 ": the loss is %s%s%s; a lower learning rate or "
                "clipping may help",
                first_step + i, isnan(loss) ? "NaN" : "infinite",
                o->save ? ", the checkpoint before stays: " : "", o->save ? o->save : "");
        }
        status = losses_add(&f->losses, loss);
        if (o->each)
            o->each(first_step + i, loss, o->user);
        progress_show(&f->progress, first_step + i,
                      o->steps - f->first <= 100 ? loss : losses_mean(&f->losses));
    }
    return status;
}

static bool is_stopped(const struct fit *f)
{
    return f->options->stop && *f->options->stop != 0;
}

// Runs up to `most` steps.
static tn_status fit_group(struct fit *f, uint64_t most)
{
    tn_array *batch[MOST_TABLES], *arrays[GROUP] = {NULL};
    uint64_t first = f->params->step, count = 0;
    tn_scope *s = tn_scope_open(f->params->runtime);
    tn_status status = train_fail_scope(s);
    bool is_alone = f->group->size == 1; // else all members stop at the same step
    while (status == TN_OK && count < most && count < GROUP &&
           !(is_alone && is_stopped(f))) {
        if (tn_loader_next(f->loader, s, batch) == TN_OK) {
            f->is_lost = tn_trainer_step(f->trainer, s, batch, tn_loader_arrays(f->loader),
                                         &arrays[count]) != TN_OK &&
                         !is_alone;
            count += tn_scope_status(s) == TN_OK;
        }
        status = train_fail_scope(s);
    }
    tn_status losses = read_losses(f, s, arrays, count, first + 1);
    tn_scope_close(s);
    return status ? status : losses;
}

// Writes the checkpoint and the picture; in a group one member does.
static tn_status write_files(struct fit *f)
{
    const tn_fit_options *o = f->options;
    if (f->group->rank > 0) {
        f->saved = f->params->step;
        return TN_OK;
    }
    tn_status status = o->save ? tn_params_save(f->params, o->save) : TN_OK;
    if (status == TN_OK && o->plot)
        status = tn_plot_svg(o->plot, "loss", f->losses.values, f->losses.count);
    f->saved = f->params->step;
    return status;
}

// Writes files, and a line about the last steps. *out_ends: the report asks to end.
static tn_status report_steps(struct fit *f, bool *out_ends)
{
    const tn_fit_options *o = f->options;
    double mean = losses_mean(&f->losses);
    f->losses.reported = f->losses.count;
    progress_clear(&f->progress);
    tn_status status = write_files(f);
    if (status != TN_OK)
        return status;
    if (o->report)
        *out_ends = o->report(f->params->step, mean, o->user) != 0;
    else if (!o->progress && f->group->rank == 0)
        fprintf(stderr, "step %" PRIu64 " of %" PRIu64 ": loss %.4f\n", f->params->step,
                o->steps, mean);
    return TN_OK;
}

// After the failure of another member the parameters are those of the step before. Each
// remaining member writes them: to the same path, or to its own machine's.
static tn_status save_what_is_left(struct fit *f, tn_status status)
{
    const tn_fit_options *o = f->options;
    char reason[1024];
    snprintf(reason, sizeof(reason), "%s", tn_train_error());
    if (!o->save || f->params->step == f->first)
        return status;
    if (f->params->step > f->saved && tn_params_save(f->params, o->save) != TN_OK)
        return train_fail(status, "%s; %s", reason, tn_train_error());
    return train_fail(status, "%s; %s has step %" PRIu64, reason, o->save, f->params->step);
}

static tn_status run_fit(struct fit *f)
{
    const tn_fit_options *o = f->options;
    uint64_t every = o->every ? o->every : 100;
    bool ends = false;
    tn_status status = TN_OK;
    while (status == TN_OK && f->params->step < o->steps) {
        ends |= is_stopped(f);
        status = group_any(f->group, f->params->runtime, &ends);
        f->is_lost = status != TN_OK;
        if (status != TN_OK || ends)
            break;
        uint64_t left = o->steps - f->params->step, until = every - f->params->step % every;
        status = fit_group(f, until < left ? until : left);
        if (status == TN_OK && f->params->step > f->saved &&
            (f->params->step % every == 0 || f->params->step == o->steps))
            status = report_steps(f, &ends);
    }
    progress_clear(&f->progress);
    if (f->is_lost)
        return save_what_is_left(f, status);
    if (status == TN_OK && f->params->step > f->saved) // stopped between two reports
        status = write_files(f);
    return status;
}

tn_status tn_fit(tn_trainer *trainer, tn_loader *loader, const tn_fit_options *options)
{
    if (!trainer || !loader || !options)
        return train_fail(TN_ERR_ARGUMENT, "tn_fit: an argument is NULL");
    if (options->progress < 0 || options->progress > 2)
        return train_fail(TN_ERR_ARGUMENT, "tn_fit: progress is %d, expected 0 to 2",
                          options->progress);
    struct fit f = {.trainer = trainer,
                    .params = trainer_params(trainer),
                    .loader = loader,
                    .options = options,
                    .group = trainer_group(trainer)};
    f.first = f.saved = f.params->step;
    f.progress.rows = loader_batch(loader);
    f.progress.epoch = tn_loader_batches(loader);
    if (options->progress && f.first < options->steps && f.group->rank == 0)
        progress_begin(&f.progress, options->progress == 1 ? stdout : stderr, f.first,
                       options->steps);
    tn_loader_seek(loader, f.params->step);
    tn_status status = run_fit(&f);
    free(f.losses.values);
    return status;
}
