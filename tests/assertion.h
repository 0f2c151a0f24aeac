// SPDX-License-Identifier: MIT
// Criterion's assertions as <criterion/new/assert.h> writes them, cr_assert(eq(int, a, b),
// "format", ...), by macros of our own. Criterion's take most of the time that compiling a
// test takes.
#ifndef TESTS_ASSERTION_H
#define TESTS_ASSERTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <criterion/criterion.h>
// After the header before, whose macros of the same names it replaces.
#include <criterion/new/assert.h>

#undef cr_assert
#undef cr_expect
#undef cr_fatal
#undef cr_fail
#define cr_assert(condition, ...)                                                          \
    do {                                                                                   \
        if (!ASSERTION_CHOSEN(ASSERTION_IF_##condition, (ASSERTION_##condition),           \
                              (condition), )) {                                            \
            assertion_send(__FILE__, __LINE__, #condition, " " __VA_ARGS__);               \
            criterion_abort_test();                                                        \
        }                                                                                  \
    } while (0)
#define cr_expect(condition, ...)                                                          \
    do {                                                                                   \
        if (!ASSERTION_CHOSEN(ASSERTION_IF_##condition, (ASSERTION_##condition),           \
                              (condition), )) {                                            \
            assertion_send(__FILE__, __LINE__, #condition, " " __VA_ARGS__);               \
            criterion_continue_test();                                                     \
        }                                                                                  \
    } while (0)
#define cr_fatal(...)                                                                      \
    do {                                                                                   \
        assertion_send(__FILE__, __LINE__, NULL, " " __VA_ARGS__);                         \
        criterion_abort_test();                                                            \
    } while (0)
#define cr_fail(...)                                                                       \
    do {                                                                                   \
        assertion_send(__FILE__, __LINE__, NULL, " " __VA_ARGS__);                         \
        criterion_continue_test();                                                         \
    } while (0)

// A failed assertion's message, its condition (NULL for none) and the values that were
// compared.
__attribute__((format(printf, 4, 5))) void assertion_send(const char *file, size_t line,
                                                          const char *condition,
                                                          const char *format, ...);
// Values of a comparison that does not hold, for assertion_send(). They return false.
bool assertion_signed(long long a, long long b);
bool assertion_unsigned(unsigned long long a, unsigned long long b);
bool assertion_real(double a, double b);
bool assertion_pointers(const void *a, const void *b);
bool assertion_texts(const char *a, const char *b);
bool assertion_bytes(struct cr_mem a, struct cr_mem b);
// Below, equal to, or above 0, as strcmp() gives it. NULL is below every text.
int assertion_order_texts(const char *a, const char *b);
int assertion_order_bytes(struct cr_mem a, struct cr_mem b);

// ASSERTION_IF_eq and its like are a comma, so that a known operation is the third
// argument.
#define ASSERTION_CHOSEN(...) ASSERTION_THIRD(__VA_ARGS__)
#define ASSERTION_THIRD(first, second, third, ...) third
#define ASSERTION_IF_eq(...) ,
#define ASSERTION_IF_ne(...) ,
#define ASSERTION_IF_lt(...) ,
#define ASSERTION_IF_le(...) ,
#define ASSERTION_IF_gt(...) ,
#define ASSERTION_IF_ge(...) ,
#define ASSERTION_IF_not(...) ,
#define ASSERTION_eq(tag, a, b) ASSERTION_OF_##tag(==, a, b)
#define ASSERTION_ne(tag, a, b) ASSERTION_OF_##tag(!=, a, b)
#define ASSERTION_lt(tag, a, b) ASSERTION_OF_##tag(<, a, b)
#define ASSERTION_le(tag, a, b) ASSERTION_OF_##tag(<=, a, b)
#define ASSERTION_gt(tag, a, b) ASSERTION_OF_##tag(>, a, b)
#define ASSERTION_ge(tag, a, b) ASSERTION_OF_##tag(>=, a, b)
#define ASSERTION_not(...) !(__VA_ARGS__)

#define ASSERTION_OF_int(op, a, b) ASSERTION_COMPARED(int, signed, op, a, b)
#define ASSERTION_OF_long(op, a, b) ASSERTION_COMPARED(long, signed, op, a, b)
#define ASSERTION_OF_chr(op, a, b) ASSERTION_COMPARED(char, signed, op, a, b)
#define ASSERTION_OF_i8(op, a, b) ASSERTION_COMPARED(int8_t, signed, op, a, b)
#define ASSERTION_OF_i16(op, a, b) ASSERTION_COMPARED(int16_t, signed, op, a, b)
#define ASSERTION_OF_i32(op, a, b) ASSERTION_COMPARED(int32_t, signed, op, a, b)
#define ASSERTION_OF_i64(op, a, b) ASSERTION_COMPARED(int64_t, signed, op, a, b)
#define ASSERTION_OF_uint(op, a, b) ASSERTION_COMPARED(unsigned, unsigned, op, a, b)
#define ASSERTION_OF_u8(op, a, b) ASSERTION_COMPARED(uint8_t, unsigned, op, a, b)
#define ASSERTION_OF_u16(op, a, b) ASSERTION_COMPARED(uint16_t, unsigned, op, a, b)
#define ASSERTION_OF_u32(op, a, b) ASSERTION_COMPARED(uint32_t, unsigned, op, a, b)
#define ASSERTION_OF_u64(op, a, b) ASSERTION_COMPARED(uint64_t, unsigned, op, a, b)
#define ASSERTION_OF_sz(op, a, b) ASSERTION_COMPARED(size_t, unsigned, op, a, b)
#define ASSERTION_OF_flt(op, a, b) ASSERTION_COMPARED(float, real, op, a, b)
#define ASSERTION_OF_dbl(op, a, b) ASSERTION_COMPARED(double, real, op, a, b)
#define ASSERTION_OF_ptr(op, a, b) ASSERTION_COMPARED(const void *, pointers, op, a, b)
#define ASSERTION_OF_str(op, a, b) ASSERTION_ORDERED(const char *, texts, op, a, b)
#define ASSERTION_OF_mem(op, a, b) ASSERTION_ORDERED(struct cr_mem, bytes, op, a, b)

#define ASSERTION_COMPARED(type, kind, op, a, b)                                           \
    __extension__({                                                                        \
        type assertion_a = (a);                                                            \
        type assertion_b = (b);                                                            \
        assertion_a op assertion_b || assertion_##kind(assertion_a, assertion_b);          \
    })
#define ASSERTION_ORDERED(type, kind, op, a, b)                                            \
    __extension__({                                                                        \
        type assertion_a = (a);                                                            \
        type assertion_b = (b);                                                            \
        assertion_order_##kind(assertion_a, assertion_b) op 0 ||                           \
            assertion_##kind(assertion_a, assertion_b);                                    \
    })

#endif // TESTS_ASSERTION_H
