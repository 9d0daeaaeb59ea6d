-- with: keys clock wake
-- Stores jobs that are due at a time. ARGV: the namespace's prefix, then two for each: the time, and the entry.
local schedule, first = key('schedule'), nil
for i = 2, #ARGV, 1000 do redis.call('ZADD', schedule, unpack(ARGV, i, math.min(i + 999, #ARGV))) end
for i = 2, #ARGV, 2 do
  local at = tonumber(ARGV[i])
  first = first and math.min(first, at) or at
end
wake(first, (clock()))
