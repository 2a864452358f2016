/* SPDX-License-Identifier: MIT */
/*
 * Master and front in one small program, for tests of the Ruby side without the server: makes a board,
 * starts boot.rb by the protocol of src/pool/README.md, gives it the requests of standard input one by
 * one and prints what comes back.
 *
 *   fake_front RUBY BOOT.RB FOLDER ROLE THREADS PRELOAD ENVIRONMENT [COUNT DEPTH]
 *   LEAT_BINARY=fake_front rackup -s leat
 *
 * Standard input, each request:  METHOD PATH?QUERY \n name: value \n ... \n \n
 *   pseudo fields: @body TEXT (\n is a newline) | @file BYTES | @flags N | @stop | @kill | @left
 * Standard output: `+` and a report's text; or the records of an answer, one a line, DATA escaped.
 * COUNT DEPTH: instead of reading, runs COUNT requests with DEPTH of them queued and says the time.
 */
#include "base/base.h"
#include "base/clock.h"
#include "base/fd.h"
#include "board/audit.h"
#include "board/bell.h"
#include "board/descriptor.h"
#include "board/page.h"
#include "board/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 64, WORKERS = 4, FOLDER = 64, TIMEOUT_MS = 20000 };

static struct board board;
static int board_fd, control, report, listener, link_fd = -1, body_fd = -1, file_fd = -1;
static int death[2], threads;
static pid_t mold, worker;
static char folder[FOLDER];

static _Noreturn void die(const char *what)
{
    printf("!%s: %s\n", what, strerror(errno));
    exit(3);
}

static void make_listener(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/fd.0", folder);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) == -1 ||
        listen(listener, 8) == -1)
        die("listen");
}

static void make_board(void)
{
    struct board_shape shape = {SLOTS, WORKERS, (uint32_t)threads, 1,
                                board_slot_bytes(16384, 65536, 128)};
    char runtime[FOLDER + 8];

    (void)snprintf(runtime, sizeof(runtime), "%s/fd", folder);
    board_fd = board_make(&shape, runtime, &board);
    if (board_fd < 0)
        die("board");
    for (int i = 0; i < BOARD_FRONTS; i++)
        board.bells[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_store(&board.fronts[0].pid, (uint32_t)getpid());
    atomic_store(&board.fronts[0].life, BOARD_ALIVE);
}

/* Starts the Ruby process and returns the end of its control socket. */
static int spawn(char **argv)
{
    int pair[2];
    char number[16];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
        die("socketpair");
    mold = fork();
    if (mold == 0) {
        (void)snprintf(number, sizeof(number), "%d", pair[1]);
        (void)fd_set_cloexec(pair[1], false);
        (void)setenv("LEAT_CONTROL", number, 1);
        (void)dup2(open("/dev/null", 0), 0);
        (void)dup2(2, 1);
        if (chdir(argv[3]) == 0)
            (void)execlp(argv[1], argv[1], argv[2], (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    return pair[0];
}

/* The Ruby process that rackup or rails server forked before it became this program. */
static int adopt(void)
{
    mold = (pid_t)strtoul(getenv("LEAT_MOLD_PID"), NULL, 10);
    return (int)strtoul(getenv("LEAT_CONTROL_FD"), NULL, 10);
}

static void greet(char **argv)
{
    int reports[2], fds[3 + BOARD_FRONTS];
    char hello[2048];

    if (pipe2(death, O_CLOEXEC) == -1 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reports) == -1)
        die("sockets");
    report = reports[0];
    fds[0] = reports[1], fds[1] = death[0], fds[2] = board_fd;
    memcpy(fds + 3, board.bells, BOARD_FRONTS * sizeof(int));
    (void)snprintf(hello, sizeof(hello),
                   "hello\nrole=%s\npool=test\ngeneration=1\napp=%s\nrackup=\nenvironment=%s\n"
                   "threads=%d\nmaster=%d\nloops=1\nverbose=0\npreload=%s\nindex=0\n",
                   argv[4], argv[3], argv[7], threads, getpid(), argv[6]);
    if (fd_send(control, span_of(hello), fds, ARRAY_LEN(fds)) < 0)
        die("hello");
    (void)close(reports[1]), (void)close(death[0]);
}

static void admit(pid_t pid)
{
    worker = pid;
    atomic_store(&board.workers[0].life, BOARD_STARTING);
    atomic_store(&board.workers[0].pid, (uint32_t)pid);
}

/* Prints a report; returns its verb's first letters as a number. */
static bool read_report(char *ret_text, size_t room)
{
    struct pollfd wait = {.fd = report, .events = POLLIN};
    ssize_t size;
    size_t count;

    if (poll(&wait, 1, TIMEOUT_MS) <= 0)
        die("no report");
    size = fd_receive(report, ret_text, room - 1, NULL, 0, &count);
    if (size <= 0)
        return false;
    ret_text[size] = '\0';
    for (char *at = ret_text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    printf("+%s\n", ret_text);
    return true;
}

static void boot(char **argv)
{
    static char text[65536];
    bool is_mold = strcmp(argv[4], "mold") == 0;

    if (!is_mold)
        admit(mold);
    while (read_report(text, sizeof(text))) {
        const char *pid = strstr(text, "pid=");

        if (!strncmp(text, "failed", 6) || !strncmp(text, "unforked", 8))
            exit(1);
        if (!strncmp(text, "loaded", 6) &&
            fd_send(control, (struct span)SPAN("fork\nindex=0\n"), NULL, 0) < 0)
            die("fork");
        if (!strncmp(text, "forked", 6) && pid)
            admit((pid_t)strtoul(pid + 4, NULL, 10));
        if (!strncmp(text, "ready", 5)) {
            atomic_store(&board.workers[0].life, BOARD_ALIVE);
            return;
        }
    }
    die("reports ended");
}

/* ---- one request */

struct field {
    char *name, *value;
};

struct request {
    char line[4096];
    char memory[65536];
    struct field fields[128];
    uint32_t field_count, flags;
    char *body;
    size_t file;
    bool is_left;
};

static struct slot_span append(uint32_t slot, const char *text, size_t size)
{
    struct slot_span part = {0, 0};

    if (!slot_append(&board, slot, span_make(text, size), &part))
        die("slot full");
    return part;
}

static struct slot_span put(uint32_t slot, const char *text)
{
    return append(slot, text, strlen(text));
}

static void make_file(size_t size)
{
    char block[4096];

    fd_close(&body_fd);
    body_fd = fd_temporary("/tmp");
    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = (char)(i % 64 == 63 ? '\n' : 'a' + (int)(i % 26));
    for (size_t done = 0; done < size; done += sizeof(block))
        (void)fd_write_all(
            body_fd, span_make(block, size - done < sizeof(block) ? size - done : sizeof(block)));
}

static uint32_t queue_request(struct request *request, uint32_t *ret_turn)
{
    int64_t slot = slot_claim(&board, 0, ret_turn);
    struct slot_request *head;
    struct slot_field *table;
    char *target = strchr(request->line, ' ') + 1, *query = strchr(target, '?');

    if (slot < 0)
        die("no slot");
    slot_begin(&board, (uint32_t)slot, 0, 0);
    head = slot_request(&board, (uint32_t)slot);
    table = slot_fields(&board, (uint32_t)slot, request->field_count);
    for (uint32_t i = 0; i < request->field_count; i++) {
        table[i].name = put((uint32_t)slot, request->fields[i].name);
        table[i].value = put((uint32_t)slot, request->fields[i].value);
    }
    head->wall_ms = clock_wall_ms();
    head->flags = request->flags | (strncmp(request->line, "HEAD ", 5) ? 0 : SLOT_FLAG_HEAD);
    head->method = append((uint32_t)slot, request->line, (size_t)(target - 1 - request->line));
    head->target = put((uint32_t)slot, target);
    head->path = append((uint32_t)slot, target, query ? (size_t)(query - target) : strlen(target));
    head->query = put((uint32_t)slot, query ? query + 1 : "");
    head->protocol =
        put((uint32_t)slot, request->flags & SLOT_FLAG_HTTP10 ? "HTTP/1.0" : "HTTP/1.1");
    head->server_name = put((uint32_t)slot, "example.com");
    head->server_port = put((uint32_t)slot, "8080");
    head->remote_address = put((uint32_t)slot, "192.0.2.7");
    head->request_id = put((uint32_t)slot, "req-1");
    if (request->body) {
        head->body_kind = SLOT_BODY_INLINE;
        head->body_bytes = strlen(request->body);
        head->body_offset = put((uint32_t)slot, request->body).offset;
    } else if (request->file) {
        make_file(request->file);
        head->body_kind = SLOT_BODY_FILE;
        head->body_bytes = request->file;
    }
    if (request->is_left)
        slot_set_note(&board, (uint32_t)slot, SLOT_LEFT);
    queue_push(&board, (uint32_t)slot, clock_us());
    (void)bell_wake_worker(&board, clock_us(), false);
    return (uint32_t)slot;
}

static void print_bytes(struct span bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];

        if (byte == '\n')
            (void)fputs("\\n", stdout);
        else if (byte == '\\' || byte < 32 || byte > 126)
            printf("\\x%02x", byte);
        else
            (void)putchar(byte);
    }
    (void)putchar('\n');
}

static void print_head(struct span bytes, const char *kind, unsigned flags)
{
    struct page_head head;

    memcpy(&head, bytes.data, sizeof(head));
    printf("%s %u%s%s\n", kind, head.status, flags & PAGE_STREAM ? " stream" : "",
           flags & PAGE_CLOSE ? " close" : "");
    bytes = span_skip(bytes, sizeof(head));
    for (unsigned i = 0; i < head.field_count; i++) {
        uint16_t name;
        uint32_t value;

        memcpy(&name, bytes.data, 2);
        memcpy(&value, bytes.data + 4, 4);
        printf("  %.*s: ", name, bytes.data + 8);
        print_bytes(span_make(bytes.data + 8 + name, value));
        bytes = span_skip(bytes, 8 + (size_t)name + value);
    }
}

static char joined[4 << 20];
static size_t joined_size;

static bool print_record(struct page_record record, struct span payload)
{
    switch (record.type) {
    case PAGE_HEAD:
        memcpy(joined + joined_size, payload.data, payload.size);
        joined_size += payload.size;
        if (!(record.flags & PAGE_MORE)) {
            print_head(span_make(joined, joined_size), "HEAD", record.flags);
            joined_size = 0;
        }
        return false;
    case PAGE_INTERIM:
        print_head(payload, "INTERIM", record.flags);
        return false;
    case PAGE_DATA:
        printf("DATA %u ", record.size);
        print_bytes(span_first(payload, BOARD_PAGE_BYTES));
        return false;
    case PAGE_FILE: {
        struct page_file file;
        struct stat status = {0};

        memcpy(&file, payload.data, sizeof(file));
        (void)fstat(file_fd, &status);
        printf("FILE %lu %lu of %ld\n", (unsigned long)file.offset, (unsigned long)file.size,
               (long)status.st_size);
        return false;
    }
    case PAGE_END:
        printf("END%s\n", record.flags & PAGE_CUT ? " cut" : "");
        return true;
    default:
        printf("RECORD %u\n", record.type);
        return false;
    }
}

/* Takes the pages of that slot; true when its answer has ended. */
static bool take_pages(uint32_t slot, uint32_t turn, bool is_quiet)
{
    static char copy[BOARD_PAGE_BYTES];
    struct page_word word;
    bool has_ended = false, broken = false;

    for (uint32_t thread = 0; thread < (uint32_t)threads; thread++) {
        int page;

        while ((page = page_find(&board, thread, slot, turn, &word)) >= 0) {
            struct span bytes = {copy, word.bytes}, payload;
            struct page_record record;

            memcpy(copy, page_bytes(&board, thread, (unsigned)page), word.bytes);
            page_release(&board, thread, (unsigned)page, word);
            while (page_next(&bytes, &record, &payload, &broken))
                has_ended |= is_quiet ? record.type == PAGE_END : print_record(record, payload);
            if (broken)
                printf("BROKEN page\n");
        }
    }
    return has_ended;
}

static void serve_descriptor(void)
{
    struct descriptor_question question;
    struct descriptor_answer answer = {0};
    size_t count = 0;
    int fd = -1, reply = -1;
    ssize_t size = fd_receive(link_fd, (char *)&question, sizeof(question), &fd, 1, &count);

    if (size != sizeof(question)) {
        fd_close(&link_fd);
        return;
    }
    if (question.kind == DESCRIPTOR_FILE && count == 1)
        fd_close(&file_fd), file_fd = fd;
    else if (question.kind == DESCRIPTOR_BODY && body_fd != -1)
        reply = body_fd;
    else
        answer.status = EINVAL;
    (void)fd_send(link_fd, span_make((char *)&answer, sizeof(answer)), &reply, reply == -1 ? 0 : 1);
}

/* Waits for news: pages, questions, connections. */
static bool wait_for_news(void)
{
    struct pollfd waits[] = {
        {board.bells[0], POLLIN, 0}, {listener, POLLIN, 0}, {link_fd, POLLIN, 0}};
    int count = 0;

    if (bell_front_sleep(&board, 0, 0))
        count = poll(waits, 3, TIMEOUT_MS);
    else
        count = poll(waits, 3, 0) + 1;
    bell_front_wake(&board, 0, 0);
    for (uint32_t i = 0; i < board.notice_words; i++)
        (void)bell_take_notices(&board, 0, 0, i);
    if (waits[1].revents)
        fd_close(&link_fd), link_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    else if (waits[2].revents)
        serve_descriptor();
    return count > 0;
}

static void run(struct request *request)
{
    uint32_t turn, slot = queue_request(request, &turn);
    bool has_ended = false;

    while (!has_ended) {
        has_ended = take_pages(slot, turn, false);
        if (!has_ended && slot_look(&board, slot).state == SLOT_DONE &&
            !take_pages(slot, turn, false)) {
            printf("DONE without END\n");
            break;
        }
        if (!has_ended && waitpid(worker, NULL, WNOHANG) == worker) {
            printf("WORKER died, slot state %d\n", (int)slot_look(&board, slot).state);
            exit(0);
        }
        if (!has_ended && !wait_for_news()) {
            printf("TIMEOUT\n");
            exit(2);
        }
    }
    while (slot_look(&board, slot).state != SLOT_DONE)
        (void)wait_for_news();
    slot_free(&board, slot);
    printf("---\n");
}

static void unescape(char *text)
{
    char *out = text;

    for (; *text; text++)
        if (text[0] == '\\' && text[1] == 'n')
            *out++ = '\n', text++;
        else
            *out++ = *text;
    *out = '\0';
}

static void stop(void)
{
    int status = 0;

    atomic_store(&board.workers[0].life, BOARD_RETIRING);
    for (uint32_t i = 0; i < (uint32_t)threads; i++)
        bell_ring_thread(&board, i);
    if (waitpid(worker, &status, 0) == worker)
        printf("worker exit %d requests %lu busy %u\n",
               WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
               (unsigned long)atomic_load(&board.workers[0].requests),
               atomic_load(&board.workers[0].busy));
    (void)fd_send(control, (struct span)SPAN("quit\n"), NULL, 0);
    if (worker != mold && waitpid(mold, &status, 0) == mold)
        printf("mold exit %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    printf("audit: %s\n", board_audit(&board) ? board_audit(&board) : "sound");
    exit(0);
}

static bool read_line(char *line, size_t room)
{
    if (!fgets(line, (int)room, stdin))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static void take_field(struct request *request, char *line)
{
    char *value = strstr(line, ": ");

    if (!strncmp(line, "@body ", 6))
        unescape(request->body = line + 6);
    else if (!strncmp(line, "@file ", 6))
        request->file = strtoul(line + 6, NULL, 10);
    else if (!strncmp(line, "@flags ", 7))
        request->flags = (uint32_t)strtoul(line + 7, NULL, 10);
    else if (!strcmp(line, "@left"))
        request->is_left = true;
    else if (value) {
        *value = '\0';
        request->fields[request->field_count++] = (struct field){line, value + 2};
    }
}

static bool read_request(struct request *request)
{
    size_t used = 0;

    memset(request, 0, sizeof(*request));
    if (!read_line(request->line, sizeof(request->line)))
        return false;
    while (read_line(request->memory + used, sizeof(request->memory) - used) &&
           request->memory[used]) {
        size_t size = strlen(request->memory + used) + 1;

        take_field(request, request->memory + used);
        used += size;
    }
    return true;
}

static void measure(uint32_t count, uint32_t depth)
{
    static struct request request = {
        .line = "GET /pulse",
        .fields = {{(char *)"host", (char *)"a"}, {(char *)"user-agent", (char *)"test/1"}},
        .field_count = 2};
    uint32_t slots[SLOTS], turns[SLOTS], sent = 0, done = 0;
    uint64_t began = clock_us();

    for (; sent < depth; sent++)
        slots[sent] = queue_request(&request, &turns[sent]);
    while (done < count) {
        bool was_any = false;

        for (uint32_t i = 0; i < depth; i++) {
            if (slots[i] == SLOTS || !take_pages(slots[i], turns[i], true))
                continue;
            while (slot_look(&board, slots[i]).state != SLOT_DONE)
                ;
            slot_free(&board, slots[i]);
            was_any = true;
            done++;
            slots[i] = sent < count ? queue_request(&request, &turns[i]) : SLOTS;
            sent += sent < count;
        }
        if (!was_any && done < count)
            (void)wait_for_news();
    }
    printf("%u requests, %.2f us each\n", count, (double)(clock_us() - began) / count);
}

int main(int argc, char **argv)
{
    static struct request request;

    if (getenv("LEAT_CONTROL_FD")) {
        static char *handed[] = {"", "", "", ".", "mold", "2", "auto", "development", NULL};

        for (int i = 1; i < argc; i++)
            printf("argument %s\n", argv[i]);
        argv = handed;
        argc = 8;
    }
    if (argc < 8)
        return 64;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    threads = (int)strtoul(argv[5], NULL, 10);
    (void)snprintf(folder, sizeof(folder), "/tmp/leat-front-XXXXXX");
    if (!mkdtemp(folder))
        die("mkdtemp");
    make_board();
    make_listener();
    control = getenv("LEAT_CONTROL_FD") ? adopt() : spawn(argv);
    greet(argv);
    boot(argv);
    if (argc >= 10) {
        measure((uint32_t)strtoul(argv[8], NULL, 10), (uint32_t)strtoul(argv[9], NULL, 10));
        stop();
    }
    while (read_request(&request)) {
        if (!strcmp(request.line, "@stop"))
            stop();
        if (!strcmp(request.line, "@term"))
            (void)kill(worker, SIGTERM);
        else
            run(&request);
    }
    return 0;
}
