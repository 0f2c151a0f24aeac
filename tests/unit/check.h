// SPDX-License-Identifier: MIT
// cmocka, with what it needs included before it, and without its macro `fail`, which is the
// name of the core's function.
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#undef fail

#endif // TESTS_UNIT_CHECK_H
