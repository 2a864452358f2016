/* SPDX-License-Identifier: MIT */
/*
 * Units as files: where they lie, whose they are, the links that enable them. What another wrote is never
 * changed or removed. Errors are told on standard error.
 */
#pragma once

#include "cli/unit.h"

#include <limits.h>

struct unit_place {
    char folder[PATH_MAX]; /* of the units, where they are to be written now */
    char named[PATH_MAX];  /* the same as the system that they are for calls it */
    bool for_user;
};

/* Finds the place: below `root` (NULL: this system), of all users for root, else of this user. False when
 * a user has no folder of his own. */
bool unit_files_find(const char *root, bool for_user, struct unit_place *ret_place);

enum unit_owner {
    UNIT_NOBODY,  /* there is no such file */
    UNIT_OURS,    /* written for that folder */
    UNIT_OTHER,   /* written for another folder */
    UNIT_FOREIGN, /* not written by us */
};

/* Whose the unit of that file name is; ret_folder is the folder that one of ours names. */
enum unit_owner unit_files_owner(const struct unit_place *place, const char *file,
                                 const char *folder, char ret_folder[UNIT_FOLDER]);

/* Writes the file unless it holds that text already, whole or not at all. 1 written, 0 the same, -1. */
int unit_files_write(const struct unit_place *place, const char *file, struct span text);

/* Links the file into the target that shall start it. 1 linked, 0 it was, -1. */
int unit_files_enable(const struct unit_place *place, const char *file, const char *target);

/* Removes the link (the file). 1 removed, 0 it was not there or is not ours, -1. */
int unit_files_disable(const struct unit_place *place, const char *file, const char *target);
int unit_files_remove(const struct unit_place *place, const char *file);

/* The target that starts units of this place: "multi-user.target" or "default.target". */
const char *unit_files_target(const struct unit_place *place);
