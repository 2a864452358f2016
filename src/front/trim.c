/* SPDX-License-Identifier: MIT */
#include "front/trim.h"

#include "base/base.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { CROWD = 1000 }; /* fewer are not worth the work */

static void give_back(struct offload_job *job)
{
    (void)job;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

static void on_done(struct offload_job *job);

static void send_when_due(struct trim *trim)
{
    if (trim->busy || trim->peak < CROWD || trim->open > trim->peak / 2)
        return;
    trim->busy = true;
    trim->peak = trim->open;
    trim->job = (struct offload_job){.post = trim->post, .work = give_back, .on_done = on_done};
    offload_send(trim->offload, &trim->job);
}

/* Those that left meanwhile may have been too late for it, and the last to leave. */
static void on_done(struct offload_job *job)
{
    struct trim *trim = CONTAINER_OF(job, struct trim, job);

    trim->busy = false;
    send_when_due(trim);
}

void trim_note(struct trim *trim, uint32_t open)
{
    trim->open = open;
    if (trim->peak < open)
        trim->peak = open;
    send_when_due(trim);
}
