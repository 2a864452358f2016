/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"

#include <errno.h>
#include <ruby/thread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MEASURE_EVERY_US = 10000000,
    MEASURE_AFTER_MS = 100,    /* memory is measured when a worker was idle for so long */
    MEASURE_SOON_US = 1000000, /* sooner when its size has visibly changed, but not more often */
    WORTH_BYTES = 4 << 20,     /* a change of size that is worth measuring, */
    TELL_BYTES = 1 << 20       /* and telling */
};

struct memory_use {
    uint64_t private_kb, pss_kb, rss_kb;
};

/* "Pss:   123 kB" -> 123, when the line has that name. */
static bool read_kb(struct span line, struct span name, uint64_t *ret_kb)
{
    if (!span_starts_with(line, name))
        return false;
    line = span_trim(span_skip(line, name.size));
    return num_decimal(span_first(line, span_find(line, ' ')), ret_kb);
}

static struct memory_use parse_rollup(struct span text)
{
    struct memory_use use = {0};
    uint64_t kb;

    while (text.data) {
        struct span line = span_split(&text, '\n');

        if (read_kb(line, (struct span)SPAN("Rss:"), &kb))
            use.rss_kb = kb;
        else if (read_kb(line, (struct span)SPAN("Pss:"), &kb))
            use.pss_kb = kb;
        else if (read_kb(line, (struct span)SPAN("Private_Clean:"), &kb) ||
                 read_kb(line, (struct span)SPAN("Private_Dirty:"), &kb) ||
                 read_kb(line, (struct span)SPAN("Private_Hugetlb:"), &kb))
            use.private_kb += kb;
    }
    return use;
}

static bool read_memory(struct memory_use *ret_use)
{
    char *text;
    size_t size;

    if (fd_read_file("/proc/self/smaps_rollup", 65536, &text, &size) < 0)
        return false;
    *ret_use = parse_rollup(span_make(text, size));
    free(text);
    return true;
}

/* Resident bytes, by a file that costs much less than the one above; 0 when it cannot be read. */
static uint64_t read_resident(void)
{
    uint64_t pages = 0;
    struct span rest;
    char *text;
    size_t size;

    if (fd_read_file("/proc/self/statm", 256, &text, &size) < 0)
        return 0;
    rest = span_make(text, size);
    (void)span_split(&rest, ' ');
    (void)num_decimal(span_split(&rest, ' '), &pages);
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static bool has_changed(struct place *place)
{
    uint64_t before = atomic_load_explicit(&place->resident, memory_order_relaxed);

    return distance(read_resident(), before) >= WORTH_BYTES;
}

bool measure_tell(struct place *place, const char *verb, uint64_t private_bytes)
{
    char text[160];
    ssize_t sent;
    int size;

    if (place->report == -1)
        return true;
    size = snprintf(text, sizeof(text), "%s\nindex=%u\npid=%d\nprivate_bytes=%llu\n", verb,
                    place->worker, (int)getpid(), (unsigned long long)private_bytes);
    /* A master that does not read must not stop a worker; it hears of it next time. */
    do
        sent = send(place->report, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    return sent == size;
}

static void tell_size(struct place *place, uint64_t private_bytes)
{
    uint64_t told = atomic_load_explicit(&place->told_bytes, memory_order_relaxed);

    if ((told == 0 || distance(private_bytes, told) >= TELL_BYTES) &&
        measure_tell(place, "measured", private_bytes))
        atomic_store_explicit(&place->told_bytes, private_bytes, memory_order_relaxed);
}

static void measure(struct place *place)
{
    struct board_worker *worker = &place->board.workers[place->worker];
    struct memory_use use;

    atomic_store_explicit(&place->is_used, false, memory_order_relaxed);
    atomic_store_explicit(&place->has_looked, false, memory_order_relaxed);
    atomic_store_explicit(&place->measured_us, clock_us(), memory_order_relaxed);
    if (!read_memory(&use))
        return;
    atomic_store_explicit(&place->resident, use.rss_kb * 1024, memory_order_relaxed);
    /* Relaxed: gauges for whoever looks, nothing is decided by their order. */
    atomic_store_explicit(&worker->private_bytes, use.private_kb * 1024, memory_order_relaxed);
    atomic_store_explicit(&worker->pss_bytes, use.pss_kb * 1024, memory_order_relaxed);
    atomic_store_explicit(&worker->rss_bytes, use.rss_kb * 1024, memory_order_relaxed);
    tell_size(place, use.private_kb * 1024);
}

uint64_t measure_private_bytes(void)
{
    struct memory_use use = {0};

    (void)read_memory(&use);
    return use.private_kb * 1024;
}

static void *measure_without_gvl(void *memory)
{
    measure(memory);
    return NULL;
}

void measure_now(struct place *place)
{
    rb_thread_call_without_gvl(measure_without_gvl, place, RUBY_UBF_IO, NULL);
}

static uint64_t since_measured_us(struct place *place)
{
    uint64_t measured = atomic_load_explicit(&place->measured_us, memory_order_relaxed);

    return measured ? clock_us() - measured : UINT64_MAX;
}

/* A first look after a moment is for what has visibly changed, all else can wait for the second. */
int measure_timeout_ms(struct place *place)
{
    bool has_looked = atomic_load_explicit(&place->has_looked, memory_order_relaxed);
    uint64_t pause_us = has_looked ? MEASURE_EVERY_US : MEASURE_SOON_US;
    uint64_t since_us;

    if (!atomic_load_explicit(&place->is_used, memory_order_relaxed) ||
        atomic_load_explicit(&place->board.workers[place->worker].busy, memory_order_relaxed) > 0)
        return -1;
    since_us = since_measured_us(place);
    if (since_us >= pause_us)
        return MEASURE_AFTER_MS;
    return (int)((pause_us - since_us) / 1000) + MEASURE_AFTER_MS;
}

static void *look_at_memory(void *memory)
{
    struct place *place = memory;

    if (since_measured_us(place) >= MEASURE_EVERY_US || has_changed(place))
        measure(place);
    else
        atomic_store_explicit(&place->has_looked, true, memory_order_relaxed);
    return NULL;
}

void measure_if_idle(struct place *place)
{
    if (measure_timeout_ms(place) == MEASURE_AFTER_MS)
        rb_thread_call_without_gvl(look_at_memory, place, RUBY_UBF_IO, NULL);
}

void measure_between(struct place *place)
{
    if (place->report != -1 && since_measured_us(place) >= 2 * (uint64_t)MEASURE_EVERY_US)
        rb_thread_call_without_gvl(measure_without_gvl, place, RUBY_UBF_IO, NULL);
}
