-- with: clock jobs enqueue
-- Moves what is due into its queue. ARGV: the namespace's prefix, how many at most, 1 to write times in milliseconds. Answers
-- how many were moved, the seconds until the next is due or nothing, and two for each that is no job and so is dead: the entry
-- and what is wrong with it.
local ns, room = ARGV[1], tonumber(ARGV[2])
local now, score, stamp = clock(ARGV[3])
local moved, wait, dead = 0, nil, {}
redis.call('HDEL', ns .. 'ringspun:gone', '') -- see fetch.lua

-- What JSON has no form for (NaN, 1e999) can be read here, and not be written.
local function shown(value)
  local known, text = pcall(cjson.encode, value)
  return string.sub(known and text or tostring(value), 1, 100)
end

-- In the words of Wire.parse.
local function fault_of(entry, job)
  if type(job) ~= 'table' or not string.find(entry, '^%s*{') then return 'the entry is no JSON object' end
  for field, wanted in pairs({ class = 'string', args = 'table', jid = 'string', queue = 'string' }) do
    local value = job[field]
    if value == nil and field ~= 'queue' then return "the entry's " .. field .. ' is missing' end
    if value ~= nil and type(value) ~= wanted and not (field == 'queue' and value == cjson.null) then
      return "the entry's " .. field .. ' is ' .. shown(value)
    end
  end
  return 'what has the name of its queue is no queue'
end

-- As it stands among the dead, see Wire.blamed, and what is wrong with it. Its bytes stay as they are, unless it has said before
-- why it has failed: no reader likes a name twice.
local function bury(entry)
  local read, job = pcall(cjson.decode, entry)
  if not read then return entry, 'the entry is no JSON' end
  local fault = fault_of(entry, job)
  local fields = { error_class = 'Ringspun::Jobs::MalformedEntryError', error_message = fault, failed_at = tonumber(stamp) }
  local text = string.find(entry, '^%s*{') and entry or '{"args":[' .. entry .. ']}'
  if type(job) == 'table' and (job['error_class'] or job['error_message'] or job['failed_at']) then
    for name, value in pairs(fields) do job[name] = value end
    local known, again = pcall(cjson.encode, job)
    if known then return again, fault end
  end
  text = string.gsub(text, '%s*}%s*$', '')
  local comma = string.find(text, '{%s*$') and '' or ','
  return text .. comma .. string.format('"error_class":%s,"error_message":%s,"failed_at":%s}',
    cjson.encode(fields.error_class), cjson.encode(fault), stamp), fault
end

for _, name in ipairs({ 'retry', 'schedule' }) do
  local set = ns .. name
  local due = room > 0 and redis.call('ZRANGEBYSCORE', set, '-inf', score, 'LIMIT', 0, room) or {}
  for _, entry in ipairs(due) do
    if enqueue(ns, entry, stamp) then
      moved = moved + 1
    else
      local buried, fault = bury(entry)
      redis.call('ZADD', ns .. 'dead', score, buried)
      dead[#dead + 1] = buried
      dead[#dead + 1] = fault
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
return { moved, wait and string.format('%.6f', wait) or false, dead }
