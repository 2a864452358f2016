/* SPDX-License-Identifier: MIT */
/*
 * What `ps` shows for this process: written over the memory of its arguments and environment.
 */
#pragma once

/* Remembers the memory and moves the environment out of it; once, before any title. The strings of argv
 * and the old environment are lost with the first title. */
void title_init(char **argv, char **environ_list);

/* Sets the title; cut when it does not fit. */
void title_set(const char *title);
