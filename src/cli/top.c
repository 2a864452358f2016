/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli/screen.h"
#include "cli/verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { PERIOD_MS = 1000, CTRL_C = 3, LOOKS_MAX = 1000000 };

/* A signal that ends the program has come: the terminal is put right first. One for the process, as
 * signals are. */
static volatile sig_atomic_t ended;

/* The terminal while it is ours. */
struct terminal {
    bool has_keys;
    struct termios former;
};

/* A look and the one before. */
struct top {
    const struct cli_call *call;
    struct reading readings[2];
    uint64_t taken_ms[2];
    unsigned newest;
    bool has_before;
};

static void on_signal(int signal)
{
    ended = signal;
}

static void catch_signals(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < ARRAY_LEN(caught); i++)
        (void)sigaction(caught[i], &action, NULL);
    /* A terminal that went away shows itself at the next write. */
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
}

static void write_text(const char *text)
{
    (void)fd_write_all(STDOUT_FILENO, span_of(text));
}

/* The other screen, without a cursor; keys come one by one and are not shown. */
static void open_terminal(struct terminal *terminal)
{
    struct termios mode;

    terminal->has_keys = tcgetattr(STDIN_FILENO, &terminal->former) == 0;
    if (terminal->has_keys) {
        mode = terminal->former;
        mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        mode.c_cc[VMIN] = 1;
        mode.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &mode);
    }
    write_text("\x1b[?1049h\x1b[?25l");
}

static void close_terminal(const struct terminal *terminal)
{
    write_text("\x1b[?25h\x1b[?1049l");
    if (terminal->has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal->former);
}

static enum server_outcome take(struct top *top)
{
    struct buf text = {.size = 0};
    unsigned next = top->newest ^ 1;
    enum server_outcome outcome = server_ask(top->call, "status json\n", &text);

    if (outcome == SERVER_OK) {
        reading_done(&top->readings[next]);
        if (!reading_parse(buf_span(&text), &top->readings[next]))
            outcome = SERVER_FAILED;
        top->taken_ms[next] = clock_ms();
        top->has_before = top->taken_ms[top->newest] != 0;
        top->newest = next;
    }
    buf_done(&text);
    return outcome;
}

static void make_look(const struct top *top, struct screen_look *ret_look)
{
    unsigned before = top->newest ^ 1;

    *ret_look = (struct screen_look){.now = top->readings[top->newest].root};
    if (!top->has_before)
        return;
    ret_look->before = top->readings[before].root;
    ret_look->elapsed_ms = top->taken_ms[top->newest] - top->taken_ms[before];
}

/* Every line is drawn over the one that stood there, so that nothing flickers. */
static void draw(const struct top *top)
{
    struct screen_look look;
    struct winsize size = {.ws_row = 0};
    struct buf lines = {.size = 0};
    struct buf out = {.size = 0};
    struct span rest;

    make_look(top, &look);
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    look.columns = size.ws_col ? size.ws_col : 80;
    look.rows = size.ws_row > 1 ? size.ws_row - 1u : 23;
    look.styled = true;
    screen_write(&look, &lines);
    CHECK(buf_append(&out, span_of("\x1b[H")) == 0);
    rest = buf_span(&lines);
    while (rest.size) {
        struct span line = span_split(&rest, '\n');
        CHECK(buf_printf(&out, "%.*s\x1b[K\n", SPAN_ARG(line)) == 0);
    }
    CHECK(buf_append(&out, span_of("\x1b[J")) == 0);
    (void)fd_write_all(STDOUT_FILENO, buf_span(&out));
    buf_done(&lines);
    buf_done(&out);
}

static bool is_end_key(struct terminal *terminal)
{
    char key;
    ssize_t size = read(STDIN_FILENO, &key, 1);

    if (size == 0 || (size == -1 && errno != EINTR))
        terminal->has_keys = false;
    return size == 1 && (key == 'q' || key == 'Q' || key == CTRL_C);
}

/* Waits for the next look; false when it shall end. */
static bool wait_for_next(struct terminal *terminal, uint64_t from_ms)
{
    while (!ended) {
        uint64_t spent_ms = clock_ms() - from_ms;
        struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
        int left_ms = spent_ms < PERIOD_MS ? (int)(PERIOD_MS - spent_ms) : 0;
        int count = poll(&keys, terminal->has_keys ? 1 : 0, left_ms);
        if (count == 0)
            return true;
        if (count > 0 && is_end_key(terminal))
            return false;
    }
    return false;
}

static enum server_outcome show_live(struct top *top)
{
    struct terminal terminal;
    enum server_outcome outcome = SERVER_OK;

    catch_signals();
    open_terminal(&terminal);
    do {
        draw(top);
        if (!wait_for_next(&terminal, top->taken_ms[top->newest]))
            break;
        outcome = take(top);
    } while (outcome == SERVER_OK);
    close_terminal(&terminal);
    return outcome;
}

/* One look behind the other; the first wait is for its rates. */
static enum server_outcome print_looks(struct top *top, uint64_t looks)
{
    struct terminal none = {.has_keys = false};
    enum server_outcome outcome = SERVER_OK;

    for (uint64_t i = 0; i < looks && outcome == SERVER_OK; i++) {
        struct screen_look look;
        struct buf out = {.size = 0};
        int result;
        (void)wait_for_next(&none, top->taken_ms[top->newest]);
        outcome = take(top);
        if (outcome != SERVER_OK)
            break;
        make_look(top, &look);
        if (i)
            CHECK(buf_append_byte(&out, '\n') == 0);
        screen_write(&look, &out);
        result = fd_write_all(STDOUT_FILENO, buf_span(&out));
        buf_done(&out);
        /* Whoever read it has seen enough. */
        if (result != 0)
            break;
    }
    return outcome;
}

int cli_top(const struct cli_call *call)
{
    struct top top = {.call = call};
    uint64_t looks = 1;
    enum server_outcome outcome;

    if (call->times &&
        (!num_decimal(span_of(call->times), &looks) || looks == 0 || looks > LOOKS_MAX)) {
        cli_complain("--times needs a number from 1: %s", call->times);
        return CLI_USAGE;
    }
    outcome = take(&top);
    if (outcome == SERVER_OK)
        outcome =
            !call->times && isatty(STDOUT_FILENO) ? show_live(&top) : print_looks(&top, looks);
    if (outcome == SERVER_NONE || outcome == SERVER_STALE || outcome == SERVER_ENDED)
        server_say_none(outcome);
    else if (outcome == SERVER_FAILED)
        cli_complain("the server's status cannot be read");
    reading_done(&top.readings[0]);
    reading_done(&top.readings[1]);
    return outcome == SERVER_OK ? CLI_OK : CLI_NOT_RUNNING;
}
