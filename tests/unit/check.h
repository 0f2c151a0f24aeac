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
#undef fail_msg // is made of it
#define fail_msg(...)                                                                      \
    (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

#endif // TESTS_UNIT_CHECK_H
