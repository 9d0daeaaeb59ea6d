#include "codec/date.h"

#include <string.h>

/* 9999-12-31 23:59:59, for the year has four digits. */
#define SECOND_MAX INT64_C(253402300799)

enum { SECONDS_A_DAY = 86400 };

typedef struct {
    uint32_t year;
    uint32_t month;             /* 0: January */
    uint32_t day;
} calendar_day;

/* Civil from days, with years that begin in March: https://howardhinnant.github.io/date_algorithms.html#civil_from_days */
static calendar_day day_of(uint32_t days_since_1970) {
    uint32_t days = days_since_1970 + 719468, era = days / 146097, of_era = days % 146097;
    uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_year = of_era - (365 * year + year / 4 - year / 100), march_month = (5 * of_year + 2) / 153;
    uint32_t month = march_month < 10 ? march_month + 2 : march_month - 10;
    return (calendar_day){year + era * 400 + (month < 2), month, of_year - (153 * march_month + 2) / 5 + 1};
}

static char *put_digits(char *to, uint32_t number, int count) {
    for (int i = count; i-- > 0; number /= 10) to[i] = (char)('0' + number % 10);
    return to + count;
}

static char *put(char *to, const char *from, size_t len) { return (char *)memcpy(to, from, len) + len; }

static void write_date(char *to, int64_t second) {
    static const char weekdays[] = "Thu, Fri, Sat, Sun, Mon, Tue, Wed, ",
                      months[] = " Jan  Feb  Mar  Apr  May  Jun  Jul  Aug  Sep  Oct  Nov  Dec ";
    uint32_t days = (uint32_t)(second / SECONDS_A_DAY), rest = (uint32_t)(second % SECONDS_A_DAY);
    calendar_day day = day_of(days);
    to = put_digits(put(to, weekdays + days % 7 * 5, 5), day.day, 2); /* 1970-01-01 was a Thursday */
    to = put_digits(put(to, months + (size_t)day.month * 5, 5), day.year, 4);
    *to++ = ' ';
    to = put_digits(to, rest / 3600, 2);
    *to++ = ':';
    to = put_digits(to, rest / 60 % 60, 2);
    *to++ = ':';
    put(put_digits(to, rest % 60, 2), " GMT", 4);
}

const char *rhttp_date_at(rhttp_date *date, int64_t second) {
    if (second < 0) second = 0;
    if (second > SECOND_MAX) second = SECOND_MAX;
    if (date->second != second || !date->text[0]) {
        write_date(date->text, second);
        date->second = second;
    }
    return date->text;
}
