#include "client/times.h"
#include "client/calendar.h"
#include "client/scanner.h"
#include "client/wrong_value.h"

#include <math.h>

/* In microseconds, in which the server counts: https://www.postgresql.org/docs/17/datatype-datetime.html */
#define SECOND_US INT64_C(1000000)

static ID id_jd;
static VALUE rpg_cDate, gregorian;

VALUE rpg_infinite(bool negative) { return rb_float_new(negative ? -INFINITY : INFINITY); }

/* Days since 1970, and microseconds beside them: all microseconds since 1970 have no room in 64 bits, as those since 2000 have. */
static VALUE time_of(int64_t days, int64_t us) {
    int64_t seconds = us / SECOND_US, rest = us % SECOND_US;
    if (rest < 0) {
        rest += SECOND_US;
        seconds--;
    }
    seconds += days * RPG_DAY_SECONDS;
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)rest * 1000};
    return rb_time_timespec_new(&time, INT_MAX - 1); /* UTC */
}

/* In one calendar for all times, as the server has it. */
static VALUE date_of_days(int64_t days) { return rb_funcall(rpg_cDate, id_jd, 2, LL2NUM(days + RPG_EPOCH_JD), gregorian); }

VALUE rpg_time_of_binary(rpg_span value) {
    if (value.len != 8) rpg_wrong_value("timestamp", value);
    int64_t us = (int64_t)rpg_load_u64(value.bytes);
    if (us == INT64_MAX || us == INT64_MIN) return rpg_infinite(us < 0);
    return time_of(RPG_EPOCH_DAYS, us);
}

VALUE rpg_date_of_binary(rpg_span value) {
    if (value.len != 4) rpg_wrong_value("date", value);
    int32_t days = (int32_t)rpg_load_u32(value.bytes);
    if (days == INT32_MAX || days == INT32_MIN) return rpg_infinite(days < 0);
    return date_of_days((int64_t)days + RPG_EPOCH_DAYS);
}

static rpg_date scan_date(rpg_scanner *s) {
    rpg_date date;
    date.year = rpg_scan_number(s, 4, 7);
    rpg_must_skip(s, '-');
    date.month = rpg_scan_number(s, 2, 2);
    rpg_must_skip(s, '-');
    date.day = rpg_scan_number(s, 2, 2);
    return date;
}

/* The year before 1 is 1 BC. */
static int64_t end_date(rpg_scanner *s, rpg_date date) {
    static const uint8_t bc[] = " BC";
    if (s->end - s->at == 3 && memcmp(s->at, bc, 3) == 0) {
        date.year = 1 - date.year;
        s->at += 3;
    }
    s->bad |= s->at != s->end || date.month < 1 || date.month > 12 || date.day < 1 || date.day > 31;
    return rpg_days_of(date.year, date.month, date.day);
}

static int64_t scan_fraction(rpg_scanner *s) {
    if (!rpg_skip(s, '.')) return 0;
    const uint8_t *begin = s->at;
    int64_t us = rpg_scan_number(s, 1, 6);
    for (long digits = s->at - begin; digits < 6; digits++) us *= 10;
    return us;
}

static int64_t scan_clock(rpg_scanner *s) {
    int64_t hours = rpg_scan_number(s, 2, 2);
    rpg_must_skip(s, ':');
    int64_t minutes = rpg_scan_number(s, 2, 2);
    rpg_must_skip(s, ':');
    int64_t seconds = rpg_scan_number(s, 2, 2);
    return ((hours * 60 + minutes) * 60 + seconds) * SECOND_US + scan_fraction(s);
}

/* +hh, +hh:mm or +hh:mm:ss; none is UTC. */
static int64_t scan_zone(rpg_scanner *s) {
    bool east = rpg_skip(s, '+');
    if (!east && !rpg_skip(s, '-')) return 0;
    int64_t seconds = rpg_scan_number(s, 2, 2) * 3600;
    if (rpg_skip(s, ':')) seconds += rpg_scan_number(s, 2, 2) * 60;
    if (rpg_skip(s, ':')) seconds += rpg_scan_number(s, 2, 2);
    return (east ? seconds : -seconds) * SECOND_US;
}

bool rpg_is_infinite(rpg_span value) { return rpg_is_text(value, "infinity") || rpg_is_text(value, "-infinity"); }

VALUE rpg_time_of_text(rpg_span value) {
    if (rpg_is_infinite(value)) return rpg_infinite(value.bytes[0] == '-');
    rpg_scanner s = rpg_scanner_over(value);
    rpg_date date = scan_date(&s);
    rpg_must_skip(&s, ' ');
    int64_t us = scan_clock(&s);
    us -= scan_zone(&s);
    int64_t days = end_date(&s, date);
    if (s.bad) rpg_wrong_value("timestamp", value);
    return time_of(days, us);
}

VALUE rpg_date_of_text(rpg_span value) {
    if (rpg_is_infinite(value)) return rpg_infinite(value.bytes[0] == '-');
    rpg_scanner s = rpg_scanner_over(value);
    int64_t days = end_date(&s, scan_date(&s));
    if (s.bad) rpg_wrong_value("date", value);
    return date_of_days(days);
}


void rpg_init_times(void) {
    id_jd = rb_intern("jd");
    rpg_cDate = rb_path2class("Date");
    gregorian = rb_const_get(rpg_cDate, rb_intern("GREGORIAN"));
    rb_global_variable(&rpg_cDate);
    rb_global_variable(&gregorian);
}
