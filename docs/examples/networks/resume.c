// SPDX-License-Identifier: MIT
// Parameters of a training: made from the seed, or those of a checkpoint, with which
// options have to agree.
#include "command.h"

#include <inttypes.h>
#include <string.h>

// What the checkpoint says of itself. The order of the data comes from seed and batch:
// others would not continue.
static int take_notes(struct course *t)
{
    struct asked *o = t->options;
    const char *network = tn_params_note(t->params, "network"),
               *batch = tn_params_note(t->params, "batch"),
               *rate = tn_params_note(t->params, "lr");
    int64_t seed = (int64_t)tn_params_seed(t->params), given = o->batch;
    char name[4200];
    if (!network || strcmp(network, o->network) != 0)
        return fail("%s: a checkpoint of network '%s', expected '%s'", o->resume,
                    network ? network : "(absent)", o->network);
    snprintf(name, sizeof(name), "%s: note 'batch'", o->resume);
    int failed = read_integer(name, batch ? batch : "(absent)", 1, 1 << 20, &o->batch);
    snprintf(name, sizeof(name), "%s: note 'lr'", o->resume);
    if (!failed && o->lr == 0)
        failed = read_rate(name, rate ? rate : "(absent)", &o->lr);
    if (failed)
        return FAILED; // the file's fault
    if (o->has_seed && o->seed != seed)
        return misuse("--seed %" PRId64 ", but %s was made with %" PRId64, o->seed,
                      o->resume, seed);
    if (given && given != o->batch)
        return misuse("--batch %" PRId64 ", but %s was made with %" PRId64, given,
                      o->resume, o->batch);
    o->seed = seed;
    return 0;
}

static int set_notes(struct course *t)
{
    char batch[32], rate[32];
    snprintf(batch, sizeof(batch), "%" PRId64, t->options->batch);
    snprintf(rate, sizeof(rate), "%.17g", t->options->lr);
    return failed_call(tn_params_set_note(t->params, "network", t->options->network) ||
                       tn_params_set_note(t->params, "batch", batch) ||
                       tn_params_set_note(t->params, "lr", rate));
}

int training_open(struct course *t, const struct network *network, struct asked *options)
{
    *t = (struct course){.network = network, .options = options};
    if (tn_runtime_open(NULL, &t->runtime))
        return fail("%s", tn_last_error());
    int failed =
        failed_call(tn_params_create(t->runtime, (uint64_t)options->seed, &t->params));
    if (!failed && options->resume)
        failed = failed_call(tn_params_load(t->params, options->resume));
    if (!failed && options->resume)
        failed = take_notes(t);
    options->batch = options->batch ? options->batch : network->batch;
    options->lr = options->lr > 0 ? options->lr : network->trainer.lr;
    return failed ? failed : set_notes(t);
}

int training_reload(struct course *t)
{
    tn_trainer_destroy(t->trainer);
    tn_params_destroy(t->params);
    t->trainer = NULL;
    t->params = NULL;
    return failed_call(tn_params_create(t->runtime, 0, &t->params) ||
                       tn_params_load(t->params, t->options->save));
}

void training_close(struct course *t)
{
    tn_trainer_destroy(t->trainer);
    tn_params_destroy(t->params);
    tn_loader_destroy(t->loader);
    tn_runtime_close(t->runtime);
}
