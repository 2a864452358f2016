/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/environment.c"

static void the_first_of_two_entries_counts_and_broken_ones_are_left_out(void **state)
{
    char *from[] = {"A=1", "B", "=x", "A=2", NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    assert_int_equal(environment.size, 1);
    assert_string_equal(environment_get(&environment, "A"), "1");
    assert_null(environment_get(&environment, "B"));
    environment_done(&environment);
}

static void an_empty_value_is_kept(void **state)
{
    char *from[] = {"C=", "D=x", NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    assert_non_null(environment_get(&environment, "C"));
    environment_done(&environment);
}

static void what_bundler_changed_is_put_back(void **state)
{
    char *from[] = {"RUBYOPT=-rbundler/setup",
                    "BUNDLER_ORIG_RUBYOPT=-W0",
                    "BUNDLE_GEMFILE=/old/Gemfile",
                    "BUNDLER_ORIG_BUNDLE_GEMFILE=BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL",
                    "BUNDLE_PATH=vendor",
                    "BUNDLER_SETUP=/x",
                    NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    environment_clean(&environment);
    assert_string_equal(environment_get(&environment, "RUBYOPT"), "-W0");
    assert_null(environment_get(&environment, "BUNDLE_GEMFILE"));
    assert_null(environment_get(&environment, "BUNDLER_ORIG_RUBYOPT"));
    assert_null(environment_get(&environment, "BUNDLER_SETUP"));
    assert_string_equal(environment_get(&environment, "BUNDLE_PATH"), "vendor");
    environment_done(&environment);
}

static void what_was_meant_for_the_server_alone_does_not_reach_applications(void **state)
{
    char *from[] = {"LISTEN_FDS=1", "LEAT_CONTROL_FD=3", "NOTIFY_SOCKET=/x", "HOME=/root", NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    environment_clean(&environment);
    assert_int_equal(environment.size, 1);
    assert_string_equal(environment_get(&environment, "HOME"), "/root");
    environment_done(&environment);
}

static void a_file_has_comments_quotes_and_export(void **state)
{
    static const char text[] = "# remark\n"
                               "\n"
                               "A=plain # remark\r\n"
                               "export B=\"two\\nlines \\\"x\\\"\"\n"
                               "C='as \\n is' # remark\n"
                               " D = spaced \n"
                               "E=a#b\n"
                               "F=";
    struct environment environment = {.size = 0};
    struct faults faults = {.size = 0};

    (void)state;
    assert_int_equal(environment_add_text(&environment, "f", span_of(text), &faults), 0);
    assert_string_equal(environment_get(&environment, "A"), "plain");
    assert_string_equal(environment_get(&environment, "B"), "two\nlines \"x\"");
    assert_string_equal(environment_get(&environment, "C"), "as \\n is");
    assert_string_equal(environment_get(&environment, "D"), "spaced");
    assert_string_equal(environment_get(&environment, "E"), "a#b");
    assert_string_equal(environment_get(&environment, "F"), "");
    environment_done(&environment);
}

static void faults_name_file_and_line(void **state)
{
    static const char text[] = "A=1\nno equals\n1A=2\nB=\"open\n";
    struct environment environment = {.size = 0};
    struct faults faults = {.size = 0};

    (void)state;
    assert_int_equal(environment_add_text(&environment, ".env", span_of(text), &faults), -1);
    assert_int_equal(faults.size, 3);
    assert_string_equal(faults.items[0].file, ".env");
    assert_int_equal(faults.items[0].line, 2);
    assert_int_equal(faults.items[1].line, 3);
    assert_int_equal(faults.items[2].line, 4);
    faults_done(&faults);
    environment_done(&environment);
}

static void a_missing_file_is_a_fault(void **state)
{
    struct environment environment = {.size = 0};
    struct faults faults = {.size = 0};

    (void)state;
    assert_int_equal(environment_read_file(&environment, "/nonexistent/.env", &faults), -1);
    assert_string_equal(faults.items[0].key, "env_file");
    faults_done(&faults);
}

static void every_application_knows_its_environment_and_threads(void **state)
{
    char *from[] = {"RACK_ENV=test", "RAILS_MAX_THREADS=", NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    environment_finish(&environment, "production",
                       &(struct config_pool){.threads = 5, .mount = "/blog"});
    assert_string_equal(environment_get(&environment, "RACK_ENV"), "production");
    assert_string_equal(environment_get(&environment, "RAILS_ENV"), "production");
    assert_string_equal(environment_get(&environment, "APP_ENV"), "production");
    assert_string_equal(environment_get(&environment, "RAILS_MAX_THREADS"), "5");
    assert_string_equal(environment_get(&environment, "RAILS_RELATIVE_URL_ROOT"), "/blog");
    assert_string_equal(environment_get(&environment, "LANG"), "C.UTF-8");
    environment_done(&environment);
}

static void what_the_operator_set_stays(void **state)
{
    char *from[] = {"RAILS_MAX_THREADS=9", "LC_ALL=de_DE.UTF-8", "RAILS_RELATIVE_URL_ROOT=/x",
                    NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_copy(&environment, from);
    environment_finish(&environment, "production",
                       &(struct config_pool){.threads = 5, .mount = "/blog"});
    assert_string_equal(environment_get(&environment, "RAILS_MAX_THREADS"), "9");
    assert_string_equal(environment_get(&environment, "RAILS_RELATIVE_URL_ROOT"), "/x");
    assert_null(environment_get(&environment, "LANG"));
    environment_done(&environment);
}

static void an_allocator_is_added_and_never_replaces_what_the_operator_set(void **state)
{
    char *from[] = {"LD_PRELOAD=/a.so", NULL};
    char *set[] = {"LD_PRELOAD=/opt/libjemalloc.so.1", "MALLOC_ARENA_MAX=4", NULL};
    struct environment environment = {.size = 0};

    (void)state;
    environment_add_malloc(&environment, NULL, 0);
    assert_int_equal(environment.size, 0);
    environment_add_malloc(&environment, "/lib/libjemalloc.so.2", 2);
    assert_string_equal(environment_get(&environment, "LD_PRELOAD"), "/lib/libjemalloc.so.2");
    assert_string_equal(environment_get(&environment, "MALLOC_ARENA_MAX"), "2");
    environment_done(&environment);
    environment_copy(&environment, from);
    environment_add_malloc(&environment, "/lib/libjemalloc.so.2", 0);
    assert_string_equal(environment_get(&environment, "LD_PRELOAD"), "/lib/libjemalloc.so.2:/a.so");
    environment_done(&environment);
    environment_copy(&environment, set);
    environment_add_malloc(&environment, "/lib/libjemalloc.so.2", 2);
    assert_string_equal(environment_get(&environment, "LD_PRELOAD"), "/opt/libjemalloc.so.1");
    assert_string_equal(environment_get(&environment, "MALLOC_ARENA_MAX"), "4");
    environment_done(&environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_two_entries_counts_and_broken_ones_are_left_out),
        cmocka_unit_test(an_empty_value_is_kept),
        cmocka_unit_test(what_bundler_changed_is_put_back),
        cmocka_unit_test(what_was_meant_for_the_server_alone_does_not_reach_applications),
        cmocka_unit_test(a_file_has_comments_quotes_and_export),
        cmocka_unit_test(faults_name_file_and_line),
        cmocka_unit_test(a_missing_file_is_a_fault),
        cmocka_unit_test(every_application_knows_its_environment_and_threads),
        cmocka_unit_test(what_the_operator_set_stays),
        cmocka_unit_test(an_allocator_is_added_and_never_replaces_what_the_operator_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
