-- with: keys cron
-- Returns for each entry its name, when it was last seen, its fields, and its runs. ARGV: the namespace's prefix.
local found = {}
local names = redis.call('ZRANGE', all_crons, 0, -1, 'WITHSCORES')
for i = 1, #names, 2 do
  local fields = redis.call('HMGET', cron_key(names[i]), 'source', 'schedule', 'text', 'tick', 'paused')
  if fields[4] then found[#found + 1] = { names[i], names[i + 1], fields, redis.call('LRANGE', cron_runs_key(names[i]), 0, -1) } end
end
return found
