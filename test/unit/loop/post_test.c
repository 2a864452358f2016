/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop/post.c"

enum { SENDERS = 2, ITEMS = 2000 };

/* An item that notes the order in which it came. */
struct noted {
    struct post_item item;
    int sender, number;
};

static struct loop *loop;
static int arrived[SENDERS], out_of_order, total, wanted;

static void note(struct post_item *item)
{
    struct noted *noted = CONTAINER_OF(item, struct noted, item);

    if (noted->number != arrived[noted->sender]++)
        out_of_order++;
    free(noted);
    if (++total == wanted)
        loop_stop(loop);
}

static void begin(int wants)
{
    loop = loop_new();
    arrived[0] = arrived[1] = out_of_order = total = 0;
    wanted = wants;
}

static void send_one(struct post *post, int sender, int number)
{
    struct noted *noted = must_alloc(1, sizeof(*noted));

    *noted = (struct noted){.item.run = note, .sender = sender, .number = number};
    post_send(post, &noted->item);
}

struct sender {
    pthread_t thread;
    struct post *post;
    int number;
};

static void *send_all(void *object)
{
    struct sender *sender = object;

    for (int i = 0; i < ITEMS; i++)
        send_one(sender->post, sender->number, i);
    return NULL;
}

static void items_of_two_threads_run_on_the_loop_in_the_order_of_each(void **state)
{
    struct sender senders[SENDERS];
    struct post *post;
    (void)state;

    begin(SENDERS * ITEMS);
    post = post_new(loop);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.post = post, .number = i};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    loop_run(loop);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    assert_int_equal(total, SENDERS * ITEMS);
    assert_int_equal(out_of_order, 0);
    post_free(post);
    loop_free(loop);
}

static void *send_last(void *object)
{
    send_one(object, 0, 0);
    return NULL;
}

static void a_box_may_be_closed_as_soon_as_its_last_item_has_run(void **state)
{
    (void)state;

    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        struct post *post;

        begin(1);
        post = post_new(loop);
        assert_int_equal(pthread_create(&thread, NULL, send_last, post), 0);
        loop_run(loop);
        post_free(post);
        loop_free(loop);
        pthread_join(thread, NULL);
    }
}

static void a_full_box_rings_once_and_an_empty_one_lets_the_loop_sleep(void **state)
{
    struct post *post;
    (void)state;

    begin(-1);
    post = post_new(loop);
    for (int i = 0; i < 3; i++)
        send_one(post, 0, i);
    assert_int_equal(loop_step(loop, -1), 1);
    assert_int_equal(total, 3);
    assert_int_equal(loop_step(loop, 0), 0);
    post_free(post);
    loop_free(loop);
}

static void items_not_run_are_run_when_the_box_is_closed(void **state)
{
    struct post *post;
    (void)state;

    begin(-1);
    post = post_new(loop);
    send_one(post, 0, 0);
    send_one(post, 0, 1);
    post_free(post);
    assert_int_equal(total, 2);
    assert_int_equal(out_of_order, 0);
    post_free(NULL);
    loop_free(loop);
}

/* An item that sends itself again. */
struct returning {
    struct post_item item;
    struct post *post;
    int runs;
};

static void return_once(struct post_item *item)
{
    struct returning *returning = CONTAINER_OF(item, struct returning, item);

    if (++returning->runs < 2)
        post_send(returning->post, item);
}

static void an_item_may_be_sent_again_from_its_run_and_comes_with_the_next_batch(void **state)
{
    struct returning returning = {.item.run = return_once};
    (void)state;

    begin(-1);
    returning.post = post_new(loop);
    post_send(returning.post, &returning.item);
    (void)loop_step(loop, -1);
    assert_int_equal(returning.runs, 1);
    (void)loop_step(loop, -1);
    assert_int_equal(returning.runs, 2);
    post_free(returning.post);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_two_threads_run_on_the_loop_in_the_order_of_each),
        cmocka_unit_test(a_box_may_be_closed_as_soon_as_its_last_item_has_run),
        cmocka_unit_test(a_full_box_rings_once_and_an_empty_one_lets_the_loop_sleep),
        cmocka_unit_test(items_not_run_are_run_when_the_box_is_closed),
        cmocka_unit_test(an_item_may_be_sent_again_from_its_run_and_comes_with_the_next_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
