-- with: clock jobs enqueue
-- Moves what is due into its queue. ARGV: the namespace's prefix, how many at most, 1 to write times in milliseconds. Answers
-- how many were moved, and the seconds until the next is due or nothing.
local ns, room = ARGV[1], tonumber(ARGV[2])
local now, score, stamp = clock(ARGV[3])
local moved, wait = 0, nil
redis.call('HDEL', ns .. 'ringspun:gone', '') -- see fetch.lua

-- See Wire.shown.
local function shown(entry)
  local read = pcall(cjson.decode, entry)
  return read and not string.find(entry, '^%s*{') and '{"args":[' .. entry .. ']}' or entry
end

for _, name in ipairs({ 'retry', 'schedule' }) do
  local set = ns .. name
  local due = room > 0 and redis.call('ZRANGEBYSCORE', set, '-inf', score, 'LIMIT', 0, room) or {}
  for _, entry in ipairs(due) do
    if enqueue(ns, entry, stamp) then
      moved = moved + 1
    else
      redis.call('ZADD', ns .. 'dead', score, shown(entry))
    end
    redis.call('ZREM', set, entry)
  end
  room = room - #due
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if first[2] then
    local left = math.max(tonumber(first[2]) - now, 0)
    wait = wait and math.min(wait, left) or left
  end
end
return { moved, wait and string.format('%.6f', wait) or false }
