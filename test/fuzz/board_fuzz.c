/* SPDX-License-Identifier: MIT */
/* What a hostile worker may write: the input is laid over a board in pieces of (4 bytes for the place, 8 to
 * write there), one in two over words and tables only, then front and master do all they do with it. */
#include "base/base.h"
#include "base/fd.h"
#include "board/audit.h"
#include "board/bell.h"
static void scribble(const struct board *board, const uint8_t *data, size_t size)
{
    char *start = (char *)board->header + offsetof(struct board_header, ticket);
    for (; size >= 12; data += 12, size -= 12) {
        size_t room = (size_t)((data[3] % 2 ? board->pages : board->slots + 19 * 4096) - start);
        memcpy(start + (data[0] | data[1] << 8 | data[2] << 16) % (room - 8), data + 4, 8);
    }
}
static void judge(void *context, uint32_t slot, struct slot_word word)
{
    (void)((slot % 2 && queue_push_again(context, slot, word, 0)) || slot_free(context, slot));
}
static void use_thread(const struct board *board, uint32_t thread)
{
    struct page_word list[BOARD_PAGES];
    struct page_record record;
    bool broken = page_is_broken(board, thread);
    for (unsigned i = page_list(board, thread, list); i-- > 0;) {
        int page = page_find(board, thread, list[i].slot, list[i].turn, &list[i]);
        struct span bytes = span_make(page_bytes(board, thread, (unsigned)page), list[i].bytes),
                    part;
        while (page_next(&bytes, &record, &part, &broken))
            CHECK(part.data + part.size <= board->slots);
        page_release(board, thread, (unsigned)page, list[i]);
    }
    CHECK(bell_take_notices(board, thread % 2, 0, thread / 2) < 1 << 6);
}
static void use_slot(struct board *board, uint32_t slot)
{
    struct slot_span part = slot_request(board, slot)->path;
    CHECK(slot_text(board, slot, part).size <= board->shape.slot_bytes);
    (void)(queue_cancel(board, slot, slot_look(board, slot).turn) && slot_free(board, slot));
    slot_set_note(board, slot, SLOT_LEFT);
    (void)(slot_append(board, slot, span_of("GET"), &part) && queue_push(board, slot, 1));
    CHECK(queue_length(board) <= 19 && queue_high(board) <= 19 && queue_oldest_us(board, 9) < 10);
    (void)bell_wake_worker(board, 1000000, slot % 2);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct board board;
    int fd = board_make(&(struct board_shape){19, 3, 2, 1, 4096}, "/run/x", &board);
    CHECK(fd >= 0);
    board.fronts[1].life = board.workers[0].life = BOARD_DEAD;
    scribble(&board, data, size);
    for (uint32_t i = 0; i < 6; i++)
        use_thread(&board, i);
    audit_worker(&board, 0, 0, 0, judge, &board);
    (void)(audit_worker_free(&board, 0) && board_audit(&board) && audit_front(&board, 1));
    for (uint32_t slot = 0; slot < 19; slot++)
        use_slot(&board, slot);
    board_unmap(&board);
    return fd_close(&fd), 0;
}
