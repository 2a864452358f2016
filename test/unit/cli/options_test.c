/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/options.c"

#include <stdio.h>

static struct cli_call call;
static struct faults faults;

/* Reads a command line that ends in NULL; whether it was right. */
static bool read_line(char **words)
{
    int size = 0;

    while (words[size])
        size++;
    faults_done(&faults);
    options_done(&call);
    call = (struct cli_call){.argc = 0};
    return options_read(size, words, &call, &faults);
}

#define READ(...) read_line((char *[]){__VA_ARGS__, NULL})

static void done(void)
{
    faults_done(&faults);
    options_done(&call);
}

static void a_value_may_stand_in_four_ways(void **state)
{
    (void)state;

    assert_true(READ("-p", "80"));
    assert_string_equal(call.options.port, "80");
    assert_true(READ("-p81"));
    assert_string_equal(call.options.port, "81");
    assert_true(READ("--port", "82"));
    assert_string_equal(call.options.port, "82");
    assert_true(READ("--port=83"));
    assert_string_equal(call.options.port, "83");
    done();
}

static void letters_may_be_joined_and_the_last_may_have_a_value(void **state)
{
    (void)state;

    assert_true(READ("-dqvp80"));
    assert_true(call.options.daemonize);
    assert_true(call.options.quiet);
    assert_true(call.options.verbose);
    assert_string_equal(call.options.port, "80");
    assert_true(READ("-dp", "80"));
    assert_string_equal(call.options.port, "80");
    done();
}

static void every_option_of_the_table_reaches_its_place(void **state)
{
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char name[32];
        const char *place = (const char *)&call + table[i].offset;

        (void)snprintf(name, sizeof(name), "--%s", table[i].name);
        assert_true(table[i].value ? READ(name, "x") : READ(name));
        assert_int_equal(call.given, 1u << i);
        if (is_list(&table[i]))
            assert_string_equal(call.options.binds[0], "x");
        else if (table[i].value)
            assert_string_equal(*(const char *const *)place, "x");
        else
            assert_true(*(const bool *)place);
    }
    done();
}

static void a_bind_may_be_repeated(void **state)
{
    (void)state;

    assert_true(READ("-b", "a", "-bb", "--bind=c"));
    assert_int_equal(call.options.bind_size, 3);
    assert_string_equal(call.options.binds[1], "b");
    assert_string_equal(call.options.binds[2], "c");
    done();
}

static void words_are_kept_in_order_and_all_are_words_behind_two_dashes(void **state)
{
    (void)state;

    assert_true(READ("start", "-d", "app", "-", "--", "-x", "--port"));
    assert_int_equal(call.argc, 5);
    assert_string_equal(call.argv[0], "start");
    assert_string_equal(call.argv[1], "app");
    assert_string_equal(call.argv[2], "-");
    assert_string_equal(call.argv[3], "-x");
    assert_string_equal(call.argv[4], "--port");
    assert_null(call.argv[5]);
    done();
}

static void an_unknown_option_names_the_nearest(void **state)
{
    (void)state;

    assert_false(READ("--prot", "80"));
    assert_string_equal(faults.items[0].reason, "unknown option --prot; the nearest is --port");
    assert_false(READ("--deamonize"));
    assert_string_equal(faults.items[0].reason,
                        "unknown option --deamonize; the nearest is --daemonize");
    assert_false(READ("-c", "x"));
    assert_string_equal(faults.items[0].reason, "unknown option -c; the nearest is -C");
    assert_false(READ("-dx"));
    assert_string_equal(faults.items[0].reason, "unknown option -x; `leat help start` lists them");
    done();
}

static void a_value_that_is_missing_or_too_much_is_told(void **state)
{
    (void)state;

    assert_false(READ("--port"));
    assert_string_equal(faults.items[0].reason, "--port needs a value: N");
    assert_false(READ("-p"));
    assert_false(READ("--port="));
    assert_false(READ("--daemonize=yes"));
    assert_string_equal(faults.items[0].reason, "--daemonize takes no value");
    done();
}

static void a_verb_refuses_options_that_are_not_its_own(void **state)
{
    const struct cli_verb stop = {.name = "stop", .takes = CLI_TAKES_PLACE | CLI_TAKES_NOW};
    (void)state;

    assert_true(READ("--now", "-P", "x.pid", "--help"));
    call.verb = &stop;
    assert_true(options_check(&call, &faults));
    assert_true(READ("--now", "--json"));
    call.verb = &stop;
    assert_false(options_check(&call, &faults));
    assert_string_equal(faults.items[0].reason, "stop takes no --json");
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_may_stand_in_four_ways),
        cmocka_unit_test(letters_may_be_joined_and_the_last_may_have_a_value),
        cmocka_unit_test(every_option_of_the_table_reaches_its_place),
        cmocka_unit_test(a_bind_may_be_repeated),
        cmocka_unit_test(words_are_kept_in_order_and_all_are_words_behind_two_dashes),
        cmocka_unit_test(an_unknown_option_names_the_nearest),
        cmocka_unit_test(a_value_that_is_missing_or_too_much_is_told),
        cmocka_unit_test(a_verb_refuses_options_that_are_not_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
