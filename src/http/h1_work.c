/* SPDX-License-Identifier: MIT */
#include "http/h1_work.h"

#include <stdlib.h>

enum {
    INPUT_KEEP = 16 * 1024, /* read buffer that goes back to the spares */
    SPARES = 64
};

/* Per thread: a connection's loop never changes its thread, so no lock is needed. */
static _Thread_local struct h1_work *spares;
static _Thread_local unsigned spare_count;

struct h1_work *h1_work_take(struct h1_conn *conn, const struct h1_options *options)
{
    struct h1_work *work = spares;

    if (work) {
        spares = work->next;
        spare_count--;
    } else {
        work = calloc(1, sizeof(*work));
        if (!work)
            return NULL;
    }
    work->conn = conn;
    work->limits = (struct h1_limits){.target_bytes = options->target_bytes,
                                      .field_bytes = options->field_bytes,
                                      .header_bytes = options->header_bytes,
                                      .field_count = options->field_count};
    work->spool = (struct h1_spool){.memory_bytes = options->body_memory_bytes,
                                    .folder = options->spool_folder,
                                    .used = options->spool_used,
                                    .limit = options->spool_limit};
    return work;
}

static void free_work(struct h1_work *work)
{
    exchange_done(&work->exchange);
    h1_writer_done(&work->writer);
    buf_done(&work->input);
    free(work);
}

void h1_work_clear(struct h1_work *work)
{
    if (!work->begun)
        return;
    h1_body_done(&work->body, &work->spool);
    exchange_reset(&work->exchange);
    work->begun = work->shown = work->drops = work->unread = false;
}

void h1_work_give(struct h1_work *work)
{
    if (!work)
        return;
    h1_work_clear(work);
    buf_clear(&work->input);
    buf_shrink(&work->input, INPUT_KEEP);
    if (spare_count == SPARES) {
        free_work(work);
        return;
    }
    work->conn = NULL;
    work->next = spares;
    spares = work;
    spare_count++;
}

void h1_work_free_spares(void)
{
    while (spares) {
        struct h1_work *work = spares;

        spares = work->next;
        free_work(work);
    }
    spare_count = 0;
}
