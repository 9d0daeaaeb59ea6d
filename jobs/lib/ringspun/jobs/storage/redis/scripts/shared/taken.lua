-- The oldest jobs are at the right of the list, and most often among the first to be done. But where most of a node's jobs wait
-- for long, those that are done are among the newest. LREM from the end where the entry is compares fewest:
-- https://redis.io/docs/latest/commands/lrem/
local function take(list, entry)
  local oldest = redis.call('LPOS', list, entry, 'RANK', -1, 'MAXLEN', 32)
  local newest = not oldest and redis.call('LPOS', list, entry, 'MAXLEN', math.floor(redis.call('LLEN', list) / 8))
  return redis.call('LREM', list, newest and 1 or -1, entry)
end

-- Forgets how often jobs were taken over and what has become of them in the quarantine.
local function forget_runs(jids)
  for _, hash in ipairs({ key('ringspun:recovered'), key('ringspun:alone') }) do
    if #jids > 0 and redis.call('EXISTS', hash) == 1 then
      for i = 1, #jids, 1000 do redis.call('HDEL', hash, unpack(jids, i, math.min(i + 999, #jids))) end
    end
  end
end
