/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: flags, whole reads and writes, passing over Unix sockets. Errors are negative errno.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>
#include <sys/types.h>

enum { FD_PASS_MAX = 192 }; /* descriptors in one message at most */

/* Closes *fd unless it is -1 and sets it to -1. */
void fd_close(int *fd);

int fd_set_nonblocking(int fd);
int fd_set_cloexec(int fd, bool on);

/* Writes all bytes (blocking descriptor; retries EINTR and short writes). 0 or negative errno. */
int fd_write_all(int fd, struct span bytes);

/* Reads until end of file or room is full; returns the bytes read or negative errno. */
ssize_t fd_read_all(int fd, char *out, size_t room);

/* Reads a whole small file (at most limit bytes) into memory that the caller frees, NUL behind it;
 * -EFBIG when it is larger. */
int fd_read_file(const char *path, size_t limit, char **ret_text, size_t *ret_size);

/* Sends one message with count descriptors over a Unix socket (SOCK_SEQPACKET or SOCK_STREAM).
 * 0 or negative errno (-EAGAIN when it would block, -EMSGSIZE when it is too large or a stream took
 * only a part of it: such a stream is of no use any more). */
int fd_send(int socket, struct span message, const int *fds, size_t count);

/* Receives one message and its descriptors (opened close-on-exec). Returns its length, 0 at end of
 * file, or negative errno. *ret_count is at most room_fds; surplus descriptors are closed. A message
 * that was cut because it did not fit gives -EMSGSIZE. */
ssize_t fd_receive(int socket, char *out, size_t room, int *ret_fds, size_t room_fds,
                   size_t *ret_count);

/* An unlinked temporary file in folder (O_TMPFILE where it works), or negative errno. */
int fd_temporary(const char *folder);

/* Closes every descriptor from 3 up that is not in keep (count of them, any order). For a child
 * between fork and exec: no allocation. */
void fd_close_others(const int *keep, size_t count);
