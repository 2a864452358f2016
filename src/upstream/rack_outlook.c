/* SPDX-License-Identifier: MIT */
/*
 * The forecast of a rack's queue: gathers from board and memory what rack_forecast.c decides by.
 */
#include "board/queue.h"
#include "upstream/rack_table.h"

enum { STEP_KEPT_US = 10000 }; /* the table of workers is not walked for every request */

void rack_note_service(struct rack_job *job)
{
    uint64_t now_us = loop_now_us(job->rack->loop);
    uint64_t taken_us;

    /* Streams last as long as they like, and say nothing about what comes next. */
    if (job->thread == RACK_NOBODY || job->is_stream)
        return;
    taken_us = rack_taken_us(job);
    forecast_note(&job->rack->recent, now_us > taken_us ? now_us - taken_us : 0);
}

static void count_crew(const struct board *board, struct forecast_crew *crew)
{
    for (uint32_t worker = 0; worker < board->shape.workers; worker++) {
        const struct board_worker *entry = &board->workers[worker];
        uint32_t life = atomic_load_explicit(&entry->life, memory_order_relaxed);

        if (life != BOARD_STARTING && life != BOARD_ALIVE)
            continue;
        forecast_add_worker(crew, atomic_load_explicit(&entry->service_ns, memory_order_relaxed),
                            life == BOARD_ALIVE &&
                                atomic_load_explicit(&entry->ready, memory_order_relaxed));
    }
}

static uint64_t step_ns(struct rack *rack)
{
    const struct board *board = rack->options.board;
    struct forecast_crew crew = {.threads = board->shape.threads};
    uint64_t now_us = loop_now_us(rack->loop);
    int64_t oldest_us;

    if (rack->step_us && now_us - rack->step_us < STEP_KEPT_US)
        return rack->step_ns;
    oldest_us = queue_oldest_us(board, now_us);
    count_crew(board, &crew);
    forecast_add_growth(&crew, rack->options.workers_max, oldest_us > 0 ? (uint64_t)oldest_us : 0);
    rack->step_ns = forecast_step_ns(&crew, forecast_usual_us(&rack->recent));
    rack->step_us = now_us;
    return rack->step_ns;
}

bool rack_is_hopeless(struct rack *rack, unsigned *ret_retry_s)
{
    const struct board *board = rack->options.board;
    uint64_t limit_us = rack->options.queue_timeout_ms * 1000;
    uint64_t wait_us;

    /* No more can wait than there are slots below the mark: mostly that is enough to know. */
    if (!limit_us || forecast_wait_us(step_ns(rack), queue_high(board)) <= limit_us)
        return false;
    wait_us = forecast_wait_us(step_ns(rack), queue_length(board));
    if (wait_us <= limit_us)
        return false;
    *ret_retry_s = forecast_retry_s(wait_us, 1);
    return true;
}

unsigned rack_retry_s(struct rack *rack, unsigned otherwise_s)
{
    return forecast_retry_s(forecast_wait_us(step_ns(rack), queue_length(rack->options.board)),
                            otherwise_s);
}
