/* SPDX-License-Identifier: MIT */
/*
 * The reading side of an HTTP/1 connection: heads and bodies of requests, until they are handed to the
 * service. Steps of the table in http/h1_state.
 */
#pragma once

#include "http/h1_state.h"

/* Steps: what an idle connection or one with a part of a head does with bytes; what a body does. */
bool h1_receive_head(struct h1_conn *conn);
bool h1_receive_body(struct h1_conn *conn);

/* Reads on in the body of a request that was refused with its head. */
bool h1_receive_dropped(struct h1_conn *conn);

/* Deadlines: the head did not come in time; a second of the body has passed. */
void h1_receive_late_head(struct h1_conn *conn);
void h1_receive_check_rate(struct h1_conn *conn);
