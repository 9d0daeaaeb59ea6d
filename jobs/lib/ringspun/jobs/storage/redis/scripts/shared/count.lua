-- The day and the second of a time in UTC, as text. Years begin in March here, so that the leap day is the last:
-- https://howardhinnant.github.io/date_algorithms.html#civil_from_days
-- Scripts have no os.date: https://redis.io/docs/latest/develop/programmability/lua-api/#os-library
local function written(seconds)
  local days, rest = math.floor(seconds / 86400) + 719468, seconds % 86400
  local era = math.floor(days / 146097)
  local day_of_era = days - era * 146097
  local year_of_era = math.floor((day_of_era - math.floor(day_of_era / 1460) + math.floor(day_of_era / 36524) -
    math.floor(day_of_era / 146096)) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + math.floor(year_of_era / 4) - math.floor(year_of_era / 100))
  local month = math.floor((5 * day_of_year + 2) / 153)
  local day = day_of_year - math.floor((153 * month + 2) / 5) + 1
  month = month < 10 and month + 3 or month - 9
  local year = era * 400 + year_of_era + (month <= 2 and 1 or 0)
  local date = string.format('%04d-%02d-%02d', year, month, day)
  return date, string.format('%s %02d:%02d:%02dZ', date, math.floor(rest / 3600), math.floor(rest / 60) % 60, rest % 60)
end

-- Counts in total, for the day (as Sidekiq and Exq do) and for the second (as Exq does):
-- https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/launcher.rb (flush_stats)
-- https://github.com/akira/exq/blob/master/lib/exq/redis/job_stat.ex (record_processed_commands)
local function count(name, by)
  if by == 0 then return end
  local date, second = written(tonumber(redis.call('TIME')[1]))
  local of_day, of_second = key('stat:' .. name .. ':' .. date), key('stat:' .. name .. '_rt:' .. second)
  redis.call('INCRBY', key('stat:' .. name), by)
  redis.call('INCRBY', of_day, by)
  redis.call('EXPIRE', of_day, 5 * 365 * 86400)
  redis.call('INCRBY', of_second, by)
  redis.call('EXPIRE', of_second, 120)
end
