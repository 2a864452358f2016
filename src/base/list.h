/* SPDX-License-Identifier: MIT */
/*
 * Intrusive doubly linked list with a head that is a link itself. Never allocates; one thread.
 *
 * Invariants: an initialised link is in exactly one ring, alone when it is in no list; removing a
 * link that is alone is harmless.
 */
#pragma once

#include "base/base.h"

#include <stdbool.h>

struct list {
    struct list *next;
    struct list *previous;
};

/* Makes an empty head, or a link that is in no list. */
static inline void list_init(struct list *list)
{
    list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

/* Puts a link that is alone in front of position: list_push_back(head, link) appends. */
static inline void list_push_back(struct list *position, struct list *link)
{
    link->previous = position->previous;
    link->next = position;
    position->previous->next = link;
    position->previous = link;
}

/* Puts a link that is alone first. */
static inline void list_push_front(struct list *head, struct list *link)
{
    list_push_back(head->next, link);
}

/* Takes the link out; it is alone afterwards. */
static inline void list_remove(struct list *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

/* Walks the links of a list; list_for_each_safe allows removing the current one. */
#define list_for_each(link, head) \
    for (struct list *link = (head)->next; link != (head); link = link->next)
#define list_for_each_safe(link, head)                                                \
    for (struct list *link = (head)->next, *link##_next = link->next; link != (head); \
         link = link##_next, link##_next = link->next)
