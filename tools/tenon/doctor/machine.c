// SPDX-License-Identifier: MIT
// tenon doctor: the processor, the cache.
#include "doctor.h"
#include "files/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "processors.h"
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

#define LOW_SPACE (UINT64_C(64) << 20) // bytes: about what the cache may take

// --- processor -------------------------------------------------------------------------

static void doctor_machine_processor_name(char name[128])
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(name, 128, "processor");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(name, 128, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"),
                     strchr(line, ':') + 2);
            break;
        }
    if (file)
        fclose(file);
}

// Asks the C library. __builtin_cpu_supports() would run CPUID at each start of the
// command, which costs a virtual machine up to 0.1 ms.
static const char *vector_width(void)
{
#if defined(__x86_64__)
    if (CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(AVX512BW))
        return "AVX-512";
    if (CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA))
        return "AVX2";
    return "no AVX2: kernels of the x86-64 baseline";
#else
    return "portable kernels";
#endif
}

void examine_processor(struct doctor *doctor)
{
    char name[128];
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    int mine = (int)processors_usable();
    const char *given =
        doctor->runtime ? tn_config(doctor->runtime, "TENON_THREADS") : NULL;
    doctor_machine_processor_name(name);
    found(doctor, GOOD, "processor", NULL, "%s, %d of %ld threads may be used, %s", name,
          mine, all, vector_width());
    if (given && atol(given) > mine)
        found(doctor, WRONG, "processor", "unset TENON_THREADS, or lower it",
              "TENON_THREADS=%s, but %d can run at once: the others only get in the way",
              given, mine);
}

// --- cache -----------------------------------------------------------------------------

static uint64_t doctor_machine_folder_bytes(const char *path, unsigned *out_files)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    struct stat info;
    uint64_t bytes = 0;
    while (stream && (entry = readdir(stream)))
        if (fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode)) {
            bytes += (uint64_t)info.st_size;
            ++*out_files;
        }
    if (stream)
        closedir(stream);
    return bytes;
}

static const char elsewhere[] = "name another folder in TENON_CACHE_DIR";

// Finds `path` itself or the nearest folder above it that exists, where it will be made.
static bool find_existing(const char *path, char *out, size_t size, struct stat *info)
{
    snprintf(out, size, "%s", path);
    while (stat(out, info)) {
        char *slash = strrchr(out, '/');
        if (errno != ENOENT || !slash || (slash == out && !slash[1]))
            return false;
        slash[slash == out] = '\0'; // the last folder above is "/"
    }
    return true;
}

static void say_cache(struct doctor *doctor, const char *path, const char *existing)
{
    struct statvfs space = {.f_blocks = 1};
    unsigned files = 0;
    bool made = strcmp(path, existing) == 0;
    double bytes = made ? (double)doctor_machine_folder_bytes(path, &files) : 0;
    uint64_t left =
        statvfs(existing, &space) ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_frsize;
    if (space.f_blocks == 0)
        found(doctor, WRONG, "cache", elsewhere, "%s: nothing can be kept there", path);
    else if (left < LOW_SPACE)
        found(doctor, WRONG, "cache",
              "make room, or name another folder in TENON_CACHE_DIR",
              "%s: %.1f MB are left on its disk", path, (double)left / 1e6);
    else if (made)
        found(doctor, GOOD, "cache", NULL, "%s: %u file%s, %.1f MB", path, files,
              files == 1 ? "" : "s", bytes / 1e6);
    else
        found(doctor, GOOD, "cache", NULL, "%s: made when something is compiled", path);
}

static void examine_cache_at(struct doctor *doctor, const char *path)
{
    char existing[PATH_MAX];
    struct stat info;
    if (!find_existing(path, existing, sizeof(existing), &info))
        found(doctor, WRONG, "cache", elsewhere, "%s: %s", path, strerror(errno));
    else if (!S_ISDIR(info.st_mode))
        found(doctor, WRONG, "cache", elsewhere, "%s: %s is no folder", path, existing);
    else if (strcmp(path, existing) == 0 &&
             (info.st_uid != geteuid() || info.st_mode & 022))
        found(doctor, WRONG, "cache", "make it yours alone: chmod 0700",
              "%s is not used: others can change it (user %u, mode %04o)", path,
              (unsigned)info.st_uid, (unsigned)info.st_mode & 07777);
    else if (access(existing, W_OK | X_OK))
        found(doctor, WRONG, "cache", elsewhere, "%s cannot be written: %s", path,
              strerror(errno));
    else
        say_cache(doctor, path, existing);
}

void examine_cache(struct doctor *doctor)
{
    char *path = NULL;
    if (user_cache(&path) && path)
        examine_cache_at(doctor, path);
    else
        found(doctor, NOTE, "cache", elsewhere,
              "none: HOME is unset; kernels are compiled each time");
    free(path);
}
