/* SPDX-License-Identifier: MIT */
#include "pool/reap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char *const words[] = {
#define ROW(constant, word) [EXIT_##constant] = word,
#include "pool/exit.def"
#undef ROW
};

const char *exit_word(enum exit_reason reason)
{
    return words[reason];
}

/* Signals that a program brings upon itself. */
static bool is_own_fault(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGILL ||
           signal == SIGFPE || signal == SIGSYS || signal == SIGTRAP;
}

enum exit_reason exit_reason_of(enum exit_reason why, int wait_status)
{
    if (why != EXIT_NONE)
        return why;
    if (WIFSIGNALED(wait_status))
        return is_own_fault(WTERMSIG(wait_status)) ? EXIT_CRASH : EXIT_KILLED;
    /* A worker leaves with 0 only when it retires, and nobody here asked it to: a TERM from outside. */
    return WEXITSTATUS(wait_status) == 0 ? EXIT_KILLED : EXIT_CRASH;
}

const char *exit_describe(int wait_status, char *out, size_t room)
{
    if (WIFSIGNALED(wait_status))
        (void)snprintf(out, room, "ended by signal %d (%s)", WTERMSIG(wait_status),
                       strsignal(WTERMSIG(wait_status)));
    else
        (void)snprintf(out, room, "exited with status %d", WEXITSTATUS(wait_status));
    return out;
}

static void pause_until(struct backoff *backoff, uint64_t until_ms)
{
    if (until_ms > backoff->until_ms)
        backoff->until_ms = until_ms;
}

/* 1, 2, 4, 8, 16, 30 s for the first, second, ... trouble in a row. */
static uint64_t pause_ms(uint32_t count)
{
    uint64_t pause = count > 5 ? BACKOFF_MAX_MS : UINT64_C(1000) << (count - 1);

    return pause < BACKOFF_MAX_MS ? pause : BACKOFF_MAX_MS;
}

void backoff_fail(struct backoff *backoff, uint64_t now_ms, uint32_t noise)
{
    uint64_t pause = pause_ms(++backoff->failures);

    pause_until(backoff, now_ms + pause + noise % (pause / 8));
}

void backoff_die(struct backoff *backoff, uint64_t now_ms, uint64_t served_ms, uint32_t free_deaths)
{
    for (; backoff->deaths && now_ms - backoff->deaths_ms >= BACKOFF_FORGIVE_MS;
         backoff->deaths_ms += BACKOFF_FORGIVE_MS)
        backoff->deaths /= 2;
    if (served_ms >= BACKOFF_YOUNG_MS)
        return;
    if (backoff->deaths++ == 0)
        backoff->deaths_ms = now_ms;
    if (backoff->deaths > free_deaths)
        pause_until(backoff, now_ms + pause_ms(backoff->deaths - free_deaths));
}

void backoff_succeed(struct backoff *backoff)
{
    backoff->failures = 0;
}

uint64_t backoff_wait_ms(const struct backoff *backoff, uint64_t now_ms)
{
    return backoff->until_ms > now_ms ? backoff->until_ms - now_ms : 0;
}
