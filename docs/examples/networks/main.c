// SPDX-License-Identifier: MIT
// Trains a network: `tenon train NETWORK` runs this program, with the same options, which
// `tenon train NETWORK --help` explains.
#include "command.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// --- failures --------------------------------------------------------------------------

static char failure[2048];

static void record(const char *format, va_list args)
{
    if (!failure[0])
        vsnprintf(failure, sizeof(failure), format, args);
}

int fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return FAILED;
}

int misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(format, args);
    va_end(args);
    return MISUSED;
}

int failed_call(tn_status status)
{
    return status ? fail("%s", tn_train_error()) : 0;
}

int failed_scope(const tn_scope *scope)
{
    if (!scope)
        return fail("%s", tn_last_error());
    return tn_scope_status(scope) ? fail("%s", tn_scope_error(scope)) : 0;
}

void show(FILE *stream, const char *text, uint32_t flags)
{
    uint64_t size = tn_text_printable(text, flags, NULL, 0) + 1;
    char *shown = malloc(size);
    if (!shown)
        return;
    tn_text_printable(text, flags, shown, size);
    fputs(shown, stream);
    free(shown);
}

// --- networks --------------------------------------------------------------------------

static const struct {
    const char *name;
    int (*run)(struct asked *options);
} networks[] = {
    {"mlp", train_mlp},
    {"lenet", train_lenet},
    {"resnet", train_resnet},
    {"transformer", train_transformer},
};

static int run(int argc, char **argv)
{
    struct asked options;
    int failed = options_read(argc, argv, &options);
    if (failed)
        return failed;
    for (size_t i = 0; i < COUNT(networks); i++)
        if (strcmp(options.network, networks[i].name) == 0)
            return networks[i].run(&options);
    return misuse("no network '%s'; expected mlp, lenet, resnet or transformer",
                  options.network);
}

int main(int argc, char **argv)
{
    // A limit on file sizes must be an error that is reported.
    signal(SIGXFSZ, SIG_IGN);
    int status = run(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && !status)
        status = fail("cannot write the output");
    if (status) {
        fprintf(stderr, "tenon: ");
        show(stderr, failure, TN_TEXT_INDENT);
        fprintf(stderr, "\n");
    }
    return status;
}
