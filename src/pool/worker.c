/* SPDX-License-Identifier: MIT */
#include "pool/worker.h"

/* Next state plus one, so that 0 means "out of turn". */
static const unsigned char steps[WORKER_STATES][WORKER_EVENTS] = {
#define ROW(state, event, next) [WORKER_##state][WORKER_##event] = WORKER_##next + 1,
#include "pool/worker.def"
#undef ROW
};

bool worker_step(struct worker *worker, enum worker_event event)
{
    unsigned next = steps[worker->state][event];

    if (next == 0)
        return false;
    worker->state = (enum worker_state)(next - 1);
    return true;
}

const char *worker_word(const struct worker *worker, bool busy)
{
    switch (worker->state) {
    case WORKER_SERVING:
        return busy ? "busy" : "idle";
    case WORKER_RETIRING:
    case WORKER_KILLED:
        return "retiring";
    default:
        return "starting";
    }
}

bool worker_is_there(const struct worker *worker)
{
    return worker->state != WORKER_EMPTY && worker->state != WORKER_DEAD;
}
