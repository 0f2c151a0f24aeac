// SPDX-License-Identifier: MIT
// See shortened.h. The handler makes only calls that handlers may make.
#include "shortened.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE 4400 // of /proc/self/maps: a path and what is before it

static uintptr_t shortened_read_hex(const char **at)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t value = 0;
    for (const char *digit; **at && (digit = strchr(digits, **at)); ++*at)
        value = value << 4 | (uintptr_t)(digit - digits);
    return value;
}

// The path in a line "LOW-HIGH ... PATH" of an area that has the address; else NULL.
static const char *path_of(const char *line, uintptr_t address)
{
    uintptr_t low = shortened_read_hex(&line);
    if (*line++ != '-')
        return NULL;
    uintptr_t high = shortened_read_hex(&line);
    return low <= address && address < high ? strchr(line, '/') : NULL;
}

// The path of the file that is mapped at the address; NULL: none. It is in `line`.
static const char *shortened_find_file(uintptr_t address, char line[MAX_LINE])
{
    char block[4096];
    const char *path = NULL;
    size_t length = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t size = 0;
    while (fd >= 0 && !path && (size = read(fd, block, sizeof(block))) > 0)
        for (ssize_t i = 0; i < size && !path; i++) {
            bool ends = block[i] == '\n';
            line[length] = ends ? 0 : block[i] < ' ' || block[i] == 127 ? '?' : block[i];
            length += !ends && length + 1 < MAX_LINE;
            if (!ends)
                continue;
            path = path_of(line, address);
            length = 0;
        }
    if (fd >= 0)
        close(fd);
    return path;
}

static void shortened_put_text(const char *text)
{
    size_t size = strlen(text);
    if (write(STDERR_FILENO, text, size) < 0)
        return; // no message: standard error is not usable
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char line[MAX_LINE];
    (void)context;
    const char *path = info->si_code == BUS_ADRERR
                           ? shortened_find_file((uintptr_t)info->si_addr, line)
                           : NULL;
    if (!path) {
        signal(number, SIG_DFL);
        raise(number); // delivered once the handler returns
        return;
    }
    while (atomic_flag_test_and_set(&told))
        pause(); // another thread is ending the process
    shortened_put_text("tenon: ");
    shortened_put_text(path);
    shortened_put_text(
        " became shorter while it was used, or its disk cannot be read: start again once "
        "it is whole\n");
    _exit(1);
}

void tell_shortened_files(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
