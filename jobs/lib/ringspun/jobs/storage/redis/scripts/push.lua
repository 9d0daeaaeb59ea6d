-- with: keys clock
-- Stores jobs that need the server's clock or a lock. A push with a lock that is sent again may find that its job has run and
-- released the lock, so its jid is kept for a while.
-- ARGV: the namespace's prefix, milliseconds within which a push with a lock may be sent again, then six for each push: queue,
-- entry, jid, when it is due ("@" and seconds since the epoch, "+" and seconds from now on, or ""), the lock or "", milliseconds
-- to hold it after it is due.
-- Returns for each: "" (stored), "=" and the jid that holds its lock, or "!" and why it could not be stored.
local again = ARGV[2]
local now = clock()
local answers = {}

local function time_of(text)
  if text == '' then return nil end
  local at = tonumber(string.sub(text, 2))
  return string.sub(text, 1, 1) == '+' and now + at or at
end

local function store(queue, entry, at)
  local stored
  if at then
    stored = redis.pcall('ZADD', key('schedule'), string.format('%.6f', at), entry)
  else
    stored = redis.pcall('LPUSH', queue_key(queue), entry)
  end
  return type(stored) == 'table' and stored.err or nil
end

local function until_then(at, lasts)
  return string.format('%.0f', math.ceil(lasts + (at and math.max(at - now, 0) * 1000 or 0)))
end

for i = 3, #ARGV, 6 do
  local queue, entry, jid, at = ARGV[i], ARGV[i + 1], ARGV[i + 2], time_of(ARGV[i + 3])
  local lock, lasts = ARGV[i + 4], ARGV[i + 5]
  local held = lock ~= '' and lock_key(lock)
  local before = held and key('ringspun:pushed:' .. jid)
  local known = before and redis.call('EXISTS', before) == 1
  local taken = held and not known and redis.pcall('SET', held, jid, 'NX', 'PX', until_then(at, lasts))
  local answer = ''
  if type(taken) == 'table' and taken.err then
    answer = '!' .. taken.err
  elseif held and not known and not taken then
    local holder = redis.pcall('GET', held)
    if type(holder) == 'table' then
      answer = '!' .. holder.err
    elseif holder ~= jid then
      answer = '=' .. (holder or '')
    end
  elseif not known then
    local refused = store(queue, entry, at)
    if refused then
      answer = '!' .. refused
      if held then redis.call('DEL', held) end
    else
      if not at then redis.pcall('SADD', key('queues'), queue) end
      if held then redis.call('SET', before, '1', 'PX', again) end
    end
  end
  answers[#answers + 1] = answer
end
return answers
