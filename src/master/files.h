/* SPDX-License-Identifier: MIT */
/*
 * Files that master opens for others: log files, and the folders of named paths.
 */
#pragma once

#include "pool/account.h"

/* Makes the missing folders above a path. 0 or negative errno. */
int files_make_parents(const char *path);

/* Whether this process could make or write a file at the path, together with the missing folders above;
 * makes nothing. 0 or negative errno. */
int files_probe(const char *path);

/* The same for a log file that files_open_log would open. */
int files_probe_log(const char *path, const struct account *account);

/* Opens a log file for appending, with the rights of the account and without following a link at its
 * end, unless only root can write the folder; missing folders are made. "stdout" and "stderr" are those
 * of this process. The descriptor (owned by the caller, close-on-exec), or negative errno. */
int files_open_log(const char *path, const struct account *account);
