// SPDX-License-Identifier: MIT
// A file of checks that cannot pass, each with a reason:
//
//     # comment
//     never  file.constructors            the compiler inside has C++ statics
//     today  "kernel.values acme.fft/*"   wrong for lengths that are no power of two
//
// `never`: by design; `today`: until the plugin is mended. A listed check that passes
// fails the run, so that the list stays true, but not where --samples draws fewer
// applications, which may all be good. `sometimes`: by design, for what some seeds draw; it
// may pass.
#ifndef CONFORMANCE_KIT_EXCEPTIONS_H
#define CONFORMANCE_KIT_EXCEPTIONS_H

#include "kit.h"

struct exception {
    char *kind, *pattern, *reason; // owned
    uint64_t matches;              // results that the pattern matched
};

struct exceptions {
    struct exception *items; // owned
    size_t count;
};

// Reads a file. False: it cannot be read or has a wrong line; the error was printed to
// stderr.
bool exceptions_read(struct exceptions *exceptions, const char *path);
void exceptions_finish(struct exceptions *exceptions);

// The first entry whose pattern matches the check's name, or "name subject"; counts the
// match. NULL: none.
struct exception *exceptions_find(struct exceptions *exceptions, const char *check,
                                  const char *subject);

#endif // CONFORMANCE_KIT_EXCEPTIONS_H
