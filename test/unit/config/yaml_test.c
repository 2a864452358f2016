/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/yaml.c"

#include <stdio.h>

static struct arena arena;
static struct faults faults;
static char words[256];

static struct yaml *read_text(const char *text)
{
    static char home[] = "HOME=/root";
    static char *environment[] = {home, NULL};
    struct yaml_source source = {.file = "f",
                                 .text = span_of(text),
                                 .environ = environment,
                                 .arena = &arena,
                                 .faults = &faults};

    return yaml_read(&source);
}

static const char *fault_words(size_t index)
{
    assert_true(index < faults.size);
    (void)fault_format(&faults.items[index], words, sizeof(words));
    return words;
}

static void done(void)
{
    faults_done(&faults);
    arena_done(&arena);
}

static void a_tree_knows_where_everything_stood(void **state)
{
    struct yaml *root = read_text("a: 1\nb:\n  - x\n  - {c: 'y'}\n"), *key, *list;
    (void)state;

    assert_int_equal(faults.size, 0);
    assert_int_equal(root->kind, YAML_MAP);
    list = yaml_find(root, "b", &key);
    assert_int_equal(key->line, 2);
    assert_int_equal(key->column, 1);
    assert_int_equal(list->size, 2);
    assert_int_equal(list->items[0]->line, 3);
    assert_int_equal(list->items[0]->column, 5);
    assert_string_equal(list->items[1]->items[0]->text.data, "y");
    assert_false(list->items[1]->items[0]->plain);
    assert_null(yaml_find(root, "c", &key));
    done();
}

static void an_empty_text_is_no_tree_and_no_fault(void **state)
{
    (void)state;

    assert_null(read_text(""));
    assert_null(read_text("# only a remark\n"));
    assert_int_equal(faults.size, 0);
    done();
}

static void broken_syntax_has_line_and_column(void **state)
{
    (void)state;

    assert_null(read_text("listen: [tcp:127.0.0.1:8080\nworkers: two\nlissten: x\n"));
    assert_int_equal(faults.size, 1);
    assert_string_equal(fault_words(0), "f:2:8: did not find expected ',' or ']', while parsing a "
                                        "flow sequence that began in line 1");
    done();
}

static void bytes_that_are_no_text_are_a_fault(void **state)
{
    (void)state;

    assert_null(read_text("a: \xff\xfe\n"));
    assert_int_equal(faults.size, 1);
    done();
}

static void a_key_that_stands_twice_is_a_fault(void **state)
{
    (void)state;

    assert_non_null(read_text("a: 1\nb: 2\na: 3\n"));
    assert_string_equal(fault_words(0), "f:3:1: a: stands twice; first in line 1");
    done();
}

static void aliases_and_merges_work(void **state)
{
    struct yaml *root = read_text("x: &x {a: 1, b: 2}\ny: *x\nz: {<<: *x, b: 3}\n"), *key, *map;
    (void)state;

    assert_int_equal(faults.size, 0);
    assert_ptr_equal(yaml_find(root, "x", &key), yaml_find(root, "y", &key));
    map = yaml_find(root, "z", &key);
    assert_int_equal(map->size, 2);
    assert_string_equal(yaml_find(map, "a", &key)->text.data, "1");
    assert_string_equal(yaml_find(map, "b", &key)->text.data, "3");
    done();
}

static void what_contains_itself_is_a_fault(void **state)
{
    (void)state;

    (void)read_text("a: &a [1, *a]\n");
    assert_string_equal(fault_words(0), "f:1:4: this contains itself");
    done();
}

static void depth_size_and_number_have_limits(void **state)
{
    char *text = must_alloc(1, YAML_BYTES_MAX + 2);
    (void)state;

    memset(text, '[', 40);
    memset(text + 40, ']', 40);
    (void)read_text(text);
    assert_string_equal(fault_words(0), "f:1:33: nested too deep");
    faults_done(&faults);

    text[0] = '[';
    for (size_t i = 0; i < 2 * YAML_NODES_MAX; i += 2)
        memcpy(text + 1 + i, "a,", 2);
    text[1 + 2 * YAML_NODES_MAX] = ']';
    text[2 + 2 * YAML_NODES_MAX] = '\0';
    (void)read_text(text);
    assert_string_equal(fault_words(0), "f:1:1: more values than a configuration may have");
    faults_done(&faults);

    memset(text, ' ', YAML_BYTES_MAX + 1);
    (void)read_text(text);
    assert_string_equal(fault_words(0), "f: larger than a configuration may be");
    free(text);
    done();
}

static void a_second_document_is_a_fault(void **state)
{
    (void)state;

    (void)read_text("a: 1\n---\nb: 2\n");
    assert_string_equal(fault_words(0), "f:3:1: a second document; a configuration has one");
    done();
}

static void scalars_but_not_keys_are_expanded_and_faults_do_not_stop_the_tree(void **state)
{
    struct yaml *root = read_text("a: ${HOME}/x\nb: \"${NONE}\"\n'${HOME}': c\n"), *key;
    (void)state;

    assert_string_equal(yaml_find(root, "a", &key)->text.data, "/root/x");
    assert_true(yaml_is_empty(yaml_find(root, "b", &key)));
    assert_non_null(yaml_find(root, "${HOME}", &key));
    assert_string_equal(fault_words(0),
                        "f:2:4: the environment variable NONE is not set and has no default");
    done();
}

static void a_key_that_is_no_word_is_a_fault(void **state)
{
    (void)state;

    (void)read_text("? [a, b]\n: c\n");
    assert_string_equal(fault_words(0), "f:1:3: a key must be a plain word");
    done();
}

static void nothing_tilde_and_null_say_nothing_unless_quoted(void **state)
{
    struct yaml *root = read_text("[~, null, '', 'null', x]");
    (void)state;

    assert_true(yaml_is_empty(root->items[0]));
    assert_true(yaml_is_empty(root->items[1]));
    assert_true(yaml_is_empty(root->items[2]));
    assert_false(yaml_is_empty(root->items[3]));
    assert_false(yaml_is_empty(root->items[4]));
    assert_false(yaml_is_empty(root));
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_knows_where_everything_stood),
        cmocka_unit_test(an_empty_text_is_no_tree_and_no_fault),
        cmocka_unit_test(broken_syntax_has_line_and_column),
        cmocka_unit_test(bytes_that_are_no_text_are_a_fault),
        cmocka_unit_test(a_key_that_stands_twice_is_a_fault),
        cmocka_unit_test(aliases_and_merges_work),
        cmocka_unit_test(what_contains_itself_is_a_fault),
        cmocka_unit_test(depth_size_and_number_have_limits),
        cmocka_unit_test(a_second_document_is_a_fault),
        cmocka_unit_test(scalars_but_not_keys_are_expanded_and_faults_do_not_stop_the_tree),
        cmocka_unit_test(a_key_that_is_no_word_is_a_fault),
        cmocka_unit_test(nothing_tilde_and_null_say_nothing_unless_quoted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
