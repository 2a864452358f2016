/* SPDX-License-Identifier: MIT */
/*
 * The answering side of an HTTP/1 connection: refusals, output, the end of an exchange and of the
 * connection. Steps of the table in http/h1_state.
 */
#pragma once

#include "http/h1_state.h"

/* Lets the service answer the request with a page for the refusal; one without a status closes the
 * connection. _unread: the request's end is not known or not read, so nothing behind it can be
 * understood. Both return what a step does. */
bool h1_answer_refuse(struct h1_conn *conn, enum refusal refusal);
bool h1_answer_refuse_unread(struct h1_conn *conn, enum refusal refusal);

/* Steps: sends what is there; reads and drops what a client still sends. */
bool h1_answer_step(struct h1_conn *conn);
bool h1_answer_linger(struct h1_conn *conn);

/* Ends our direction and the request; what the client still sends is dropped for a while. */
void h1_answer_start_linger(struct h1_conn *conn);

/* Deadline: a second of waiting for the client has passed. */
void h1_answer_check_rate(struct h1_conn *conn);
