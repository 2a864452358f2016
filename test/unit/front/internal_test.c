/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "front/internal.c"

#include <fcntl.h>

#include "front_world.h"

static char folder[64], file[96];

static int setup(void **state)
{
    int fd;
    (void)state;

    snprintf(folder, sizeof(folder), "/tmp/leat-internal-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/a b", folder);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(fd_write_all(fd, span_of("inside")), 0);
    close(fd);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

/* What the client gets when the application's head names this path. */
static const char *answer_to(const char *path)
{
    static const char name[] = "x-accel-redirect";
    struct {
        struct page_head head;
        uint16_t name_size, zero;
        uint32_t value_size;
        char text[128];
    } head = {{200, 1}, sizeof(name) - 1, 0, (uint32_t)strlen(path), ""};
    size_t size = offsetof(typeof(head), text) + sizeof(name) - 1 + strlen(path);
    struct page_writer writer;
    int client = world_connect(0);

    snprintf(head.text, sizeof(head.text), "%s%s", name, path);
    world_send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    writer = world_take();
    slot_advance(&world.board, writer.slot, 0, SLOT_CALLED);
    slot_advance(&world.board, writer.slot, 0, SLOT_REPLYING);
    while (!page_can_write(&writer))
        sched_yield();
    memcpy(page_put(&writer, PAGE_HEAD, 0, (uint32_t)size), &head, size);
    (void)page_put(&writer, PAGE_END, 0, 0);
    page_publish(&writer);
    slot_finish(&world.board, writer.slot, 0);
    world.sequence = writer.sequence;
    world.page = writer.page;
    path = world_read_until(client, strstr(path, "a%20b") ? "inside" : "404 Not Found");
    close(client);
    return path;
}

static void the_application_names_files_of_internal_roots_only(void **state)
{
    struct config_prefix prefix = {"/in/", folder};
    (void)state;

    world_configure();
    world.site.internal = &prefix;
    world.site.internal_size = 1;
    world_start();
    assert_null(strstr(answer_to("/in/a%20b"), "x-accel-redirect"));
    assert_non_null(strstr(answer_to("/in/a%20b?query"), "etag: "));
    (void)answer_to("/in/none");
    (void)answer_to("/other/a");
    (void)answer_to("/in/%zz");
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_application_names_files_of_internal_roots_only, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
