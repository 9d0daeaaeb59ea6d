-- Moves what is due into its queue. ARGV: the namespace's prefix, how many at most, 1 to write times in
-- milliseconds. Answers how many were moved, and the seconds
-- until the next is due or nothing.
local ns, room = ARGV[1], tonumber(ARGV[2])
local now = redis.call('TIME')
now = now[1] + now[2] / 1000000
local score = string.format('%.6f', now)
local stamp = ARGV[3] == '1' and string.format('%.0f', now * 1000) or score
local moved, wait = 0, nil

local function queue_of(entry)
  local read, job = pcall(cjson.decode, entry)
  if not read or type(job) ~= 'table' then return nil end
  if type(job['class']) ~= 'string' or type(job['args']) ~= 'table' or type(job['jid']) ~= 'string' then return nil end
  local queue = job['queue']
  if queue == nil or queue == cjson.null then queue = 'default' end
  if type(queue) ~= 'string' or not string.find(entry, '^%s*{') then return nil end
  return queue, job['enqueued_at'] == nil
end

-- Not by cjson, which would turn an empty array into an object.
local function stamped(entry, missing)
  if not missing then return entry end
  local _, brace = string.find(entry, '^%s*{')
  return '{"enqueued_at":' .. stamp .. ',' .. string.sub(entry, brace + 1)
end

local function enqueue(entry)
  local queue, missing = queue_of(entry)
  if not queue then return false end
  local pushed = redis.pcall('LPUSH', ns .. 'queue:' .. queue, stamped(entry, missing))
  if type(pushed) == 'table' then
    if string.find(pushed.err, '^WRONGTYPE') then return false end
    error(pushed.err)
  end
  redis.call('SADD', ns .. 'queues', queue)
  return true
end

redis.call('HDEL', ns .. 'ringspun:gone', '') -- see fetch.lua
for _, name in ipairs({ 'retry', 'schedule' }) do
  local set = ns .. name
  local due = room > 0 and redis.call('ZRANGEBYSCORE', set, '-inf', score, 'LIMIT', 0, room) or {}
  for _, entry in ipairs(due) do
    if enqueue(entry) then
      moved = moved + 1
    else
      redis.call('ZADD', ns .. 'dead', score, entry)
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
