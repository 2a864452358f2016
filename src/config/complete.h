/* SPDX-License-Identifier: MIT */
/*
 * What the file leaves to be found out: the application's rackup file, names, the pool and the root of
 * each site, a folder of plain files. Looks at the folders, opens nothing. One thread.
 */
#pragma once

#include "config/bind.h"
#include "config/folder.h"

/* Fills what is missing in config->pools and config->sites; faults name what was looked for. */
void complete_edition(struct bind *bind, const struct folder *folder);

/* A pool's name made from its application's folder: its last part that is not "current". */
const char *complete_name(struct arena *arena, const char *app);
