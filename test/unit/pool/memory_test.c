/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/memory.c"

#include <string.h>
#include <sys/mman.h>

enum { MANY_BYTES = 32 << 20 };

static void memory_that_was_touched_is_resident(void **state)
{
    uint64_t before = memory_resident(getpid());
    char *memory =
        mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_true(before > 0 && before < UINT64_MAX);
    memset(memory, 1, MANY_BYTES);
    assert_true(memory_resident(getpid()) >= before + MANY_BYTES / 2);
    (void)munmap(memory, MANY_BYTES);
}

static void a_process_that_is_gone_has_no_known_size(void **state)
{
    (void)state;
    assert_true(memory_resident(-1) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_was_touched_is_resident),
        cmocka_unit_test(a_process_that_is_gone_has_no_known_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
