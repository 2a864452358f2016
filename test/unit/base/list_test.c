/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
    char name;
    struct list link;
};

/* The names of all items in order; the ring must be whole both ways. */
static const char *names(struct list *head)
{
    static char text[16];
    size_t size = 0;

    list_for_each (link, head) {
        assert_ptr_equal(link->next->previous, link);
        assert_ptr_equal(link->previous->next, link);
        text[size++] = CONTAINER_OF(link, struct item, link)->name;
    }
    text[size] = '\0';
    return text;
}

static void keeps_the_order_of_pushing(void **state)
{
    struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    struct list head;
    (void)state;

    list_init(&head);
    assert_true(list_is_empty(&head));
    list_push_back(&head, &b.link);
    list_push_back(&head, &c.link);
    list_push_front(&head, &a.link);
    assert_string_equal(names(&head), "abc");
    list_remove(&b.link);
    assert_string_equal(names(&head), "ac");
    list_push_back(&c.link, &b.link);
    assert_string_equal(names(&head), "abc");
}

static void removing_a_link_that_is_alone_is_harmless(void **state)
{
    struct item a = {.name = 'a'};
    (void)state;

    list_init(&a.link);
    list_remove(&a.link);
    assert_true(list_is_empty(&a.link));
}

static void the_current_link_may_be_removed_while_walking(void **state)
{
    struct item items[3] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    struct list head;
    (void)state;

    list_init(&head);
    for (int i = 0; i < 3; i++)
        list_push_back(&head, &items[i].link);
    list_for_each_safe (link, &head) {
        if (CONTAINER_OF(link, struct item, link)->name != 'b')
            list_remove(link);
    }
    assert_string_equal(names(&head), "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_order_of_pushing),
        cmocka_unit_test(removing_a_link_that_is_alone_is_harmless),
        cmocka_unit_test(the_current_link_may_be_removed_while_walking),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
