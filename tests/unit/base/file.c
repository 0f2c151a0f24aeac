// SPDX-License-Identifier: MIT
// Descriptors of files are never those of closed standard streams.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"
#include <tenon/tenon.h>
#include "base/config.h"
#include "base/file.h"
#include "base/runtime.h"

static char folder[64];

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/tenon-test-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
}

static void teardown(void)
{
    static const char *const names[] = {"trace", "why", "file"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    cr_assert(eq(int, rmdir(folder), 0));
}

// Runs `body` in a child without standard streams; its exit status.
static int without_streams(int (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        _exit(body());
    }
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(ne(int, WIFEXITED(status), 0));
    return WEXITSTATUS(status);
}

static int open_many(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/file", folder);
    for (int i = 0; i < 8; i++) {
        int fd = file_open(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
        if (fd <= 2 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            return 1;
    }
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 2; // a number of a stream is left in use
    if (file_open(AT_FDCWD, "/nowhere/file", O_RDONLY, 0) != -1)
        return 3;
    return 0;
}

TestSuite(file, .init = setup, .fini = teardown);

Test(file, files_never_take_the_numbers_of_streams)
{
    cr_assert(eq(int, without_streams(open_many), 0));
}

static int write_all_kinds(void)
{
    char trace[128], why[128];
    snprintf(trace, sizeof(trace), "TENON_TRACE=%s/trace", folder);
    snprintf(why, sizeof(why), "TENON_WHY=%s/why", folder);
    const char *const variables[] = {"TENON_PLUGINS_ONLY=1", "TENON_LOG=trace", trace, why,
                                     NULL};
    tn_runtime_options options = {.plugin_path = "/nowhere", .variables = variables};
    tn_runtime *runtime = NULL;
    if (tn_runtime_open(&options, &runtime) != TN_OK)
        return 1;
    log_write(runtime->config, TN_LOG_ERROR, "config", "a line of the log");
    tn_runtime_close(runtime);
    return 0;
}

Test(file, lines_of_the_log_land_in_no_file)
{
    cr_assert(eq(int, without_streams(write_all_kinds), 0));
    static const char *const names[] = {"trace", "why"};
    for (size_t i = 0; i < 2; i++) {
        char path[128], text[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        int fd = file_open(AT_FDCWD, path, O_RDONLY, 0);
        cr_assert(fd >= 0);
        ssize_t size = file_read_at(fd, text, sizeof(text) - 1, 0);
        cr_assert(size >= 0);
        text[size] = 0;
        cr_assert(eq(ptr, strstr(text, "a line of the log"), NULL));
        close(fd);
    }
}
