/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/former.c"

#include <fcntl.h>
#include <sys/stat.h>

#include "front_world.h"

static char folder[64], current[80], site_root[96];

static void write_file(const char *release, const char *name, const char *text)
{
    char path[160];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s/public/%s", folder, release, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_all(fd, span_of(text)), 0);
    close(fd);
}

static void make_release(const char *release)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, release);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/%s/public", folder, release);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/leat-former-XXXXXX");
    assert_non_null(mkdtemp(folder));
    make_release("1");
    make_release("2");
    write_file("1", "old.css", "of release 1");
    write_file("1", "page.html", "a page of release 1");
    write_file("2", "new.css", "of release 2");
    (void)snprintf(current, sizeof(current), "%s/current", folder);
    (void)snprintf(site_root, sizeof(site_root), "%s/public", current);
    return symlink("2", current);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;

    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static void say_release(uint64_t place, const char *release)
{
    struct front_message message = {.kind = FRONT_RELEASE, .number = place};

    if (release)
        (void)snprintf(message.text, sizeof(message.text), "%s/%s", folder, release);
    assert_int_equal(front_message_send(world.channel, &message, NULL, 0), 0);
}

/* What the path gets from the application, if it comes so far; the front has taken its messages by then. */
static void assert_application_has(const char *line)
{
    struct page_writer writer;
    int client = world_connect(0);

    world_send(client, line);
    world_send(client, " HTTP/1.1\r\nHost: a\r\n\r\n");
    writer = world_take();
    world_answer(&writer, "application");
    (void)world_read_until(client, "application");
    close(client);
}

static void files_of_former_releases_are_found_as_long_as_master_says(void **state)
{
    (void)state;
    world_configure();
    world.pool.app = current;
    world.site.root = site_root;
    world_start();
    assert_application_has("GET /old.css");
    say_release(0, "2");
    say_release(1, "1");
    say_release(FRONT_RELEASES, "1"); /* a place that there is not */
    assert_application_has("GET /page");
    assert_non_null(strstr(world_get(0, "GET /old.css"), "of release 1"));
    assert_non_null(strstr(world_get(0, "GET /old.css"), "of release 1"));
    assert_non_null(strstr(world_get(0, "GET /new.css"), "of release 2"));
    assert_application_has("GET /page");
    assert_application_has("GET /none.css");
    assert_application_has("POST /old.css");
    say_release(1, NULL);
    assert_application_has("GET /page");
    assert_application_has("GET /old.css");
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_of_former_releases_are_found_as_long_as_master_says,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
