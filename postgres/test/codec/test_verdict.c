/* What the text of a statement tells of what it leaves in a session, and what reported settings do. */
#include "codec/settings.h"
#include "codec/verdict.h"
#include "test.h"

#include <string.h>

static rpg_verdict of(const char *sql) { return rpg_verdict_of(sql, strlen(sql)); }

#define CHECK_LEAVES(wanted, sql) CHECK_EQUAL(wanted, of(sql).leaves)
#define CHECK_SESSION(wanted, sql) CHECK_EQUAL(wanted, of(sql).of_session)

TEST(words_with_which_a_statement_of_a_session_begins) {
    CHECK_SESSION(true, "set timezone = 'UTC'");
    CHECK_SESSION(true, " ;(-- one\n/* two /* nested */ */ LISTEN a");
    CHECK_SESSION(false, "settle");
    CHECK_SESSION(false, "\"set\"");
    CHECK_SESSION(false, "select 'set'");
    CHECK_SESSION(false, "");
    CHECK_SESSION(false, "/* without an end");
    CHECK(of("  copy t from stdin").copies);
    CHECK(!of("copying").copies);
}

TEST(settings_that_end_with_their_transaction) {
    CHECK(of("SET LOCAL timezone = 'UTC'").ends_with_transaction);
    CHECK(of("set /* of it */ transaction isolation level serializable").ends_with_transaction);
    CHECK(of("set constraints all deferred").ends_with_transaction);
    CHECK(!of("set session characteristics as transaction read only").ends_with_transaction);
    CHECK(!of("set locale = 1").ends_with_transaction);
    CHECK(!of("select local").ends_with_transaction);
}

TEST(what_ends_a_transaction) {
    CHECK(of("commit").ends_transaction);
    CHECK(of("/* now */ END WORK").ends_transaction);
    CHECK(of("abort").ends_transaction);
    CHECK(of("rollback;").ends_transaction);
    CHECK(of("ROLLBACK TRANSACTION AND CHAIN").ends_transaction);
    CHECK(of("commit prepared 'a'").ends_transaction);
    CHECK(of("prepare transaction 'a'").ends_transaction);
    CHECK(!of("rollback to a").ends_transaction);
    CHECK(!of("rollback -- not all\n transaction to savepoint a").ends_transaction);
    CHECK(!of("begin").ends_transaction);
    CHECK(!of("savepoint commit").ends_transaction);
    CHECK(!of("prepare transaction as select 1").ends_transaction);
    CHECK(!of("\"commit\"").ends_transaction);
    CHECK(!of("select 'commit'").ends_transaction);
}

TEST(temporary_tables) {
    CHECK_LEAVES(true, "create temp table a (b int)");
    CHECK_LEAVES(true, "CREATE GLOBAL TEMPORARY TABLE a (b int)");
    CHECK_LEAVES(true, "create or replace temp view a as select 1");
    CHECK_LEAVES(true, "create temporary sequence a");
    CHECK_LEAVES(true, "create table pg_temp.a (b int)");
    CHECK_LEAVES(true, "create function pg_temp . f() returns int language sql as 'select 1'");
    CHECK_LEAVES(true, "select 1 as a into temp b");
    CHECK_LEAVES(true, "select 1 as a into local temporary table b from c");
    CHECK_LEAVES(true, "select 1 as a into temp \"b\"");
    CHECK_LEAVES(true, "with a as (select 1) select * into pg_temp.b from a");
    CHECK_LEAVES(false, "create table temp (b int)");
    CHECK_LEAVES(false, "create unlogged table a (temp int)");
    CHECK_LEAVES(false, "select 1 as a into temp from b");
    CHECK_LEAVES(false, "insert into temp select 1");
    CHECK_LEAVES(false, "merge into temp t using b on true when matched then do nothing");
    CHECK_LEAVES(false, "select 'into temp b'");
    CHECK_LEAVES(false, "select temp from temp");
}

TEST(temporary_tables_that_end_with_their_transaction) {
    CHECK_LEAVES(false, "create temp table a (b int) on commit drop");
    CHECK_SESSION(true, "create temp table a (b int) on commit drop");
    CHECK_LEAVES(false, "create temp table a on commit on commit drop as select 1");
    CHECK_LEAVES(true, "create temp table a (b int) on commit delete rows");
    CHECK_LEAVES(true, "create temp table a (b text default 'on commit drop')");
}

TEST(advisory_locks) {
    CHECK_LEAVES(true, "select pg_advisory_lock(1)");
    CHECK_LEAVES(true, "select a, PG_CATALOG . Pg_Try_Advisory_Lock_Shared /* one */ (1, 2) from b");
    CHECK_LEAVES(true, "select \"pg_advisory_lock\"(1)");
    CHECK_LEAVES(true, "select pg_advisory_unlock_all()");
    CHECK_LEAVES(true, "explain (analyze) select pg_advisory_lock(1)");
    CHECK_LEAVES(true, "create table a as select pg_advisory_lock(1)");
    CHECK_LEAVES(false, "explain select pg_advisory_lock(1)");
    CHECK_LEAVES(false, "select pg_advisory_xact_lock(1)");
    CHECK_LEAVES(false, "select 'pg_advisory_lock(1)', E'\\' pg_advisory_lock(1)'");
    CHECK_LEAVES(false, "select $$pg_advisory_lock(1)$$, $a$ $$ pg_advisory_lock(1) $a$");
    CHECK_LEAVES(false, "select 1 -- pg_advisory_lock(1)");
    CHECK_LEAVES(false, "select pg_advisory_lock from a");
    CHECK_LEAVES(false, "select \"PG_ADVISORY_LOCK\"(1)");
    CHECK_LEAVES(false, "create function f() returns void begin atomic select pg_advisory_lock(1); end");
}

TEST(settings_by_a_function) {
    CHECK_LEAVES(true, "select set_config('a.b', 'c', false)");
    CHECK_LEAVES(true, "select set_config('a.b', $1, $2)");
    CHECK_LEAVES(true, "select set_config(f('a', true), 'c', 'true')");
    CHECK_LEAVES(true, "select set_config('a.b', 'c', not true)");
    CHECK_LEAVES(true, "select set_config('a.b', 'c', true), set_config('a.b', 'c', false)");
    CHECK_LEAVES(true, "select set_config(is_local => false, setting_name => 'a.b', new_value => 'true')");
    CHECK_LEAVES(true, "select set_config('a.b'");
    CHECK_LEAVES(false, "select set_config('a.b', 'c', true)");
    CHECK_LEAVES(false, "select set_config(coalesce('a', 'b'), (select 'c, d'), TRUE)");
    CHECK_LEAVES(false, "select set_config(is_local := true, setting_name => 'a.b', new_value => 'c')");
    CHECK_LEAVES(false, "select set_config");
}

static rpg_span text(const char *text) { return (rpg_span){(const uint8_t *)text, strlen(text)}; }

TEST(reported_settings_differ_until_they_are_as_in_the_beginning) {
    rpg_settings settings = {0};
    CHECK(rpg_settings_begin(&settings, text("TimeZone"), text("UTC")));
    CHECK(rpg_settings_begin(&settings, text("DateStyle"), text("ISO, MDY")));
    CHECK(rpg_settings_note(&settings, text("TimeZone"), text("UTC")));
    CHECK(!rpg_settings_differ(&settings));
    CHECK(rpg_settings_note(&settings, text("TimeZone"), text("Asia/Tokyo")));
    CHECK(rpg_settings_note(&settings, text("DateStyle"), text("ISO, DMY")));
    CHECK(rpg_settings_note(&settings, text("TimeZone"), text("")));
    CHECK(rpg_settings_differ(&settings));
    CHECK_EQUAL(0, rpg_settings_unreadable(&settings).len);
    CHECK(rpg_settings_note(&settings, text("TimeZone"), text("UTC")));
    CHECK(rpg_settings_differ(&settings));
    CHECK(rpg_settings_note(&settings, text("DateStyle"), text("ISO, MDY")));
    CHECK(!rpg_settings_differ(&settings));
    CHECK(rpg_settings_note(&settings, text("in_hot_standby"), text("on")));
    CHECK(!rpg_settings_differ(&settings));
    rpg_settings_free(&settings);
}

static bool is_unreadable(const char *name, const char *value) {
    rpg_settings settings = {0};
    rpg_settings_note(&settings, text(name), text(value));
    bool found = rpg_settings_unreadable(&settings).len == strlen(name);
    rpg_settings_free(&settings);
    return found;
}

TEST(settings_with_which_values_are_read_wrongly) {
    CHECK(is_unreadable("client_encoding", "LATIN1"));
    CHECK(!is_unreadable("client_encoding", "UTF8"));
    CHECK(is_unreadable("DateStyle", "German, DMY"));
    CHECK(is_unreadable("DateStyle", ""));
    CHECK(!is_unreadable("DateStyle", "ISO, YMD"));
    CHECK(is_unreadable("IntervalStyle", "postgres"));
    CHECK(!is_unreadable("IntervalStyle", "iso_8601"));
    CHECK(!is_unreadable("TimeZone", "Asia/Tokyo"));
}

TEST(a_server_that_reports_without_an_end) {
    rpg_settings settings = {0};
    char name[200];
    memset(name, 'a', sizeof(name));
    bool taken = true;
    for (int i = 0; i < 1000 && taken; i++) {
        name[0] = (char)('a' + i / 26), name[1] = (char)('a' + i % 26);
        taken = rpg_settings_note(&settings, (rpg_span){(const uint8_t *)name, sizeof(name)}, text(""));
    }
    CHECK(!taken);
    rpg_settings_free(&settings);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
