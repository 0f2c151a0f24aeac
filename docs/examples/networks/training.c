// SPDX-License-Identifier: MIT
// Steps of a training: batches, what lines and events tell, checkpoints.
#include "command.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static volatile int32_t stop;

static void ask_to_stop(int signal)
{
    (void)signal;
    stop = 1; // a second signal ends the process: see SA_RESETHAND
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t batches_of(const struct course *t)
{
    return tn_loader_batches(t->loader);
}

static void tell_step(uint64_t step, double loss, void *user)
{
    const struct course *t = user;
    if (!t->options->json)
        return;
    printf("{\"event\": \"step\", \"step\": %" PRIu64 ", \"epoch\": %" PRIu64
           ", \"loss\": %.9g}\n",
           step, (step - 1) / batches_of(t) + 1, loss);
    fflush(stdout); // who reads it may wait for it
}

static int32_t tell_report(uint64_t step, double loss, void *user)
{
    struct course *t = user;
    double seconds = now_seconds() - t->marked;
    t->seconds += seconds;
    if (t->report && !t->is_quiet && step % t->every == 0)
        t->failed = t->report(t, step, loss, seconds);
    fflush(stdout);
    t->marked = now_seconds();
    return t->failed;
}

static void announce(const struct course *t)
{
    const struct asked *o = t->options;
    const uint64_t done = tn_params_step(t->params);
    if (o->json)
        printf("{\"event\": \"start\", \"%s\": %" PRId64 ", \"batch\": %" PRId64
               ", \"seed\": %" PRId64 ", \"first\": %" PRIu64 ", \"steps\": %" PRIu64 "}\n",
               t->network->unit, t->rows, o->batch, o->seed, done, t->total);
    else
        printf("%s on %" PRId64 " %s, batches of %" PRId64 ", seed %" PRId64
               ": steps %" PRIu64 " to %" PRIu64 "\n",
               t->network->title, t->rows, t->network->unit, o->batch, o->seed, done + 1,
               t->total);
    fflush(stdout);
}

static int make_trainer(struct course *t, const tn_table *tables, uint64_t num_tables,
                        int64_t window)
{
    const struct asked *o = t->options;
    tn_trainer_options trainer = t->network->trainer;
    tn_loader_options loader = {.struct_size = sizeof(loader),
                                .batch = o->batch,
                                .window = window,
                                .seed = (uint64_t)o->seed};
    t->rows = tables[0].shape.extent[0];
    if (o->batch > t->rows - window)
        return misuse("--batch %" PRId64 " is more than the %" PRId64 " training %s",
                      o->batch, t->rows - window, t->network->unit);
    trainer.lr = o->lr;
    trainer.struct_size = sizeof(trainer);
    trainer.group = getenv("TENON_RUN") ? "world" : NULL; // of `tenon run`
    int failed = failed_call(
        tn_trainer_create(t->params, t->network->loss, NULL, &trainer, &t->trainer));
    if (failed)
        return failed;
    loader.part = tn_trainer_rank(t->trainer);
    loader.parts = tn_trainer_size(t->trainer);
    t->is_quiet = loader.part > 0;
    if (t->is_quiet && !freopen("/dev/null", "w", stdout))
        return fail("/dev/null cannot be opened");
    failed = failed_call(tn_loader_create(tables, num_tables, &loader, &t->loader));
    if (failed)
        return failed;
    t->every = t->network->every ? t->network->every : batches_of(t);
    int64_t epochs = o->epochs ? o->epochs : t->network->epochs;
    t->total = o->steps                          ? (uint64_t)o->steps
               : o->epochs || !t->network->steps ? (uint64_t)epochs * batches_of(t)
                                                 : (uint64_t)t->network->steps;
    return 0;
}

int training_run(struct course *t, const tn_table *tables, uint64_t num_tables,
                 int64_t window)
{
    const struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = SA_RESETHAND};
    const struct asked *o = t->options;
    int failed = make_trainer(t, tables, num_tables, window);
    if (failed)
        return failed;
    announce(t);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uint64_t first = tn_params_step(t->params);
    t->marked = now_seconds();
    failed = failed_call(tn_fit(t->trainer, t->loader,
                                &(tn_fit_options){.steps = t->total,
                                                  .every = t->every,
                                                  .save = o->save,
                                                  .report = tell_report,
                                                  .each = tell_step,
                                                  .user = t,
                                                  .stop = &stop,
                                                  .progress = o->json ? 0 : 1}));
    uint64_t done = tn_params_step(t->params);
    t->seconds += now_seconds() - t->marked;
    if (failed || t->failed)
        return FAILED;
    if (o->json)
        printf("{\"event\": \"trained\", \"steps\": %" PRIu64 ", \"seconds\": %.6f}\n",
               done - first, t->seconds);
    if (stop && done < t->total)
        return fail("interrupted after step %" PRIu64 " of %" PRIu64
                    "; saved. Continue with: tenon train %s%s%s --resume %s",
                    done, t->total, o->network, window ? " " : "", window ? o->data : "",
                    o->save);
    if (!o->json) {
        printf("saved ");
        show(stdout, o->save, TN_TEXT_ONE_LINE);
        printf("\n");
    }
    return 0;
}
