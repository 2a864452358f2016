/* SPDX-License-Identifier: MIT */
/*
 * The application folder: which one the command line means, and what is in it. Paths stay as they
 * were given, with their symlinks, because a release changes behind them. Looks, opens nothing.
 */
#pragma once

#include "config/config.h"

struct folder {
    const char *path;   /* absolute, symlinks kept */
    const char *rackup; /* the FILE.ru that was named, relative to path; else NULL */
};

/* The folder of these options: that of the target, else the one that the configuration file implies,
 * else the current one. It need not exist. */
void folder_find(struct arena *arena, const struct config_options *options,
                 struct folder *ret_folder);

/* path joined to the folder (unless absolute), without `.`, doubled slashes, and those `..` whose
 * removal leads to the same folder. */
const char *folder_join(struct arena *arena, const char *folder, const char *path);

/* Whether the path below the folder is a folder (is there at all). */
bool folder_has_folder(const char *folder, const char *path);
bool folder_has(const char *folder, const char *path);

/* The application's entry below the folder: "config.ru", else "config/environment.rb", else NULL. */
const char *folder_find_rackup(const char *folder);

/* The folder of files to serve when there is no application: its `public`, else itself when it looks
 * like a folder of pages; else NULL. */
const char *folder_find_static(struct arena *arena, const char *folder);

/* The configuration file of an environment in the folder, or NULL. */
const char *folder_find_config(struct arena *arena, const char *folder, const char *environment);
