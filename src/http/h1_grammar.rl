/* SPDX-License-Identifier: MIT */
/*
 * The grammar of HTTP/1.1 messages as far as it concerns a server (RFC 9112), without any C. It is
 * strict where a lenient reader and a strict one could disagree about where something ends: lines end
 * in CRLF only, no white space stands before a colon, no field is folded.
 */
%%{
    machine h1_grammar;
    alphtype unsigned char;

    crlf = "\r\n";

    # RFC 9110 5.6.2
    tchar = [A-Za-z0-9] | [!#$%&'*+\-.^_`|~];

    # What stands in targets and in field values besides blanks: visible ASCII, and bytes of other
    # alphabets, which applications get untouched.
    visible = 0x21..0x7e | 0x80..0xff;
    value_byte = visible | [ \t];

    # RFC 9112 3. The forms of a target are told apart in http/target.
    method = tchar+;
    target = visible+;

    # RFC 9112 5. White space around the value is cut off later.
    field_name = tchar+;
    field_value = value_byte*;

    # RFC 9110 5.6.3, 5.6.4. A quoted string ends at its quote, and no line ends in one.
    bws = [ \t]*;
    quoted_pair = "\\" value_byte;
    quoted_string = '"' ((value_byte - ["\\]) | quoted_pair)* '"';

    # RFC 9112 7.1. An extension has no meaning here, but must be one: where it is not, readers differ
    # about where its line ends.
    chunk_size = xdigit+;
    chunk_extension = (bws ";" bws tchar+ (bws "=" bws (tchar+ | quoted_string))?)*;
}%%
