/* SPDX-License-Identifier: MIT */
/*
 * Loading the configuration anew, while the server runs. The steps: read and verify; open new sockets and
 * files; start what has no instance of the same shape yet, and wait for it; fork a front with the new
 * edition, and wait until it accepts; make the edition the current one, let former fronts retire. Whatever
 * fails before the last step is undone, and nothing has changed.
 *
 * Loadings follow each other: one that is asked for while another is under way begins when that is over, for
 * all who asked meanwhile. Nobody is told of a loading that began before he asked.
 */
#pragma once

#include "master/edition.h"

/* Asks for one; the call (NULL = nobody waits) is answered with its outcome. */
void reload_ask(struct master *master, struct control_call *call);

/* The server runs now: begins what was asked for while it started. */
void reload_begin_asked(struct master *master);

/* What a loading waits for: the first start of a pool has come to something; a front accepts, has let go of
 * its sockets, or ended (then with the edition that it ran on). */
void reload_pool_settled(struct master_pool *pool);
void reload_front_accepts(struct master_front *front);
void reload_front_released(struct master *master);
void reload_front_ended(struct master *master, const struct edition *edition);

/* Whether one is under way. */
bool reload_is_busy(const struct master *master);

/* The server is being stopped: gives up what is under way and answers everybody. */
void reload_abandon(struct master *master);
