/* Chunked bodies. More of these: nasty_bodies.tsv. */
#include "pieces.h"
#include "test.h"

static const rhttp_limits small = {.name_max = 9, .trailers_count_max = 2, .trailers_max = 24, .extensions_max = 8, .body_max = 20};

static char seen[4000];

/* Whole, byte by byte, and cut at each byte, which must be the same. */
static const char *see_by(const rhttp_limits *limits, const char *body) {
    size_t len = strlen(body);
    text whole = see_chunks((const uint8_t *)body, len, limits, (pieces){cut_once, 0});
    for (size_t at = 0; at < len; at++) {
        text other = see_chunks((const uint8_t *)body, len, limits, at ? (pieces){cut_once, at} : (pieces){cut_everywhere, 0});
        CHECK(strcmp(whole.chars, other.chars) == 0);
        free(other.chars);
    }
    snprintf(seen, sizeof(seen), "%s", whole.chars);
    free(whole.chars);
    return seen;
}

static const char *see(const char *body) { return see_by(&rhttp_usual_limits, body); }

static bool is_wrong(rhttp_wrong wrong, const char *line) {
    char expected[200];
    snprintf(expected, sizeof(expected), "wrong %u %d %s", rhttp_wrong_status(wrong), wrong, rhttp_wrong_text(wrong));
    if (strcmp(line, expected) != 0) printf("  it is not `%s`, but `%s`\n", expected, line);
    return strcmp(line, expected) == 0;
}

TEST(the_data_are_named_where_they_lie) {
    const char *body = "3;a=\"b\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\nrest";
    rhttp_field trailers[32];
    rhttp_chunks chunks;
    rhttp_piece piece;
    const uint8_t *bytes = (const uint8_t *)body;
    rhttp_chunks_begin(&chunks, &rhttp_usual_limits, trailers);
    CHECK_EQUAL(RHTTP_CHUNK_DATA, rhttp_chunks_take(&chunks, bytes, strlen(body), &piece));
    CHECK(piece.data == bytes + 9 && piece.len == 3 && piece.taken == 12);
    CHECK_EQUAL(RHTTP_CHUNK_DATA, rhttp_chunks_take(&chunks, bytes + 12, 10, &piece));
    CHECK(piece.data == bytes + 18 && piece.len == 4 && piece.taken == 10 && chunks.left == 6);
    CHECK_EQUAL(RHTTP_CHUNK_DATA, rhttp_chunks_take(&chunks, bytes + 22, strlen(body) - 22, &piece));
    CHECK(piece.data == bytes + 22 && piece.len == 6);
    CHECK_EQUAL(RHTTP_CHUNK_END, rhttp_chunks_take(&chunks, bytes + 28, strlen(body) - 28, &piece));
    CHECK_EQUAL(strlen(body) - 28 - 4, piece.taken);
    CHECK_EQUAL(13, chunks.total);
    CHECK_EQUAL(RHTTP_CHUNK_END, rhttp_chunks_take(&chunks, bytes, 3, &piece));
    CHECK_EQUAL(0, piece.taken);
}

TEST(trailers_are_fields_of_their_own) {
    const char *expected = "whole 24 data= name=582d53756d value=31 known= underscore=0 "
                           "name=736572766572 value= known=server underscore=0";
    CHECK(strcmp(see("0\r\nX-Sum: 1\r\nserver:\r\n\r\n"), expected) == 0);
    CHECK(is_wrong(RHTTP_WRONG_TRAILER_NAME, see("0\r\nX: 1\r\nContent-Length: 5\r\n\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_TRAILER_NAME, see("0\r\nHOST: h\r\n\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_FOLDED, see("0\r\n X: 1\r\n\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_BARE_LF, see("0\r\nX: 1\n\r\n")));
}

TEST(each_limit_has_a_word_of_its_own_and_its_last_byte_is_allowed) {
    CHECK(strncmp(see_by(&small, "14\r\n01234567890123456789\r\n0\r\n\r\n"), "whole", 5) == 0);
    CHECK(is_wrong(RHTTP_WRONG_BODY_LONG, see_by(&small, "15\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_BODY_LONG, see_by(&small, "13\r\n0123456789012345678\r\n2\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_BODY_LONG, see_by(&small, "1\r\n0\r\nffffffffffffffff\r\n")));
    CHECK(strncmp(see("7fffffffffffffff\r\n"), "part", 4) == 0);
    CHECK(is_wrong(RHTTP_WRONG_BODY_LONG, see("8000000000000000\r\n")));
    CHECK(strncmp(see_by(&small, "1;345\r\n0\r\n0;90\r\n\r\n"), "wrong", 5) != 0);
    CHECK(is_wrong(RHTTP_WRONG_EXTENSIONS_LONG, see_by(&small, "1;345\r\n0\r\n0;6789\r\n\r\n")));
    CHECK(strncmp(see_by(&small, "0\r\nab: 5678901234567890\r\n\r\n"), "whole", 5) == 0);
    CHECK(is_wrong(RHTTP_WRONG_TRAILERS_LONG, see_by(&small, "0\r\nab: 56789012345678901\r\n\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_FIELDS_MANY, see_by(&small, "0\r\na:\r\nb:\r\nc:\r\n\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_NAME_LONG, see_by(&small, "0\r\n0123456789:\r\n\r\n")));
}

TEST(a_size_has_one_to_sixteen_digits) {
    CHECK(strncmp(see("0000000000000001\r\nx\r\n"), "part", 4) == 0);
    const char *wrong[] = {"\r\n", ";a\r\n", "00000000000000001\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "g\r\n",
                           "1 a\r\n", "1 1\r\n", "1\t\r\n", "1_0\r\n", "1,1\r\n", "1.0\r\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) CHECK(is_wrong(RHTTP_WRONG_CHUNK_SIZE, see(wrong[i])));
    CHECK(is_wrong(RHTTP_WRONG_BARE_LF, see("1\nx\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_BARE_CR, see("1\rx\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_BARE_CR, see("1\r\r\n")));
}

TEST(a_chunk_ends_where_its_size_says) {
    CHECK(is_wrong(RHTTP_WRONG_CHUNK_END, see("1\r\nxy\r\n")));
    CHECK(is_wrong(RHTTP_WRONG_CHUNK_END, see("1\r\nx\n")));
    CHECK(is_wrong(RHTTP_WRONG_CHUNK_END, see("1\r\nx\rx")));
    CHECK(is_wrong(RHTTP_WRONG_CHUNK_END, see("1\r\nx0\r\n\r\n")));
}

TEST(an_extension_is_a_name_with_a_value) {
    const char *right[] = {"a", "a=b", "a=\"\"", "a=\"b;,=\"", "a;b=c;d", "a=\"\xff\t\"", "a=\"b\";c",
                           " a", "a =b", "a= b", "a ;b", "a=b\t; c", "a = \"b\" ; c"};
    const char *wrong[] = {"", ";", "=b", "a=", "a=b=c", "a;", "a b", "a=b c", "a ", "a=b ", "a=\"b\" ", "a= ", " ", "a=\"b\"c",
                           "a=\"b", "a=\x01", "a=\"\x01\"", "a=\"\\\"\""};
    char body[64];
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
        snprintf(body, sizeof(body), "0;%s\r\n\r\n", right[i]);
        CHECK(strncmp(see(body), "whole", 5) == 0);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(body, sizeof(body), "0;%s\r\n\r\n", wrong[i]);
        CHECK(is_wrong(RHTTP_WRONG_EXTENSION, see(body)));
    }
    CHECK(is_wrong(RHTTP_WRONG_BARE_LF, see("0;a\n\r\n")));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
