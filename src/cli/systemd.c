/* SPDX-License-Identifier: MIT */
#include "cli/systemd.h"

#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 8 };

/* As sd_booted does it. */
bool systemd_is_running(bool for_user)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];

    if (!for_user)
        return access("/run/systemd/system", F_OK) == 0;
    if (!runtime || *runtime != '/')
        return false;
    (void)snprintf(path, sizeof path, "%s/systemd/private", runtime);
    return access(path, F_OK) == 0;
}

bool systemd_lingers(const char *user)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "/var/lib/systemd/linger/%s", user);
    return access(path, F_OK) == 0;
}

bool systemd_run(bool for_user, const char *const *words)
{
    const char *argv[WORDS_MAX] = {"systemctl"};
    size_t size = 1;
    pid_t pid;
    int status = 0;
    int result;

    if (for_user)
        argv[size++] = "--user";
    for (; *words && size < WORDS_MAX - 1; words++)
        argv[size++] = *words;
    (void)fflush(stdout);
    result = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);
    if (result != 0) {
        cli_complain("systemctl: %s", strerror(result));
        return false;
    }
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    cli_complain("systemctl %s failed", argv[size - 1]);
    return false;
}
