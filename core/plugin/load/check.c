// SPDX-License-Identifier: MIT
// Checks a plugin's files before any of their code runs: the hashes of all, the ELF note,
// the ABI. Code is copied while it is hashed, and the copy is loaded, so writing to the
// file meanwhile changes nothing.
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../find/abi.h"
#include "elf_file.h"
#include "module.h"
#include "note.h"
#include "../find/trust.h"

// Hashes a listed file. With `is_code`, out->fd is what to load.
static tn_status hash_file(const struct trust *trust, int directory, const char *path,
                           const struct manifest_file *file, bool is_code,
                           struct content *out, struct reason *reason)
{
    int fd = -1;
    char whole[TRUST_MAX_PATH];
    snprintf(whole, sizeof(whole), "%s/%s", path, file->name);
    tn_status status = trust_open_file(directory, file->name, path, &fd, reason);
    if (status != TN_OK)
        return status;
    struct content content;
    if (!is_code)
        status = content_hash(fd, &content);
    else if (trust->level == TRUST_ANY)
        status = content_keep(fd, &content);
    else if (!module_content(fd, &content))
        status = content_copy(fd, whole, trust->config, &content);
    close(fd);
    if (status == TN_ERR_IO)
        return reason_record(reason, TN_ERR_REFUSED, REASON_READ, whole, "%s: %s", whole,
                             fail_text());
    if (status != TN_OK)
        return status;
    if (trust->level != TRUST_ANY)
        status = trust_check_content(path, file, content.size, content.sha256, reason);
    if (status == TN_OK)
        *out = content;
    else if (content.fd >= 0)
        close(content.fd);
    return status;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

// State of hash_files(): the objects that were taken so far.
struct load_check {
    const struct trust *trust;
    int directory;
    const char *path;
    struct reason *reason;
    const struct manifest_file *files[MAX_OBJECTS]; // entries of `objects`, in order
    struct objects objects;
};

static bool load_check_is_taken(const struct load_check *check,
                                const struct manifest_file *file)
{
    for (uint32_t i = 0; i < check->objects.count; i++)
        if (check->files[i] == file)
            return true;
    return false;
}

static bool load_check_is_needed(const struct load_check *check, const char *name)
{
    if (!strstr(name, ".so"))
        return false;
    for (uint32_t i = 0; i < check->objects.count; i++)
        if (elf_needs(check->objects.contents[i].fd, name))
            return true;
    return false;
}

static tn_status take_object(struct load_check *check, const struct manifest_file *file)
{
    struct objects *objects = &check->objects;
    if (objects->count == MAX_OBJECTS)
        return reason_record(check->reason, TN_ERR_REFUSED, REASON_ELF, check->path,
                             "%s: it needs more than %d shared objects of its own",
                             check->path, MAX_OBJECTS - 1);
    tn_status status = hash_file(check->trust, check->directory, check->path, file, true,
                                 &objects->contents[objects->count], check->reason);
    if (status != TN_OK)
        return status;
    objects->names[objects->count] = last_part(file->name);
    check->files[objects->count++] = file;
    return TN_OK;
}

// Takes the plugin's shared object, then the listed libraries that taken objects need,
// until no more are needed.
static tn_status take_objects(struct load_check *check, const struct manifest *manifest)
{
    tn_status status = take_object(check, manifest_object(manifest));
    uint32_t before = 0;
    while (status == TN_OK && before < check->objects.count) {
        before = check->objects.count;
        for (uint32_t i = 0; status == TN_OK && i < manifest->num_files; i++) {
            const struct manifest_file *file = &manifest->files[i];
            if (!load_check_is_taken(check, file) &&
                load_check_is_needed(check, last_part(file->name)))
                status = take_object(check, file);
        }
    }
    return status;
}

// As trust_check_files, and checks the hashes. Gives the plugin's shared object and the
// listed libraries that it needs, as private copies.
static tn_status hash_files(const struct trust *trust, int directory, const char *path,
                            const struct manifest *manifest, struct objects *out,
                            struct reason *reason)
{
    struct load_check check = {trust, directory, path, reason, .objects.count = 0};
    struct content content;
    tn_status status = take_objects(&check, manifest);
    for (uint32_t i = 0; status == TN_OK && i < manifest->num_files; i++)
        if (!load_check_is_taken(&check, &manifest->files[i]))
            status = hash_file(trust, directory, path, &manifest->files[i], false, &content,
                               reason);
    if (status == TN_OK)
        *out = check.objects;
    else
        objects_close(&check.objects);
    return status;
}

tn_status plugin_check(const struct trust *trust, const char *directory,
                       const struct manifest *manifest, struct checked *out,
                       struct reason *reason)
{
    struct checked made = {.objects.count = 0};
    int fd = -1;
    uint32_t minor;
    tn_status status = trust_open_directory(AT_FDCWD, directory, directory, &fd, reason);
    if (status != TN_OK)
        return status;
    status = hash_files(trust, fd, directory, manifest, &made.objects, reason);
    close(fd);
    if (status == TN_OK)
        status = note_read(made.objects.contents[0].fd, directory, &made.note, reason);
    if (status == TN_OK)
        status = note_check(&made.note, manifest, directory, reason);
    if (status == TN_OK)
        status = abi_negotiate(abi_host, manifest->abi, manifest->id, &minor, reason);
    if (status == TN_OK)
        status = abi_check_sanitizer(manifest->sanitizer, manifest->id, reason);
    if (status != TN_OK) {
        objects_close(&made.objects);
        return status;
    }
    *out = made;
    return TN_OK;
}
