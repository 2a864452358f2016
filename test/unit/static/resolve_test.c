/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "static/resolve.c"

#include "static_world.h"

static char words[RESOLVE_WORDS];

/* What both proofs say, which must be the same; the content in *ret_text. */
static enum resolved open_both(const char *name, char ret_text[static 64])
{
    struct resolve_identity identity;
    int root = open(world.root.folder, LOOKING | O_DIRECTORY), fds[2] = {-1, -1};
    enum resolved by_kernel = resolve_open(&world.root, root, name, &fds[0], &identity, words);
    enum resolved by_hand = open_by_hand(&world.root, root, name, &fds[1], &identity, words);

    ret_text[0] = 0;
    assert_int_equal(by_kernel, by_hand);
    for (int i = 0; i < 2; i++) {
        ssize_t size;

        if (fds[i] == -1)
            continue;
        size = pread(fds[i], ret_text, 63, 0);
        assert_true(size >= 0);
        ret_text[size] = 0;
        close(fds[i]);
    }
    close(root);
    return by_kernel;
}

static void assert_text(const char *name, const char *text)
{
    char found[64];

    assert_int_equal(open_both(name, found), RESOLVED_FILE);
    assert_string_equal(found, text);
}

static void assert_answer(const char *name, enum resolved answer)
{
    char found[64];

    assert_int_equal(open_both(name, found), answer);
}

static void finds_files_folders_and_nothing(void **state)
{
    (void)state;
    make_folder("public/a");
    write_text("public/a/b.txt", "b");
    assert_text("a/b.txt", "b");
    assert_answer("a", RESOLVED_FOLDER);
    assert_answer("a/", RESOLVED_FOLDER);
    assert_answer("none", RESOLVED_MISSING);
    assert_answer("a/none/deeper", RESOLVED_MISSING);
    assert_answer("a/b.txt/c", RESOLVED_MISSING);
}

static void links_may_lead_about_within_the_root(void **state)
{
    char target[PATH_MAX];
    (void)state;
    make_folder("public/a");
    write_text("public/a/b.txt", "b");
    make_link("a/b.txt", "public/relative");
    make_link("../public/a/b.txt", "public/out-and-in");
    make_link("a", "public/folder");
    make_link("relative", "public/twice");
    snprintf(target, sizeof(target), "%s/a/b.txt", world.root.folder);
    make_link(target, "public/absolute");
    assert_text("relative", "b");
    assert_text("out-and-in", "b");
    assert_text("folder/b.txt", "b");
    assert_text("twice", "b");
    assert_text("absolute", "b");
}

static void links_out_of_the_root_are_denied_with_words(void **state)
{
    (void)state;
    write_text("secret", "secret");
    make_folder("other");
    write_text("other/file", "secret");
    make_folder("publicity");
    write_text("publicity/file", "secret");
    make_link("../secret", "public/file");
    make_link("../other", "public/folder");
    make_link("../publicity/file", "public/neighbour");
    make_link("/etc/hostname", "public/absolute");
    make_link("/", "public/top");
    make_link("..", "public/parent");
    assert_answer("file", RESOLVED_DENIED);
    assert_non_null(strstr(words, "/secret, which `links` does not allow"));
    assert_answer("folder/file", RESOLVED_DENIED);
    assert_answer("folder", RESOLVED_DENIED);
    assert_answer("neighbour", RESOLVED_DENIED);
    assert_answer("absolute", RESOLVED_DENIED);
    assert_answer("top/etc/hostname", RESOLVED_DENIED);
    assert_answer("top", RESOLVED_DENIED);
    assert_answer("parent/secret", RESOLVED_DENIED);
    assert_answer("../secret", RESOLVED_DENIED);
    assert_answer("/etc/hostname", RESOLVED_DENIED);
}

static void a_ring_of_links_and_one_to_nothing_lead_nowhere(void **state)
{
    (void)state;
    make_link("ring", "public/ring");
    make_link("gone", "public/dangling");
    assert_answer("ring", RESOLVED_DENIED);
    assert_answer("dangling", RESOLVED_MISSING);
}

static void links_may_lead_into_folders_that_the_site_names(void **state)
{
    static char allowed[PATH_MAX];
    const char *links[] = {allowed, NULL};
    (void)state;
    make_folder("store");
    make_folder("store/deep");
    write_text("store/deep/file", "stored");
    make_link("../store/deep", "public/uploads");
    assert_answer("uploads/file", RESOLVED_DENIED);
    snprintf(allowed, sizeof(allowed), "%s/store", world.folder);
    world.root.links = links;
    assert_text("uploads/file", "stored");
}

static void a_release_may_link_into_the_shared_folder_beside_the_releases(void **state)
{
    static char root[PATH_MAX], app[PATH_MAX];
    (void)state;
    make_folder("releases");
    make_folder("releases/7");
    make_folder("releases/7/public");
    make_folder("shared");
    make_folder("shared/uploads");
    write_text("shared/uploads/file", "shared");
    write_text("config", "secret");
    make_link("releases/7", "current");
    make_link("../../../shared/uploads", "releases/7/public/uploads");
    make_link("../../../config", "releases/7/public/config");
    snprintf(root, sizeof(root), "%s/current/public", world.folder);
    snprintf(app, sizeof(app), "%s/current", world.folder);
    world.root.folder = root;
    assert_text("uploads/file", "shared");
    world.root.app = app;
    assert_text("uploads/file", "shared");
    assert_answer("config", RESOLVED_DENIED);
    world.root.app = world.folder;
    assert_answer("uploads/file", RESOLVED_DENIED);
}

static void links_may_lead_to_what_the_distribution_ships(void **state)
{
    char found[64];
    (void)state;
    make_link("/usr/share/common-licenses/BSD", "public/license");
    make_link("/usr/share/../../etc/hostname", "public/way-through");
    if (access("/usr/share/common-licenses/BSD", R_OK) == 0)
        assert_int_equal(open_both("license", found), RESOLVED_FILE);
    assert_answer("way-through", RESOLVED_DENIED);
}

static void what_is_no_regular_file_is_missing(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_world("public/pipe"), 0644), 0);
    make_link("/dev/zero", "public/zero");
    assert_answer("pipe", RESOLVED_MISSING);
    assert_answer("zero", RESOLVED_DENIED);
}

static void the_configuration_file_is_never_sent_by_any_name(void **state)
{
    static char never[PATH_MAX];
    (void)state;
    write_text("public/leat.yml", "secret");
    make_link("leat.yml", "public/link.txt");
    assert_int_equal(link(in_world("public/leat.yml"), "/dev/null"), -1);
    snprintf(never, sizeof(never), "%s/leat.yml", world.root.folder);
    world.root.never = never;
    {
        struct resolve_identity identity;
        int root = open(world.root.folder, LOOKING | O_DIRECTORY), fd = -1;

        assert_int_equal(resolve_open(&world.root, root, "leat.yml", &fd, &identity, words),
                         RESOLVED_MISSING);
        assert_int_equal(resolve_open(&world.root, root, "link.txt", &fd, &identity, words),
                         RESOLVED_MISSING);
        assert_int_equal(fd, -1);
        close(root);
    }
}

static bool is_refused(const char *name)
{
    return resolve_is_refused(&world.root, span_of(name));
}

static void dot_names_backups_and_sources_are_refused(void **state)
{
    static const char *const refused[] = {
        ".env",   ".ENV",    "a/.git/config", ".",     "..",  "a/../b",         "a~",
        "app.rb", "x/a.PHP", "config.ru",     "v.erb", "..z", ".well-known2/x", "a.html.erb"};
    static const char *const served[] = {"",   "a",   ".well-known/x", "a.rb.html", "a.rbx", "rb",
                                         "~a", "a~b", "x.php/y",       "plus+.js",  "a..b"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_true(is_refused(refused[i]));
    for (size_t i = 0; i < ARRAY_LEN(served); i++)
        assert_false(is_refused(served[i]));
}

static void a_site_may_serve_a_source_by_its_name(void **state)
{
    const char *serve[] = {".rb", NULL};
    (void)state;
    world.root.serve = serve;
    assert_false(is_refused("a.rb"));
    assert_true(is_refused("a.ru"));
    assert_true(is_refused(".rb"));
}

static void a_look_sees_what_is_known_without_opening(void **state)
{
    struct resolve_identity looked, opened;
    bool in_memory = false;
    int fd = -1, root = resolve_root(&world.root, true, &looked, &in_memory);
    (void)state;
    assert_true(root >= 0);
    write_text("public/a", "a");
    write_text("secret", "secret");
    make_link("../secret", "public/out");
    assert_int_equal(resolve_open(&world.root, root, "a", &fd, &opened, words), RESOLVED_FILE);
    close(fd);
    assert_int_equal(resolve_look(root, "a", true, in_memory, &looked), RESOLVED_FILE);
    assert_true(resolve_is_same(&looked, &opened));
    assert_int_equal(resolve_open(&world.root, root, "none", &fd, &opened, words),
                     RESOLVED_MISSING);
    assert_int_equal(resolve_look(root, "none", true, in_memory, &looked), RESOLVED_MISSING);
    assert_int_equal(resolve_look(root, "out", true, in_memory, &looked), RESOLVED_LATER);
    close(root);
}

static void a_writer_is_seen(void **state)
{
    int reader, writer;
    (void)state;

    write_text("a", "a");
    reader = open(in_world("a"), O_RDONLY | O_CLOEXEC);
    assert_false(resolve_is_written(reader));
    writer = open(in_world("a"), O_WRONLY | O_CLOEXEC);
    assert_true(resolve_is_written(reader));
    close(writer);
    assert_false(resolve_is_written(reader));
    close(reader);
}

static void a_look_out_of_the_root_knows_what_is_not_there(void **state)
{
    struct resolve_identity identity;
    int root;
    (void)state;

    make_folder("beside");
    make_link("../beside", "public/link");
    write_text("beside/a", "a");
    root = open(world.root.folder, LOOKING | O_DIRECTORY);
    (void)access(in_world("beside/none"),
                 F_OK); /* now the system knows, where it keeps such things */
    assert_int_not_equal(resolve_look(root, "link/none", true, false, &identity), RESOLVED_FILE);
    assert_int_equal(resolve_look(root, "link/a", true, false, &identity), RESOLVED_LATER);
    close(root);
}

static void what_cannot_be_opened_has_words(void **state)
{
    (void)state;
    assert_int_equal(resolve_explain(-EACCES, words), RESOLVED_CLOSED);
    assert_non_null(strstr(words, "Permission denied"));
    assert_int_equal(resolve_explain(-EMFILE, words), RESOLVED_FAILED);
    assert_int_equal(resolve_explain(-ENOENT, words), RESOLVED_MISSING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_files_folders_and_nothing),
        TEST(links_may_lead_about_within_the_root),
        TEST(links_out_of_the_root_are_denied_with_words),
        TEST(a_ring_of_links_and_one_to_nothing_lead_nowhere),
        TEST(links_may_lead_into_folders_that_the_site_names),
        TEST(a_release_may_link_into_the_shared_folder_beside_the_releases),
        TEST(links_may_lead_to_what_the_distribution_ships),
        TEST(what_is_no_regular_file_is_missing),
        TEST(the_configuration_file_is_never_sent_by_any_name),
        TEST(dot_names_backups_and_sources_are_refused),
        TEST(a_site_may_serve_a_source_by_its_name),
        TEST(a_look_sees_what_is_known_without_opening),
        TEST(a_writer_is_seen),
        TEST(a_look_out_of_the_root_knows_what_is_not_there),
        TEST(what_cannot_be_opened_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
