/* SPDX-License-Identifier: MIT */
/*
 * The systemd units of one application as text: `leat-NAME.service`, and `leat-NAME.socket` with its
 * listening sockets. Pure; what is written here is what `leat install --print` shows.
 *
 * The first line of each says for which folder it was written, which is how the next install and
 * uninstall know their own.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { UNIT_NAME = 200, UNIT_FOLDER = 4096 };

struct unit_variable {
    const char *name, *value;
};

/* All that the text depends on. Strings are the caller's; lists of strings end in NULL. */
struct unit {
    const char *name;   /* "shop": the units are leat-shop */
    const char *folder; /* of the application, as given */
    bool for_user;      /* of a user's own manager: no privileges, no hardening that needs some */
    const char *const *start; /* the command and its words */
    const char *const *reload;
    struct unit_variable *variables; /* of the installing shell */
    size_t variable_size;
    uint64_t start_s, stop_s;   /* patience */
    const char *const *sockets; /* "0.0.0.0:80", "/run/shop.sock"; none: no socket unit */
    uint32_t backlog;
    bool has_file;     /* one of them is a Unix socket ... */
    uint32_t mode;     /* ... with this mode, */
    const char *owner; /* and these, or NULL */
    const char *group;
    bool keeps_temporary; /* some path lies in /tmp: it must be everybody's */
    bool writes_system;   /* some path lies below /usr, /boot or /etc */
};

/* NAME from a folder: its last part, of `current` and `releases/X` that of the folder around; other
 * characters than systemd allows become '-'. */
void unit_name(const char *folder, char out[UNIT_NAME]);

/* Whether a NAME of the user's can be one: letters, digits, '_', '.', '-', not too long. */
bool unit_is_name(const char *name);

/* Why a path cannot stand in a unit ("has a line break in it"), or NULL when it can. */
const char *unit_refuse_path(const char *path);

/* Appends the text of the service and of its sockets. */
void unit_write_service(const struct unit *unit, struct buf *out);
void unit_write_socket(const struct unit *unit, struct buf *out);

/* The folder that a unit of ours was written for: the rest of its first line; false when it is not ours. */
bool unit_read_folder(struct span text, char out[UNIT_FOLDER]);
