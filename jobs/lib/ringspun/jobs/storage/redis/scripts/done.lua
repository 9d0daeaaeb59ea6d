-- Takes jobs out of a node's lists and, if they were there, puts them where they go. ARGV: the namespace's prefix, the node,
-- then seven for each: queue, entry, jid, its lock or nothing, where it goes to (nothing, "retry", "schedule", "dead" or a
-- queue's key), the new entry, seconds from now on. Answers 1 for each that was there, and else 0.
--
-- What cannot be put where it goes stays in the list, and is the whole call's error when all others are done.
local ns, node = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local processed, failed, gone = 0, 0, {}
local refused
local answers = {}

-- The day and the second of a time in UTC, for there is no os.date. Years begin in March, so that the leap day is the last.
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

local function count(name, by)
  if by == 0 then return end
  local date, second = written(tonumber(time[1]))
  local of_day, of_second = ns .. 'stat:' .. name .. ':' .. date, ns .. 'stat:' .. name .. '_rt:' .. second
  redis.call('INCRBY', ns .. 'stat:' .. name, by)
  redis.call('INCRBY', of_day, by)
  redis.call('EXPIRE', of_day, 5 * 365 * 86400)
  redis.call('INCRBY', of_second, by)
  redis.call('EXPIRE', of_second, 120)
end

local function put(to, entry, delay)
  if to == '' then return true end
  local answer
  if to == 'retry' or to == 'schedule' or to == 'dead' then
    answer = redis.pcall('ZADD', ns .. to, string.format('%.6f', to == 'dead' and now or now + delay), entry)
  else
    answer = redis.pcall('RPUSH', ns .. to, entry)
    redis.pcall('SADD', ns .. 'queues', string.sub(to, #'queue:' + 1))
  end
  if type(answer) ~= 'table' then return true end
  refused = answer.err
end

for i = 3, #ARGV, 7 do
  local queue, entry, jid, lock, to = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local list = ns .. 'queue:backup::' .. node .. '::' .. queue
  local there = redis.call('LREM', list, -1, entry)
  answers[#answers + 1] = there
  if there == 1 and not put(to, ARGV[i + 5], tonumber(ARGV[i + 6])) then
    redis.call('RPUSH', list, entry)
  elseif there == 1 then
    if to == '' or to == 'retry' or to == 'dead' then processed = processed + 1 end
    if to == 'retry' or to == 'dead' then failed = failed + 1 end
    if lock ~= '' and redis.call('GET', ns .. 'unique:' .. lock) == jid then redis.call('DEL', ns .. 'unique:' .. lock) end
    gone[#gone + 1] = jid
  end
end
count('processed', processed)
count('failed', failed)
for _, hash in ipairs({ ns .. 'ringspun:recovered', ns .. 'ringspun:alone' }) do
  if #gone > 0 and redis.call('EXISTS', hash) == 1 then
    for i = 1, #gone, 1000 do redis.call('HDEL', hash, unpack(gone, i, math.min(i + 999, #gone))) end
  end
end
if refused then return redis.error_reply(refused) end
return answers
