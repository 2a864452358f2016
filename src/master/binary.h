/* SPDX-License-Identifier: MIT */
/* Where the program that runs now is, by the name that its user knows. */
#pragma once

/* The path of this program as it was called: argv0 itself, seen from cwd, or found through PATH (may be
 * NULL), symlinks kept, so that a link that leads to another release later is followed anew. When none of
 * these is this program (a gem's script stands before it), the path that the system knows. Absolute; the
 * caller frees it. */
char *binary_find(const char *argv0, const char *cwd, const char *path);
