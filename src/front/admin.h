/* SPDX-License-Identifier: MIT */
/*
 * The admin address: /live, /ready, /status.json and /metrics. It belongs to loop 0; the status comes from
 * master, who is asked once for all that wait.
 */
#pragma once

#include "front/process.h"

extern const struct service admin_service;

/* On loop 0. */
struct admin *admin_new(struct front_loop *loop);
void admin_free(struct admin *admin);

/* Master's answer: a memory file with the status (owned from now on), or -1. admin may be NULL. */
void admin_take_status(struct admin *admin, uint64_t question, int fd);

/* Appends all metrics as OpenMetrics text. 0 or -ENOMEM. */
int admin_metrics(struct buf *out, const struct front *front);
