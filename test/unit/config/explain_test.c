/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/explain.c"

#include "base/fd.h"

#include "world.h"

static struct buf out;

static const char *explained(struct world *world)
{
    assert_non_null(world_load(world));
    buf_clear(&out);
    explain_edition(world->config, &out);
    assert_int_equal(buf_append_byte(&out, '\0'), 0);
    return buf_span(&out).data;
}

/* Whether a line begins with the setting and ends with where it came from. */
static bool has_line(const char *text, const char *setting, const char *from)
{
    const char *found = strstr(text, setting);
    const char *line = found && *found == '\n' ? found + 1 : found;
    size_t size = line ? strcspn(line, "\n") : 0;

    return line && size >= strlen(from) &&
           strncmp(line + size - strlen(from), from, strlen(from)) == 0;
}

static void every_setting_says_where_it_came_from(void **state)
{
    struct world world;
    const char *text;
    (void)state;

    world_open_app(&world, "workers: 2..6\nlimits:\n  body: 20m\n");
    world_set(&world, "RAILS_MAX_THREADS=5");
    world.options.port = "20504";
    text = explained(&world);
    assert_true(has_line(text, "listen: [\"127.0.0.1:20504\", \"[::1]:20504\"]", "# option -p"));
    assert_true(has_line(text, ".workers: 2..6", "# leat.yml:1"));
    assert_true(has_line(text, ".threads: 5", "# environment RAILS_MAX_THREADS"));
    assert_true(has_line(text, "\nlimits.body: 20m", "# leat.yml:3"));
    assert_true(has_line(text, "\nlimits.target: 16k", "# default"));
    assert_true(has_line(text, "\nenvironment: development", "# default"));
    buf_done(&out);
    world_close(&world);
}

static void named_pools_and_sites_are_found_by_their_own_keys(void **state)
{
    struct world world;
    const char *text;
    (void)state;

    world_open_app(&world, "pools:\n  shop:\n    queue: {length: 5}\nsites:\n- pulse: /up\n");
    text = explained(&world);
    assert_true(has_line(text, "\npools.shop.queue.length: 5", "# leat.yml:3"));
    assert_true(has_line(text, "\nsites[0].pulse: /up", "# leat.yml:5"));
    assert_true(has_line(text, "\nsites[0].pool: shop", "# default"));
    buf_done(&out);
    world_close(&world);
}

static void what_is_chosen_later_is_not_called_off(void **state)
{
    struct world world;
    const char *text;
    (void)state;

    world_open_app(&world, "pulse: /up\ncontrol: off\n");
    text = explained(&world);
    assert_true(has_line(text, "\nuser: auto", "# default"));
    assert_true(has_line(text, "\ngroup: auto", "# default"));
    assert_true(has_line(text, "\nmemory_total: auto", "# default"));
    assert_true(has_line(text, ".ruby: auto", "# default"));
    assert_true(has_line(text, "\nadmin: off", "# default"));
    assert_true(has_line(text, "\ncontrol: off", "# leat.yml:2"));
    assert_true(has_line(text, "\nsites[0].pulse: /up", "# leat.yml:1"));
    buf_done(&out);
    world_close(&world);
}

static void secrets_are_masked(void **state)
{
    struct world world;
    const char *text;
    (void)state;

    world_open_app(&world, "env: {A: plain, MY_API_KEY: hush1, Db_Password: hush2, TOKEN: hush3,\n"
                           "      SECRET_KEY_BASE: hush4, DB: 'postgres://u:hush5@h/d'}\n");
    text = explained(&world);
    assert_non_null(strstr(text, ".env.A: plain"));
    assert_non_null(strstr(text, ".env.MY_API_KEY: "));
    assert_null(strstr(text, "hush"));
    buf_done(&out);
    world_close(&world);
}

static void the_manual_has_every_directive(void **state)
{
    size_t size;
    const struct directive *table = directives(&size);
    (void)state;

    explain_reference(&out);
    assert_int_equal(buf_append_byte(&out, '\0'), 0);
    for (size_t i = 0; i < size; i++) {
        char heading[64];

        (void)snprintf(heading, sizeof(heading), "\n### `%s`\n", table[i].name);
        assert_non_null(strstr(buf_span(&out).data, heading));
    }
    buf_done(&out);
}

/* docs/config.md is what `leat print --reference` writes; run it again when this fails. */
static void the_manual_in_docs_is_up_to_date(void **state)
{
    char *text;
    size_t size;
    (void)state;

    assert_int_equal(fd_read_file("docs/config.md", 1 << 20, &text, &size), 0);
    explain_reference(&out);
    assert_true(span_equal(span_make(text, size), buf_span(&out)));
    free(text);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_says_where_it_came_from),
        cmocka_unit_test(named_pools_and_sites_are_found_by_their_own_keys),
        cmocka_unit_test(what_is_chosen_later_is_not_called_off),
        cmocka_unit_test(secrets_are_masked),
        cmocka_unit_test(the_manual_has_every_directive),
        cmocka_unit_test(the_manual_in_docs_is_up_to_date),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
