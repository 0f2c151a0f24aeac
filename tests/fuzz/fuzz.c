// SPDX-License-Identifier: MIT
// What the targets share.
#include "fuzz.h"

#include <errno.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *report;

FILE *fuzz_report(void)
{
    return report ? report : stderr;
}

#ifdef FUZZ_LIBFUZZER
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    report = fdopen(dup(STDERR_FILENO), "w");
    if (report)
        setvbuf(report, NULL, _IONBF, 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_one(data, size);
    return 0;
}
#endif

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text, "out of memory");
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

int fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0, "%s", strerror(errno));
    bool good = ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size &&
                lseek(fd, 0, SEEK_SET) == 0;
    FUZZ_CHECK(good, "%s", strerror(errno));
    return fd;
}

const char *fuzz_path(const uint8_t *data, size_t size)
{
    static char path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fuzz_file(data, size));
    return path;
}

// --- the folder ------------------------------------------------------------------------

static char folder[64];
static pid_t owner;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    if (getpid() == owner)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (folder[0])
        return folder;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof(folder), "%s/tenon-fuzz-XXXXXX", base);
    FUZZ_CHECK(mkdtemp(folder), "%s: %s", folder, strerror(errno));
    owner = getpid();
    atexit(remove_folder);
    return folder;
}
