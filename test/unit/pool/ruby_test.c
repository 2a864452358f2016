/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/ruby.c"

#include <sys/stat.h>

/* A folder with programs that answer as told, and a library. */
static char folder[64];
static char path_variable[100];
static char *const environment[] = {path_variable, NULL};

static void put(const char *name, const char *text)
{
    char path[160];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static int make_folder(void **state)
{
    char path[160];

    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/ruby-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path_variable, sizeof path_variable, "PATH=%s:/nonexistent", folder);
    (void)snprintf(path, sizeof path, "%s/leat", folder);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/leat/9.9.0", folder);
    (void)mkdir(path, 0755);
    put("leat/9.9.0/leat_ext.so", "");
    put("leat/boot.rb", "");
    return 0;
}

static int remove_folder(void **state)
{
    char command[120];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int find(const char *configured, struct ruby *ret_ruby, struct faults *faults)
{
    struct ruby_options options = {
        .configured = configured, .folder = folder, .environ = environment, .library = folder};

    return ruby_find(&options, ret_ruby, faults);
}

static void the_ruby_in_path_is_asked_for_path_version_and_abi(void **state)
{
    struct faults faults = {.size = 0};
    struct ruby ruby;

    (void)state;
    put("ruby", "#!/bin/sh\nprintf '/opt/ruby\\n9.9.1\\n9.9.0\\n'\n");
    assert_int_equal(find(NULL, &ruby, &faults), 0);
    assert_string_equal(ruby.program, "ruby");
    assert_string_equal(ruby.path, "/opt/ruby");
    assert_string_equal(ruby.version, "9.9.1");
    ruby_done(&ruby);
}

static void a_named_one_that_does_not_run_is_a_fault_that_names_it(void **state)
{
    struct faults faults = {.size = 0};
    struct ruby ruby;

    (void)state;
    assert_int_equal(find("/nonexistent/ruby", &ruby, &faults), -1);
    assert_non_null(strstr(faults.items[0].reason, "/nonexistent/ruby"));
    faults_done(&faults);
}

static void a_missing_extension_is_told_with_the_command(void **state)
{
    struct faults faults = {.size = 0};
    struct ruby ruby;

    (void)state;
    put("ruby", "#!/bin/sh\nprintf '/opt/ruby\\n8.8.1\\n8.8.0\\n'\n");
    assert_int_equal(find(NULL, &ruby, &faults), -1);
    assert_non_null(strstr(faults.items[0].reason, "make extension RUBY=/opt/ruby"));
    faults_done(&faults);
}

static void an_extension_that_rubygems_keeps_apart_is_found(void **state)
{
    struct faults faults = {.size = 0};
    struct ruby ruby;
    char command[400];
    char library[100];
    struct ruby_options options = {.folder = folder, .environ = environment, .library = library};

    (void)state;
    put("ruby", "#!/bin/sh\nprintf '/opt/ruby\\n8.8.1\\n8.8.0\\n'\n");
    (void)snprintf(library, sizeof library, "%s/gems/leat-1/lib", folder);
    (void)snprintf(command, sizeof command,
                   "cd %s && mkdir -p gems/leat-1/lib extensions/x/8.8.0/leat-1/leat/8.8.0 && "
                   "touch extensions/x/8.8.0/leat-1/leat/8.8.0/leat_ext.so",
                   folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(ruby_find(&options, &ruby, &faults), 0);
    ruby_done(&ruby);
}

static void the_library_is_beside_the_binary_or_where_it_is_named(void **state)
{
    char binary[100];
    struct faults faults = {.size = 0};
    char *library;

    (void)state;
    library = ruby_find_library(folder, "/nonexistent/leat", &faults);
    assert_non_null(library);
    free(library);
    (void)snprintf(binary, sizeof binary, "%s/leat", folder);
    assert_null(ruby_find_library("/nonexistent", binary, &faults));
    assert_string_equal(faults.items[0].key, "LEAT_LIB");
    faults_done(&faults);
}

static void the_version_of_the_ruby_files_is_what_they_say(void **state)
{
    char *version;

    (void)state;
    assert_null(ruby_library_version(folder));
    put("leat/version.rb", "module Leat\n  VERSION = \"3.2.1\"\nend\n");
    version = ruby_library_version(folder);
    assert_string_equal(version, "3.2.1");
    free(version);
    put("leat/version.rb", "VERSION = \"3.2");
    assert_null(ruby_library_version(folder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_ruby_in_path_is_asked_for_path_version_and_abi),
        TEST(a_named_one_that_does_not_run_is_a_fault_that_names_it),
        TEST(a_missing_extension_is_told_with_the_command),
        TEST(an_extension_that_rubygems_keeps_apart_is_found),
        TEST(the_library_is_beside_the_binary_or_where_it_is_named),
        TEST(the_version_of_the_ruby_files_is_what_they_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
