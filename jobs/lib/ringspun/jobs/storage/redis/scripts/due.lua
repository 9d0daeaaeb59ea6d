-- with: keys clock jobs members priority enqueue wake
-- Moves jobs that are due into their queues.
-- ARGV: the namespace's prefix, how many at most, 1 to write times in milliseconds, and who calls or "".
-- Returns how many were moved, the seconds until the next is due or nothing (see Storage#due), and two for each that is no job and so is dead: the
-- entry and what is wrong with it.
local room = tonumber(ARGV[2])
local now, score, stamp = clock(ARGV[3])
local moved, wait, dead = 0, nil, {}
begin_writing()

-- cjson reads NaN and 1e999, and refuses to write them:
-- https://redis.io/docs/latest/develop/programmability/lua-api/#cjson-library
local function shown(value)
  local known, text = pcall(cjson.encode, value)
  return string.sub(known and text or tostring(value), 1, 100)
end

-- What is wrong, in the words of Wire.parse.
local function fault_of(entry, job)
  if type(job) ~= 'table' or not string.find(entry, '^%s*{') then return 'the entry is no JSON object' end
  for field, wanted in pairs({ class = 'string', args = 'table', jid = 'string', queue = 'string' }) do
    local value = job[field]
    if value == nil and field ~= 'queue' then return "the entry's " .. field .. ' is missing' end
    if value ~= nil and type(value) ~= wanted and not (field == 'queue' and value == cjson.null) then
      return "the entry's " .. field .. ' is ' .. shown(value)
    end
  end
  local queue = job['queue']
  if type(queue) == 'string' and is_reserved(queue) then return 'the queue ' .. shown(queue) .. ' is reserved' end
  return 'what has the name of its queue is no queue'
end

-- Returns the entry as it is kept among the dead, see Wire.blamed, and what is wrong with it. Its bytes stay as they are, but for
-- an earlier error in it: readers differ about two members of the same name.
local function bury(entry)
  local read, job = pcall(cjson.decode, entry)
  if not read then return entry, 'the entry is no JSON' end
  local fault = fault_of(entry, job)
  local text = string.find(entry, '^%s*{') and entry or '{"args":[' .. entry .. ']}'
  if type(job) == 'table' and (job['error_class'] or job['error_message'] or job['failed_at']) then
    text = without(text, { error_class = true, error_message = true, failed_at = true })
  end
  text = string.gsub(text, '%s*}%s*$', '')
  local comma = string.find(text, '{%s*$') and '' or ','
  return text .. comma .. string.format('"error_class":"Ringspun::Jobs::MalformedEntryError","error_message":%s,"failed_at":%s}',
    cjson.encode(fault), stamp), fault
end

for _, name in ipairs({ 'retry', 'schedule' }) do
  local set = key(name)
  local due = room > 0 and redis.call('ZRANGEBYSCORE', set, '-inf', score, 'LIMIT', 0, room) or {}
  for _, entry in ipairs(due) do
    if enqueue(entry, stamp) then
      moved = moved + 1
    else
      local buried, fault = bury(entry)
      redis.call('ZADD', key('dead'), score, buried)
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
deal()
if wait and not wakes_then(now + math.min(wait, 1e9), ARGV[4], now) then wait = nil end
return { moved, wait and string.format('%.6f', wait) or false, dead }
