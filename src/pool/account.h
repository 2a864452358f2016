/* SPDX-License-Identifier: MIT */
/*
 * Whom a process becomes: user, groups, home. Looked up by master before it forks (name services may
 * allocate, read files and talk to daemons), applied in the child.
 */
#pragma once

#include "base/fault.h"

#include <stdbool.h>
#include <sys/types.h>

struct account {
    bool change; /* false: stay who we are; the rest is still filled in for our own user */
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned */
    int group_size;
    char *name; /* owned; "" when the user has no name */
    char *home; /* owned; "/" when unknown */
};

/* The account of a user and group by name or number (NULL: not given). Without a user, and as root, it is
 * the owner of `path` (NULL: stay). 0, or -1 with a fault that names key. Changing to another user needs
 * root. */
int account_find(const char *user, const char *group, const char *path, const char *key,
                 struct account *ret_account, struct faults *faults);

/* Frees what the account owns. */
void account_done(struct account *account);

/* In a child: becomes the account (groups, group, user, in this order). 0 or negative errno. */
int account_apply(const struct account *account);
