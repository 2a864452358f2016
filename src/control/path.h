/* SPDX-License-Identifier: MIT */
/*
 * Where the control socket is: RUN/PID.sock unless it is named, with links to it beside the PID file and
 * in RUN under a name made from the application folder as given. Server and command line use the same
 * functions, so that they meet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_PATH = 1024, CONTROL_FOLDERS = 3 };

/* What RUN depends on. */
struct control_place {
    uid_t uid;
    const char *runtime;   /* XDG_RUNTIME_DIR, or NULL */
    const char *temporary; /* TMPDIR, or NULL: /tmp */
};

/* The candidates for RUN, best first; returns how many. all: also those of a server of root, for
 * callers. */
size_t control_folders(const struct control_place *place, bool all,
                       char out[CONTROL_FOLDERS][CONTROL_PATH]);

/* Makes sure that the folder is there and ours (for a user's own folder nobody else may write it). 0 or
 * negative errno. */
int control_make_folder(const char *folder, uid_t uid);

/* Writes RUN/NAME.sock for an application folder: its last part and a hash of the whole. */
void control_link_path(const char *run, const char *application, char out[CONTROL_PATH]);

/* Writes the path beside a PID file: `.sock` for `.pid`, or appended. */
void control_beside_path(const char *pid_file, char out[CONTROL_PATH]);
