-- with: keys
-- Adds measures of jobs to what Sidekiq's page of metrics shows, which are kept as long as by Sidekiq:
-- https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/metrics/tracking.rb
-- And to the totals of each class since ever, see Storage#measured.
-- ARGV: the namespace's prefix, how many classes have totals of their own, and the name of the others'; then for each measure the
-- keys of its minute, of its ten minutes and of its histogram, the class, how many were processed, how many have failed, the
-- milliseconds, how many numbers the histogram has, and these: an index and a count each.
local HOUR = 60 * 60
local known = key('ringspun:measured')

-- The key of a class's totals. Anybody may make up names of classes, so their number is limited.
local function totals_of(class)
  if redis.call('SISMEMBER', known, class) == 0 then
    if redis.call('SCARD', known) >= tonumber(ARGV[2]) then class = ARGV[3] end
    redis.call('SADD', known, class)
  end
  return key('ringspun:measured:' .. class)
end

local i = 4
while i < #ARGV do
  local class, processed, failed, milliseconds = ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local totals = totals_of(class)
  for name, seconds in pairs({ [ARGV[i]] = 8 * HOUR, [ARGV[i + 1]] = 72 * HOUR }) do
    local hash = key(name)
    redis.call('HINCRBY', hash, class .. '|p', processed)
    if failed ~= '0' then redis.call('HINCRBY', hash, class .. '|f', failed) end
    if processed ~= failed then redis.call('HINCRBY', hash, class .. '|ms', milliseconds) end
    redis.call('EXPIRE', hash, seconds)
  end
  redis.call('HINCRBY', totals, 'p', processed)
  redis.call('HINCRBY', totals, 'f', failed)
  redis.call('HINCRBY', totals, 'ms', milliseconds)
  local last = i + 7 + tonumber(ARGV[i + 7])
  for j = i + 8, last, 2 do
    redis.call('BITFIELD', key(ARGV[i + 2]), 'OVERFLOW', 'SAT', 'INCRBY', 'u16', '#' .. ARGV[j], ARGV[j + 1])
    redis.call('HINCRBY', totals, ARGV[j], ARGV[j + 1])
  end
  if last > i + 7 then redis.call('EXPIRE', key(ARGV[i + 2]), 8 * HOUR) end
  i = last + 1
end
