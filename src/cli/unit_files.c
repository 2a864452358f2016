/* SPDX-License-Identifier: MIT */
#include "cli/unit_files.h"

#include "base/fd.h"
#include "cli/cli.h"
#include "master/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

#define SYSTEM_FOLDER "/etc/systemd/system"

static int complain(const char *path)
{
    cli_complain("%s: %s", path, strerror(errno));
    return -1;
}

/* What snprintf said of a path: one that was cut is none. */
static bool fits(int size)
{
    return size > 0 && size < PATH_MAX;
}

bool unit_files_find(const char *root, bool for_user, struct unit_place *ret_place)
{
    const char *own = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    ret_place->for_user = for_user;
    if (!for_user)
        return fits(snprintf(ret_place->named, PATH_MAX, SYSTEM_FOLDER)) &&
               fits(snprintf(ret_place->folder, PATH_MAX, "%s%s", root ? root : "", SYSTEM_FOLDER));
    if (own && *own == '/')
        return fits(snprintf(ret_place->folder, PATH_MAX, "%s/systemd/user", own)) &&
               fits(snprintf(ret_place->named, PATH_MAX, "%s/systemd/user", own));
    if (home && *home == '/')
        return fits(snprintf(ret_place->folder, PATH_MAX, "%s/.config/systemd/user", home)) &&
               fits(snprintf(ret_place->named, PATH_MAX, "%s/.config/systemd/user", home));
    cli_complain("HOME is not set: there is no folder for the units of this user");
    return false;
}

const char *unit_files_target(const struct unit_place *place)
{
    return place->for_user ? "default.target" : "multi-user.target";
}

enum unit_owner unit_files_owner(const struct unit_place *place, const char *file,
                                 const char *folder, char ret_folder[UNIT_FOLDER])
{
    char path[PATH_MAX];
    struct stat status;
    char *text;
    size_t size;
    bool is_ours;

    if (!fits(snprintf(path, PATH_MAX, "%s/%s", place->folder, file)) || lstat(path, &status) == -1)
        return UNIT_NOBODY;
    if (!S_ISREG(status.st_mode) || fd_read_file(path, FILE_MAX, &text, &size) != 0)
        return UNIT_FOREIGN;
    is_ours = unit_read_folder(span_make(text, size), ret_folder);
    free(text);
    if (!is_ours)
        return UNIT_FOREIGN;
    return strcmp(ret_folder, folder) == 0 ? UNIT_OURS : UNIT_OTHER;
}

static bool holds(const char *path, struct span text)
{
    char *present;
    size_t size;
    bool same;

    if (fd_read_file(path, FILE_MAX, &present, &size) != 0)
        return false;
    same = span_equal(span_make(present, size), text);
    free(present);
    return same;
}

static int write_fresh(const char *fresh, const char *path, struct span text)
{
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int result;

    if (fd == -1)
        return complain(fresh);
    /* Readable for everybody whatever the umask: it holds no secret, the file of variables does. */
    result = fchmod(fd, 0644) == -1 ? -errno : fd_write_all(fd, text);
    if (result == 0 && fsync(fd) == -1)
        result = -errno;
    (void)close(fd);
    if (result == 0 && rename(fresh, path) == -1)
        result = -errno;
    if (result == 0)
        return 1;
    (void)unlink(fresh);
    errno = -result;
    return complain(path);
}

int unit_files_write(const struct unit_place *place, const char *file, struct span text)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];

    errno = ENAMETOOLONG;
    if (!fits(snprintf(path, PATH_MAX, "%s/%s", place->folder, file)) ||
        !fits(snprintf(fresh, PATH_MAX, "%s/.%s.%d", place->folder, file, (int)getpid())))
        return complain(file);
    if (holds(path, text))
        return 0;
    (void)files_make_parents(path);
    return write_fresh(fresh, path, text);
}

/* Where the link that enables the unit is, and what it says. */
static bool find_link(const struct unit_place *place, const char *file, const char *target,
                      char link[PATH_MAX], char text[PATH_MAX])
{
    return fits(snprintf(link, PATH_MAX, "%s/%s.wants/%s", place->folder, target, file)) &&
           fits(snprintf(text, PATH_MAX, "%s/%s", place->named, file));
}

static bool is_link_to(const char *link, const char *text)
{
    char present[PATH_MAX];
    ssize_t size = readlink(link, present, sizeof present - 1);

    return size > 0 && span_is(span_make(present, (size_t)size), text);
}

int unit_files_enable(const struct unit_place *place, const char *file, const char *target)
{
    char link[PATH_MAX];
    char text[PATH_MAX];

    errno = ENAMETOOLONG;
    if (!find_link(place, file, target, link, text))
        return complain(file);
    if (is_link_to(link, text))
        return 0;
    (void)files_make_parents(link);
    /* systemd goes by the link's name: one that leads elsewhere starts the same unit. */
    if (symlink(text, link) == -1)
        return errno == EEXIST ? 0 : complain(link);
    return 1;
}

int unit_files_disable(const struct unit_place *place, const char *file, const char *target)
{
    char link[PATH_MAX];
    char text[PATH_MAX];

    if (!find_link(place, file, target, link, text) || !is_link_to(link, text))
        return 0;
    if (unlink(link) == -1)
        return complain(link);
    /* An empty folder of wants is one that nobody needs; others stay. */
    *strrchr(link, '/') = '\0';
    (void)rmdir(link);
    return 1;
}

int unit_files_remove(const struct unit_place *place, const char *file)
{
    char path[PATH_MAX];

    if (!fits(snprintf(path, PATH_MAX, "%s/%s", place->folder, file)))
        return 0;
    if (unlink(path) == 0)
        return 1;
    return errno == ENOENT ? 0 : complain(path);
}
