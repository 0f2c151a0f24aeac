// SPDX-License-Identifier: MIT
// Making packs, and finding the manifest in a pack.
#include "make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/plugin.h>
#include <unistd.h>
#include "engine.h"
#include "pack.h"
#include "stub_image.h"

static const char trailer[8] = {'T', 'N', 'F', 'F', 'I', '/', '1', '\n'};
enum { TRAILER_SIZE = 16 };

// --- files -----------------------------------------------------------------------------

static tn_status io_error(const char *path, struct problem *problem)
{
    return problem_set(problem, TN_ERR_IO, "%s: %s", path, strerror(errno));
}

// Moves a descriptor above 2, as the core does: in a program that has closed its standard
// streams, output to them would go to the file. Takes fd; -1 (with errno) stays -1.
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(fd);
    errno = error;
    return above;
}

// Reads `size` bytes from `offset` on; a file that ends before is an error.
static tn_status read_at(int fd, const char *path, void *data, size_t size, off_t offset,
                         struct problem *problem)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)data + done, size - done, offset + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_error(path, problem);
        if (got == 0)
            return problem_set(problem, TN_ERR_IO, "%s ends early", path);
        done += (size_t)got;
    }
    return TN_OK;
}

static tn_status ffi_make_open_file(const char *path, int *out_fd, size_t *out_size,
                                    struct problem *problem)
{
    struct stat info;
    int fd = above_standard(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return io_error(path, problem);
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        close(fd);
        return problem_set(problem, TN_ERR_IO, "%s is no file", path);
    }
    *out_fd = fd;
    *out_size = (size_t)info.st_size;
    return TN_OK;
}

tn_status file_read(const char *path, size_t max, char **out_data, size_t *out_size,
                    struct problem *problem)
{
    int fd = -1;
    size_t size = 0;
    tn_status status = ffi_make_open_file(path, &fd, &size, problem);
    if (status != TN_OK)
        return status;
    char *data = size <= max ? malloc(size + 1) : NULL;
    if (size > max)
        status = problem_set(problem, TN_ERR_ARGUMENT,
                             "%s: got %zu bytes, expected at most %zu", path, size, max);
    else if (!data)
        status = problem_set(problem, TN_ERR_MEMORY, "out of memory");
    else
        status = read_at(fd, path, data, size, 0, problem);
    close(fd);
    if (status != TN_OK) {
        free(data);
        return status;
    }
    data[size] = 0;
    *out_data = data;
    *out_size = size;
    return TN_OK;
}

// --- the identity ----------------------------------------------------------------------

// The plugin's note, the only place that has its id, version and vendor: see stub.c.
static tn_note *ffi_make_find_note(char *data, size_t size)
{
    const uint64_t magic = TN_PLUGIN_MAGIC;
    for (char *at = data; (at = memmem(at, (size_t)(data + size - at), &magic, 8)); at++) {
        tn_note *note = (tn_note *)(void *)at;
        uint32_t note_size;
        if ((size_t)(data + size - at) < sizeof(tn_note))
            return NULL;
        memcpy(&note_size, at + offsetof(tn_note, struct_size), 4);
        if (note_size == sizeof(tn_note) &&
            strcmp(at + offsetof(tn_note, id), FFI_STUB_ID) == 0)
            return note;
    }
    return NULL;
}

static void ffi_make_put_text(tn_note *note, size_t offset, const char *text, size_t room)
{
    char *at = (char *)note + offset;
    memset(at, 0, room);
    memcpy(at, text, strlen(text));
}

static tn_status set_identity(char *data, size_t size, const struct ffi_pack *pack,
                              struct problem *problem)
{
    tn_note *note = ffi_make_find_note(data, size);
    if (!note)
        return problem_set(problem, TN_ERR_INTERNAL, "the code of packs has no note");
    ffi_make_put_text(note, offsetof(tn_note, id), pack->id, sizeof(note->id));
    ffi_make_put_text(note, offsetof(tn_note, version), pack->version,
                      sizeof(note->version));
    ffi_make_put_text(note, offsetof(tn_note, vendor), pack->vendor, sizeof(note->vendor));
    return TN_OK;
}

// --- writing ---------------------------------------------------------------------------

static bool ffi_make_write_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, (const char *)data + done, size - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

// Writes a temporary file beside `path` and renames it, so nobody sees a partial pack.
static tn_status write_pack(const char *path, const char *code, size_t code_size,
                            const char *manifest, size_t size, struct problem *problem)
{
    char fresh[4096];
    uint64_t manifest_size = size;
    snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
    int made = mkostemp(fresh, O_CLOEXEC), fd = above_standard(made);
    if (fd < 0) {
        tn_status failed = io_error(path, problem);
        if (made >= 0)
            unlink(fresh);
        return failed;
    }
    bool good =
        ffi_make_write_all(fd, code, code_size) && ffi_make_write_all(fd, manifest, size) &&
        ffi_make_write_all(fd, &manifest_size, 8) && ffi_make_write_all(fd, trailer, 8) &&
        fchmod(fd, 0755) == 0 && fsync(fd) == 0;
    tn_status status = good ? TN_OK : io_error(path, problem);
    if (close(fd) && good)
        status = io_error(path, problem);
    if (status == TN_OK && rename(fresh, path))
        status = io_error(path, problem);
    if (status != TN_OK)
        unlink(fresh);
    return status;
}

static tn_status ffi_make(const struct ffi_pack *pack, const char *manifest, size_t size,
                          const char *output, struct problem *problem)
{
    size_t code_size = sizeof(ffi_stub) - 1; // the array has a NUL behind the file's bytes
    char *code = malloc(code_size);
    if (!code)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    memcpy(code, ffi_stub, code_size);
    tn_status status = set_identity(code, code_size, pack, problem);
    if (status == TN_OK)
        status = write_pack(output, code, code_size, manifest, size, problem);
    free(code);
    return status;
}

tn_status pack_write(const char *manifest, const char *output, bool finds_symbols,
                     char *out_id, struct problem *problem)
{
    char *text = NULL;
    size_t size = 0;
    struct ffi_pack pack;
    pack_init(&pack, NULL, 0);
    tn_status status = file_read(manifest, MANIFEST_MAX_SIZE, &text, &size, problem);
    if (status == TN_OK)
        status = pack_read(text, size, manifest, finds_symbols, &pack, problem);
    if (status == TN_OK && output)
        status = ffi_make(&pack, text, size, output, problem);
    if (status == TN_OK)
        snprintf(out_id, 64, "%s", pack.id);
    pack_finish(&pack);
    free(text);
    return status;
}

// --- finding ---------------------------------------------------------------------------

tn_status pack_find(const char *file, char **out_text, size_t *out_size,
                    struct problem *problem)
{
    int fd = -1;
    size_t size = 0;
    unsigned char end[TRAILER_SIZE];
    uint64_t manifest_size = 0;
    char *text = NULL;
    *out_text = NULL;
    tn_status status = ffi_make_open_file(file, &fd, &size, problem);
    if (status != TN_OK)
        return status;
    if (size > TRAILER_SIZE)
        status =
            read_at(fd, file, end, TRAILER_SIZE, (off_t)(size - TRAILER_SIZE), problem);
    bool has_one = size > TRAILER_SIZE && status == TN_OK && !memcmp(end + 8, trailer, 8);
    if (has_one) {
        memcpy(&manifest_size, end, 8);
        if (manifest_size > MANIFEST_MAX_SIZE || manifest_size > size - TRAILER_SIZE)
            status =
                problem_set(problem, TN_ERR_REFUSED, "%s: its manifest is damaged", file);
        else if (!(text = malloc(manifest_size + 1)))
            status = problem_set(problem, TN_ERR_MEMORY, "out of memory");
        else
            status = read_at(fd, file, text, manifest_size,
                             (off_t)(size - TRAILER_SIZE - manifest_size), problem);
    }
    close(fd);
    if (status != TN_OK) {
        free(text);
        return status;
    }
    *out_text = text;
    *out_size = manifest_size;
    return TN_OK;
}
