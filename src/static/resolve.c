/* SPDX-License-Identifier: MIT */
#include "static/resolve.h"

#include "base/ascii.h"
#include "base/base.h"
#include "base/fd.h"
#include "static/static.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40, PLACES_MAX = 32 };

/* A FIFO or terminal in a public folder must not hold the thread that opens it. */
enum { READING = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, LOOKING = O_PATH | O_CLOEXEC };

/* ---- Names ---- */

static const struct span sources[] = {SPAN(".rb"), SPAN(".ru"), SPAN(".php"), SPAN(".erb")};

static bool is_served(const struct static_root *root, struct span extension)
{
    for (const char **served = root->serve; served && *served; served++)
        if (ascii_equal_fold(span_of(*served), extension))
            return true;
    return false;
}

static bool is_source(const struct static_root *root, struct span name)
{
    struct span extension = span_skip(name, span_find_last(name, '.'));

    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (ascii_equal_fold(sources[i], extension))
            return !is_served(root, extension);
    return false;
}

bool resolve_is_refused(const struct static_root *root, struct span name)
{
    struct span rest = name;

    while (rest.data) {
        struct span segment = span_split(&rest, '/');

        if (segment.size && segment.data[0] == '.' && !span_is(segment, ".well-known"))
            return true;
    }
    if (name.size && name.data[name.size - 1] == '~')
        return true;
    return is_source(root, name);
}

/* ---- System calls ---- */

/* openat2 by its number: the C libraries have no function for it. A descriptor or a negative errno. */
static int open_how(int folder, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)flags, .resolve = resolve};
    long fd;

    do
        fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
    while (fd == -1 && errno == EINTR);
    return fd == -1 ? -errno : (int)fd;
}

static int open_in(int folder, const char *path, int flags)
{
    int fd;

    do
        fd = openat(folder, path, flags);
    while (fd == -1 && errno == EINTR);
    return fd == -1 ? -errno : fd;
}

static int identify(int fd, struct resolve_identity *ret_identity, unsigned *ret_mode)
{
    struct statx found;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found) == -1)
        return -errno;
    *ret_identity = (struct resolve_identity){
        .device = (uint64_t)found.stx_dev_major << 32 | found.stx_dev_minor,
        .inode = found.stx_ino,
        .size = found.stx_size,
        .modified = {found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec},
        .changed = {found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec},
    };
    *ret_mode = found.stx_mode;
    return 0;
}

static bool is_same_place(const struct resolve_identity *a, const struct resolve_identity *b)
{
    return a->inode == b->inode && a->device == b->device;
}

bool resolve_is_same(const struct resolve_identity *a, const struct resolve_identity *b)
{
    return is_same_place(a, b) && a->size == b->size &&
           a->modified.tv_nsec == b->modified.tv_nsec && a->modified.tv_sec == b->modified.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec && a->changed.tv_sec == b->changed.tv_sec;
}

bool resolve_identify(int fd, struct resolve_identity *ret_identity)
{
    unsigned mode;

    return !identify(fd, ret_identity, &mode) && S_ISREG(mode);
}

/* Nobody who writes can be there together with a lease for reading; it is given back at once. */
bool resolve_is_written(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == -1)
        return errno == EAGAIN;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

/* What an errno of a look-up means; RESOLVED_LATER for those that another way may answer. */
static enum resolved meaning(int error)
{
    switch (error) {
    case -ENOENT:
    case -ENOTDIR:
    case -ENAMETOOLONG:
    case -ENXIO: /* a socket, or a FIFO that nobody writes */
    case -ENODEV:
        return RESOLVED_MISSING;
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
        return RESOLVED_FAILED;
    default:
        return RESOLVED_LATER;
    }
}

static enum resolved kind(unsigned mode)
{
    if (S_ISREG(mode))
        return RESOLVED_FILE;
    return S_ISDIR(mode) ? RESOLVED_FOLDER : RESOLVED_MISSING;
}

/* ---- Without blocking ---- */

static bool is_in_memory(int fd)
{
    struct statfs found;

    return fstatfs(fd, &found) == 0 &&
           (found.f_type == TMPFS_MAGIC || (unsigned)found.f_type == RAMFS_MAGIC);
}

int resolve_root(const struct static_root *root, bool may_block,
                 struct resolve_identity *ret_identity, bool *ret_in_memory)
{
    int flags = LOOKING | O_DIRECTORY, error;
    int fd = may_block ? open_in(AT_FDCWD, root->folder, flags)
                       : open_how(AT_FDCWD, root->folder, flags, RESOLVE_CACHED);
    unsigned mode;

    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR || may_block ? fd : -EAGAIN;
    error = identify(fd, ret_identity, &mode);
    if (error) {
        fd_close(&fd);
        return error;
    }
    if (may_block)
        *ret_in_memory = is_in_memory(fd);
    return fd;
}

/* A way out of the root is for resolve_open to judge, unless it leads to nothing: folders such as
 * public/system are often links, and most names below them are not there. */
static enum resolved look_outside(int root_fd, const char *name)
{
    int fd = open_how(root_fd, name, LOOKING, RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED);

    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? RESOLVED_MISSING : RESOLVED_LATER;
    fd_close(&fd);
    return RESOLVED_LATER;
}

/* A file system in memory keeps no record of what is missing, so that the kernel could never answer
 * from it; there the look-up itself waits for nothing, as long as it stays on that file system. */
enum resolved resolve_look(int root_fd, const char *name, bool beneath, bool in_memory,
                           struct resolve_identity *ret_identity)
{
    uint64_t resolve = RESOLVE_NO_MAGICLINKS | (in_memory ? RESOLVE_NO_XDEV : RESOLVE_CACHED) |
                       (beneath ? RESOLVE_BENEATH : 0);
    int fd = open_how(root_fd, name, LOOKING, resolve);
    unsigned mode;
    int error;

    if (fd == -EXDEV)
        return look_outside(root_fd, name);
    if (fd < 0)
        return meaning(fd);
    error = identify(fd, ret_identity, &mode);
    fd_close(&fd);
    return error ? RESOLVED_LATER : kind(mode);
}

/* ---- The proof by hand ---- */

/* The folders in which a file may lie. */
struct places {
    struct resolve_identity items[PLACES_MAX];
    unsigned size;
};

static void add_open_place(struct places *places, int fd)
{
    unsigned mode;

    if (places->size < PLACES_MAX && !identify(fd, &places->items[places->size], &mode))
        places->size++;
}

static void add_place(struct places *places, const char *path)
{
    int fd = open_in(AT_FDCWD, path, LOOKING | O_DIRECTORY);

    if (fd < 0)
        return;
    add_open_place(places, fd);
    fd_close(&fd);
}

/* "/srv/shop/releases/7" has "/srv/shop/shared" beside its releases. */
static bool find_shared(struct span release, char out[static PATH_MAX])
{
    size_t slash = span_find_last(release, '/');
    struct span parent = span_first(release, slash);

    if (slash == release.size || !span_ends_with(parent, (struct span)SPAN("/releases")))
        return false;
    parent = span_first(parent, parent.size - strlen("releases"));
    return snprintf(out, PATH_MAX, "%.*sshared", SPAN_ARG(parent)) < PATH_MAX;
}

/* A site without an application has its root, or the folder that holds it, as the release. */
static void add_shared(struct places *places, const struct static_root *root)
{
    char real[PATH_MAX], shared[PATH_MAX];
    struct span release;

    if (!realpath(root->app ? root->app : root->folder, real))
        return;
    release = span_of(real);
    if (find_shared(release, shared) ||
        (!root->app && find_shared(span_first(release, span_find_last(release, '/')), shared)))
        add_place(places, shared);
}

static void find_places(struct places *places, const struct static_root *root, int root_fd)
{
    places->size = 0;
    add_open_place(places, root_fd);
    add_place(places, "/usr/share");
    add_shared(places, root);
    for (const char **path = root->links; path && *path; path++)
        add_place(places, *path);
}

static bool is_place(const struct places *places, const struct resolve_identity *folder)
{
    for (unsigned i = 0; i < places->size; i++)
        if (is_same_place(&places->items[i], folder))
            return true;
    return false;
}

/* Climbs from a folder to the top and says whether it passes one of the places. Takes fd. */
static bool is_in_places(const struct places *places, int fd)
{
    struct resolve_identity here, parent = {0};
    unsigned mode;
    bool found = false;

    if (identify(fd, &here, &mode)) {
        fd_close(&fd);
        return false;
    }
    while (!(found = is_place(places, &here))) {
        int up = open_in(fd, "..", LOOKING | O_DIRECTORY);

        fd_close(&fd);
        fd = up;
        if (up < 0 || identify(up, &parent, &mode) || is_same_place(&parent, &here))
            break;
        here = parent;
    }
    if (fd >= 0)
        fd_close(&fd);
    return found;
}

/* Where a way has led: the folder that holds its end, and the name of the end in it, no link. */
struct end {
    int folder; /* owned, O_PATH */
    char name[NAME_MAX + 1];
    unsigned mode;
};

/* Splits a path in place into the folder's part and the last name ("." for a path that ends in a
 * slash or has no name). False for a name that no folder can hold. */
static bool split_last(char *path, const char **ret_folder, char ret_name[static NAME_MAX + 1])
{
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    size_t size;

    last = *last ? last : ".";
    size = strlen(last);
    if (size > NAME_MAX)
        return false;
    memcpy(ret_name, last, size + 1);
    *ret_folder = slash == path ? "/" : slash ? path : ".";
    if (slash && slash != path)
        *slash = 0;
    return true;
}

/* Reads what stands at the end; with a link, its target goes to path and 1 is returned. */
static int step(struct end *end, char path[static PATH_MAX])
{
    int fd = open_in(end->folder, end->name, LOOKING | O_NOFOLLOW);
    struct resolve_identity identity;
    ssize_t size = 0;
    int error;

    if (fd < 0)
        return fd;
    error = identify(fd, &identity, &end->mode);
    if (!error && S_ISLNK(end->mode)) {
        size = readlinkat(fd, "", path, PATH_MAX - 1);
        error = size == -1 ? -errno : 1;
        path[size > 0 ? size : 0] = 0;
    }
    fd_close(&fd);
    return error;
}

/* Follows a name to its end. 0 with *ret_end (whose folder the caller closes), or a negative errno. */
static int follow(int root_fd, const char *name, struct end *ret_end)
{
    char path[PATH_MAX];
    struct end end = {.folder = -1};
    int base = root_fd, error = -ELOOP;

    if (snprintf(path, sizeof(path), "%s", name) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (unsigned links = 0; links <= LINKS_MAX; links++) {
        const char *folder;
        int next;

        error = -ENAMETOOLONG;
        if (!split_last(path, &folder, end.name))
            break;
        next = open_in(base, folder, LOOKING | O_DIRECTORY);
        if (end.folder >= 0)
            fd_close(&end.folder);
        if (next < 0)
            return next;
        base = end.folder = next;
        error = step(&end, path);
        if (error == 0) {
            *ret_end = end;
            return 0;
        }
        if (error < 0)
            break;
        error = -ELOOP;
    }
    if (end.folder >= 0)
        fd_close(&end.folder);
    return error;
}

/* The folder whose place decides: of a file the one that holds it, of a folder itself. */
static int deciding_folder(const struct end *end)
{
    return open_in(end->folder, S_ISDIR(end->mode) ? end->name : ".", LOOKING | O_DIRECTORY);
}

static void describe(const struct end *end, char ret_words[static RESOLVE_WORDS])
{
    char link[64], folder[RESOLVE_WORDS / 2] = "?";
    ssize_t size;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", end->folder);
    size = readlink(link, folder, sizeof(folder) - 1);
    if (size > 0)
        folder[size] = 0;
    (void)snprintf(ret_words, RESOLVE_WORDS, "leads to %s/%.200s, which `links` does not allow",
                   strcmp(folder, "/") == 0 ? "" : folder, end->name);
}

enum resolved resolve_explain(int error, char ret_words[static RESOLVE_WORDS])
{
    enum resolved answer = meaning(error);

    if (answer != RESOLVED_LATER)
        return answer;
    (void)snprintf(ret_words, RESOLVE_WORDS, "cannot be opened: %s", strerror(-error));
    return error == -EACCES || error == -EPERM ? RESOLVED_CLOSED : RESOLVED_DENIED;
}

static enum resolved open_end(const struct end *end, int *ret_fd,
                              struct resolve_identity *ret_identity,
                              char ret_words[static RESOLVE_WORDS])
{
    int fd;

    if (kind(end->mode) != RESOLVED_FILE)
        return kind(end->mode);
    fd = open_in(end->folder, end->name, READING | O_NOFOLLOW);
    if (fd < 0)
        return resolve_explain(fd, ret_words);
    if (!resolve_identify(fd, ret_identity)) {
        fd_close(&fd);
        return RESOLVED_MISSING;
    }
    *ret_fd = fd;
    return RESOLVED_FILE;
}

static enum resolved open_by_hand(const struct static_root *root, int root_fd, const char *name,
                                  int *ret_fd, struct resolve_identity *ret_identity,
                                  char ret_words[static RESOLVE_WORDS])
{
    enum resolved answer = RESOLVED_DENIED;
    struct places places;
    struct end end;
    int folder, error = follow(root_fd, name, &end);

    if (error)
        return resolve_explain(error, ret_words);
    find_places(&places, root, root_fd);
    folder = deciding_folder(&end);
    if (folder < 0)
        answer = resolve_explain(folder, ret_words);
    else if (is_in_places(&places, folder))
        answer = open_end(&end, ret_fd, ret_identity, ret_words);
    else
        describe(&end, ret_words);
    fd_close(&end.folder);
    return answer;
}

/* ---- The one way to an open file ---- */

/* The configuration file is never sent, by whatever name it is asked for. */
static bool is_never_sent(const struct static_root *root, const struct resolve_identity *identity)
{
    struct resolve_identity never;
    unsigned mode;
    int fd;
    bool same;

    if (!root->never)
        return false;
    fd = open_in(AT_FDCWD, root->never, LOOKING);
    if (fd < 0)
        return false;
    same = !identify(fd, &never, &mode) && is_same_place(&never, identity);
    fd_close(&fd);
    return same;
}

static enum resolved open_beneath(int root_fd, const char *name, int *ret_fd,
                                  struct resolve_identity *ret_identity)
{
    int fd = open_how(root_fd, name, READING, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    unsigned mode;
    enum resolved answer;

    if (fd < 0)
        return meaning(fd);
    answer = identify(fd, ret_identity, &mode) ? RESOLVED_FAILED : kind(mode);
    if (answer == RESOLVED_FILE)
        *ret_fd = fd;
    else
        fd_close(&fd);
    return answer;
}

enum resolved resolve_open(const struct static_root *root, int root_fd, const char *name,
                           int *ret_fd, struct resolve_identity *ret_identity,
                           char ret_words[static RESOLVE_WORDS])
{
    struct resolve_identity identity;
    int fd = -1;
    enum resolved answer = open_beneath(root_fd, name, &fd, &identity);

    /* A link that leaves the root, a kernel without openat2, a rename meanwhile. */
    if (answer == RESOLVED_LATER)
        answer = open_by_hand(root, root_fd, name, &fd, &identity, ret_words);
    if (answer != RESOLVED_FILE)
        return answer;
    if (is_never_sent(root, &identity)) {
        fd_close(&fd);
        return RESOLVED_MISSING;
    }
    *ret_fd = fd;
    *ret_identity = identity;
    return RESOLVED_FILE;
}
