/* SPDX-License-Identifier: MIT */
#include "upstream/rack_crash.h"

enum rack_fate rack_decide_fate(const struct rack_death *death)
{
    if (death->head_sent)
        return RACK_CUT;
    if (death->kills >= RACK_KILLS_MAX)
        return RACK_REFUSE;
    /* The application never saw it, whatever its method. */
    if (death->state == SLOT_TAKEN)
        return RACK_AGAIN;
    return death->is_safe && death->reruns == 0 ? RACK_AGAIN : RACK_REFUSE;
}
