-- Stores the job that six arguments from `i` on describe: queue, entry, jid, when it is due ("@" and seconds since the epoch, "+"
-- and seconds from now on, or ""), the lock or "", milliseconds to hold it after it is due. A push with a lock that is sent again
-- may find that its job has run and released the lock, so its jid is kept for `again` milliseconds.
-- Returns "" (stored), "=" and the jid that holds its lock, or "!" and why it could not be stored.
local function due_at(text, now)
  if text == '' then return nil end
  local at = tonumber(string.sub(text, 2))
  return string.sub(text, 1, 1) == '+' and now + at or at
end

local function store(queue, entry, at, now)
  local stored
  if at then
    stored = redis.pcall('ZADD', key('schedule'), string.format('%.6f', at), entry)
    if type(stored) ~= 'table' then wake(at, now) end
  else
    stored = line_up(queue, entry, 'LPUSH')
  end
  if type(stored) == 'table' then return stored.err end
  if not at then redis.pcall('SADD', key('queues'), queue) end
end

-- Redis refuses times that its clock does not reach: 1e17 milliseconds are 3 million years.
local function take_lock(lock, jid, at, lasts, now)
  local until_then = math.min(math.ceil(lasts + (at and math.max(at - now, 0) * 1000 or 0)), 1e17)
  local taken = redis.pcall('SET', lock, jid, 'NX', 'PX', string.format('%.0f', until_then))
  if type(taken) == 'table' and taken.err then return '!' .. taken.err end
  if taken then return nil end
  local holder = redis.pcall('GET', lock)
  if type(holder) == 'table' then return '!' .. holder.err end
  return holder == jid and '' or '=' .. (holder or '')
end

local function push(i, now, again)
  local queue, entry, jid, at = ARGV[i], ARGV[i + 1], ARGV[i + 2], due_at(ARGV[i + 3], now)
  if ARGV[i + 4] == '' then
    local refused = store(queue, entry, at, now)
    return refused and '!' .. refused or ''
  end
  local lock, before = lock_key(ARGV[i + 4]), key('ringspun:pushed:' .. jid)
  if redis.call('EXISTS', before) == 1 then return '' end
  local answer = take_lock(lock, jid, at, ARGV[i + 5], now)
  if answer then return answer end
  local refused = store(queue, entry, at, now)
  if refused then
    redis.call('DEL', lock)
    return '!' .. refused
  end
  redis.call('SET', before, '1', 'PX', again)
  return ''
end
