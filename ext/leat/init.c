/* SPDX-License-Identifier: MIT */
#include "leat_ext.h"

/* The one symbol that the extension exports. */
RUBY_FUNC_EXPORTED void Init_leat_ext(void)
{
    VALUE leat = rb_define_module("Leat");

    init_head();
    init_input(leat);
    init_env();
    init_collect();
    init_take(leat);
    init_native(leat);
}
