// SPDX-License-Identifier: MIT
// tenon run: starts a command as several processes by an MPI's launcher.
#include "commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "launcher.h"
#include "rank.h"
#include "watcher.h"

static const char details[] =
    "Starts COMMAND N times, as ranks 0 .. N - 1 of a group, by the launcher of the MPI "
    "that\n"
    "is installed, and watches them. A rank that ends, is killed or is stopped is named "
    "on\n"
    "all others within seconds: what waits for it fails with its name and the reason. "
    "Ranks\n"
    "that are still there some time later are ended. The status is that of the first rank\n"
    "that failed, or 0.\n"
    "\n"
    "--devices gives each rank of a machine a device of its own: with vulkan-jit:% ranks\n"
    "0, 1, ... have vulkan-jit:0, vulkan-jit:1, ...; without it all have TENON_BACKEND.\n"
    "On processors they share the threads.\n"
    "\n"
    "  tenon run -n 2 tenon eval 'dist.all_reduce(x)' x=[1,2]\n"
    "  tenon run -n 8 --hosts a:4,b:4 python train.py\n";

static volatile bool must_stop;

static void on_signal(int signal)
{
    (void)signal;
    must_stop = true;
}

struct run_given {
    const char *count, *hosts, *devices, *launcher, *grace;
    bool allows_root, is_rank;
};

// --- checks ------------------------------------------------------------------------------

// Fails where --devices names a device twice: ranks of a machine share none.
static int check_devices(const char *devices)
{
    for (const char *at = devices; at && *at;) {
        size_t length = strcspn(at, ",");
        for (const char *other = at + length + (at[length] == ','); *other;) {
            size_t size = strcspn(other, ",");
            if (size == length && strncmp(at, other, size) == 0)
                return misuse(
                    "--devices: '%.*s' is given twice, and a device is one rank's",
                    (int)length, at);
            other += size + (other[size] == ',');
        }
        at += length + (at[length] == ',');
    }
    return devices && strpbrk(devices, " \t\n")
               ? misuse("--devices: '%s' has white space, expected devices by comma",
                        devices)
               : 0;
}

// Each machine has its number of ranks, or none has: then the launcher divides them.
static int check_hosts(const char *hosts, int64_t count)
{
    int64_t places = 0;
    for (const char *at = hosts; at && *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        if (!colon)
            return 0;
        places += atoi(colon + 1);
        at += length;
    }
    return hosts && places < count
               ? misuse("--hosts: '%s' has places for %lld ranks, expected %lld", hosts,
                        (long long)places, (long long)count)
               : 0;
}

// Opens a device in a process of its own, which says why it cannot.
static bool device_opens(const char *device)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("TENON_BACKEND", device, 1);
        if (freopen("/dev/null", "w", stdout))
            execl("/proc/self/exe", "tenon", "eval", "1 + 1", NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

// Fails where --devices with a % gives this machine's last rank a device that is missing.
static int check_numbered(const char *devices, int64_t count)
{
    const char *percent = devices ? strchr(devices, '%') : NULL;
    char last[1100];
    if (!percent)
        return 0;
    snprintf(last, sizeof(last), "%.*s%lld%.512s", (int)(percent - devices), devices,
             (long long)count - 1, percent + 1);
    return device_opens(last) ? 0
                              : oops("--devices: rank %lld would have %s, which cannot be "
                                     "opened: expected at most as many ranks as devices",
                                     (long long)count - 1, last);
}

static int run_check_root(const struct run_given *given, const struct launcher *launcher)
{
    return geteuid() == 0 && launcher->is_open_mpi && !given->allows_root
               ? oops("Open MPI does not start processes as root, whose mistakes are "
                      "everybody's: --allow-root does")
               : 0;
}

// --- launching ---------------------------------------------------------------------------

// Sets the variables by which ranks find this process and their devices.
static int set_variables(const struct watcher *watcher, const struct run_given *given,
                         const struct launcher *launcher)
{
    char host[128] = "127.0.0.1", text[2048];
    if (given->hosts)
        gethostname(host, sizeof(host) - 1);
    int size =
        snprintf(text, sizeof(text), "launcher=%s:%s token=%s%s%s%s", host, watcher->port,
                 watcher->token, launcher->major >= 5 ? " survivors" : "",
                 given->devices ? " devices=" : "", given->devices ? given->devices : "");
    if (size >= (int)sizeof(text))
        return misuse("--devices has more than %zu bytes", sizeof(text) / 2);
    return setenv("TENON_RUN", text, 1) || setenv("TENON_MPI", launcher->library, 1)
               ? oops_memory()
               : 0;
}

static int start_launcher(const char *const *words, pid_t *out_pid)
{
    fflush(NULL);
    pid_t parent = getpid();
    *out_pid = fork();
    if (*out_pid < 0)
        return oops("cannot start a process: %s", strerror(errno));
    if (*out_pid > 0)
        return 0;
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent)
        _exit(127);
    execv(words[0], (char *const *)words);
    complain(words[0]);
    complain(strerror(errno));
    _exit(127);
}

// Waits for the launcher, which has nothing left to do, and ends one that does not go.
static int end_launcher(pid_t pid)
{
    int status = 0;
    for (int i = 0; i < 300; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (i == 200)
            kill(pid, SIGTERM);
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return 1;
}

static int run_command_launch(const struct run_given *given,
                              const struct launch_order *launch,
                              const struct launcher *launcher, struct watcher *watcher)
{
    const char *words[MOST_WORDS];
    char texts[256];
    pid_t pid = 0;
    const struct sigaction action = {.sa_handler = on_signal};
    int failed = launcher_words(launcher, launch, words, texts);
    if (!failed)
        failed = set_variables(watcher, given, launcher);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!failed)
        failed = start_launcher(words, &pid);
    if (failed)
        return failed;
    int status = watcher_run(watcher, pid, &must_stop);
    int end = end_launcher(pid);
    return status >= 0 ? status
                       : oops("%s ended with status %d before all ranks had begun",
                              launcher->path, end);
}

static int run_ranks(const struct run_given *given, char **command)
{
    struct launcher launcher;
    struct watcher watcher;
    char self[4096];
    int64_t count = 1, grace = 10;
    int failed = given->count ? args_integer("-n", given->count, 1, 4096, &count)
                              : misuse("-n is missing: how many ranks");
    if (!failed && given->grace)
        failed = args_integer("--grace", given->grace, -1, 86400, &grace);
    if (!failed)
        failed = check_devices(given->devices);
    if (!failed)
        failed = check_hosts(given->hosts, count);
    if (!failed)
        failed = launcher_find(given->launcher, &launcher);
    if (!failed)
        failed = run_check_root(given, &launcher);
    if (!failed && !given->hosts)
        failed = check_numbered(given->devices, count);
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (!failed && size < 0)
        failed = oops("/proc/self/exe cannot be read: %s", strerror(errno));
    if (failed)
        return failed;
    self[size] = 0;
    const struct launch_order asked = {(int)count, given->hosts, given->allows_root, self,
                                       command};
    failed = watcher_init(&watcher, (int)count, given->hosts != NULL, (double)grace);
    if (!failed)
        failed = run_command_launch(given, &asked, &launcher, &watcher);
    watcher_finish(&watcher);
    return failed;
}

// --- the command -------------------------------------------------------------------------

// How many of the words are options of `tenon run`, and values of these: what follows is
// the command with options of its own.
static int count_own(const struct option *options, size_t num_options, int argc,
                     char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
        const char *word = argv[i++];
        for (size_t k = 0; k < num_options; k++) {
            bool is_long =
                strncmp(word, "--", 2) == 0 && strcmp(word + 2, options[k].name) == 0;
            bool is_short = word[1] == options[k].letter && word[1] && !word[2];
            if ((is_long || is_short) && options[k].value)
                i++;
        }
    }
    return i < argc ? i : argc;
}

int cmd_run(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    struct run_given given = {0};
    const struct option options[] = {
        {"ranks", 'n', "N", "how many processes", &given.count, NULL},
        {"hosts", 0, "LIST", "machines and ranks on each, a:4,b:4; else this one",
         &given.hosts, NULL},
        {"devices", 0, "LIST",
         "a device for each rank of a machine, by comma, or one with %", &given.devices,
         NULL},
        {"launcher", 0, "PROGRAM", "mpirun or mpiexec of the MPI to use", &given.launcher,
         NULL},
        {"grace", 0, "S",
         "seconds after a failure in which the others may end; -1: no limit", &given.grace,
         NULL},
        {"allow-root", 0, NULL, "start processes as root, too", NULL, &given.allows_root},
        {"as-rank", 0, NULL, "used by the launcher to start a rank", NULL, &given.is_rank},
    };
    struct args args;
    int own = count_own(options, COUNT(options), argc, argv);
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, own, argv, &args);
    if (failed || args.help_shown)
        return failed;
    char **command = argv + own;
    if (own < argc && strcmp(*command, "--") == 0)
        command++;
    if (!*command)
        return misuse("run: the command to run is missing");
    return given.is_rank ? rank_run(command) : run_ranks(&given, command);
}
