// SPDX-License-Identifier: MIT
// What backends cannot do: never, by their nature, or today, until somebody does it. A
// check listed here that passes fails the run.
#include "conformance.h"
#include <fnmatch.h>

static const struct exception {
    const char *backend; // pattern
    const char *check;   // pattern of "test/check"
    const char *reason;
} never[] =
    {
        {"", "", ""},
},
  today[] = {
      {"", "", ""},
};

static const char *find(const struct exception *list, size_t count, const char *backend,
                        const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(list[i].backend, backend, 0) == 0 &&
            fnmatch(list[i].check, name, 0) == 0)
            return list[i].reason;
    return NULL;
}

const char *exception_of(const char *backend, const char *name)
{
    const char *reason = find(never, sizeof(never) / sizeof(never[0]), backend, name);
    return reason ? reason : find(today, sizeof(today) / sizeof(today[0]), backend, name);
}
