/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/client.c"

#include "loop/listen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A folder in which the test plays a server: RUN is FOLDER/leat, the application FOLDER/app. */
struct world {
    char folder[64];
    char run[80], app[80], socket[128], pid_file[128];
    struct control_place place;
    int listener;
};

static void world_open(struct world *world)
{
    *world = (struct world){.listener = -1};
    (void)snprintf(world->folder, sizeof world->folder, "/tmp/client-test-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    (void)snprintf(world->run, sizeof world->run, "%s/leat", world->folder);
    (void)snprintf(world->app, sizeof world->app, "%s/app", world->folder);
    (void)snprintf(world->socket, sizeof world->socket, "%s/4711.sock", world->run);
    (void)snprintf(world->pid_file, sizeof world->pid_file, "%s/leat.pid", world->folder);
    assert_int_equal(mkdir(world->run, 0700), 0);
    assert_int_equal(mkdir(world->app, 0700), 0);
    /* Nobody's number, so that a server of this machine is never found. */
    world->place =
        (struct control_place){.uid = 64999, .runtime = world->folder, .temporary = world->folder};
}

static void world_close(struct world *world)
{
    char command[100];

    fd_close(&world->listener);
    (void)snprintf(command, sizeof command, "rm -r %s", world->folder);
    assert_int_equal(system(command), 0);
}

static void listen_here(struct world *world)
{
    struct listen_options options = {.backlog = 8, .mode = 0600, .uid = -1, .gid = -1};
    struct address address;
    const char *reason;
    char text[160];

    (void)snprintf(text, sizeof text, "unix:%s", world->socket);
    assert_true(address_parse(span_of(text), &address));
    world->listener = listen_open(&address, &options, &reason);
    assert_true(world->listener >= 0);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Finds and lets go; 0 or negative errno. */
static int find(const struct world *world, const struct client_target *target, bool *ret_stale)
{
    int fd = client_connect(target, &world->place, ret_stale);

    if (fd < 0)
        return fd;
    (void)close(fd);
    return 0;
}

static void a_named_socket_is_the_only_place_looked_at(void **state)
{
    struct world world;
    bool stale;

    (void)state;
    world_open(&world);
    assert_int_equal(find(&world, &(struct client_target){.control = world.socket}, &stale),
                     -ENOENT);
    assert_false(stale);
    listen_here(&world);
    assert_int_equal(find(&world, &(struct client_target){.control = world.socket}, &stale), 0);
    world_close(&world);
}

static void a_socket_without_a_server_behind_it_is_no_server(void **state)
{
    struct world world;
    bool stale;

    (void)state;
    world_open(&world);
    listen_here(&world);
    fd_close(&world.listener);
    assert_int_equal(find(&world, &(struct client_target){.control = world.socket}, &stale),
                     -ENOENT);
    write_file(world.pid_file, "");
    assert_int_equal(find(&world, &(struct client_target){.control = world.pid_file}, &stale),
                     -ENOENT);
    world_close(&world);
}

static void a_path_longer_than_any_socket_may_have_works(void **state)
{
    struct world world;
    char path[512];
    bool stale;
    int size;

    (void)state;
    world_open(&world);
    listen_here(&world);
    size = snprintf(path, sizeof path, "%s", world.run);
    while (size < 200)
        size += snprintf(path + size, sizeof path - (size_t)size, "/../leat");
    (void)snprintf(path + size, sizeof path - (size_t)size, "/4711.sock");
    assert_int_equal(find(&world, &(struct client_target){.control = path}, &stale), 0);
    world_close(&world);
}

static void a_named_pid_file_leads_to_the_link_beside_it(void **state)
{
    struct world world;
    char link[CONTROL_PATH];
    bool stale;

    (void)state;
    world_open(&world);
    listen_here(&world);
    control_beside_path(world.pid_file, link);
    assert_int_equal(symlink(world.socket, link), 0);
    assert_int_equal(find(&world, &(struct client_target){.pid_file = world.pid_file}, &stale), 0);
    world_close(&world);
}

static void a_pid_file_that_nobody_holds_is_stale(void **state)
{
    struct world world;
    bool stale;

    (void)state;
    world_open(&world);
    write_file(world.pid_file, "1\n");
    assert_int_equal(find(&world, &(struct client_target){.pid_file = world.pid_file}, &stale),
                     -ENOENT);
    assert_true(stale);
    assert_int_equal(client_lock_holder(world.pid_file), 0);
    assert_int_equal(client_lock_holder("/nonexistent/leat.pid"), -ENOENT);
    world_close(&world);
}

/* A child locks the file and holds it until its pipe ends. */
static pid_t hold(const char *path, int ready[2], int end[2])
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    pid_t child = fork();
    char byte = 'x';
    int fd;

    if (child != 0)
        return child;
    (void)close(end[1]);
    fd = open(path, O_RDWR);
    if (fd == -1 || fcntl(fd, F_SETLK, &lock) == -1 || write(ready[1], &byte, 1) != 1)
        _exit(1);
    (void)read(end[0], &byte, 1);
    _exit(0);
}

static void who_holds_a_pid_file_is_known_by_its_lock(void **state)
{
    struct world world;
    int ready[2], end[2];
    bool stale;
    pid_t child;
    char byte;

    (void)state;
    world_open(&world);
    write_file(world.pid_file, "garbage");
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    child = hold(world.pid_file, ready, end);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(client_lock_holder(world.pid_file), child);
    assert_int_equal(find(&world, &(struct client_target){.pid_file = world.pid_file}, &stale),
                     -ENOENT);
    assert_false(stale);
    (void)close(end[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)close(end[0]);
    (void)close(ready[0]);
    (void)close(ready[1]);
    world_close(&world);
}

static void without_names_it_is_found_by_the_applications_folder(void **state)
{
    struct world world;
    char link[CONTROL_PATH];
    bool stale;

    (void)state;
    world_open(&world);
    listen_here(&world);
    assert_int_equal(find(&world, &(struct client_target){.application = world.app}, &stale),
                     -ENOENT);
    control_link_path(world.run, world.app, link);
    assert_int_equal(symlink(world.socket, link), 0);
    assert_int_equal(find(&world, &(struct client_target){.application = world.app}, &stale), 0);
    /* Also when the folder has been removed by a deploy. */
    assert_int_equal(rmdir(world.app), 0);
    assert_int_equal(find(&world, &(struct client_target){.application = world.app}, &stale), 0);
    assert_int_equal(find(&world, &(struct client_target){.control = NULL}, &stale), -ENOENT);
    world_close(&world);
}

static void the_pid_file_of_the_folder_is_the_last_place(void **state)
{
    struct world world;
    char path[160];
    bool stale;

    (void)state;
    world_open(&world);
    listen_here(&world);
    (void)snprintf(path, sizeof path, "%s/tmp", world.app);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/tmp/pids", world.app);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/tmp/pids/leat.sock", world.app);
    assert_int_equal(symlink(world.socket, path), 0);
    assert_int_equal(find(&world, &(struct client_target){.application = world.app}, &stale), 0);
    world_close(&world);
}

/* Plays a server that answers with these bytes and ends the connection. */
static int ask(const char *answer, struct buf *ret_text)
{
    char line[16] = "";
    int pair[2];
    pid_t child;
    int result;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    child = fork();
    if (child == 0) {
        (void)close(pair[0]);
        _exit(read(pair[1], line, sizeof line) != 7 ||
              fd_write_all(pair[1], span_of(answer)) != 0 || strcmp(line, "status\n") != 0);
    }
    (void)close(pair[1]);
    result = client_ask(pair[0], "status\n", ret_text);
    (void)close(pair[0]);
    (void)waitpid(child, NULL, 0);
    return result;
}

static void the_first_line_of_an_answer_says_whether_it_was_done(void **state)
{
    struct buf text = {.size = 0};

    (void)state;
    assert_int_equal(ask("ok\nall of it\n", &text), 1);
    assert_true(span_is(buf_span(&text), "all of it\n"));
    buf_clear(&text);
    assert_int_equal(ask("failed\nno such pool\n", &text), 0);
    assert_true(span_is(buf_span(&text), "no such pool\n"));
    buf_done(&text);
}

static void a_server_that_ends_without_an_answer_is_told_apart(void **state)
{
    struct buf text = {.size = 0};

    (void)state;
    assert_int_equal(ask("", &text), -EPIPE);
    buf_clear(&text);
    assert_int_equal(ask("o", &text), -EPIPE);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_socket_is_the_only_place_looked_at),
        cmocka_unit_test(a_socket_without_a_server_behind_it_is_no_server),
        cmocka_unit_test(a_path_longer_than_any_socket_may_have_works),
        cmocka_unit_test(a_named_pid_file_leads_to_the_link_beside_it),
        cmocka_unit_test(a_pid_file_that_nobody_holds_is_stale),
        cmocka_unit_test(who_holds_a_pid_file_is_known_by_its_lock),
        cmocka_unit_test(without_names_it_is_found_by_the_applications_folder),
        cmocka_unit_test(the_pid_file_of_the_folder_is_the_last_place),
        cmocka_unit_test(the_first_line_of_an_answer_says_whether_it_was_done),
        cmocka_unit_test(a_server_that_ends_without_an_answer_is_told_apart),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
