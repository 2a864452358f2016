/* SPDX-License-Identifier: MIT */
/*
 * The folder for bodies that are too large for memory, before anybody needs it.
 */
#pragma once

#include "pool/account.h"

/* Makes the folder, for the account, where it is missing, and tries whether the account can put a file
 * without a name into it. 0 or negative errno. */
int spool_prepare(const char *folder, const struct account *account);

/* The same without making anything: whether spool_prepare would succeed, as far as that can be seen. */
int spool_probe(const char *folder, const struct account *account);
