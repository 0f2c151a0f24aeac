// SPDX-License-Identifier: MIT
// tenon doctor: plugin folders, the plugins in them, and trusted keys.
#include "doctor.h"
#include "files/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 1024

// Counts entries whose names end with `ending`; -1 when the folder cannot be read.
static int count_entries(const char *path, const char *ending)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    int count = 0;
    if (!stream)
        return -1;
    while ((entry = readdir(stream))) {
        size_t length = strlen(entry->d_name), end = strlen(ending);
        count += entry->d_name[0] != '.' && length >= end &&
                 strcmp(entry->d_name + length - end, ending) == 0;
    }
    closedir(stream);
    return count;
}

// --- folders ---------------------------------------------------------------------------

static bool is_private_group(gid_t group)
{
    return group == getegid() && group == geteuid();
}

static bool is_safe(struct doctor *doctor, const char *path, const struct stat *info)
{
    char remedy[MAX_PATH + 64];
    bool others = info->st_mode & S_IWOTH && !(info->st_mode & S_ISVTX);
    if (others || (info->st_mode & S_IWGRP && !is_private_group(info->st_gid))) {
        snprintf(remedy, sizeof(remedy), "chmod go-w '%s'", path);
        found(doctor, WRONG, "folders", remedy,
              "%s can be changed by others (mode %04o): they can take plugins away", path,
              (unsigned)info->st_mode & 07777);
        return false;
    }
    if (info->st_uid != 0 && info->st_uid != geteuid()) {
        found(doctor, WRONG, "folders", "take it out of the path, or own it",
              "%s belongs to user %u, neither root nor this user", path,
              (unsigned)info->st_uid);
        return false;
    }
    return true;
}

// `named`: TENON_PLUGIN_PATH names the folder, so its absence is wrong.
static void examine_folder(struct doctor *doctor, const char *path, bool named)
{
    struct stat info;
    if (path[0] != '/') {
        found(doctor, WRONG, "folders", "write it as an absolute path",
              "TENON_PLUGIN_PATH: '%s' is not absolute", path);
        return;
    }
    if (stat(path, &info)) {
        bool absent = errno == ENOENT && !named;
        found(doctor, absent ? NOTE : WRONG, "folders",
              absent ? NULL : "make it, or take it out of TENON_PLUGIN_PATH", "%s: %s",
              path, absent ? "not there yet" : strerror(errno));
        return;
    }
    int count = count_entries(path, "");
    if (count < 0)
        found(doctor, WRONG, "folders", "let this user read it", "%s: %s", path,
              strerror(errno));
    else if (is_safe(doctor, path, &info))
        found(doctor, GOOD, "folders", NULL, "%s: %d plugin%s", path, count,
              count == 1 ? "" : "s");
}

void examine_folders(struct doctor *doctor)
{
    char path[MAX_PATH];
    const char *list = getenv("TENON_PLUGIN_PATH");
    const char *only =
        doctor->runtime ? tn_config(doctor->runtime, "TENON_PLUGINS_ONLY") : "";
    while (list && *list) {
        size_t size = strcspn(list, ":");
        snprintf(path, sizeof(path), "%.*s", (int)size, list);
        examine_folder(doctor, path, true);
        list += size + (list[size] == ':');
    }
    if (only && strcmp(only, "1") == 0)
        return;
    char *mine;
    if (user_data("tenon/plugins", &mine) && mine)
        examine_folder(doctor, mine, false);
    free(mine);
    examine_folder(doctor, tn_installed_folder("plugins"), false);
}

// --- plugins ---------------------------------------------------------------------------

static bool is_usable(const tn_plugin_info *info)
{
    return info->state == TN_PLUGIN_FOUND || info->state == TN_PLUGIN_LOADED;
}

bool has_device_kernels(const struct doctor *doctor, const char *family)
{
    uint64_t count = doctor->runtime ? tn_plugin_count(doctor->runtime) : 0;
    for (uint64_t i = 0; i < count; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(doctor->runtime, i, &info) || !is_usable(&info))
            continue;
        for (const char *const *kernel = info.kernels; info.backends[0] && *kernel;
             kernel++) {
            const char *space = strchr(*kernel, ' ');
            if (space && strncmp(space + 1, family, strlen(family)) == 0)
                return true;
        }
    }
    return false;
}

// Checks a plugin as loading does, without loading it. True when it can be used.
static bool examine_plugin(struct doctor *doctor, const tn_plugin_info *info)
{
    const char *name = info->id[0] ? info->id : info->directory;
    if (info->state == TN_PLUGIN_REFUSED)
        found(doctor, WRONG, "plugins", NULL, "%s: %s", name, info->reason);
    else if (!is_usable(info))
        found(doctor, NOTE, "plugins", NULL, "%s", info->reason);
    else if (tn_plugin_verify(info->directory))
        found(doctor, WRONG, "plugins", NULL, "%s: %s", name, tn_last_error());
    else
        return true;
    return false;
}

void examine_plugins(struct doctor *doctor)
{
    uint64_t count = doctor->runtime ? tn_plugin_count(doctor->runtime) : 0, good = 0;
    for (uint64_t i = 0; i < count; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(doctor->runtime, i, &info) == TN_OK)
            good += examine_plugin(doctor, &info);
    }
    if (good)
        found(doctor, GOOD, "plugins", NULL, "%llu of %llu can be used",
              (unsigned long long)good, (unsigned long long)count);
    else if (doctor->runtime)
        found(doctor, WRONG, "plugins",
              "install some, or name their folder in TENON_PLUGIN_PATH",
              "no plugin can be used: there is nothing to compute with");
}

// --- trust -----------------------------------------------------------------------------

static int count_keys(void)
{
    char *path;
    user_data("tenon/trust", &path);
    int mine = path ? count_entries(path, ".pub") : 0,
        all = count_entries(tn_installed_folder("trust"), ".pub");
    free(path);
    return (mine > 0 ? mine : 0) + (all > 0 ? all : 0);
}

void examine_trust(struct doctor *doctor)
{
    const char *level = doctor->runtime ? tn_config(doctor->runtime, "TENON_TRUST") : "";
    int keys = count_keys();
    if (!level)
        level = "checksummed";
    if (strcmp(level, "any") == 0)
        found(doctor, NOTE, "trust", NULL,
              "any: plugins may differ from their manifests; unset TENON_TRUST to check "
              "them");
    else if (strcmp(level, "signed") == 0 && !keys)
        found(doctor, WRONG, "trust", "tenon trust add KEY, or unset TENON_TRUST",
              "signed, but no key is trusted: no plugin can be used");
    else if (*level)
        found(doctor, GOOD, "trust", NULL, "%s; %d trusted key%s", level, keys,
              keys == 1 ? "" : "s");
}
