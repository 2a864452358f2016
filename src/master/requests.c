/* SPDX-License-Identifier: MIT */
#include "master/requests.h"

#include "base/fd.h"
#include "front/request_id.h"
#include "master/fronts.h"
#include "master/request_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000 };

/* One call that waits for the fronts. */
struct master_inquiry {
    struct list link;
    struct master *master;
    struct control_call *call;
    uint64_t number;
    bool json, is_kill;
    pid_t awaited[BOARD_FRONTS];  /* by entry; 0 = nothing more comes from there */
    char *listings[BOARD_FRONTS]; /* owned */
    struct request_table table;
    struct timer timer;
};

static void free_inquiry(struct master_inquiry *inquiry)
{
    timer_stop(&inquiry->timer);
    list_remove(&inquiry->link);
    request_table_done(&inquiry->table);
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        free(inquiry->listings[i]);
    free(inquiry);
}

static int write_answer(const struct master_inquiry *inquiry, struct buf *out)
{
    const struct request_table *table = &inquiry->table;

    if (inquiry->is_kill && table->size == 0 && table->silent_size == 0)
        return buf_append(out, span_of("no request with that id waits or runs\n"));
    if (inquiry->is_kill)
        return request_table_ended(table, out);
    return inquiry->json ? request_table_json(table, out) : request_table_text(table, out);
}

static void finish(struct master_inquiry *inquiry)
{
    struct buf text = {.size = 0};
    bool ok;

    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        if (inquiry->awaited[i])
            inquiry->table.silent[inquiry->table.silent_size++] = (int)inquiry->awaited[i];
    request_table_sort(&inquiry->table);
    ok = write_answer(inquiry, &text) == 0;
    control_answer(inquiry->call, ok && (!inquiry->is_kill || inquiry->table.size > 0),
                   buf_span(&text), false);
    buf_done(&text);
    free_inquiry(inquiry);
}

static void on_due(struct timer *timer)
{
    finish(CONTAINER_OF(timer, struct master_inquiry, timer));
}

static void finish_if_all(struct master_inquiry *inquiry)
{
    for (unsigned i = 0; i < BOARD_FRONTS; i++)
        if (inquiry->awaited[i])
            return;
    finish(inquiry);
}

static void ask(struct master *master, struct control_call *call, struct span id, bool json)
{
    struct master_inquiry *inquiry = must_alloc(1, sizeof *inquiry);
    struct front_message message = {.kind = id.size ? FRONT_REQUEST_KILL : FRONT_REQUESTS_WANTED,
                                    .number = ++master->inquiry};

    *inquiry = (struct master_inquiry){.master = master,
                                       .call = call,
                                       .number = message.number,
                                       .json = json,
                                       .is_kill = id.size > 0};
    if (id.size)
        memcpy(message.text, id.data, id.size);
    list_init(&inquiry->link);
    list_push_back(&master->inquiries, &inquiry->link);
    for (unsigned i = 0; i < BOARD_FRONTS; i++) {
        inquiry->awaited[i] = master->fronts[i].pid;
        fronts_tell(&master->fronts[i], &message, NULL, 0);
    }
    timer_set(master->loop, &inquiry->timer, PATIENCE_MS, on_due);
    finish_if_all(inquiry);
}

void requests_list(struct master *master, bool json, struct control_call *call)
{
    ask(master, call, (struct span){0}, json);
}

void requests_kill(struct master *master, struct span id, struct control_call *call)
{
    if (request_id_is_valid(id))
        ask(master, call, id, false);
    else
        control_answer(call, false, span_of("that is no id of a request\n"), false);
}

/* A memory file of the front's, which may have changed it since: only what was read counts. */
static char *read_listing(const struct master_front *front, int fd, size_t *ret_size)
{
    size_t limit = (size_t)LISTING_MAX * front->edition->loops;
    struct stat status;
    ssize_t size;
    char *text;

    if (fd == -1 || fstat(fd, &status) == -1 || !S_ISREG(status.st_mode) || status.st_size <= 0)
        return NULL;
    if ((uint64_t)status.st_size < limit)
        limit = (size_t)status.st_size;
    text = must_alloc(1, limit);
    size = fd_read_all(fd, text, limit);
    *ret_size = size > 0 ? (size_t)size : 0;
    return text;
}

static struct master_inquiry *find(const struct master *master, uint64_t number)
{
    list_for_each (link, &master->inquiries) {
        struct master_inquiry *inquiry = CONTAINER_OF(link, struct master_inquiry, link);

        if (inquiry->number == number)
            return inquiry;
    }
    return NULL;
}

void requests_take(struct master *master, const struct master_front *front,
                   const struct front_message *message, int fd)
{
    struct master_inquiry *inquiry = find(master, message->number);
    size_t entry = (size_t)(front - master->fronts);
    size_t size = 0;

    if (!inquiry || inquiry->awaited[entry] != front->pid)
        return;
    inquiry->awaited[entry] = 0;
    inquiry->table.left_out += message->value;
    inquiry->listings[entry] = read_listing(front, fd, &size);
    request_table_add(&inquiry->table, span_make(inquiry->listings[entry], size));
    finish_if_all(inquiry);
}

void requests_front_gone(struct master *master, const struct master_front *front)
{
    list_for_each_safe (link, &master->inquiries) {
        struct master_inquiry *inquiry = CONTAINER_OF(link, struct master_inquiry, link);
        pid_t *awaited = &inquiry->awaited[front - master->fronts];

        if (*awaited == 0 || *awaited != front->pid)
            continue;
        *awaited = 0;
        finish_if_all(inquiry);
    }
}

void requests_end(struct master *master)
{
    list_for_each_safe (link, &master->inquiries)
        finish(CONTAINER_OF(link, struct master_inquiry, link));
}
