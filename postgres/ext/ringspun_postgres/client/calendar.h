/* calendar: days since 1970 and dates, of the proleptic Gregorian calendar, which the server has for all times. The year before 1 is
 * 0, which is 1 BC: http://howardhinnant.github.io/date_algorithms.html */
#ifndef RINGSPUN_PG_CALENDAR_H
#define RINGSPUN_PG_CALENDAR_H

#include <stdint.h>

/* Of every day, for the server knows no leap seconds: https://www.postgresql.org/docs/17/functions-datetime.html (timezone) */
#define RPG_DAY_SECONDS 86400
/* POSTGRES_EPOCH_JDATE less UNIX_EPOCH_JDATE, and that one: datatype/timestamp.h of PostgreSQL. */
#define RPG_EPOCH_DAYS 10957    /* from 1970-01-01 to 2000-01-01, from which the server counts */
#define RPG_EPOCH_JD 2440588    /* of 1970-01-01 */

typedef struct { int64_t year, month, day; } rpg_date;

static inline int64_t rpg_days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline rpg_date rpg_date_of(int64_t days) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    rpg_date date = {year + era * 400, month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1};
    date.year += date.month <= 2;
    return date;
}

#endif
