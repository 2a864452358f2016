/* SPDX-License-Identifier: MIT */
#include "control/path.h"

#include "base/ascii.h"
#include "base/span.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT_FOLDER "/run/leat"

size_t control_folders(const struct control_place *place, bool all,
                       char out[CONTROL_FOLDERS][CONTROL_PATH])
{
    const char *temporary = place->temporary && *place->temporary ? place->temporary : "/tmp";
    size_t size = 0;

    if (place->uid == 0)
        (void)snprintf(out[size++], CONTROL_PATH, "%s", ROOT_FOLDER);
    if (place->runtime && *place->runtime == '/')
        (void)snprintf(out[size++], CONTROL_PATH, "%s/leat", place->runtime);
    (void)snprintf(out[size++], CONTROL_PATH, "%s/leat-%u", temporary, (unsigned)place->uid);
    if (all && place->uid != 0 && size < CONTROL_FOLDERS)
        (void)snprintf(out[size++], CONTROL_PATH, "%s", ROOT_FOLDER);
    return size;
}

int control_make_folder(const char *folder, uid_t uid)
{
    /* Workers of other users must reach the sockets in the folder of a server that root started. */
    mode_t mode = uid == 0 ? 0755 : 0700;
    struct stat info;

    if (mkdir(folder, mode) == 0)
        return chmod(folder, mode) == -1 ? -errno : 0;
    if (errno != EEXIST)
        return -errno;
    if (lstat(folder, &info) == -1)
        return -errno;
    if (!S_ISDIR(info.st_mode))
        return -ENOTDIR;
    if (info.st_uid != uid || (info.st_mode & 022))
        return -EPERM;
    return 0;
}

/* FNV-1a: names only have to differ, nobody gains by making them equal. */
static uint64_t hash(const char *text)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return value;
}

void control_link_path(const char *run, const char *application, char out[CONTROL_PATH])
{
    struct span name = span_of(application);
    char word[41];
    size_t used = 0;

    name = span_skip(name, span_find_last(name, '/') + 1);
    for (size_t i = 0; i < name.size && used < sizeof word - 1; i++)
        word[used++] = ascii_is(name.data[i], ASCII_ALPHA | ASCII_DIGIT) ? name.data[i] : '-';
    word[used] = '\0';
    (void)snprintf(out, CONTROL_PATH, "%s/app-%s-%016" PRIx64 ".sock", run, word,
                   hash(application));
}

void control_beside_path(const char *pid_file, char out[CONTROL_PATH])
{
    struct span path = span_of(pid_file);

    if (span_ends_with(path, span_of(".pid")))
        path.size -= 4;
    (void)snprintf(out, CONTROL_PATH, "%.*s.sock", SPAN_ARG(path));
}
