/* SPDX-License-Identifier: MIT */
/*
 * Files that master opens for others: log files, and the folders of named paths.
 */
#pragma once

#include "pool/account.h"

/* Makes the missing folders above a path. 0 or negative errno. */
int files_make_parents(const char *path);

/* Opens a log file for appending, with the rights of the account and without following a link at its
 * end, unless only root can write the folder; missing folders are made. "stdout" and "stderr" are those
 * of this process. The descriptor (owned by the caller, close-on-exec), or negative errno. */
int files_open_log(const char *path, const struct account *account);
