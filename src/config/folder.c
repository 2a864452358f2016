/* SPDX-License-Identifier: MIT */
#include "config/folder.h"

#include "base/buf.h"
#include "config/keep.h"
#include "config/type.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool look(const char *folder, const char *path, struct stat *ret_status)
{
    char full[PATH_MAX];
    int size = snprintf(full, sizeof(full), "%s/%s", folder, path);

    return size > 0 && (size_t)size < sizeof(full) && stat(full, ret_status) == 0;
}

bool folder_has(const char *folder, const char *path)
{
    struct stat status;

    return look(folder, path, &status);
}

bool folder_has_folder(const char *folder, const char *path)
{
    struct stat status;

    return look(folder, path, &status) && S_ISDIR(status.st_mode);
}

static bool is_file(const char *folder, const char *path)
{
    struct stat status;

    return look(folder, path, &status) && !S_ISDIR(status.st_mode);
}

static bool is_same(const char *a, const char *b)
{
    struct stat first, second;

    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The path with every `x/..` taken out, as if there were no symlinks. */
static const char *without_parents(struct arena *arena, struct span path)
{
    struct buf out = {0};
    const char *kept;

    while (path.data) {
        struct span part = span_split(&path, '/');

        if (part.size == 0)
            continue;
        if (span_is(part, ".."))
            out.size = out.size ? span_find_last(buf_span(&out), '/') : 0;
        else
            CHECK(buf_printf(&out, "/%.*s", SPAN_ARG(part)) == 0);
    }
    kept = keep_text(arena, out.size ? buf_span(&out) : span_of("/"));
    buf_done(&out);
    return kept;
}

const char *folder_join(struct arena *arena, const char *folder, const char *path)
{
    const struct type_context context = {.arena = arena, .folder = folder};
    const char *joined = type_path(&context, span_of(path));
    const char *shorter = without_parents(arena, span_of(joined));

    return is_same(joined, shorter) ? shorter : joined;
}

static const char *parent_of(struct arena *arena, const char *path)
{
    size_t slash = span_find_last(span_of(path), '/');

    return slash ? keep_text(arena, span_first(span_of(path), slash)) : "/";
}

const char *folder_find_rackup(const char *folder)
{
    if (is_file(folder, "config.ru"))
        return "config.ru";
    return is_file(folder, "config/environment.rb") ? "config/environment.rb" : NULL;
}

/* The nearest folder with an application at or above the file, else the file's own folder. */
static const char *implied_by(struct arena *arena, const char *file)
{
    const char *own = parent_of(arena, file);

    for (const char *folder = own;; folder = parent_of(arena, folder)) {
        if (folder_find_rackup(folder))
            return folder;
        if (strcmp(folder, "/") == 0)
            return own;
    }
}

void folder_find(struct arena *arena, const struct config_options *options,
                 struct folder *ret_folder)
{
    const char *target = options->target;
    struct folder folder = {0};

    if (!target && options->file && strcmp(options->file, "-") != 0) {
        folder.path = implied_by(arena, folder_join(arena, options->cwd, options->file));
    } else {
        folder.path = folder_join(arena, options->cwd, target ? target : ".");
        if (target && span_ends_with(span_of(target), span_of(".ru")) &&
            !folder_has_folder(folder.path, ".")) {
            folder.rackup = strrchr(folder.path, '/') + 1;
            folder.path = parent_of(arena, folder.path);
        }
    }
    *ret_folder = folder;
}

const char *folder_find_static(struct arena *arena, const char *folder)
{
    if (folder_has_folder(folder, "public"))
        return keep_printf(arena, "%s/public", strcmp(folder, "/") ? folder : "");
    if (is_file(folder, "index.html") && !folder_has(folder, "Gemfile") &&
        !folder_has(folder, "Rakefile") && !folder_has_folder(folder, "config"))
        return folder;
    return NULL;
}

const char *folder_find_config(struct arena *arena, const char *folder, const char *environment)
{
    const char *const names[] = {keep_printf(arena, "config/leat/%s.yml", environment),
                                 "config/leat.yml", "leat.yml"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (is_file(folder, names[i]))
            return keep_printf(arena, "%s/%s", strcmp(folder, "/") ? folder : "", names[i]);
    return NULL;
}

char *config_find_folder(const struct config_options *options, struct faults *ret_faults)
{
    struct arena arena = {0};
    struct folder folder;
    char *copy;

    (void)ret_faults; /* every command line means some folder */
    folder_find(&arena, options, &folder);
    copy = must_copy(folder.path);
    arena_done(&arena);
    return copy;
}
