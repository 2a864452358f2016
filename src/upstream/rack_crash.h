/* SPDX-License-Identifier: MIT */
/*
 * The crash rules (docs/crash.md): what becomes of a request whose worker died. Pure.
 */
#pragma once

#include "board/slot.h"

#include <stdbool.h>

enum { RACK_KILLS_MAX = 2 }; /* a request that was held by so many dying workers ends there */

enum rack_fate {
    RACK_AGAIN,  /* back into the queue with its old ticket */
    RACK_REFUSE, /* 502 */
    RACK_CUT,    /* its head was sent: the client must see that the answer is incomplete */
};

struct rack_death {
    enum slot_state state; /* how far the worker had come */
    bool head_sent;        /* the answer's head was given to the connection */
    bool is_safe;          /* GET, HEAD or OPTIONS */
    unsigned kills;        /* workers that died with it, this one included */
    unsigned reruns;       /* times it was run again after the application had seen it */
};

/* Decides; a request is only run again when nothing can have been done twice in the client's eyes. */
enum rack_fate rack_decide_fate(const struct rack_death *death);
