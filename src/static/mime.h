/* SPDX-License-Identifier: MIT */
/*
 * Media types by the extension of a file's name: the list in mime.def first, then the system's
 * /etc/mime.types where there is one. Text types say that they are UTF-8. Any thread.
 */
#pragma once

#include "base/span.h"

/* Reads the system's list; once per process, before requests come. Later calls do nothing. */
void mime_load(void);

/* The content-type of a file of that name; application/octet-stream when nothing else is known. The
 * bytes live as long as the process. */
struct span mime_find(struct span name);
