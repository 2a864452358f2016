/* SPDX-License-Identifier: MIT */
/*
 * The server's side of the control socket. A caller sends one line, `word [argument]`; the answer is a
 * line `ok` or `failed`, then text up to end of file. Callers are root, the server's own user or one more
 * that the configuration names. Master's loop.
 */
#pragma once

#include "base/saved.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct control;
struct control_call;

enum control_command {
#define ROW(constant, word, text) CONTROL_##constant,
#include "control/command.def"
#undef ROW
    CONTROL_COMMANDS
};

struct control_options {
    struct loop *loop;
    int listener; /* listening Unix socket, non-blocking; not owned */
    uid_t also;   /* a user that may call besides root and ours; (uid_t)-1 = nobody */
    /* A command came; it must be answered by control_answer, now or later. */
    void (*on_command)(void *context, enum control_command command, struct span argument,
                       struct control_call *call);
    void *context;
};

/* Serves the socket; NULL when the system refuses. */
struct control *control_new(const struct control_options *options);

/* Ends it; all calls are closed, but those that were answered to be held. Takes NULL. */
void control_free(struct control *control);

/* The user who calls. */
uid_t control_caller(const struct control_call *call);

/* Callers who are there and wait for an answer that nobody has given yet. */
unsigned control_waiting(const struct control *control);

/* Whether answers are still on their way to callers who take their time. */
bool control_is_busy(const struct control *control);

/* Writes down the calls for the program that takes this one's place, and takes over those that another
 * one left: they go on as they were; on_asked gets each that waits for an answer. */
void control_save(const struct control *control, const struct saved_out *out);
void control_adopt(struct control *control, const struct saved_in *in,
                   void (*on_asked)(void *context, struct control_call *call));

/* Answers a call, which must not be used any more: it is freed when the text has been taken or the
 * caller is gone. hold: the connection stays open until the process ends, which tells the caller that
 * it has. */
void control_answer(struct control_call *call, bool ok, struct span text, bool hold);
