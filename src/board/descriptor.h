/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that travel beside the board. Each front listens on a SOCK_SEQPACKET Unix socket at
 * RUNTIME.<front>, RUNTIME being header.runtime. A worker *thread* connects on its first need and keeps
 * the connection; it has at most one question under way, and asks only about the slot it holds.
 *
 *   worker                                front
 *   question BODY                   ->    the request's spooled body
 *                                   <-    answer 0 + descriptor, open for reading only, offset free
 *   question FILE + descriptor      ->    a regular file that the answer will name
 *                                   <-    answer 0: kept for (slot, turn), a later FILE replaces it
 *   (then the worker publishes a PAGE_FILE record)
 *   question HIJACK                 ->    the connection itself
 *                                   <-    answer 0 + one end of a stream socket pair
 *   (then the worker publishes a PAGE_TUNNEL record, a head before it or not, and finishes the slot)
 *
 * The front believes nothing: it compares the peer's credentials with the worker table, thread with that
 * worker, slot and turn with its own copy, and takes a descriptor only with FILE. A question it cannot
 * read, or an answer the worker cannot, ends the connection; a connection that ended before the answer
 * came is a failure of the question (-EPIPE for the worker). Descriptors are always close-on-exec.
 */
#pragma once

#include <stdint.h>

enum descriptor_kind { DESCRIPTOR_BODY = 1, DESCRIPTOR_FILE = 2, DESCRIPTOR_HIJACK = 3 };

/* One message from worker to front; exactly these 16 bytes. */
struct descriptor_question {
    uint32_t kind; /* enum descriptor_kind */
    uint32_t slot;
    uint32_t turn;
    uint32_t thread; /* board thread number of the one who asks */
};

/* One message from front to worker; exactly these 4 bytes, with one descriptor when status is 0 and the
 * question was BODY or HIJACK. status is 0 or a positive errno: ESTALE (slot, turn or owner do not match),
 * EACCES (not that worker), EBADF (no or no regular file), ENOENT (no such body), EINVAL, ENOTSUP (this
 * connection cannot be hijacked), EMFILE, ENFILE, ENOMEM. */
struct descriptor_answer {
    int32_t status;
};
